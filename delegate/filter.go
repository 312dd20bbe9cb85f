package delegate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// agentTool is the name of the tool of this package.
const agentTool = "Agent"

// leadOnly are the tools that only a session's lead has: the user speaks with
// the lead, and with nobody else.
func leadOnly() []string {
	return []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TaskOutput", "subscribe_pr_activity"}
}

// Offered returns the names of the tools that there are for an agent in this
// place: all of the session less those that are denied altogether, for a
// sub-agent less those of the lead too.
func (s Scope) Offered() []string {
	return slices.DeleteFunc(slices.Clone(s.Shared.Tools), func(name string) bool {
		return s.Policy.Withholds(name) || s.depth() > 0 && slices.Contains(leadOnly(), name)
	})
}

// Filter returns which of the tools in all an agent of definition d has, in
// their order. An agent starts others only if its definition names the Agent
// tool, and may says whether one in its place can. A definition that names
// tools of which none exists is an error: it never means all of them.
func Filter(d troupe.Definition, all []string, may bool) ([]string, error) {
	named, _ := splitTypes(d.Tools)
	var out []string
	for _, name := range all {
		switch {
		case matchAny(withoutPatterns(d.Disallowed), name):
		case name == agentTool && !(may && slices.Contains(named, agentTool)):
		case d.Tools == nil || matchAny(named, name):
			out = append(out, name)
		}
	}
	there := func(n string) bool { return matchAny(named, n) && !matchAny(withoutPatterns(d.Disallowed), n) }
	if len(d.Tools) > 0 && !slices.ContainsFunc(all, there) {
		return nil, fmt.Errorf("agent %s (%s): %w: %s", d.Name, d.Source, ErrNoTools, strings.Join(d.Tools, ", "))
	}
	return out, nil
}

// withoutPatterns takes "Bash(rm *)" for "Bash": what is to be kept from an agent
// in part is kept from it.
func withoutPatterns(tools []string) []string {
	out := make([]string, len(tools))
	for i, t := range tools {
		out[i], _, _ = strings.Cut(t, "(")
	}
	return out
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, star := strings.CutSuffix(p, "*")
		return p == name || star && strings.HasPrefix(name, prefix)
	})
}

// splitTypes takes the types out of an entry such as "Agent(Explore, Plan)":
// the agent has the tool, and may start only those.
func splitTypes(tools []string) (names, types []string) {
	for _, t := range tools {
		inner, ok := strings.CutPrefix(t, agentTool+"(")
		inner, closed := strings.CutSuffix(inner, ")")
		if !ok || !closed {
			names = append(names, t)
			continue
		}
		names = append(names, agentTool)
		for name := range strings.SplitSeq(inner, ",") {
			types = append(types, strings.TrimSpace(name))
		}
	}
	return names, types
}

// Types returns the types that an agent of definition d may start; nil is any.
func Types(d troupe.Definition) []string {
	_, types := splitTypes(d.Tools)
	return types
}
