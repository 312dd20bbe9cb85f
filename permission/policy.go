package permission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A Policy says which calls may run. It is a value: decisions do not change
// it, and any number of them may be made at once.
type Policy struct {
	Mode  Mode
	Rules []Rule
	// Home is the home directory of the user, for ~ in commands; "" takes
	// every ~ for something unknown.
	Home string
	// Protected are directories, absolute and with their links resolved, of which
	// no file is changed without a rule that names it or what it is in: there the
	// rules themselves are written.
	Protected []string
	// Shared are directories, with links resolved, in which agents may write though
	// they lie in a protected one.
	Shared []string

	// Untrusted says that the repository is a stranger's: what its configuration
	// can make git run needs leave.
	Untrusted bool

	// Sandbox is what confines commands; nil: they run free.
	Sandbox *Sandbox

	without []Rule // tools that no call may use, see Without
}

// Narrow returns the policy of a child that asks for the mode want. So a child
// may never do what its parent may not.
func (p Policy) Narrow(want Mode) Policy {
	p.Mode = p.Mode.Inherit(want)
	return p
}

// Without returns p for an agent that is kept from some tools, and for all
// below it, whatever rules allow. The tools are given by name, with * for any
// text in it; of Bash(rm *) the name counts. source is where they are named.
func (p Policy) Without(tools []string, source string) Policy {
	p.without = slices.Clip(p.without)
	for _, text := range tools {
		name, _, _ := strings.Cut(text, "(")
		p.without = append(p.without, Rule{effect: troupe.Deny, text: text, tool: toolAlias(name), origin: Origin{Source: source}})
	}
	return p
}

// Withholds reports whether every call of a tool is denied, so that it need not
// be offered to a model.
func (p Policy) Withholds(tool string) bool {
	_, denied := p.first(troupe.Deny, tool, bare)
	return denied || p.keptFrom(tool) != nil
}

// keptFrom returns what keeps agents from a tool, nil if nothing does.
func (p Policy) keptFrom(tool string) *Rule {
	for i := range p.without {
		if p.without[i].names(tool) {
			return &p.without[i]
		}
	}
	return nil
}

// Decide returns what p makes of c. The reason of a verdict is one line: the
// rule that decided and where it was written, or what a user can do about it.
// A verdict of Ask means that somebody has to be asked; see [Gate].
func (p Policy) Decide(c *troupe.Call) troupe.Verdict {
	v, _ := p.decide(c)
	return v
}

// decide is Decide. firm says of an Ask that a rule demands it.
func (p Policy) decide(c *troupe.Call) (v troupe.Verdict, firm bool) {
	f := p.judge(c)
	return p.underMode(f), f.firm
}

// underMode lets the mode have its word on what was found about a call.
func (p Policy) underMode(f finding) troupe.Verdict {
	v := troupe.Verdict{Effect: f.effect, By: f.by, Reason: oneLine(f.reason)}
	switch {
	case f.effect == troupe.Deny:
	case p.Mode == Plan && !f.reads:
		v = troupe.Verdict{Effect: troupe.Deny, By: byMode, Reason: "mode plan allows only reading: nothing is changed before the plan is approved or another --permission-mode is chosen"}
	case f.effect != troupe.Ask:
	case p.Mode == DontAsk:
		v = troupe.Verdict{Effect: troupe.Deny, By: byMode, Reason: "mode dontAsk denies what needs approval: " + oneLine(f.reason)}
	case p.Mode == Bypass && !f.firm:
		v = troupe.Verdict{Effect: troupe.Allow, By: byMode, Reason: "mode bypassPermissions"}
	}
	return v
}

// judge finds out what rules and working directories say about a call.
func (p Policy) judge(c *troupe.Call) finding {
	tool := toolAlias(c.Name)
	fields, err := inputFields(c.Input)
	if err != nil {
		return deny(bySafety, fmt.Sprintf("the input of %s cannot be read: %v", c.Name, err))
	}
	if r := p.keptFrom(tool); r != nil {
		return deny(byRule, fmt.Sprintf("this agent, or one above it, is kept from %s (disallowedTools of %s)", tool, r.origin.Source))
	}
	if r, ok := p.general(tool, fields, troupe.Deny); ok {
		return deny(byRule, r.cited())
	}
	f := p.judgeTool(tool, c)
	if r, ok := p.general(tool, fields, troupe.Ask); ok {
		f = worse(f, finding{effect: troupe.Ask, by: byRule, reason: r.cited(), firm: true, reads: f.reads})
	}
	return f
}

