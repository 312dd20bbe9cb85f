// Package gitignore tells which files of a tree are ignored, as git does.
//
// [Parse] reads the text of one ignore file into [Rules]. A [Chain] joins the
// rules that hold in one directory: those of its own file and of the
// directories above it. A program that walks a tree takes a Chain along,
// calls Enter for each directory it goes into and Match for each name it
// sees there, and does not go into a directory that is ignored:
//
//	here := gitignore.Root(exclude).With(gitignore.Parse(text))
//	if here.Match("build", true) == gitignore.Ignored { … }
//	below := here.Enter("src")
//
// The rules of git are the measure, down to its treatment of odd patterns:
// the tests compare with "git check-ignore". Names are compared byte by byte,
// so letter case matters.
package gitignore

import (
	"bytes"
	"strings"
)

// A Verdict is what rules say of a path.
type Verdict string

// The verdicts. The zero value says that no pattern matches.
const (
	Unmentioned Verdict = ""
	Ignored     Verdict = "ignored"  // the last pattern that matches is a plain one
	Included    Verdict = "included" // the last pattern that matches begins with !
)

// Rules are the patterns of one ignore file. They hold for the directory of
// that file and what is below it. Rules do not change, so that many
// goroutines can use them; nil has no patterns.
type Rules struct {
	patterns []pattern
	// Where to look first: most patterns are a plain name or "*" and a plain
	// ending, and a tree has many more names than an ignore file has patterns.
	names   map[string][]int // indexes of patterns that are a plain name
	endings map[string][]int // indexes of patterns like *.o, under their extension
	others  []int            // indexes of the rest
	deep    bool             // some pattern looks at more than the last name
}

// A pattern is one line of an ignore file.
type pattern struct {
	text     string // without ! and the slashes at both ends
	literal  int    // so many bytes at the start of text have no special meaning
	negated  bool
	dirOnly  bool
	anchored bool // looks at the whole path, not at the last name alone
	ending   bool // text is "*" and a plain rest
}

// Parse reads the text of an ignore file. Every text is valid: what makes no
// sense as a pattern matches nothing.
func Parse(text []byte) *Rules {
	r := &Rules{names: map[string][]int{}, endings: map[string][]int{}}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.Lines(text) {
		body := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		body, _, _ = bytes.Cut(body, []byte{0})
		if len(body) == 0 || body[0] == '#' {
			continue
		}
		r.add(string(trimSpaces(body)))
	}
	return r
}

// trimSpaces cuts the spaces at the end of a line, but not those behind a
// backslash.
func trimSpaces(line []byte) []byte {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
			if i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

func (r *Rules) add(line string) {
	var p pattern
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return
	}
	p.anchored = strings.Contains(line, "/")
	p.text = strings.TrimPrefix(line, "/")
	p.literal = literalPrefix(p.text)
	p.ending = p.text != "" && p.text[0] == '*' && literalPrefix(p.text[1:]) == len(p.text)-1
	i := len(r.patterns)
	r.patterns = append(r.patterns, p)
	switch {
	case p.anchored:
		r.others = append(r.others, i)
		r.deep = true
	case p.literal == len(p.text):
		r.names[p.text] = append(r.names[p.text], i)
	case p.ending && extension(p.text) != "":
		ext := extension(p.text)
		r.endings[ext] = append(r.endings[ext], i)
	default:
		r.others = append(r.others, i)
	}
}

// extension is the part of a name from its last dot on, "" if it has none.
func extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[i:]
	}
	return ""
}

// literalPrefix is the number of bytes before the first that has a special
// meaning in a pattern.
func literalPrefix(text string) int {
	if i := strings.IndexAny(text, `*?[\`); i >= 0 {
		return i
	}
	return len(text)
}

// Match is the verdict on path itself: it does not look at the directories
// above. The path is relative to the directory of the rules, with slashes.
func (r *Rules) Match(path string, isDir bool) Verdict {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return r.match(name, isDir, func() string { return path })
}

// Covers is the verdict on path as git sees it when it walks down to it: what
// is below an ignored directory is ignored, and no pattern can bring it back.
func (r *Rules) Covers(path string, isDir bool) Verdict {
	for i := range len(path) {
		if path[i] == '/' && i > 0 && r.Match(path[:i], true) == Ignored {
			return Ignored
		}
	}
	return r.Match(path, isDir)
}

// match takes the path as a function, for most files need no more than a name.
func (r *Rules) match(name string, isDir bool, path func() string) Verdict {
	if r == nil {
		return Unmentioned
	}
	best := -1
	for _, i := range r.names[name] {
		if r.patterns[i].allows(isDir) {
			best = i
		}
	}
	if ext := extension(name); ext != "" && len(r.endings) > 0 {
		for _, i := range r.endings[ext] {
			if i > best && r.patterns[i].allows(isDir) && strings.HasSuffix(name, r.patterns[i].text[1:]) {
				best = i
			}
		}
	}
	whole := ""
	if r.deep {
		whole = path()
	}
	for n := len(r.others) - 1; n >= 0 && r.others[n] > best; n-- {
		i := r.others[n]
		if p := &r.patterns[i]; p.allows(isDir) && p.match(name, whole) {
			best = i
		}
	}
	switch {
	case best < 0:
		return Unmentioned
	case r.patterns[best].negated:
		return Included
	}
	return Ignored
}

func (p *pattern) allows(isDir bool) bool { return isDir || !p.dirOnly }

// match compares the plain start of the pattern first and leaves only the rest
// to the wildcards, as git does; so "**" behind a plain start stands at the
// start of what wildcards see.
func (p *pattern) match(name, whole string) bool {
	if !p.anchored {
		if p.ending {
			return strings.HasSuffix(name, p.text[1:])
		}
		return wildmatch(p.text, name, false)
	}
	rest, ok := strings.CutPrefix(whole, p.text[:p.literal])
	if !ok {
		return false
	}
	if p.literal == len(p.text) {
		return rest == ""
	}
	return wildmatch(p.text[p.literal:], rest, true)
}
