package permission

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-sh/troupe"
)

// fileInput is what the file tools are told of files. Each reads one of the
// paths, see [filePath].
type fileInput struct {
	File     string `json:"file_path"`
	Notebook string `json:"notebook_path"`
	Path     string `json:"path"`
	Pattern  string `json:"pattern"`
}

// filePath returns the path that a call of a file tool works on.
func filePath(tool string, c *troupe.Call) (string, error) {
	var in fileInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return "", err
	}
	name := in.File
	switch tool {
	case toolNotebook:
		name = in.Notebook
	case toolGrep:
		name = filepath.Join(c.Place.Dir, in.Path)
		if filepath.IsAbs(in.Path) {
			name = in.Path
		}
	case toolGlob:
		fixed, special := doublestar.SplitPattern(filepath.ToSlash(in.Pattern))
		if strings.Contains(special, "..") {
			return "", fmt.Errorf("%q goes up behind a wildcard", in.Pattern)
		}
		name = absolute(absolute(c.Place.Dir, in.Path), filepath.FromSlash(fixed))
	}
	if name == "" || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%q is not a path", name)
	}
	return filepath.Clean(absolute(c.Place.Dir, name)), nil
}

// absolute makes a path start at dir if it starts nowhere. It does not clean.
func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + string(filepath.Separator) + name
}

func (p Policy) judgeFileTool(tool string, c *troupe.Call) finding {
	name, err := filePath(tool, c)
	if err != nil {
		return deny(bySafety, err.Error())
	}
	s, err := newScope(c.Place, p.Rules)
	if err != nil {
		return deny(bySafety, err.Error())
	}
	t, err := s.target(name)
	if err != nil {
		return deny(bySafety, err.Error())
	}
	if tool == toolRead || tool == toolGlob || tool == toolGrep {
		return p.read(s, t, tool)
	}
	return p.edit(s, t, tool)
}

// read judges the reading of a file, by a tool or a command.
func (p Policy) read(s *scope, t target, tool string) finding {
	if f, hit := p.refuses(toolRead, s, t); hit {
		return f
	}
	covers := func(r Rule) bool { return r.spec == "" || r.isFileRule() && s.contains(r.path, t) }
	for _, name := range []string{tool, toolRead} {
		if r, ok := p.first(troupe.Allow, name, covers); ok {
			return reading(byRule, r.cited())
		}
	}
	if s.holds(t) {
		return reading(byPlace, "reading in the working directories is free")
	}
	return finding{effect: troupe.Ask, by: byPlace, reads: true, beyond: true, reason: fmt.Sprintf(
		"%s is outside of the working directories; add --add-dir %s or --allowed-tools %s",
		t, quoteRule(filepath.Dir(t.real)), quoteRule("Read(/"+Literal(slashed(t.real))+")"))}
}

// refuses returns what the deny and ask rules for a kind of tool, Read or
// Edit, say about a file.
func (p Policy) refuses(kind string, s *scope, t target) (finding, bool) {
	covers := func(r Rule) bool { return r.spec == "" || r.isFileRule() && s.touches(r.path, t) }
	if r, ok := p.first(troupe.Deny, kind, covers); ok {
		return deny(byRule, fmt.Sprintf("%s covers %s", r.cited(), t)), true
	}
	if r, ok := p.first(troupe.Ask, kind, covers); ok {
		return finding{effect: troupe.Ask, by: byRule, reason: r.cited(), firm: true, reads: kind == toolRead}, true
	}
	return finding{}, false
}

// edit judges the change of a file, by a tool or a command. What must not be
// read must not be changed either: an edit shows what was there.
func (p Policy) edit(s *scope, t target, tool string) finding {
	if f, hit := p.refusesEdit(s, t); hit {
		return f
	}
	guarded := p.protectedPart(t)
	covers := func(r Rule) bool {
		if guarded != "" && !strings.Contains(fold(r.spec), guarded) {
			return false
		}
		return r.spec == "" || r.isFileRule() && s.contains(r.path, t)
	}
	for _, name := range []string{tool, toolEdit} {
		if r, ok := p.first(troupe.Allow, name, covers); ok {
			return allow(byRule, r.cited())
		}
	}
	remedy := "add --allowed-tools " + quoteRule("Edit(/"+Literal(slashed(t.real))+")")
	switch {
	case guarded != "":
		return ask(bySafety, fmt.Sprintf("%s is protected, as a change there can make other programs run commands; %s", t, remedy)).beyondSandbox()
	case !s.holds(t):
		return ask(byPlace, fmt.Sprintf("%s is outside of the working directories; add --add-dir %s", t, quoteRule(filepath.Dir(t.real))))
	case p.Mode.edits():
		return allow(byMode, "mode "+string(p.Mode))
	}
	return ask(byMode, fmt.Sprintf("changing %s needs approval; use --permission-mode acceptEdits or %s", t, remedy))
}

