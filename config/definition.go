package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/permission"
)

// isKey says whether definitions have a field of this name.
func isKey(key string) bool {
	switch key {
	case "name", "description", "prompt", "tools", "disallowedTools", "model", "effort", "permissionMode", "maxTurns",
		"background", "initialPrompt", "omitContextFiles", "omitClaudeMd", "color":
		return true
	}
	return isUnusedKey(key)
}

// isUnusedKey says whether a field of definitions has no effect in this version.
func isUnusedKey(key string) bool {
	switch key {
	case "isolation", "memory", "skills", "mcpServers", "hooks":
		return true
	}
	return false
}

func isListKey(key string) bool { return key == "tools" || key == "disallowedTools" || key == "skills" }

// A draft is a definition in the making, from any kind of file.
type draft struct {
	def    troupe.Definition
	file   string
	line   int // where it starts
	lines  map[string]int
	unused []string  // fields
	notes  []Problem // that do not keep it from loading
}

// newDraft reads the fields of a definition. Its error is a [Problem]. A wrong
// value refuses the whole definition: an agent without the limit that was
// meant for it is not the agent that its author described.
func newDraft(file string, line int, fields []field) (*draft, error) {
	d := &draft{file: file, line: line, lines: map[string]int{}}
	for _, f := range fields {
		if !isKey(f.key) {
			continue
		}
		if d.lines[f.key] != 0 {
			return nil, d.wrong(f, "%s is given twice", f.key)
		}
		d.lines[f.key] = max(f.line, 1)
		if err := d.set(f); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *draft) wrong(f field, format string, args ...any) error {
	return Problem{File: d.file, Line: f.line, Reason: fmt.Sprintf(format, args...)}
}

// set takes one field over.
func (d *draft) set(f field) (err error) {
	def := &d.def
	switch f.key {
	case "name":
		def.Name, err = d.scalar(f)
	case "description":
		def.Description, err = d.scalar(f)
	case "prompt":
		def.Prompt, err = d.scalar(f)
	case "initialPrompt":
		def.First, err = d.scalar(f)
	case "tools":
		def.Tools, err = d.tools(f)
		if len(def.Tools) == 1 && def.Tools[0] == "*" {
			def.Tools = nil
		}
	case "disallowedTools":
		def.Disallowed, err = d.tools(f)
	case "model":
		def.Model, err = d.scalar(f)
		if strings.EqualFold(def.Model, "inherit") {
			def.Model = "inherit"
		}
	case "effort":
		def.Effort, err = d.effort(f)
	case "permissionMode":
		def.Mode, err = d.mode(f)
	case "maxTurns":
		def.MaxTurns, err = d.maxTurns(f)
	case "background":
		def.Background, err = d.truth(f)
	case "omitContextFiles", "omitClaudeMd":
		var omit bool
		omit, err = d.truth(f)
		def.OmitContextFiles = def.OmitContextFiles || omit
	default:
		if isUnusedKey(f.key) && !f.value.empty() {
			d.unused = append(d.unused, f.key)
		}
	}
	return err
}

// scalar is the text of a field; "" if there is none.
func (d *draft) scalar(f field) (string, error) {
	switch f.value.kind {
	case isText, isNumber, isTruth, isNull:
		return strings.TrimSpace(f.value.text), nil
	}
	return "", d.wrong(f, "%s must be a text, not %s", f.key, f.value.kind)
}

// tools is a list of tools, from a list or a text with commas. It is never
// nil: a field without a value names no tool.
func (d *draft) tools(f field) ([]string, error) {
	s := f.value.text
	if f.value.kind == isList {
		var words []string
		for _, n := range f.value.items {
			if n.kind == isList || n.kind == isObject {
				return nil, d.wrong(f, "an entry of %s must be a text, not %s", f.key, n.kind)
			}
			words = append(words, n.text)
		}
		// A comma within parentheses has cut an entry like Agent(a, b) in two.
		s = strings.Join(words, ",")
	} else if _, err := d.scalar(f); err != nil {
		return nil, err
	}
	out := []string{}
	for _, w := range splitTools(s) {
		if name, rest := toolName(w); name == "Task" {
			w = "Agent" + rest
		}
		out = append(out, w)
	}
	return out, nil
}

// splitTools splits at commas that are not within parentheses.
func splitTools(s string) []string {
	var out []string
	depth, start := 0, 0
	cut := func(end int) {
		if w := strings.TrimSpace(s[start:end]); w != "" {
			out = append(out, w)
		}
		start = end + 1
	}
	for i, c := range s {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			cut(i)
		}
	}
	cut(len(s))
	for i, w := range out {
		if name, args := toolName(w); args != "" {
			out[i] = name + spaced(args)
		}
	}
	return out
}

