package config

import (
	"fmt"
	"slices"
	"strings"
)

// Sandbox is what settings say about the sandbox for commands. Paths are
// absolute; their links are not resolved.
type Sandbox struct {
	Mode Value // off, on or required; no Text: nobody has said

	Write   []Value // may be written, besides where agents work
	NoWrite []Value // may not, whatever else allows it
	NoRead  []Value // cannot be read
	Read    []Value // parts of NoRead that can

	Excluded []Value // commands that run outside, written as in a rule for Bash

	Sockets    []Value // sockets, or directories of them, of others that commands may speak to
	AllSockets bool
	NoNetwork  bool

	Trusted bool // what the sandbox holds needs no leave
}

// The modes of the sandbox, as they are written.
const (
	SandboxOff      = "off"
	SandboxOn       = "on"       // commands are confined if that is possible
	SandboxRequired = "required" // and else they do not run
)

// strictness orders the modes; -1 is none.
func strictness(mode string) int {
	if mode == "" {
		mode = SandboxOff
	}
	return slices.Index([]string{SandboxOff, SandboxOn, SandboxRequired}, mode)
}

// sandbox merges the key of that name. A file that is not trusted can make it
// stricter. What would make it stricter and cannot be read is lost, as with rules.
func (r *settingsReader) sandbox(f field) {
	if f.value.kind == isNull {
		return
	}
	if f.value.kind != isObject {
		r.lost = append(r.lost, f.value.wrong(r.from.source, f.key, isObject))
		return
	}
	s := &r.l.cfg.Sandbox
	var mode string
	var enabled, required *bool
	for _, f := range f.value.fields {
		switch f.key {
		case "mode":
			mode = r.sandboxMode(f)
		case "enabled":
			enabled = r.truth("sandbox."+f.key, f, &r.lost)
		case "failIfUnavailable":
			required = r.truth("sandbox."+f.key, f, &r.lost)
		case "autoAllowBashIfSandboxed":
			if yes := r.truth("sandbox."+f.key, f, &r.problems); yes != nil && r.mayGive(f.key, *yes) {
				s.Trusted = *yes
			}
		case "excludedCommands":
			s.Excluded = append(s.Excluded, r.given(f)...)
		case "filesystem":
			r.inside(f, r.filesystem)
		case "network":
			r.inside(f, r.network)
		case "allowUnsandboxedCommands":
			if f.value.text == "true" {
				r.l.unused(r.from.source, "sandbox.allowUnsandboxedCommands: no call can ask to run outside")
			}
		case "credentials", "ignoreViolations", "enableWeakerNestedSandbox":
			r.sandboxUnused("", f)
		}
	}
	r.setSandboxMode(mode, enabled, required)
}

// sandboxMode reads the key mode.
func (r *settingsReader) sandboxMode(f field) string {
	if f.value.kind != isText || strictness(f.value.text) < 0 || f.value.text == "" {
		r.lost = append(r.lost, Problem{r.from.source, f.value.line, f.value.col, "sandbox.mode is one of off, on, required"})
		return ""
	}
	return f.value.text
}

// setSandboxMode makes a mode of what a file says.
func (r *settingsReader) setSandboxMode(mode string, enabled, required *bool) {
	now := &r.l.cfg.Sandbox.Mode
	if mode == "" && enabled != nil {
		mode = SandboxOff
		if *enabled {
			mode = SandboxOn
		}
	}
	if mode == "" && required != nil && strictness(now.Text) > 0 {
		mode = SandboxOn
	}
	if mode == SandboxOn && required != nil && *required {
		mode = SandboxRequired
	}
	switch {
	case mode == "":
	case !r.from.trusted && strictness(mode) < strictness(now.Text):
		r.l.withhold(r.from.source, "sandbox.mode "+mode)
	default:
		*now = Value{mode, r.from.source}
	}
}

// inside calls read for each key of an object.
func (r *settingsReader) inside(f field, read func(field)) {
	if f.value.kind != isObject && f.value.kind != isNull {
		r.lost = append(r.lost, f.value.wrong(r.from.source, "sandbox."+f.key, isObject))
	}
	for _, f := range f.value.fields {
		read(f)
	}
}

