package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-sh/troupe"
)

// start says where the path of a rule starts.
type start int

const (
	atPlace start = iota // the directory of the agent
	atBase               // pathPattern.base
	atAny                // any directory
)

// A pathPattern is the pattern of a rule for files: a gitignore pattern and
// where it starts. It covers what is below a directory that it covers.
type pathPattern struct {
	start start
	base  string
	glob  string // slashes, relative to where it starts
}

func parsePathPattern(spec string, effect troupe.Effect, from Origin) (pathPattern, error) {
	var p pathPattern
	spec = strings.TrimSuffix(filepath.ToSlash(spec), "/")
	switch {
	case strings.HasPrefix(spec, "!"):
		return p, errors.New("negated patterns are not supported")
	case strings.HasPrefix(spec, "//") || spec == "/":
		p = pathPattern{atBase, "/", spec}
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		if from.Home == "" {
			return p, errors.New("the home directory is not known")
		}
		p = pathPattern{atBase, from.Home, spec[1:]}
	case strings.HasPrefix(spec, "/"):
		if from.Root == "" {
			return p, errors.New("a path from / starts at the directory of its settings, which it does not have here; write // for an absolute path")
		}
		p = pathPattern{atBase, from.Root, spec}
	case !strings.Contains(spec, "/") && effect != troupe.Allow:
		p = pathPattern{atAny, "/", spec}
	default:
		p = pathPattern{atPlace, "", spec}
	}
	p.glob = path.Clean(strings.Trim(p.glob, "/"))
	if p.glob == "." {
		p.glob = "**"
	}
	if p.glob == ".." || strings.HasPrefix(p.glob, "../") {
		return p, errors.New("it leaves the directory that it starts from; write // and an absolute path")
	}
	if !doublestar.ValidatePattern(p.glob) {
		return p, fmt.Errorf("%q is not a valid pattern", p.glob)
	}
	return p, nil
}

// A target is a file under the names that count: the one it was called by and
// the one it leads to. Both are absolute.
type target struct{ named, real string }

// A scope is where the patterns of rules and the working directories are
// looked up, for the place of one call.
type scope struct {
	dir     target
	roots   []target          // the working directories, dir included
	based   map[string]string // where the directories lead to that patterns start from
	targets map[string]target // what has been resolved; nil in a scope that several use at once
}

// newScope returns the scope of a place for some rules. Its error says that a
// directory of the place could not be resolved.
func newScope(p troupe.Place, rules []Rule) (*scope, error) {
	s := &scope{based: make(map[string]string), targets: make(map[string]target)}
	for i, dir := range append([]string{p.Dir}, p.Also...) {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("the working directory %q is not absolute", dir)
		}
		t, err := s.target(dir)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.dir = t
		}
		s.roots = append(s.roots, t)
	}
	for _, r := range rules {
		base := r.path.base
		if _, done := s.based[base]; done || r.path.start != atBase {
			continue
		}
		to, err := RealPath(base)
		if err != nil {
			to = base // nothing lies below it then
		}
		s.based[base] = to
	}
	return s, nil
}

// target resolves an absolute path. It must not be cleaned before if the one
// who opens it does not clean it: "link/.." is not "." then.
func (s *scope) target(p string) (target, error) {
	if t, ok := s.targets[p]; ok {
		return t, nil
	}
	if !filepath.IsAbs(p) || strings.ContainsRune(p, 0) {
		return target{}, fmt.Errorf("%q is not an absolute path", p)
	}
	real, err := s.realPath(p)
	if err != nil {
		return target{}, fmt.Errorf("resolve %s: %w", p, err)
	}
	t := target{filepath.Clean(p), real}
	if s.targets != nil {
		s.targets[p] = t
	}
	return t, nil
}

// realPath is [RealPath]. What lies in the directory of the agent is looked up
// from there, as where that leads to is known.
func (s *scope) realPath(p string) (string, error) {
	if rest, ok := strings.CutPrefix(p, s.dir.named+string(filepath.Separator)); ok && s.dir.named != "" && len(p) <= maxPath {
		return follow(p, s.dir.real, rest)
	}
	return RealPath(p)
}

// holds reports whether t lies in a working directory, by name and in truth.
func (s *scope) holds(t target) bool {
	named, real := false, false
	for _, root := range s.roots {
		_, a := below(root.named, t.named)
		_, b := below(root.real, t.named)
		_, c := below(root.real, t.real)
		named, real = named || a || b, real || c
	}
	return named && real
}

// bases returns the directories that a pattern starts from.
func (s *scope) bases(p pathPattern) []string {
	first, second := p.base, p.base
	switch p.start {
	case atPlace:
		first, second = s.dir.named, s.dir.real
	case atBase:
		second = s.based[p.base]
	}
	if first == second {
		return []string{first}
	}
	return []string{first, second}
}

