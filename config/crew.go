package config

import "time"

// A Crew is what settings say of the agents below the lead, and of work in the
// background. What is 0 or nil is not said. Of each value the strongest layer's
// counts; a file that is not trusted can only switch the background off.
type Crew struct {
	Concurrent int   // agents at work at one moment
	Total      int   // agents in one run
	Depth      int   // how deep they nest
	Fork       *bool // an agent of no type is a fork

	Foreground bool          // nothing works in the background
	Wait       time.Duration // of -p for agents, once the answer is given
	WaitOthers time.Duration // for what runs without agents

	entries map[string]Entry // what is shown of the values, by key
}

// crew merges the keys agents and background.
func (r *settingsReader) crew(of field) {
	if !r.object(of) {
		return
	}
	known := []string{"concurrent", "total", "depth", "fork"}
	if of.key == "background" {
		known = []string{"enabled", "wait", "waitOthers"}
	}
	c := &r.l.cfg.Crew
	for _, f := range of.value.fields {
		key := of.key + "." + f.key
		switch {
		case f.value.kind == isNull:
			continue
		case key == "background.enabled":
			r.enabled(f, key)
			continue
		case !r.from.trusted:
			r.l.withhold(r.from.source, key)
			continue
		}
		before := len(r.problems)
		switch key {
		case "agents.concurrent":
			r.count(&c.Concurrent, f)
		case "agents.total":
			r.count(&c.Total, f)
		case "agents.depth":
			r.count(&c.Depth, f)
		case "agents.fork":
			if yes := r.truth(key, f, &r.problems); yes != nil {
				c.Fork = yes
			}
		case "background.wait":
			r.wait(&c.Wait, f)
		case "background.waitOthers":
			r.wait(&c.WaitOthers, f)
		default:
			r.unknown(f, of.key+".", known)
			continue
		}
		if len(r.problems) == before {
			r.note(c, key, f)
		}
	}
}

// enabled takes background.enabled. It takes away only: nobody can switch on what
// another has switched off.
func (r *settingsReader) enabled(f field, key string) {
	yes := r.truth(key, f, &r.lost)
	if yes == nil || *yes {
		return
	}
	c := &r.l.cfg.Crew
	c.Foreground = true
	r.note(c, key, f)
}

// wait takes a time; one that cannot be read leaves the one before.
func (r *settingsReader) wait(to *time.Duration, f field) {
	if d := r.duration(f); d > 0 {
		*to = d
	}
}

// note keeps what is shown of a value.
func (r *settingsReader) note(c *Crew, key string, f field) {
	if c.entries == nil {
		c.entries = map[string]Entry{}
	}
	c.entries[key] = Entry{key, f.value.text, r.from.source}
}

// shown are the values that count.
func (c *Crew) shown() (out []Entry) {
	for _, key := range sortedKeys(c.entries) {
		out = append(out, c.entries[key])
	}
	return out
}
