package config

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ModelFacts are what the user says of a model. What is 0 or nil is not said.
type ModelFacts struct {
	Provider, Name string
	Window         int    // tokens of request and reply together
	MaxOutput      int    // tokens of a reply
	Price          *Price // a model may cost nothing
	Source         string // file that has said something of it last
}

// A Price is in dollars for a million tokens.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// Environ returns env with the variables of the settings on top, the
// environment of troupe itself and of the programs that it starts.
func (c *Config) Environ(env []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		for own := range c.Env {
			if own == name || runtime.GOOS == "windows" && strings.EqualFold(own, name) {
				return true
			}
		}
		return false
	})
	for _, name := range sortedKeys(c.Env) {
		out = append(out, name+"="+c.Env[name].Text)
	}
	return out
}

// env takes variables.
func (r *settingsReader) env(f field) {
	if !r.object(f) {
		return
	}
	if !r.from.trusted {
		if len(f.value.fields) > 0 {
			r.l.withhold(r.from.source, fmt.Sprintf("%d variable(s) of env", len(f.value.fields)))
		}
		return
	}
	for _, v := range f.value.fields {
		switch {
		case v.value.kind == isNull:
			continue
		case v.value.kind == isList, v.value.kind == isObject:
			r.problems = append(r.problems, v.value.wrong(r.from.source, "env."+v.key, isText))
			continue
		case v.key == "" || strings.ContainsAny(v.key, "=\x00"):
			r.wrong(v, "env: %q is no name of a variable", v.key)
			continue
		case strings.Contains(v.value.text, "\x00"):
			r.wrong(v, "env.%s: a variable cannot hold a NUL", v.key)
			continue
		case v.key == "TROUPE_HOME":
			r.wrong(v, "env.TROUPE_HOME comes too late: settings are read from there; set it before troupe starts")
			continue
		}
		r.l.cfg.Env[v.key] = Value{v.value.text, r.from.source}
		if r.l.src.Reaches != nil && r.l.src.Reaches(v.key) {
			r.reach("env." + v.key)
		}
	}
}

// connections takes how servers are reached.
func (r *settingsReader) connections(f field) {
	if !r.object(f) {
		return
	}
	if !r.from.trusted {
		if len(f.value.fields) > 0 {
			r.l.withhold(r.from.source, f.key)
		}
		return
	}
	for _, v := range f.value.fields {
		var to *Value
		switch v.key {
		case "proxy":
			to = &r.l.cfg.Proxy
		case "noProxy":
			to = &r.l.cfg.NoProxy
		case "caFile":
			to = &r.l.cfg.CAFile
		default:
			r.unknown(v, "network.", []string{"proxy", "noProxy", "caFile"})
			continue
		}
		was := *to
		r.set(to, v)
		if *to == was {
			continue
		}
		if v.key == "caFile" {
			to.Text = r.l.absolute(r.from.root, to.Text)
		}
		r.reach("network." + v.key)
	}
}

// reach notes that a project decides how models are reached, which its user is told.
func (r *settingsReader) reach(what string) {
	if r.from.project {
		r.l.cfg.Reach = append(r.l.cfg.Reach, r.l.show(r.from.source)+": "+what)
	}
}

// passKeys takes the names of variables of providers' keys that programs get.
func (r *settingsReader) passKeys(f field) {
	texts, bad := r.texts(f)
	r.problems = append(r.problems, bad...)
	if !r.from.trusted {
		if len(texts) > 0 {
			r.l.withhold(r.from.source, f.key)
		}
		return
	}
	for _, t := range texts {
		r.l.cfg.PassKeys = append(r.l.cfg.PassKeys, Value{t, r.from.source})
	}
}

// catalogue takes what the user knows of models.
func (r *settingsReader) catalogue(f field) {
	if !r.object(f) {
		return
	}
	if !r.from.trusted { // a price decides when a limit of money is reached
		if len(f.value.fields) > 0 {
			r.l.withhold(r.from.source, f.key)
		}
		return
	}
	for _, m := range f.value.fields {
		provider, name, ok := strings.Cut(m.key, "/")
		if !ok || provider == "" || name == "" {
			r.wrong(m, "catalogue: %q is not the whole name of a model, as in openai/%s", m.key, m.key)
			continue
		}
		if !r.object(m) || m.value.kind == isNull {
			continue
		}
		facts := r.l.cfg.Catalogue[m.key]
		facts.Provider, facts.Name, facts.Source = provider, name, r.from.source
		r.facts(&facts, m)
		r.l.cfg.Catalogue[m.key] = facts
	}
}

func (r *settingsReader) facts(to *ModelFacts, m field) {
	for _, f := range m.value.fields {
		switch f.key {
		case "window":
			r.count(&to.Window, f)
		case "maxOutput":
			r.count(&to.MaxOutput, f)
		case "price":
			if r.object(f) && f.value.kind != isNull {
				r.price(to, f)
			}
		default:
			r.unknown(f, "catalogue."+m.key+".", []string{"window", "maxOutput", "price"})
		}
	}
}

// price takes a price as a whole: a part of one would leave another's in place.
func (r *settingsReader) price(to *ModelFacts, f field) {
	var in, out, read, write *float64
	for _, p := range f.value.fields {
		switch p.key {
		case "input":
			r.number(&in, p)
		case "output":
			r.number(&out, p)
		case "cacheRead":
			r.number(&read, p)
		case "cacheWrite":
			r.number(&write, p)
		default:
			r.unknown(p, "price.", []string{"input", "output", "cacheRead", "cacheWrite"})
		}
	}
	if in == nil || out == nil {
		r.wrong(f, "price needs input and output, in dollars for a million tokens")
		return
	}
	if read == nil {
		read = in // what no price is told of costs what any input costs
	}
	if write == nil {
		write = in
	}
	to.Price = &Price{*in, *out, *read, *write}
}

// count takes a number of tokens.
func (r *settingsReader) count(to *int, f field) {
	var n *float64
	if r.number(&n, f); n == nil {
		return
	}
	if *n != float64(int(*n)) || *n == 0 {
		r.wrong(f, "%s cannot be %s", f.key, f.value.text)
		return
	}
	*to = int(*n)
}

// number takes a number that is not negative.
func (r *settingsReader) number(to **float64, f field) {
	if f.value.kind == isNull {
		return
	}
	if f.value.kind != isNumber {
		r.problems = append(r.problems, f.value.wrong(r.from.source, f.key, isNumber))
		return
	}
	n, err := strconv.ParseFloat(f.value.text, 64)
	if err != nil || n < 0 || n > 1e12 {
		r.wrong(f, "%s cannot be %s", f.key, f.value.text)
		return
	}
	*to = &n
}

// object says whether f holds an object, or nothing, and notes it if not.
func (r *settingsReader) object(f field) bool {
	if f.value.kind == isObject || f.value.kind == isNull {
		return true
	}
	r.problems = append(r.problems, f.value.wrong(r.from.source, f.key, isObject))
	return false
}

// wrong notes a mistake in the value of f.
func (r *settingsReader) wrong(f field, format string, args ...any) {
	r.problems = append(r.problems, Problem{r.from.source, f.value.line, f.value.col, fmt.Sprintf(format, args...)})
}

// IsManaged says whether a value is the word of the machine's owner, which no
// flag can change.
func (c *Config) IsManaged(v Value) bool { return slices.Contains(c.Managed, v.Source) }
