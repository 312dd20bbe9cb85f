package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A template is a text with places for facts. "${name}" stands for a fact and
// "$${" for "${"; any other dollar is a dollar.
type template []piece

// A piece is a literal, or a fact if its name is not empty.
type piece struct{ literal, name string }

// parseTemplate reads s, which may use the facts that are known.
func parseTemplate(s string, known map[string]bool) (template, error) {
	t := template{}
	for {
		before, after, ok := strings.Cut(s, "${")
		if !ok {
			return t.literal(s), nil
		}
		if escaped, is := strings.CutSuffix(before, "$"); is {
			t, s = t.literal(escaped+"${"), after
			continue
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok {
			return nil, fmt.Errorf("%.40q has no closing brace; write $${ for the two characters", "${"+after)
		}
		if !known[name] {
			return nil, fmt.Errorf("no condition of the rule captures %.40q; name a group (?P<%.40s>…) in one, or write $${ for the two characters", name, name)
		}
		t, s = append(t.literal(before), piece{name: name}), rest
	}
}

func (t template) literal(s string) template {
	if s == "" {
		return t
	}
	return append(t, piece{literal: s})
}

// fill puts the facts in their places. What a fact holds is text and nothing
// else: places in it are not filled.
func (t template) fill(found facts) string {
	var b strings.Builder
	for _, p := range t {
		if p.name != "" {
			b.WriteString(found[p.name])
		} else {
			b.WriteString(p.literal)
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// parseTree makes templates of the strings in a JSON value.
func parseTree(v any, known map[string]bool) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return parseTemplate(v, known)
	case []any:
		for i := range v {
			if v[i], err = parseTree(v[i], known); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k], err = parseTree(v[k], known); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return v, nil
}

// fillTree returns a copy of v in which the templates are strings. So a fact
// stays one string of the JSON value, whatever it holds.
func fillTree(v any, found facts) any {
	switch v := v.(type) {
	case template:
		return v.fill(found)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = fillTree(v[i], found)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = fillTree(v[k], found)
		}
		return out
	}
	return v
}

// capturedNames returns the facts that the conditions capture. A name in two
// conditions is an error: which one counts would be a matter of luck.
func (w *when) capturedNames() (map[string]bool, error) {
	known := make(map[string]bool)
	texts := []text{w.model, w.system, w.first, w.last}
	for _, o := range w.results {
		texts = append(texts, o.text)
	}
	for _, o := range w.seen {
		texts = append(texts, o.text)
	}
	for _, t := range texts {
		for _, name := range t.names() {
			if known[name] {
				return nil, fmt.Errorf("two expressions capture %q; give one of them another name", name)
			}
			known[name] = true
		}
	}
	return known, nil
}
