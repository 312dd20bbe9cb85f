package permission

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/troupe-sh/troupe"
)

// ErrRule is in the chain of every error of [ParseRule].
var ErrRule = errors.New("permission rule")

// An Origin says where a rule was written.
type Origin struct {
	Source string // the file or the flag, for messages
	Root   string // absolute directory that "/path" starts from; "" refuses such paths
	Home   string // absolute home directory of the user; "" refuses "~/path"
}

// A Rule gives an effect to the calls that it covers. Rules are made by
// [ParseRule]; the zero value covers nothing.
type Rule struct {
	effect troupe.Effect
	text   string
	origin Origin
	tool   string      // name, or a glob of names
	spec   string      // what stands in the parentheses; "" covers every call
	param  *parameter  // set if spec can be read as parameter:value
	path   pathPattern // of rules for files
}

// parameter is the form Tool(param:value), value with * as a wildcard.
type parameter struct{ name, value string }

// Effect is what becomes of calls that r covers.
func (r Rule) Effect() troupe.Effect { return r.effect }

// Tool is the tool that r speaks of, or a glob of tool names.
func (r Rule) Tool() string { return r.tool }

// Spec is the pattern in the parentheses, "" if r covers all calls of its tool.
func (r Rule) Spec() string { return r.spec }

// String returns the rule as it was written.
func (r Rule) String() string { return r.text }

// Origin says where the rule was written.
func (r Rule) Origin() Origin { return r.origin }

// cited is how reasons name a rule: effect, text and source.
func (r Rule) cited() string {
	s := fmt.Sprintf("%s rule %s", r.effect, r.text)
	if r.origin.Source != "" {
		s += " (" + r.origin.Source + ")"
	}
	return s
}

// ParseRule reads a rule for effect, which is Allow, Ask or Deny. Its forms are
//
//	Tool, Tool(*)        every call
//	Bash(pattern)        commands: * stands for any text, " *" at the end also
//	                     for nothing, ":*" at the end is " *"
//	Read(path)           reading, Glob and Grep included, by a gitignore pattern:
//	                     //absolute, ~/in-home, /in-Origin.Root, ./in-the-place;
//	                     a bare name means any depth, in an allow rule the place
//	Edit(path)           the same for all tools that change files
//	Agent(type)          sub-agents of a type; Task is another name of Agent
//	WebFetch(domain:h)   pages of a host; *.h are its subdomains
//	Tool(param:value)    deny and ask only: calls with that value (* is a
//	                     wildcard) in a parameter of the input
//	mcp__server          all tools of a server, also mcp__server__*; deny and ask
//	                     rules take a * in the name of any tool
//
// A deny or ask rule with Write, NotebookEdit, Glob or Grep is one with Edit or
// Read; with a pattern that the tool does not have it holds for every call of it.
//
// An error wraps [ErrRule] and names the rule and what is wrong with it.
func ParseRule(effect troupe.Effect, text string, from Origin) (Rule, error) {
	r := Rule{effect: effect, text: strings.TrimSpace(text), origin: from}
	if err := r.parse(); err != nil {
		where := ""
		if from.Source != "" {
			where = " in " + from.Source
		}
		return Rule{}, fmt.Errorf("%w %q%s: %w", ErrRule, text, where, err)
	}
	return r, nil
}

func (r *Rule) parse() error {
	if r.effect != troupe.Allow && r.effect != troupe.Ask && r.effect != troupe.Deny {
		return fmt.Errorf("unknown effect %q", r.effect)
	}
	name, rest, hasSpec := strings.Cut(r.text, "(")
	if !toolName().MatchString(name) {
		return errors.New("it must start with the name of a tool, as in Bash or Bash(go test *)")
	}
	r.tool = toolAlias(name)
	if hasSpec {
		if !strings.HasSuffix(rest, ")") {
			return errors.New("the closing parenthesis is missing at the end")
		}
		r.spec = strings.TrimSuffix(rest, ")")
		if strings.TrimSpace(r.spec) == "" {
			return errors.New("there is nothing in the parentheses; leave them out to mean every call")
		}
		if r.spec == "*" {
			r.spec = ""
		}
	}
	if strings.ContainsAny(r.text, "\x00\n\r") {
		return errors.New("it must be one line")
	}
	if strings.Contains(r.tool, "*") {
		if r.spec != "" {
			return errors.New("a pattern needs the full name of a tool")
		}
		if r.effect == troupe.Allow && !strings.HasPrefix(r.tool, "mcp__") {
			return errors.New("an allow rule must name its tool; only mcp__ names may have a *")
		}
	}
	return r.parseSpec()
}

