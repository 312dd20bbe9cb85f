package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// A Timeline prints a line for what a person wants to see of a run: who does
// what, how long it took, what it cost in tokens. It reads nothing but the
// log, so it shows a run that goes on and one that is long over alike.
type Timeline struct {
	Out   io.Writer
	Tally *Tally
	// Plain leaves out colours.
	Plain bool

	start time.Time
}

// Record prints what there is to say of r, which Tally has seen.
func (t *Timeline) Record(r session.Record) error {
	if t.start.IsZero() {
		t.start = r.Time
	}
	a := t.Tally.agents[r.Agent]
	for _, line := range t.lines(a, r.Event) {
		_, err := fmt.Fprintf(t.Out, "%7.2fs  %s%s%s\n", r.Time.Sub(t.start).Seconds(), strings.Repeat("  ", a.depth), t.name(a), line)
		if err != nil {
			return fmt.Errorf("write the timeline: %w", err)
		}
	}
	return nil
}

// name is an agent's name, in a colour of its own.
func (t *Timeline) name(a *agent) string {
	name := a.id
	if a.call != "" {
		name = a.definition
	}
	name = fmt.Sprintf("%-*s ", max(8, 16-2*a.depth), OneLine(name, 20))
	if t.Plain {
		return name
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", []int{1, 36, 33, 35}[a.depth%4], name)
}

func (t *Timeline) lines(a *agent, ev troupe.Event) []string {
	switch ev := ev.(type) {
	case troupe.Started:
		return []string{fmt.Sprintf("starts (%s)", OneLine(ev.Request.Model, 60))}
	case troupe.Replied:
		return replyLines(ev)
	case troupe.ToolEnded:
		return []string{fmt.Sprintf("%s %s  %s", mark(ev.Result.IsError), label(a.uses[ev.Use]), took(ev.Took))}
	case troupe.Decided:
		if ev.Verdict.Effect != troupe.Allow {
			return []string{"denied: " + OneLine(ev.Verdict.Reason, 120)}
		}
	case troupe.Retrying:
		return []string{fmt.Sprintf("waits %s for the provider: %s", took(ev.After), OneLine(ev.Cause, 100))}
	case troupe.Compacting:
		return []string{fmt.Sprintf("puts its conversation together (%s, about %s tokens)", OneLine(ev.Trigger, 20), group(ev.Tokens))}
	case troupe.Compacted:
		return []string{fmt.Sprintf("goes on with a summary (%s, %s tokens)", took(ev.Took), tokens(ev.Usage))}
	case troupe.NotCompacted:
		return []string{"keeps its conversation as it is: " + OneLine(ev.Err, 120)}
	case troupe.Waiting:
		return []string{waiting(ev, 100)}
	case troupe.Switched:
		if ev.Cause != "" && ev.Model != "" {
			return []string{switched(ev, 120)}
		}
	case troupe.Ended:
		if ev.Reason == troupe.Done {
			return []string{fmt.Sprintf("done: %s, %s tokens", plural(ev.Turns, "turn"), tokens(ev.Usage))}
		}
		return []string{fmt.Sprintf("ends (%s): %s", OneLine(string(ev.Reason), 20), OneLine(ev.Err, 120))}
	}
	return nil
}

func replyLines(ev troupe.Replied) (out []string) {
	if text := ev.Message.Content.Text(); strings.TrimSpace(text) != "" {
		out = append(out, "says "+OneLine(text, 110))
	}
	for _, u := range ev.Message.ToolUses() {
		out = append(out, "→ "+label(u))
	}
	return out
}

// label is a call in a few words.
func label(u troupe.ToolUse) string {
	if u.Name == "" {
		return "a call of the run before, which was cut off"
	}
	name := OneLine(u.Name, 40)
	var in map[string]any
	if json.Unmarshal(u.Input, &in) != nil {
		return name
	}
	text := func(field string) string {
		s, _ := in[field].(string)
		return s
	}
	if u.Name == "Agent" {
		return OneLine(fmt.Sprintf("Agent %s: %s", text("subagent_type"), text("description")), 90)
	}
	for _, field := range []string{"command", "file_path", "notebook_path", "url", "pattern", "path"} {
		if s := text(field); s != "" {
			return name + " " + OneLine(s, 80)
		}
	}
	return name
}

func mark(isError bool) string {
	if isError {
		return "✗"
	}
	return "✓"
}

func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
