package tool

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe/internal/gitignore"
)

// Each line has the names of a type and the patterns of its files.
//
//go:embed grep_types.txt
var grepTypes string

// fileTypes returns what tells whether a name is of one of the types, which
// are divided by spaces or commas.
func fileTypes(types string) (func(name string) bool, error) {
	var patterns []string
	for name := range strings.FieldsFuncSeq(types, func(r rune) bool { return r == ',' || r == ' ' }) {
		p := patternsOf(strings.ToLower(name))
		if p == nil {
			return nil, fmt.Errorf("the file type %q is not known%s; use glob for other files", name, nearTypes(strings.ToLower(name)))
		}
		patterns = append(patterns, p...)
	}
	rules := gitignore.Parse([]byte(strings.Join(patterns, "\n")))
	return func(name string) bool { return rules.Match(name, false) == gitignore.Ignored }, nil
}

// patternsOf returns the patterns of a type, nil if it is not known.
func patternsOf(name string) []string {
	for line := range strings.Lines(grepTypes) {
		names, patterns, _ := strings.Cut(line, ":")
		if slices.Contains(strings.Fields(names), name) {
			return strings.Fields(patterns)
		}
	}
	return nil
}

// nearTypes names types that may be meant by name: those whose files end so,
// and those whose names are alike.
func nearTypes(name string) string {
	var near []string
	for line := range strings.Lines(grepTypes) {
		names, patterns, _ := strings.Cut(line, ":")
		of := strings.Fields(names)
		alike := func(n string) bool {
			return len(n) > 1 && (strings.HasPrefix(name, n) || strings.HasPrefix(n, name)) || similarity(n, name) >= 0.5
		}
		if slices.Contains(strings.Fields(patterns), "*."+strings.TrimPrefix(name, ".")) || slices.ContainsFunc(of, alike) {
			near = append(near, of[0])
		}
	}
	if near == nil {
		return ""
	}
	return " (near: " + strings.Join(near, ", ") + ")"
}
