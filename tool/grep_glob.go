package tool

import (
	"fmt"
	"path"
	"strings"

	"github.com/troupe-sh/troupe/internal/gitignore"
)

// A globFilter chooses files for Grep by patterns like those of an ignore
// file, but with braces, and the other way round: a plain one chooses, one
// with ! leaves out. The last one that matches decides. If there is a plain
// one, a file that none matches is left out.
type globFilter struct {
	globs   []globRule
	chooses bool
	// Directories that a pattern passes through by their names. They are
	// entered even if they are ignored or have a dot in front.
	named map[string]bool
	// What leads from the agent's directory to the one searched. Patterns
	// count from either.
	above string
}

// A globRule is one pattern. Negated ones match what is left out.
type globRule struct {
	rules   *gitignore.Rules
	negated bool
}

// newGlobFilter reads patterns divided by spaces or commas. Above is the path
// from the agent's directory to the one searched, "" if that is not below it,
// and root is the directory searched.
func newGlobFilter(text, root, above string) (*globFilter, error) {
	f := &globFilter{named: map[string]bool{}, above: above}
	for _, part := range splitGlobs(text) {
		part, negated := strings.CutPrefix(part, "!")
		alternatives, err := expandBraces(part)
		if err != nil {
			return nil, err
		}
		f.chooses = f.chooses || !negated
		for _, glob := range alternatives {
			glob = strings.TrimPrefix(glob, root+"/")
			glob = strings.TrimPrefix(glob, "./")
			f.globs = append(f.globs, globRule{gitignore.Parse([]byte(asPattern(glob))), negated})
			if !negated {
				f.name(glob)
			}
		}
	}
	return f, nil
}

// asPattern keeps a line of an ignore file from being a comment or a negation.
func asPattern(glob string) string {
	if strings.HasPrefix(glob, "#") || strings.HasPrefix(glob, "!") {
		return `\` + glob
	}
	return glob
}

// name notes the directories that the glob names before its first wildcard.
func (f *globFilter) name(glob string) {
	dir := path.Dir(strings.TrimPrefix(glob, "/"))
	if i := strings.IndexAny(dir, `*?[\`); i >= 0 {
		dir = dir[:strings.LastIndexByte(dir[:i], '/')+1]
	}
	for dir = strings.Trim(dir, "/"); dir != "" && dir != "."; dir = path.Dir(dir) {
		f.named[dir] = true
	}
}

// judge is the filter's word on a path below the directory searched.
func (f *globFilter) judge(rel string, isDir bool) gitignore.Verdict {
	full := path.Join(f.above, rel)
	for i := len(f.globs) - 1; i >= 0; i-- {
		g := f.globs[i]
		if g.rules.Match(rel, isDir) == gitignore.Unmentioned && g.rules.Match(full, isDir) == gitignore.Unmentioned {
			continue
		}
		if g.negated {
			return gitignore.Ignored
		}
		return gitignore.Included
	}
	switch {
	case isDir && (f.named[rel] || f.named[full]):
		return gitignore.Included
	case f.chooses && !isDir:
		return gitignore.Ignored
	}
	return gitignore.Unmentioned
}

// splitGlobs divides at spaces and commas that are neither in braces nor in
// brackets nor behind a backslash.
func splitGlobs(text string) []string {
	var parts []string
	depth, start, class := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = strings.Contains(text[i:], "]")
		case c == '{':
			depth++
		case c == '}':
			depth = max(0, depth-1)
		case depth == 0 && (c == ' ' || c == ','):
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	parts = append(parts, text[start:])
	out := parts[:0]
	for _, p := range parts {
		if p != "" && p != "!" {
			out = append(out, p)
		}
	}
	return out
}

// maxAlternatives bounds what the braces of one pattern may stand for.
const maxAlternatives = 1000

// expandBraces returns the patterns that one with braces stands for.
func expandBraces(glob string) ([]string, error) {
	done, todo := []string(nil), []string{glob}
	for len(todo) > 0 {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		before, choices, after, ok := firstBraces(g)
		if !ok {
			done = append(done, g)
			continue
		}
		if after == "" && choices == nil {
			return nil, fmt.Errorf("the glob %q has an open {; write \\{ for the character itself", glob)
		}
		for i := len(choices) - 1; i >= 0; i-- {
			todo = append(todo, before+choices[i]+after)
		}
		if len(todo)+len(done) > maxAlternatives {
			return nil, fmt.Errorf("the braces of the glob %q stand for more than %d patterns; use a plainer one", glob, maxAlternatives)
		}
	}
	return done, nil
}

// firstBraces finds the first pair of braces and divides what is in it. If
// there is no second brace, choices is nil and after empty.
func firstBraces(glob string) (before string, choices []string, after string, ok bool) {
	depth, open, start := 0, -1, 0
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				open, start = i, i+1
			}
		case ',':
			if depth == 1 {
				choices = append(choices, glob[start:i])
				start = i + 1
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 {
				return glob[:open], append(choices, glob[start:i]), glob[i+1:], true
			}
		}
	}
	return "", nil, "", open >= 0
}
