package script

import (
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A rule is one entry of a script.
type rule struct {
	place string // file:line:column
	when  when
	reply reply
}

// A when holds the conditions of a rule. The zero value applies always.
type when struct {
	model, system, first, last text
	from, to                   int      // turns; 0 is no limit
	tools                      []string // offered, all of them
	results                    []outcome
	seen                       []outcome
	times                      int // in one conversation; 0 is no limit
}

// A text is a condition on a text: each pattern must be found in it.
type text []pattern

// A pattern is a regular expression, or a literal if re is nil.
type pattern struct {
	literal string
	re      *regexp.Regexp
}

// An outcome is a condition on the result of a tool.
type outcome struct {
	tool, call string // "" is any
	text       text
	isError    *bool // nil is any
}

// facts are the named groups of the expressions of a rule, by name.
type facts map[string]string

// A view is what conditions look at: a conversation at the moment of one of
// its requests.
type view struct {
	model, system string
	tools         []troupe.ToolSpec
	turn          int    // of the reply that is asked for, from 1
	first         string // text of the user before the first reply
	last          string // text of the user since the last reply
	results       []result
	fresh         int // results from here on came since the last reply
	ids           map[string]bool
}

// A result is a tool's result and the name of the tool.
type result struct {
	tool string
	troupe.ToolResult
}

// newView looks at the messages of a request, or at the first of them: then it
// is the view of an earlier request of the same conversation.
func newView(req *troupe.Request, msgs []troupe.Message) *view {
	v := &view{model: req.Model, system: req.System, tools: req.Tools, turn: 1, ids: make(map[string]bool)}
	names := make(map[string]string)
	for _, msg := range msgs {
		if msg.Role == troupe.Assistant {
			v.turn++
			v.last, v.fresh = "", len(v.results)
			for _, use := range msg.ToolUses() {
				names[use.ID] = use.Name
				v.ids[use.ID] = true
			}
			continue
		}
		for _, b := range msg.Content {
			switch b := b.(type) {
			case troupe.Text:
				v.last = joined(v.last, string(b))
				if v.turn == 1 {
					v.first = v.last
				}
			case troupe.ToolResult:
				v.results = append(v.results, result{names[b.ID], b})
			}
		}
	}
	return v
}

// joined puts one text under the other.
func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// latest is what an error quotes of the conversation.
func (v *view) latest() string {
	s := v.last
	for _, r := range v.results[v.fresh:] {
		s = joined(s, r.Content.Text())
	}
	return s
}

// match reports whether the conditions hold, and what they captured.
func (w *when) match(v *view) (facts, bool) {
	if v.turn < w.from || w.to > 0 && v.turn > w.to {
		return nil, false
	}
	for _, name := range w.tools {
		if !slices.ContainsFunc(v.tools, func(t troupe.ToolSpec) bool { return t.Name == name }) {
			return nil, false
		}
	}
	found := make(facts)
	ok := w.model.match(v.model, found) && w.system.match(v.system, found) &&
		w.first.match(v.first, found) && w.last.match(v.last, found) &&
		matchAll(w.results, v.results[v.fresh:], found) && matchAll(w.seen, v.results, found)
	return found, ok
}

// matchAll reports whether each outcome is that of one of the results. If
// several results fit, the latest counts.
func matchAll(want []outcome, got []result, found facts) bool {
	for i := range want {
		fits := false
		for _, r := range slices.Backward(got) {
			if fits = want[i].match(r, found); fits {
				break
			}
		}
		if !fits {
			return false
		}
	}
	return true
}

func (o *outcome) match(r result, found facts) bool {
	if o.tool != "" && o.tool != r.tool || o.call != "" && o.call != callName(r.ID) {
		return false
	}
	if o.isError != nil && *o.isError != r.IsError {
		return false
	}
	return o.text.match(r.Content.Text(), found)
}

// match reports whether all patterns are found in s, and adds what they
// captured to found. If it reports false, what it added means nothing.
func (t text) match(s string, found facts) bool {
	for _, p := range t {
		if p.re == nil {
			if !strings.Contains(s, p.literal) {
				return false
			}
			continue
		}
		groups := p.re.FindStringSubmatch(s)
		if groups == nil {
			return false
		}
		for i, name := range p.re.SubexpNames() {
			if name != "" {
				found[name] = groups[i]
			}
		}
	}
	return true
}

// names returns the names of the groups in t.
func (t text) names() []string {
	var out []string
	for _, p := range t {
		if p.re == nil {
			continue
		}
		for _, name := range p.re.SubexpNames() {
			if name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}