// judgeTool applies what is particular to a tool: its own rules and what the
// mode makes of it.
func (p Policy) judgeTool(tool string, c *troupe.Call) finding {
	switch tool {
	case toolRead, toolGlob, toolGrep, toolEdit, toolWrite, toolNotebook:
		return p.judgeFileTool(tool, c)
	case toolBash:
		var in struct {
			Command string `json:"command"`
		}
		if err := json.Unmarshal(c.Input, &in); err != nil || strings.TrimSpace(in.Command) == "" {
			return deny(bySafety, "Bash was called without a command")
		}
		return p.judgeShell(in.Command, c.Place)
	case toolAgent:
		return p.judgeAgent(c)
	case toolWebFetch:
		return p.judgeWeb(c)
	case toolEnterPlan, toolExitPlan:
		return p.judgePlan(tool, c)
	case toolTodo, toolAsk:
		return reading(byMode, "it has no effect outside of the conversation")
	case toolSend, toolStop, toolOutput, toolPulls:
		return reading(byMode, "it speaks to agents of this session, ends or looks at what they do; their calls are checked one by one")
	}
	if r, ok := p.first(troupe.Allow, tool, bare); ok {
		return allow(byRule, r.cited())
	}
	return ask(byMode, fmt.Sprintf("%s needs approval; add --allowed-tools %s", c.Name, quoteRule(c.Name)))
}

// judgePlan judges the tools that enter and leave [Plan]. Both need approval:
// the one takes rights from the agent that the user has given it, and by the other
// it gets them back. Where they do nothing they are free, and say so themselves.
func (p Policy) judgePlan(tool string, c *troupe.Call) finding {
	if (p.Mode == Plan) == (tool == toolEnterPlan) {
		return reading(byMode, "it changes nothing here")
	}
	if r, ok := p.first(troupe.Allow, tool, bare); ok {
		return reading(byRule, r.cited())
	}
	return finding{effect: troupe.Ask, by: byMode, reads: true, reason: fmt.Sprintf("%s needs approval; add --allowed-tools %s", c.Name, quoteRule(c.Name))}
}

func (p Policy) judgeAgent(c *troupe.Call) finding {
	kind, err := agentType(c.Input)
	if err != nil {
		return deny(bySafety, "the type of the agent cannot be read: "+err.Error())
	}
	same := func(r Rule) bool { return r.spec == kind }
	if r, ok := p.first(troupe.Deny, toolAgent, same); ok {
		return deny(byRule, r.cited())
	}
	if r, ok := p.first(troupe.Ask, toolAgent, same); ok {
		return finding{effect: troupe.Ask, by: byRule, reason: r.cited(), firm: true, reads: true}
	}
	return reading(byMode, "the calls of a sub-agent are checked one by one")
}

// DeniesAgent reports whether a rule denies all sub-agents of a type, so that
// the type need not be offered to a model.
func (p Policy) DeniesAgent(kind string) bool {
	_, denied := p.first(troupe.Deny, toolAgent, func(r Rule) bool { return r.spec == "" || r.spec == kind })
	return denied
}

// agentType returns the type of sub-agent that a call of Agent is for.
func agentType(input json.RawMessage) (string, error) {
	var in struct {
		Type string `json:"subagent_type"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", err
	}
	if in.Type == "" {
		return "general-purpose", nil
	}
	return in.Type, nil
}

// bare selects the rules that cover every call of their tool.
func bare(r Rule) bool { return r.spec == "" }

// first returns the first rule with an effect for a tool that is selected.
func (p Policy) first(effect troupe.Effect, tool string, selected func(Rule) bool) (Rule, bool) {
	for _, r := range p.Rules {
		if r.effect == effect && r.names(tool) && selected(r) {
			return r, true
		}
	}
	return Rule{}, false
}

// general returns the first rule with an effect that covers a call whatever
// the tool does with its input: by the name of the tool or a parameter.
func (p Policy) general(tool string, fields map[string]string, effect troupe.Effect) (Rule, bool) {
	return p.first(effect, tool, func(r Rule) bool {
		if r.param == nil {
			return r.spec == ""
		}
		value, sent := fields[fold(r.param.name)]
		return sent && wildcard(r.param.value, value)
	})
}

// inputFields returns the fields of the input of a call as rules see them:
// names folded, strings without quotes. A tool may read a field under a name
// of other case, and the last of two; so a field must not be there twice.
func inputFields(input json.RawMessage) (map[string]string, error) {
	dec := json.NewDecoder(bytes.NewReader(input))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	fields := make(map[string]string)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		name := fold(key.(string)) // the decoder lets nothing else be a key
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("the field %q is there twice", name)
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		fields[name] = s
	}
	return fields, nil
}

// oneLine keeps text of a model from looking like more than one line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// Literal escapes what has a meaning in the pattern of a rule for files, so that
// the pattern covers just this path.
func Literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(path)
}

// quoteRule writes a rule as a user would on the command line.
func quoteRule(rule string) string {
	return "'" + strings.ReplaceAll(oneLine(rule), "'", `'\''`) + "'"
}