// spaced puts one space after each comma, so that equal entries are equal texts.
func spaced(args string) string {
	parts := strings.Split(args, ",")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.TrimLeft(parts[i], " \t")
	}
	return strings.Join(parts, ", ")
}

// toolName splits Agent(a, b) into Agent and (a, b).
func toolName(word string) (name, args string) {
	if i := strings.IndexByte(word, '('); i >= 0 {
		return strings.TrimSpace(word[:i]), word[i:]
	}
	return word, ""
}

func (d *draft) effort(f field) (string, error) {
	s, err := d.scalar(f)
	if err != nil || s == "" {
		return "", err
	}
	switch level := strings.ToLower(s); level {
	case "low", "medium", "high", "xhigh", "max":
		return level, nil
	}
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return strconv.Itoa(n), nil
	}
	return "", d.wrong(f, "effort %q is none of low, medium, high, xhigh, max and no positive whole number", s)
}

func (d *draft) mode(f field) (string, error) {
	s, err := d.scalar(f)
	if err != nil || s == "" {
		return "", err
	}
	mode, err := permission.ParseMode(s)
	if err != nil {
		return "", d.wrong(f, "permissionMode: %v", err)
	}
	return string(mode), nil
}

func (d *draft) maxTurns(f field) (int, error) {
	s, err := d.scalar(f)
	if err != nil || s == "" {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0, d.wrong(f, "maxTurns %q is not a positive whole number", s)
	}
	return n, nil
}

func (d *draft) truth(f field) (bool, error) {
	s, err := d.scalar(f)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off", "":
		return false, nil
	}
	return false, d.wrong(f, "%s must be true or false, not %q", f.key, s)
}

// check says what a definition that was read still lacks.
func (d *draft) check() error {
	at := func(key, format string, args ...any) error {
		line := d.lines[key]
		if line == 0 {
			line = d.line
		}
		return Problem{File: d.file, Line: line, Reason: fmt.Sprintf(format, args...)}
	}
	if d.def.Name == "" {
		return at("name", "there is a description and no name")
	}
	if why := badName(d.def.Name); why != "" {
		return at("name", "the name %q %s", d.def.Name, why)
	}
	if d.def.Description == "" {
		return at("description", "agent %q has no description", d.def.Name)
	}
	if d.def.Prompt == "" {
		return at("prompt", "agent %q has no prompt", d.def.Name)
	}
	return nil
}

const maxName = 200 // bytes

// badName says what is wrong with the name of an agent; "" if it is a good
// one, in whatever script. A name stands in rules, in front of colons and in paths.
func badName(name string) string {
	switch {
	case len(name) > maxName:
		return fmt.Sprintf("has more than %d bytes", maxName)
	case strings.HasPrefix(name, "-"):
		return "starts with a dash"
	case name == "." || name == "..":
		return "is a directory"
	case strings.ContainsAny(name, `:/\`):
		return "holds a colon or a slash"
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return "holds a sign that cannot be seen"
		}
	}
	return ""
}

// unknownTools returns a problem for each tool of a definition that known does
// not have. The tools stay in the definition: who resolves them must see that
// something was asked for, or "nothing that exists" would turn into "all".
func (d *draft) unknownTools(known []string) []Problem {
	if known == nil {
		return nil
	}
	var out []Problem
	check := func(key string, words []string) {
		for _, w := range words {
			name, spec := toolName(w)
			if spec != "" && name != "Agent" {
				out = append(out, Problem{File: d.file, Line: d.lines[key], Reason: fmt.Sprintf(
					"agent %q: %s has %q, but a pattern of calls belongs into the rules of the settings; name the tool alone", d.def.Name, key, w)})
				continue
			}
			if strings.ContainsRune(name, '*') || strings.HasPrefix(name, "mcp__") || slices.Contains(known, name) {
				continue
			}
			reason := fmt.Sprintf("agent %q: %s names %q, and there is no such tool", d.def.Name, key, name)
			for _, k := range known {
				if strings.EqualFold(k, name) {
					reason += fmt.Sprintf(" (there is %q)", k)
				}
			}
			out = append(out, Problem{File: d.file, Line: d.lines[key], Reason: reason})
		}
	}
	check("tools", d.def.Tools)
	check("disallowedTools", d.def.Disallowed)
	return out
}
