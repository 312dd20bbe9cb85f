package config

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/permission"
)

const (
	maxDefinition = 1 << 20 // bytes of a file
	maxEntries    = 5000    // files and directories in one tree of definitions
	maxDepth      = 16      // directories below each other in it
)

//go:embed agents/*.md
var builtInFiles embed.FS

// An agentDir is a directory with definitions in it.
type agentDir struct {
	path    string
	trusted bool
}

// loadAgents puts together the definitions of all sources. Its error is the
// fault of a flag.
func (l *loader) loadAgents() error {
	set := agentSet{l: l, byName: map[string]troupe.Definition{}, dirs: map[string]bool{}}
	if err := set.builtIn(); err != nil {
		return err
	}
	for _, dir := range l.agentDirs() {
		set.tree(dir)
	}
	if err := set.flag(l.src.Agents); err != nil {
		return err
	}
	for _, def := range set.byName {
		l.cfg.Definitions = append(l.cfg.Definitions, def)
	}
	slices.SortFunc(l.cfg.Definitions, func(a, b troupe.Definition) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// agentDirs returns the directories that may hold definitions, the weakest first.
func (l *loader) agentDirs() []agentDir {
	var out []agentDir
	for _, dir := range l.userDirs() {
		out = append(out, agentDir{filepath.Join(dir, "agents"), true})
	}
	add := func(dir string, trusted bool) {
		for _, own := range []string{".claude", ".troupe"} {
			out = append(out, agentDir{filepath.Join(dir, own, "agents"), trusted})
		}
	}
	for _, dir := range downTo(l.cfg.Root, l.cfg.Dir) {
		add(dir, l.cfg.Trusted || l.ofUser(dir))
	}
	for _, dir := range l.src.AddDirs {
		dir = l.absolute(l.cfg.Dir, dir)
		add(dir, l.src.Trusted(dir))
	}
	return out
}

// An agentSet collects definitions, the stronger source after the weaker.
type agentSet struct {
	l      *loader
	byName map[string]troupe.Definition // by folded name
	dirs   map[string]bool              // that were read, with links resolved
}

// fold makes names that differ in case alone equal.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

func (s *agentSet) builtIn() error {
	files, err := fs.Glob(builtInFiles, "agents/*.md")
	if err != nil {
		return err
	}
	for _, path := range files {
		data, err := builtInFiles.ReadFile(path)
		if err != nil {
			return err
		}
		d, err := readDefinition(path, data)
		if err != nil {
			return fmt.Errorf("read built-in definition: %w", err)
		}
		d.def.Source = BuiltIn
		s.byName[fold(d.def.Name)] = d.def
	}
	return nil
}

// tree adds the definitions in a directory and those below it. Links to files
// and the directory itself are followed, links to further directories are not.
func (s *agentSet) tree(dir agentDir) {
	real, err := filepath.EvalSymlinks(dir.path)
	if err != nil {
		if _, lerr := os.Lstat(dir.path); lerr == nil {
			s.l.problem(Problem{File: dir.path, Reason: reason(err).Error()})
		}
		return
	}
	if s.dirs[real] {
		return // as when the session works in the user's home directory
	}
	s.dirs[real] = true
	here := map[string]troupe.Definition{} // what this tree defines, by folded name
	for _, path := range s.files(dir.path) {
		d := s.file(path, dir.trusted)
		if d == nil {
			continue
		}
		if first, ok := here[fold(d.def.Name)]; ok {
			s.l.problem(Problem{File: path, Line: d.lines["name"],
				Reason: fmt.Sprintf("agent %q is already defined in %s", d.def.Name, first.Source)})
			continue
		}
		here[fold(d.def.Name)] = d.def
	}
	for name, def := range here {
		s.byName[name] = def
	}
}

// files returns the Markdown files below root, in order.
func (s *agentSet) files(root string) []string {
	var out []string
	left := maxEntries
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			s.l.problem(Problem{File: dir, Reason: reason(err).Error()})
		}
		for _, e := range entries {
			if left--; left < 0 {
				return
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case e.IsDir() && depth < maxDepth:
				walk(path, depth+1)
			case !e.IsDir() && strings.EqualFold(filepath.Ext(path), ".md"):
				out = append(out, path)
			}
		}
	}
	walk(root, 0)
	if left < 0 {
		s.l.problem(Problem{File: root, Reason: fmt.Sprintf("more than %d files; the others are not read", maxEntries)})
	}
	return out
}