// refusesEdit returns what deny and ask rules, for reading and for editing,
// say about changing a file.
func (p Policy) refusesEdit(s *scope, t target) (finding, bool) {
	f, hit := finding{effect: troupe.Allow}, false
	for _, kind := range []string{toolRead, toolEdit} {
		if g, found := p.refuses(kind, s, t); found {
			f, hit = worse(f, g), true
		}
	}
	return f, hit
}

// isFileRule reports whether the pattern of r is one for paths.
func (r Rule) isFileRule() bool { return r.path.glob != "" }

// String names t for a reason.
func (t target) String() string {
	if t.named == t.real {
		return t.named
	}
	return t.named + " (leads to " + t.real + ")"
}

// protectedPart returns the part of a path, folded, for which it is
// protected: what stands there is run by other programs, or steers them. No
// mode but [Bypass] allows a change of such a file. "" is not protected.
func (p Policy) protectedPart(t target) string {
	if below, ok := p.shared(t); ok {
		t.named, t.real, p.Protected = below, below, nil
	}
	for _, dir := range p.Protected {
		dir = fold(slashed(dir))
		if real := fold(slashed(t.real)); real == dir || strings.HasPrefix(real, dir+"/") {
			return dir
		}
	}
	for _, name := range []string{t.named, t.real} {
		parts := strings.Split(fold(slashed(name)), "/")
		for i, part := range parts {
			if !isProtected(parts, i) {
				continue
			}
			return part
		}
	}
	return ""
}

// shared returns the part of a path below a directory that agents share, wherever
// that is.
func (p Policy) shared(t target) (below string, ok bool) {
	real := slashed(t.real)
	for _, dir := range p.Shared {
		if below, ok := strings.CutPrefix(real, strings.TrimSuffix(slashed(dir), "/")+"/"); ok {
			return below, true
		}
	}
	return "", false
}

// isProtected reports whether the i-th part of a path, folded, protects what
// is there and below.
func isProtected(parts []string, i int) bool {
	part, last := strings.TrimRight(parts[i], ". "), i == len(parts)-1
	switch part {
	case ".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".githooks", ".ssh":
		return true
	case ".claude", ".troupe":
		return last || parts[i+1] != "worktrees"
	case "git":
		return i > 0 && parts[i-1] == ".config"
	case ".gitconfig", ".gitmodules", ".npmrc", ".envrc", ".mcp.json", ".claude.json", ".pre-commit-config.yaml", ".bazelrc",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc",
		".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", "config.fish":
		return last
	}
	return last && (strings.HasPrefix(part, ".yarnrc") || strings.HasPrefix(part, "lefthook") || strings.HasPrefix(part, ".lefthook"))
}

// Hidden returns a function that reports whether a deny rule for Read covers
// a file, so that a search leaves it out. A relative path starts at
// place.Dir. What cannot be resolved is hidden. Several may use the function at
// once.
func (p Policy) Hidden(place troupe.Place) func(path string) bool {
	denied := p.denials(toolRead)
	if len(denied) == 0 {
		return func(string) bool { return false }
	}
	s, err := newScope(place, denied)
	if err != nil {
		return func(string) bool { return true }
	}
	s.targets = nil
	return func(name string) bool {
		t, err := s.target(filepath.Clean(absolute(place.Dir, name)))
		if err != nil {
			return true
		}
		for _, r := range denied {
			if r.spec == "" || s.touches(r.path, t) {
				return true
			}
		}
		return false
	}
}

// denials returns the rules of a kind, Read or Edit, that deny some files.
func (p Policy) denials(kind string) []Rule {
	var out []Rule
	for _, r := range p.Rules {
		if r.effect == troupe.Deny && r.names(kind) && (r.spec == "" || r.isFileRule()) {
			out = append(out, r)
		}
	}
	return out
}