// parseSpec gives meaning to what stands in the parentheses.
func (r *Rule) parseSpec() error {
	if r.spec == "" {
		return nil
	}
	if p, v, ok := strings.Cut(r.spec, ":"); ok && r.effect != troupe.Allow && paramName().MatchString(p) &&
		!(r.tool == toolBash && strings.HasSuffix(r.spec, ":*")) && v != "" {
		r.param = &parameter{p, v}
	}
	switch r.tool {
	case toolBash:
		if p, ok := strings.CutSuffix(r.spec, ":*"); ok {
			r.spec = p + " *"
		}
		return nil
	case toolAgent:
		return nil
	case toolWebFetch:
		if _, ok := strings.CutPrefix(r.spec, "domain:"); !ok && r.param == nil {
			return errors.New("WebFetch takes domain:HOST")
		}
		return nil
	case toolRead, toolEdit:
		return r.parsePath()
	case toolWrite, toolNotebook:
		if r.effect == troupe.Allow {
			return fmt.Errorf("write Edit(%s): Edit rules cover all tools that change files", r.spec)
		}
		r.tool = toolEdit // what is forbidden to one of them is forbidden to all
		return r.parsePath()
	case toolGlob, toolGrep:
		if r.effect == troupe.Allow {
			return fmt.Errorf("write Read(%s): Read rules cover Glob and Grep", r.spec)
		}
		if r.param == nil {
			r.tool = toolRead
			return r.parsePath()
		}
		return nil
	}
	if r.param == nil && r.effect == troupe.Allow {
		return fmt.Errorf("%s takes no pattern in an allow rule", r.tool)
	}
	if r.param == nil {
		r.spec = "" // a pattern that nobody understands must not make a rule void: it holds for every call
	}
	return nil
}

func (r *Rule) parsePath() error {
	p, err := parsePathPattern(r.spec, r.effect, r.origin)
	if err != nil && r.param == nil {
		return err
	}
	r.path = p
	return nil
}

func toolName() *regexp.Regexp  { return regexp.MustCompile(`^[A-Za-z*][A-Za-z0-9_*.-]*$`) }
func paramName() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*$`) }

// The tools whose input this package understands.
const (
	toolAgent     = "Agent"
	toolAsk       = "AskUserQuestion"
	toolBash      = "Bash"
	toolEdit      = "Edit"
	toolEnterPlan = "EnterPlanMode"
	toolExitPlan  = "ExitPlanMode"
	toolGlob      = "Glob"
	toolGrep      = "Grep"
	toolNotebook  = "NotebookEdit"
	toolRead      = "Read"
	toolTodo      = "TodoWrite"
	toolSend      = "SendMessage"
	toolStop      = "TaskStop"
	toolPulls     = "subscribe_pr_activity"
	toolOutput    = "TaskOutput"
	toolWebFetch  = "WebFetch"
	toolWrite     = "Write"
)

// toolAlias returns the present name of a tool that has an older one.
func toolAlias(name string) string {
	if name == "Task" {
		return toolAgent
	}
	return name
}

// names reports whether r speaks of the tool.
func (r Rule) names(tool string) bool {
	switch {
	case r.tool == tool:
		return r.tool != ""
	case strings.Contains(r.tool, "*"):
		return wildcard(r.tool, tool)
	case strings.HasPrefix(r.tool, "mcp__") && strings.Count(r.tool, "__") == 1:
		return strings.HasPrefix(tool, r.tool+"__")
	}
	return false
}

// wildcard reports whether text has the form of pattern, in which * stands
// for any text.
func wildcard(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark, p = p, t, p+1
		case p < len(pattern) && pattern[p] == text[t]:
			p, t = p+1, t+1
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// commandPattern reports whether a command has the form of a Bash rule. A
// " *" at the end also stands for no arguments.
func commandPattern(pattern, text string) bool {
	if p, ok := strings.CutSuffix(pattern, " *"); ok && wildcard(p, text) {
		return true
	}
	return wildcard(pattern, text)
}

// mayBecome reports whether text could have the form of pattern once every
// [anything] in it is replaced by some text.
func mayBecome(pattern, text string) bool {
	if p, ok := strings.CutSuffix(pattern, " *"); ok && overlap(p, text) {
		return true
	}
	return overlap(pattern, text)
}

// overlap reports whether some text has the form of both, with * as the
// wildcard of a and [anything] as that of b.
func overlap(a, b string) bool {
	row := make([]bool, len(b)+1) // row[j]: a[:i] and b[:j] overlap
	row[0] = true
	for j := range b {
		if b[j] != anything {
			break
		}
		row[j+1] = true
	}
	for i := range len(a) {
		next := make([]bool, len(b)+1)
		next[0] = row[0] && a[i] == '*'
		for j := range len(b) {
			switch {
			case a[i] == '*', b[j] == anything:
				next[j+1] = row[j+1] || next[j] || row[j]
			default:
				next[j+1] = row[j] && a[i] == b[j]
			}
		}
		row = next
	}
	return row[len(b)]
}