// touches reports whether p covers t under either name. Letters count as
// equal in upper and lower case, as they are on many file systems.
func (s *scope) touches(p pathPattern, t target) bool {
	p.glob = fold(p.glob)
	for _, base := range s.bases(p) {
		base = fold(base)
		if p.covers(base, fold(t.named)) || p.covers(base, fold(t.real)) {
			return true
		}
	}
	return false
}

// contains reports whether p covers t under both names.
func (s *scope) contains(p pathPattern, t target) bool {
	named, real := false, false
	for _, base := range s.bases(p) {
		named = named || p.covers(base, t.named)
		real = real || p.covers(base, t.real)
	}
	return named && real
}

// covers reports whether the pattern, started at base, covers name or a
// directory above it.
func (p pathPattern) covers(base, name string) bool {
	if p.glob == "" {
		return false
	}
	rel, ok := below(base, name)
	if !ok {
		return false
	}
	if rel == "" {
		return p.glob == "**"
	}
	glob := p.glob
	if p.start == atAny {
		glob = "**/" + glob
	}
	for i := range len(rel) + 1 {
		if i == len(rel) || rel[i] == '/' {
			if ok, err := doublestar.Match(glob, rel[:i]); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// mayTouch is touches for a path of which parts are not known: [anything]
// stands in for them.
func (s *scope) mayTouch(p pathPattern, name string) bool {
	if strings.HasPrefix(name, string(anything)) || strings.Contains(name, "..") {
		return true
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.dir.named, name)
	}
	loose := loosen(fold(p.glob))
	for _, base := range s.bases(p) {
		whole := strings.TrimSuffix(fold(slashed(base)), "/") + "/" + loose
		if p.start == atAny {
			whole = "*/" + loose
		}
		if n := fold(slashed(name)); overlap(whole, n) || overlap(whole+"/*", n) {
			return true
		}
	}
	return false
}

// mayHold reports whether something that p covers can lie below dir.
func (s *scope) mayHold(p pathPattern, dir target) bool {
	if p.start == atAny || s.touches(p, dir) {
		return true
	}
	fixed := fold(p.glob)
	if strings.ContainsAny(fixed, `*?[{\`) { // else it is one path, and not all beside it
		fixed, _ = doublestar.SplitPattern(fixed)
	}
	for _, base := range s.bases(p) {
		at := path.Join(fold(slashed(base)), fixed)
		for _, name := range []string{dir.named, dir.real} {
			name = fold(slashed(name))
			_, down := below(name, at)
			_, up := below(at, name)
			if down || up {
				return true
			}
		}
	}
	return false
}

// loosen turns every special part of a glob into *, which may stand for more
// than the part did.
func loosen(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*', '?':
			b.WriteByte('*')
		case '\\':
			b.WriteByte('*')
			i++
		case '[', '{':
			b.WriteByte('*')
			i = max(i, strings.LastIndexAny(glob, "]}"))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// below returns the path of name relative to dir, with slashes, if it is dir
// ("") or lies below it. Both are absolute.
func below(dir, name string) (string, bool) {
	dir, name = strings.TrimSuffix(slashed(dir), "/"), slashed(name)
	if name == dir || name == "/" && dir == "" {
		return "", true
	}
	rel, ok := strings.CutPrefix(name, dir+"/")
	return rel, ok
}

// slashed writes an absolute path with slashes; C:\x becomes /c/x.
func slashed(p string) string {
	if v := filepath.VolumeName(p); len(v) == 2 && v[1] == ':' {
		p = "/" + strings.ToLower(v[:1]) + p[2:]
	}
	return filepath.ToSlash(p)
}

// fold makes names equal that a file system may hold for equal.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// maxLinks is the number of links in one path after which it counts as a loop.
const maxLinks = 255

// maxPath is the length of a path, in bytes, above which no file can have it.
const maxPath = 8192

// RealPath returns the file that an absolute path leads to: links are followed
// one by one, those too whose target does not exist, and what does not exist
// stays as it is named. So it tells where a file would be made. Its error says
// that a link could not be read or that links run in circles.
func RealPath(name string) (string, error) {
	if len(name) > maxPath {
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	}
	root := filepath.VolumeName(name) + string(filepath.Separator)
	return follow(name, root, strings.TrimPrefix(filepath.FromSlash(name), root))
}

// follow returns what rest leads to from done, which has no links. name is the
// whole, for messages.
func follow(name, done, rest string) (string, error) {
	const sep = string(filepath.Separator)
	links := 0
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, sep)
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = next // what cannot be looked at cannot be opened either
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("too many links in %s", name)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("follow a link of %s: %w", name, err)
		}
		if filepath.IsAbs(to) {
			root := filepath.VolumeName(to) + sep
			done, to = root, strings.TrimPrefix(to, root)
		}
		rest = to + sep + rest
	}
	return done, nil
}