// file reads one definition; nil if there is none in it.
func (s *agentSet) file(path string, trusted bool) *draft {
	data, err := readWhole(path, maxDefinition)
	if err != nil {
		s.l.problem(Problem{File: path, Reason: err.Error()})
		return nil
	}
	d, err := readDefinition(path, data)
	if err != nil {
		p, _ := errors.AsType[Problem](err)
		s.l.problem(p)
		return nil
	}
	if d != nil {
		d.def.Source = path
		s.remarks(d)
		if !trusted && permission.Mode(d.def.Mode).Wider(permission.Default) {
			s.l.withhold(path, "permissionMode "+d.def.Mode)
			d.def.Mode = ""
		}
		if !trusted && d.def.Model != "" && d.def.Model != "inherit" { // who is paid is not for a stranger to say
			s.l.withhold(path, "model "+d.def.Model)
			d.def.Model = ""
		}
	}
	return d
}

// remarks tells what a definition that loaded will not do.
func (s *agentSet) remarks(d *draft) {
	for _, key := range d.unused {
		s.l.unused(d.file, key+" is not used")
	}
	for _, p := range append(d.notes, d.unknownTools(s.l.src.Tools)...) {
		s.l.problem(p)
	}
}

// readDefinition reads a definition from a Markdown file. It returns nil for a
// file that does not mean to be one. Its error is a [Problem].
func readDefinition(path string, data []byte) (*draft, error) {
	doc, err := parseDocument(data)
	if err != nil {
		p, _ := errors.AsType[Problem](err)
		p.File = path
		return nil, p
	}
	if doc == nil || !named(doc.fields) {
		return nil, nil
	}
	// The body is the prompt, whatever a field of that name says.
	fields := slices.DeleteFunc(doc.fields, func(f field) bool { return f.key == "prompt" })
	d, err := newDraft(path, 1, fields)
	if err != nil {
		return nil, err
	}
	if doc.unclosed {
		d.notes = append(d.notes, Problem{File: path, Line: doc.bodyLine,
			Reason: "no line --- ends the fields; what follows here is taken for the prompt"})
	}
	d.def.Prompt = doc.body
	d.lines["prompt"] = doc.bodyLine
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}

// named says whether fields mean to define an agent: what has neither name
// nor description is documentation.
func named(fields []field) bool {
	for _, f := range fields {
		if (f.key == "name" || f.key == "description") && !f.value.empty() {
			return true
		}
	}
	return false
}

// flag adds the definitions of --agents.
func (s *agentSet) flag(value string) error {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	const name = "--agents"
	top, err := parseJSON([]byte(value))
	if err == nil && top.kind != isObject {
		err = top.wrong("", "the value", isObject)
	}
	if err != nil {
		p, _ := errors.AsType[Problem](err)
		p.File = name
		return fmt.Errorf("%w: %w", ErrFlag, p)
	}
	seen := map[string]bool{}
	for _, f := range top.fields {
		d, err := flagDefinition(name, f)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFlag, err)
		}
		if seen[fold(f.key)] {
			return fmt.Errorf("%w: %w", ErrFlag, Problem{name, f.line, f.col, fmt.Sprintf("agent %q is given twice", f.key)})
		}
		seen[fold(f.key)] = true
		d.def.Source = CommandLine
		s.remarks(d)
		s.byName[fold(d.def.Name)] = d.def
	}
	return nil
}

// flagDefinition reads one member of the object that --agents is.
func flagDefinition(file string, f field) (*draft, error) {
	if f.value.kind != isObject {
		return nil, f.value.wrong(file, fmt.Sprintf("agent %q", f.key), isObject)
	}
	fields := slices.DeleteFunc(f.value.fields, func(f field) bool { return f.key == "name" })
	d, err := newDraft(file, f.line, fields)
	if err != nil {
		return nil, err
	}
	d.def.Name = strings.TrimSpace(f.key)
	d.lines["name"] = f.line
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}
