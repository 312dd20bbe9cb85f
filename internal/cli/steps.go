package cli

import (
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// Steps says in lines what agents do, one line a tool call, for a person who
// watches them. What the lead says is not among them: that is read as it comes.
type Steps struct {
	Tally *Tally

	denied map[string]string // why, by the use
}

// Lines returns what there is to say of r, which Tally has seen.
func (s *Steps) Lines(r session.Record) []string {
	a := s.Tally.agents[r.Agent]
	var out []string
	for _, line := range s.lines(r.Agent, a, r.Event) {
		name := ""
		if a.call != "" {
			name = OneLine(a.definition, 20) + " "
		}
		out = append(out, strings.Repeat("  ", a.depth+1)+name+line)
	}
	return out
}

func (s *Steps) lines(id string, a *agent, ev troupe.Event) []string {
	switch ev := ev.(type) {
	case troupe.Replied:
		var out []string
		for _, u := range ev.Message.ToolUses() {
			if u.Name == "Agent" { // it lasts, and has lines of its own below it
				out = append(out, "→ "+label(u))
			}
		}
		return out
	case troupe.Decided:
		if ev.Verdict.Effect != troupe.Allow {
			if s.denied == nil {
				s.denied = map[string]string{}
			}
			s.denied[id+" "+ev.Use] = ev.Verdict.Reason
		}
	case troupe.ToolEnded:
		line := fmt.Sprintf("%s %s  %s", mark(ev.Result.IsError), label(a.uses[ev.Use]), took(ev.Took))
		if why, ok := s.denied[id+" "+ev.Use]; ok {
			line = fmt.Sprintf("✗ %s  denied: %s", label(a.uses[ev.Use]), OneLine(why, 160))
		}
		return []string{line}
	case troupe.Switched:
		return switches(ev)
	case troupe.Started:
	case troupe.Ended:
		if a.call != "" && ev.Reason != troupe.Done {
			return []string{"ends: " + ending(ev)}
		}
	default:
		return (&Timeline{}).lines(a, ev)
	}
	return nil
}

// switches tells what is different for the lead now.
func switches(ev troupe.Switched) (out []string) {
	because := ""
	if ev.Cause != "" {
		because = ": " + OneLine(ev.Cause, 160)
	}
	if ev.Model != "" {
		out = append(out, "goes on with "+OneLine(ev.Model, 60)+because)
	}
	if ev.Mode != "" {
		out = append(out, "mode "+OneLine(ev.Mode, 20)+because)
	}
	return out
}