func (r *settingsReader) filesystem(f field) {
	s := &r.l.cfg.Sandbox
	switch f.key {
	case "allowWrite":
		s.Write = append(s.Write, r.paths(f, r.given(f), false)...)
	case "allowRead":
		s.Read = append(s.Read, r.paths(f, r.given(f), false)...)
	case "denyWrite":
		s.NoWrite = append(s.NoWrite, r.paths(f, r.taken(f), true)...)
	case "denyRead":
		s.NoRead = append(s.NoRead, r.paths(f, r.taken(f), true)...)
	default:
		r.sandboxUnused("filesystem.", f)
	}
}

func (r *settingsReader) network(f field) {
	s := &r.l.cfg.Sandbox
	switch f.key {
	case "deniedDomains":
		for _, v := range r.taken(f) {
			if v.Text == "*" {
				s.NoNetwork = true
				continue
			}
			r.l.unused(r.from.source, fmt.Sprintf("sandbox.network.deniedDomains %q is not enforced (only \"*\", the whole network, is)", v.Text))
		}
	case "allowUnixSockets":
		s.Sockets = append(s.Sockets, r.paths(f, r.given(f), false)...)
	case "allowAllUnixSockets":
		if yes := r.truth("sandbox."+f.key, f, &r.problems); yes != nil && r.mayGive(f.key, *yes) {
			s.AllSockets = *yes
		}
	default:
		r.sandboxUnused("network.", f)
	}
}

func (r *settingsReader) sandboxUnused(in string, f field) {
	if !f.value.empty() {
		r.l.unused(r.from.source, "sandbox."+in+f.key+" is not enforced")
	}
}

// truth reads true or false of the key name; nil is neither, which is noted in bad.
func (r *settingsReader) truth(name string, f field, bad *[]Problem) *bool {
	switch f.value.kind {
	case isTruth:
		yes := f.value.text == "true"
		return &yes
	case isNull:
	default:
		*bad = append(*bad, f.value.wrong(r.from.source, name, isTruth))
	}
	return nil
}

// mayGive reports whether a file may set a key that gives something.
func (r *settingsReader) mayGive(key string, gives bool) bool {
	if gives && !r.from.trusted {
		r.l.withhold(r.from.source, "sandbox."+key)
		return false
	}
	return true
}

// given are the texts of a list that gives something.
func (r *settingsReader) given(f field) (out []Value) {
	texts, bad := r.texts(f)
	r.problems = append(r.problems, bad...)
	if !r.mayGive(f.key, len(texts) > 0) {
		return nil
	}
	return r.values(texts)
}

// taken are the texts of a list that takes something away.
func (r *settingsReader) taken(f field) []Value {
	texts, bad := r.texts(f)
	r.lost = append(r.lost, bad...)
	return r.values(texts)
}

func (r *settingsReader) values(texts []string) (out []Value) {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			out = append(out, Value{t, r.from.source})
		}
	}
	return out
}

// paths makes absolute paths of values. There are no patterns here: the end /**
// is what every path means, and of another one that takes away its directory
// counts, so that it takes more rather than less.
func (r *settingsReader) paths(f field, values []Value, takes bool) (out []Value) {
	for _, v := range values {
		text := strings.TrimSuffix(v.Text, "/**")
		if at := strings.IndexAny(text, "*?["); at >= 0 {
			reason := fmt.Sprintf("sandbox %s: %q is a pattern, and only paths are understood here", f.key, v.Text)
			if takes {
				reason += "; it counts for the whole directory"
			}
			r.problems = append(r.problems, Problem{r.from.source, f.value.line, f.value.col, reason})
			if !takes {
				continue
			}
			text = text[:strings.LastIndexByte(text[:at], '/')+1]
		}
		if text == "" {
			text = "."
			if strings.HasPrefix(v.Text, "/") {
				text = "/"
			}
		}
		out = append(out, Value{r.l.absolute(r.from.root, text), v.Source})
	}
	return out
}
