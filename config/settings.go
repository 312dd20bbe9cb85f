package config

import (
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

// maxSettings is a limit in bytes. A parser goes as deep as brackets nest: what
// fits in here cannot exhaust its stack.
const maxSettings = 256 << 10

// A layer is one source of settings.
type layer struct {
	source  string // path, or CommandLine for what was given inline
	name    string // as --setting-sources has it; "" cannot be left out
	root    string // where a rule's pattern with one leading slash starts
	project bool   // came with the repository, or lies in it
	trusted bool
}

// The names of layers, as users write them.
const (
	layerUser    = "user"
	layerProject = "project"
	layerLocal   = "local"
)

// checkLayers reports a name of [Sources.Layers] that there is not.
func (l *loader) checkLayers() error {
	all := []string{layerUser, layerProject, layerLocal}
	for _, name := range l.src.Layers {
		if !slices.Contains(all, name) {
			return fmt.Errorf("--setting-sources: %w: %q; there are %s", ErrFlag, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// layers returns the settings files there may be, the weakest first. The
// command line is not among them.
func (l *loader) layers() []layer {
	var out []layer
	for _, dir := range l.userDirs() {
		out = append(out, layer{source: filepath.Join(dir, "settings.json"), name: layerUser, root: dir, trusted: true})
	}
	root := l.cfg.Root
	for _, file := range [][2]string{{"settings.json", layerProject}, {"settings.local.json", layerLocal}} {
		for _, dir := range []string{".claude", ".troupe"} {
			out = append(out, layer{source: filepath.Join(root, dir, file[0]), name: file[1], root: root, project: true,
				trusted: l.cfg.Trusted || l.ofUser(root)})
		}
	}
	return out
}

// userDirs returns the directories that hold the user's own files, the
// weaker first.
func (l *loader) userDirs() []string {
	var out []string
	if l.src.UserHome != "" {
		out = append(out, filepath.Join(l.src.UserHome, ".claude"))
	}
	if l.src.Home != "" {
		out = append(out, l.src.Home)
	}
	return out
}

// loadSettings reads and merges all layers. It returns what may have cost a
// deny or ask rule, and an error if it is the fault of a flag.
func (l *loader) loadSettings() (lost []string, err error) {
	if err := l.checkLayers(); err != nil {
		return nil, err
	}
	r := &settingsReader{l: l}
	var ofUser []fs.FileInfo
	for _, from := range l.layers() {
		info, _ := os.Stat(from.source)
		if from.project && isOneOf(info, ofUser) {
			continue // in the home directory the project's files are the user's
		}
		if !from.project && info != nil {
			ofUser = append(ofUser, info)
		}
		if l.src.Layers == nil || slices.Contains(l.src.Layers, from.name) {
			r.file(from)
		}
	}
	if err := r.flag(l.src.Settings); err != nil {
		return nil, err
	}
	r.managed()
	l.loadDirFlags()
	if path := filepath.Join(l.cfg.Root, ".mcp.json"); exists(path) {
		l.unused(path, "its servers are not started")
	}
	for _, p := range r.lost {
		lost = append(lost, p.Error())
	}
	l.cfg.Problems = append(l.cfg.Problems, append(r.lost, r.problems...)...)
	return lost, nil
}

// managed merges the files of the machine's owner: the one that is named, and
// what lies in the directory of its name with .d for .json, in the order of names.
func (r *settingsReader) managed() {
	m := r.l.src.Managed
	if m == "" {
		return
	}
	files := []string{m}
	more := strings.TrimSuffix(m, ".json") + ".d"
	entries, err := os.ReadDir(more)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.lost = append(r.lost, Problem{File: more, Reason: reason(err).Error()})
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(more, e.Name()))
		}
	}
	for _, f := range files {
		if exists(f) {
			r.l.cfg.Managed = append(r.l.cfg.Managed, f)
		}
		r.file(layer{source: f, root: filepath.Dir(f), trusted: true})
	}
}

func isOneOf(info fs.FileInfo, of []fs.FileInfo) bool {
	for _, o := range of {
		if info != nil && os.SameFile(info, o) {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// loadDirFlags puts the directories of the command line before all others.
func (l *loader) loadDirFlags() {
	var dirs []Value
	for _, d := range l.src.AddDirs {
		dirs = append(dirs, Value{l.absolute(l.cfg.Dir, d), CommandLine})
	}
	l.cfg.Dirs = append(dirs, l.cfg.Dirs...)
}

// A settingsReader merges layers into the Config, one after another.
type settingsReader struct {
	l        *loader
	from     layer
	lost     []Problem // after which deny or ask rules may be missing
	problems []Problem // all others
}

// file merges a settings file, if it is there.
func (r *settingsReader) file(from layer) {
	data, err := readWhole(from.source, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.lost = append(r.lost, Problem{File: from.source, Reason: err.Error()})
		return
	}
	r.merge(from, data)
}

// flag merges the value of --settings. Nothing in it may be wrong.
func (r *settingsReader) flag(value string) error {
	value = strings.TrimSpace(value)
	if value == "" {
		return nil
	}
	from := layer{source: CommandLine, root: r.l.cfg.Dir, trusted: true}
	data := []byte(value)
	if value[0] != '{' {
		from.source = r.l.absolute(r.l.cfg.Dir, value)
		var err error
		if data, err = readWhole(from.source, maxSettings); err != nil {
			return fmt.Errorf("--settings: %s: %w: %w", from.source, ErrFlag, err)
		}
	}
	own := &settingsReader{l: r.l}
	own.merge(from, data)
	if all := append(own.lost, own.problems...); len(all) > 0 {
		return fmt.Errorf("--settings: %w: %w", ErrFlag, all[0])
	}
	return nil
}

func (r *settingsReader) merge(from layer, data []byte) {
	r.from = from
	top, err := parseJSON(data)
	if err == nil && top.kind != isObject {
		err = top.wrong("", "the file", isObject)
	}
	if err != nil {
		p, _ := errors.AsType[Problem](err)
		p.File = from.source
		r.lost = append(r.lost, p)
		return
	}
	for _, f := range top.fields {
		switch f.key {
		case "permissions":
			r.permissions(f)
		case "sandbox":
			r.sandbox(f)
		case "model", "models":
			// Who answers, and who is paid, is not for a stranger to say.
			if !from.trusted {
				r.l.withhold(from.source, f.key)
				continue
			}
			if f.key == "model" {
				r.set(&r.l.cfg.Model, f)
			} else {
				r.aliases(f)
			}
		case "env":
			r.env(f)
		case "network":
			r.connections(f)
		case "catalogue":
			r.catalogue(f)
		case "passKeys":
			r.passKeys(f)
		case "limits":
			r.limits(f)
		case "agents", "background":
			r.crew(f)
		default:
			r.unknown(f, "", settingsKeys())
		}
	}
}

func (r *settingsReader) permissions(f field) {
	if f.value.kind == isNull {
		return
	}
	if f.value.kind != isObject {
		r.lost = append(r.lost, f.value.wrong(r.from.source, f.key, isObject))
		return
	}
	for _, f := range f.value.fields {
		switch f.key {
		case "deny":
			r.rules(f, troupe.Deny)
		case "ask":
			r.rules(f, troupe.Ask)
		case "allow":
			r.allow(f)
		case "additionalDirectories":
			r.dirs(f)
		case "defaultMode":
			r.mode(f)
		case "disableBypassPermissionsMode":
			if f.value.kind == isText && f.value.text == "disable" { // it takes away: anybody may say it
				r.l.cfg.NoBypass = Value{f.value.text, r.from.source}
			} else if f.value.kind != isNull {
				r.lost = append(r.lost, Problem{r.from.source, f.value.line, f.value.col, f.key + ` can only be "disable"`})
			}
		default:
			r.unknown(f, "permissions.", permissionKeys())
		}
	}
}

// texts returns the texts of a list and, apart, what is not a text in it.
func (r *settingsReader) texts(f field) (texts []string, bad []Problem) {
	switch f.value.kind {
	case isNull:
	case isList:
		for _, n := range f.value.items {
			if n.kind != isText {
				bad = append(bad, n.wrong(r.from.source, "an entry of "+f.key, isText))
				continue
			}
			texts = append(texts, n.text)
		}
	default:
		bad = append(bad, f.value.wrong(r.from.source, f.key, isList))
	}
	return texts, bad
}

func (r *settingsReader) rules(f field, effect troupe.Effect) {
	texts, bad := r.texts(f)
	if effect == troupe.Allow {
		r.problems = append(r.problems, bad...)
	} else {
		r.lost = append(r.lost, bad...)
	}
	for _, t := range texts {
		r.l.cfg.Rules = append(r.l.cfg.Rules, RuleText{t, effect, r.from.source, r.from.root})
	}
}

func (r *settingsReader) allow(f field) {
	if n := len(f.value.items); !r.from.trusted && n > 0 {
		texts, _ := r.texts(f)
		const shown = 5 // who is asked for trust must see what for
		what := strings.Join(texts[:min(len(texts), shown)], ", ")
		if len(texts) > shown {
			what += ", …"
		}
		r.l.withhold(r.from.source, fmt.Sprintf("%d allow rule(s): %s", n, what))
		return
	}
	r.rules(f, troupe.Allow)
}

func (r *settingsReader) dirs(f field) {
	texts, bad := r.texts(f)
	r.problems = append(r.problems, bad...)
	if !r.from.trusted {
		if len(texts) > 0 {
			r.l.withhold(r.from.source, f.key)
		}
		return
	}
	base := r.l.cfg.Dir
	if r.from.project {
		base = r.from.root
	}
	for _, t := range texts {
		if t != "" {
			r.l.cfg.Dirs = append(r.l.cfg.Dirs, Value{r.l.absolute(base, t), r.from.source})
		}
	}
}

func (r *settingsReader) mode(f field) {
	var v Value
	r.set(&v, f)
	if v.Text == "" {
		return
	}
	mode, err := permission.ParseMode(v.Text)
	if err != nil {
		r.problems = append(r.problems, Problem{r.from.source, f.value.line, f.value.col, f.key + ": " + err.Error()})
		return
	}
	if !r.from.trusted && mode.Wider(permission.Mode(r.l.cfg.Mode.Text)) {
		r.l.withhold(r.from.source, f.key+" "+string(mode))
		return
	}
	r.l.cfg.Mode = Value{string(mode), v.Source}
}

func (r *settingsReader) aliases(f field) {
	if f.value.kind != isObject && f.value.kind != isNull {
		r.problems = append(r.problems, f.value.wrong(r.from.source, f.key, isObject))
		return
	}
	for _, f := range f.value.fields {
		v := r.l.cfg.Aliases[f.key]
		r.set(&v, f)
		if v.Text != "" {
			r.l.cfg.Aliases[f.key] = v
		}
	}
}

// set replaces a single value by the text of f, if it has one.
func (r *settingsReader) set(v *Value, f field) {
	switch {
	case f.value.kind == isText && f.value.text != "":
		*v = Value{f.value.text, r.from.source}
	case f.value.kind != isText && f.value.kind != isNull:
		r.problems = append(r.problems, f.value.wrong(r.from.source, f.key, isText))
	}
}
