package script

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/troupe-sh/troupe"
)

// maxDepth is how deep brackets may be nested in a script.
const maxDepth = 200

// A parser reads one script. Each of its errors begins with the place that it
// is about.
type parser struct {
	file string
	data []byte
}

// members are the members of an object that a script gives, by name.
type members map[string]hujson.Value

func (p *parser) script() ([]rule, error) {
	if offset, deep := tooDeep(p.data); deep {
		return nil, fmt.Errorf("%s: brackets are nested more than %d deep", p.place(offset), maxDepth)
	}
	root, err := hujson.Parse(p.data)
	if err != nil {
		return nil, p.syntaxError(err)
	}
	m, err := p.object(root, "rules")
	if err != nil {
		return nil, err
	}
	list, given := m["rules"]
	if !given {
		return nil, p.errorf(root, "the script has no rules; see doc/script.md")
	}
	rules, err := each(p, list, p.rule)
	if err != nil {
		return nil, err
	}
	if len(rules) == 0 {
		return nil, p.errorf(list, "the list of rules is empty")
	}
	return rules, nil
}

func (p *parser) rule(v hujson.Value) (rule, error) {
	m, err := p.object(v, "when", "reply")
	if err != nil {
		return rule{}, err
	}
	r := rule{place: p.place(v.StartOffset)}
	if cond, given := m["when"]; given {
		if r.when, err = p.when(cond); err != nil {
			return rule{}, err
		}
	}
	known, err := r.when.capturedNames()
	if err != nil {
		return rule{}, p.errorf(v, "%w", err)
	}
	answer, given := m["reply"]
	if !given {
		return rule{}, p.errorf(v, "the rule has no reply")
	}
	if r.reply, err = p.reply(answer, known); err != nil {
		return rule{}, err
	}
	if r.when.times > 0 && r.reply.fail != nil {
		return rule{}, p.errorf(v, "a rule with an error cannot have times: an error leaves no trace in the conversation to count it by")
	}
	return r, nil
}

// object returns the members of v, which must be an object with no other
// members than the allowed ones.
func (p *parser) object(v hujson.Value, allowed ...string) (members, error) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, p.errorf(v, "here must be an object")
	}
	out := make(members)
	for _, m := range o.Members {
		name := m.Name.Value.(hujson.Literal).String()
		if !slices.Contains(allowed, name) {
			return nil, p.errorf(m.Name, "unknown name %.40q; here may be %s", name, strings.Join(allowed, ", "))
		}
		if _, twice := out[name]; twice {
			return nil, p.errorf(m.Name, "%q is given twice", name)
		}
		out[name] = m.Value
	}
	return out, nil
}

// each reads the elements of v, which must be a list.
func each[T any](p *parser, v hujson.Value, read func(hujson.Value) (T, error)) ([]T, error) {
	a, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, p.errorf(v, "here must be a list")
	}
	var out []T
	for _, e := range a.Elements {
		t, err := read(e)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// set reads a member into dst, if the script gives it.
func set[T any](m members, name string, dst *T, read func(hujson.Value) (T, error)) error {
	v, given := m[name]
	if !given {
		return nil
	}
	t, err := read(v)
	if err != nil {
		return err
	}
	*dst = t
	return nil
}

// word reads a string that is not empty.
func (p *parser) word(v hujson.Value) (string, error) {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		return "", p.errorf(v, "here must be a string")
	}
	if strings.TrimSpace(l.String()) == "" {
		return "", p.errorf(v, "the string is empty")
	}
	return l.String(), nil
}

// count reads a whole number that is not negative.
func (p *parser) count(v hujson.Value) (int, error) {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '0' {
		return 0, p.errorf(v, "here must be a number")
	}
	n, err := strconv.ParseInt(string(l), 10, 32)
	if err != nil || n < 0 {
		return 0, p.errorf(v, "here must be a whole number from 0 to 2147483647")
	}
	return int(n), nil
}

// positive reads a whole number from 1 on.
func (p *parser) positive(v hujson.Value) (int, error) {
	n, err := p.count(v)
	if err == nil && n == 0 {
		err = p.errorf(v, "here must be a number from 1 on")
	}
	return n, err
}

func (p *parser) boolean(v hujson.Value) (*bool, error) {
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != 't' && l.Kind() != 'f' {
		return nil, p.errorf(v, "here must be true or false")
	}
	b := l.Bool()
	return &b, nil
}

func (p *parser) duration(v hujson.Value) (time.Duration, error) {
	s, err := p.word(v)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, p.errorf(v, "here must be a duration such as \"150ms\" or \"2s\"")
	}
	return d, nil
}

func (p *parser) usage(v hujson.Value) (*troupe.Usage, error) {
	m, err := p.object(v, "input", "output", "cacheRead", "cacheWrite")
	if err != nil {
		return nil, err
	}
	u := new(troupe.Usage)
	return u, cmp.Or(
		set(m, "input", &u.Input, p.count),
		set(m, "output", &u.Output, p.count),
		set(m, "cacheRead", &u.CacheRead, p.count),
		set(m, "cacheWrite", &u.CacheWrite, p.count),
	)
}

// jsonObject reads an object with any members. Numbers keep their digits.
func (p *parser) jsonObject(v hujson.Value) (map[string]any, error) {
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, p.errorf(v, "here must be an object")
	}
	v = v.Clone()
	v.Standardize()
	dec := json.NewDecoder(bytes.NewReader(v.Pack()))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		return nil, p.errorf(v, "%w", err)
	}
	return out, nil
}

// errorf makes an error about the place of v.
func (p *parser) errorf(v hujson.Value, format string, args ...any) error {
	return fmt.Errorf("%s: %w", p.place(v.StartOffset), fmt.Errorf(format, args...))
}

// place is file:line:column of an offset. Columns count bytes, from 1, as
// compilers do.
func (p *parser) place(offset int) string {
	before := p.data[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := offset - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%s:%d:%d", p.file, line, column)
}

// syntaxError puts the place that hujson tells in words into the usual form.
func (p *parser) syntaxError(err error) error {
	text := err.Error()
	var line, column int
	if _, scanErr := fmt.Sscanf(text, "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}
	_, text, _ = strings.Cut(strings.TrimPrefix(text, "hujson: "), ": ")
	return fmt.Errorf("%s:%d:%d: %s", p.file, line, column, text)
}

// tooDeep finds the first bracket that is nested too deep. The JSON parser
// calls itself for each level, and a stack that overflows ends the process.
func tooDeep(data []byte) (offset int, deep bool) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i, true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i = afterComment(data, i)
		}
	}
	return 0, false
}

// afterComment returns the offset of the last byte of the comment that begins
// at i, or i if none does.
func afterComment(data []byte, i int) int {
	rest := data[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return i + n
		}
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 1
		}
	default:
		return i
	}
	return len(data) - 1
}
