package script

import (
	"cmp"
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/tailscale/hujson"
)

// when reads the conditions of a rule.
func (p *parser) when(v hujson.Value) (when, error) {
	m, err := p.object(v, "model", "system", "first", "last", "turn", "tools", "results", "seen", "times")
	if err != nil {
		return when{}, err
	}
	var w when
	if turn, given := m["turn"]; given {
		if w.from, w.to, err = p.turns(turn); err != nil {
			return when{}, err
		}
	}
	words := func(v hujson.Value) ([]string, error) { return each(p, v, p.word) }
	return w, cmp.Or(
		set(m, "model", &w.model, p.text),
		set(m, "system", &w.system, p.text),
		set(m, "first", &w.first, p.text),
		set(m, "last", &w.last, p.text),
		set(m, "tools", &w.tools, words),
		set(m, "results", &w.results, p.outcomes),
		set(m, "seen", &w.seen, p.outcomes),
		set(m, "times", &w.times, p.positive),
	)
}

// text reads a pattern or a list of them.
func (p *parser) text(v hujson.Value) (text, error) {
	if _, list := v.Value.(*hujson.Array); list {
		return each(p, v, p.pattern)
	}
	one, err := p.pattern(v)
	return text{one}, err
}

// pattern reads a string to find, or {"regexp": …}.
func (p *parser) pattern(v hujson.Value) (pattern, error) {
	if _, object := v.Value.(*hujson.Object); !object {
		s, err := p.word(v)
		return pattern{literal: s}, err
	}
	m, err := p.object(v, "regexp")
	if err != nil {
		return pattern{}, err
	}
	expr, given := m["regexp"]
	if !given {
		return pattern{}, p.errorf(v, "here must be a string or {\"regexp\": \"…\"}")
	}
	re, err := p.regexp(expr)
	return pattern{re: re}, err
}

func (p *parser) regexp(v hujson.Value) (*regexp.Regexp, error) {
	expr, err := p.word(v)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if bad := (*syntax.Error)(nil); errors.As(err, &bad) {
		// The message of the library is not one line if the expression is not.
		return nil, p.errorf(v, "%s in the regular expression: %.60q; see https://pkg.go.dev/regexp/syntax", bad.Code, bad.Expr)
	}
	if err != nil {
		return nil, p.errorf(v, "%w", err)
	}
	return re, nil
}

// turns reads the number of a turn, or {"from": …, "to": …}.
func (p *parser) turns(v hujson.Value) (from, to int, err error) {
	if _, object := v.Value.(*hujson.Object); !object {
		n, err := p.positive(v)
		return n, n, err
	}
	m, err := p.object(v, "from", "to")
	if err != nil {
		return 0, 0, err
	}
	if err := cmp.Or(set(m, "from", &from, p.positive), set(m, "to", &to, p.positive)); err != nil {
		return 0, 0, err
	}
	if from == 0 && to == 0 || to > 0 && from > to {
		return 0, 0, p.errorf(v, "no turn is in this range")
	}
	return from, to, nil
}

func (p *parser) outcomes(v hujson.Value) ([]outcome, error) {
	list, err := each(p, v, p.outcome)
	if err == nil && len(list) == 0 {
		err = p.errorf(v, "the list is empty; {} stands for any result")
	}
	return list, err
}

func (p *parser) outcome(v hujson.Value) (outcome, error) {
	m, err := p.object(v, "tool", "id", "text", "isError")
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	return o, cmp.Or(
		set(m, "tool", &o.tool, p.word),
		set(m, "id", &o.call, p.label),
		set(m, "text", &o.text, p.text),
		set(m, "isError", &o.isError, p.boolean),
	)
}

// label reads the name that a script gives to a call.
func (p *parser) label(v hujson.Value) (string, error) {
	s, err := p.word(v)
	if err != nil {
		return "", err
	}
	if len(s) > 32 {
		return "", p.errorf(v, "an id has at most 32 characters")
	}
	for _, r := range s {
		if r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return "", p.errorf(v, "an id has only letters, digits and hyphens")
		}
	}
	return s, nil
}
