package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/prefix"
	"github.com/troupe-sh/troupe/session"
)

// A Cache prints what the requests of a session could read from their providers'
// prompt caches.
type Cache struct {
	Session string
	Report  prefix.Report
	Each    bool // a line for each request, too
}

// hit is the share of what was read that came from the cache, in percent.
func hit(u troupe.Usage) string {
	all := u.Input + u.CacheRead + u.CacheWrite
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(u.CacheRead)/float64(all))
}

// Text prints it for people.
func (c Cache) Text(w io.Writer) error {
	rows := [][]string{{"AGENT", "REQUESTS", "READ", "FROM CACHE", "SHARE"}}
	row := func(name string, n int, u troupe.Usage) {
		rows = append(rows, []string{name, group(n), group(u.Input + u.CacheRead + u.CacheWrite), group(u.CacheRead), hit(u)})
	}
	all, each, lost := 0, [][]string{{"REQUEST", "BYTES", "AS BEFORE", "OF", "READ", "FROM CACHE"}}, ""
	for _, a := range c.Report.Agents {
		row(strings.Repeat("  ", min(max(a.Depth, 0), deepest))+agentName(a), len(a.Requests), a.Usage)
		all += len(a.Requests)
		for _, r := range a.Requests {
			u := r.Usage
			each = append(each, []string{requestName(prefix.Ref{Agent: a.ID, Number: r.Number}), group(r.Bytes), group(r.Shared), requestName(r.With),
				group(u.Input + u.CacheRead + u.CacheWrite), group(u.CacheRead)})
			lost += lostLines(a, r)
		}
	}
	rows = append(rows, nil)
	row("in all", all, c.Report.Usage)
	text := aligned(rows)
	if c.Each {
		text += "\n" + aligned(each)
	}
	switch {
	case lost != "":
		text += "\n" + lost
	case c.Report.Cache:
		text += "\nEach request goes on with the bytes of those before, and was read from the cache as far.\n"
	}
	if !c.Report.Cache && c.Report.Usage != (troupe.Usage{}) {
		text += "\nThe providers have told of no cache.\n"
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write what was read from the cache: %w", err)
	}
	return nil
}

func agentName(a prefix.Agent) string {
	if a.ID == session.Lead {
		return a.ID
	}
	return OneLine(a.Definition+" "+a.ID, 40)
}

func requestName(r prefix.Ref) string {
	if r.Number == 0 {
		return "-"
	}
	return fmt.Sprintf("%s #%d", OneLine(r.Agent, 20), r.Number)
}

// lostLines tells of what one request has paid for again.
func lostLines(a prefix.Agent, r prefix.Request) (text string) {
	name := requestName(prefix.Ref{Agent: a.ID, Number: r.Number})
	if b := r.Break; b != nil {
		why := ""
		if b.Cause != "" {
			why = " (" + b.Cause + ")"
		}
		text += fmt.Sprintf("%s breaks with %s at byte %s, in %s%s: %s\n", name, requestName(b.Of), group(b.At), OneLine(b.Part, 60), why, paid(b.Loss))
	}
	if r.Missed != nil {
		text += fmt.Sprintf("%s begins with the first %s bytes of %s, sent %s before, and was not read from the cache: %s\n",
			name, group(r.Shared), requestName(r.With), took(r.After.Round(time.Millisecond)), paid(*r.Missed))
	}
	return text
}

// paid is a loss in words.
func paid(l prefix.Loss) string {
	switch {
	case l.Tokens == 0:
		return "nothing was paid again, as far as is known"
	case !l.Priced:
		return "about " + group(l.Tokens) + " tokens paid again, at a price that is not known"
	}
	return fmt.Sprintf("about %s tokens paid again, %s", group(l.Tokens), Money(l.Dollars, true))
}

// JSON prints it as one object.
func (c Cache) JSON(w io.Writer) error {
	agents := []object{}
	for _, a := range c.Report.Agents {
		requests := []object{}
		for _, r := range a.Requests {
			requests = append(requests, requestObject(r))
		}
		agents = append(agents, object{"agent_id": a.ID, "agent_type": a.Definition, "parent_id": null(a.Parent), "depth": a.Depth,
			"usage": usage(a.Usage), "hit_share": share(a.Usage), "requests": requests})
	}
	return printJSON(w, object{"type": "cache", "session_id": c.Session, "usage": usage(c.Report.Usage), "hit_share": share(c.Report.Usage),
		"reports_cache": c.Report.Cache, "agents": agents, "notes": list(c.Report.Notes)})
}

// share is the part of what was read that came from the cache, from 0 to 1.
func share(u troupe.Usage) any {
	if all := u.Input + u.CacheRead + u.CacheWrite; all > 0 {
		return float64(u.CacheRead) / float64(all)
	}
	return nil
}

func requestObject(r prefix.Request) object {
	o := object{"number": r.Number, "time": r.Sent, "model": r.Model, "bytes": r.Bytes, "shared_bytes": r.Shared, "shared_with": ref(r.With),
		"usage": usage(r.Usage), "summary": r.Summary, "break": nil, "missed": nil}
	if b := r.Break; b != nil {
		broken := lossObject(b.Loss)
		broken["with"], broken["at_byte"], broken["part"], broken["cause"] = ref(b.Of), b.At, b.Part, null(b.Cause)
		o["break"] = broken
	}
	if r.Missed != nil {
		missed := lossObject(*r.Missed)
		missed["after_ms"] = r.After.Milliseconds()
		o["missed"] = missed
	}
	return o
}

func ref(r prefix.Ref) any {
	if r.Number == 0 {
		return nil
	}
	return object{"agent_id": r.Agent, "number": r.Number}
}

func lossObject(l prefix.Loss) object {
	o := object{"tokens": l.Tokens, "cost_usd": nil}
	if l.Priced {
		o["cost_usd"] = NewAmount(l.Dollars)
	}
	return o
}
