// Package config finds what a user and a repository have written down for
// their agents and makes plain data of it: settings, definitions of agents,
// and the context files that every agent reads first.
//
// [Load] is the way in. It reads the files of this project (.troupe) and
// those that repositories already carry for other agents (.claude, CLAUDE.md,
// AGENTS.md), so that a prepared repository works unchanged. Nothing here
// acts on what it read: permission rules stay text, directories stay paths.
//
// Two thoughts run through the package. A file that came with a repository is
// a stranger's word: until the user trusts the folder (see [Trust]) it may
// take rights away and never give any. And a sloppy file costs itself alone:
// what cannot be read becomes a [Problem] with its place, and all the rest
// loads; except for rules that forbid something, without which Load refuses.
package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/troupe-sh/troupe"
)

// The errors of [Load] that a caller may want to tell apart.
var (
	// ErrRules says that deny or ask rules may be in a file that could not
	// be read. Without them nothing may start.
	ErrRules = errors.New("rules that deny or ask, or limits, could not be read; mend or remove the file")
	// ErrFlag says that what was given on the command line is wrong.
	ErrFlag = errors.New("not a valid value")
)

// CommandLine and BuiltIn are the sources that are no files, as they stand
// in a [troupe.Definition], a [Value] or a [RuleText].
const (
	CommandLine = "command line"
	BuiltIn     = "built-in"
)

// Sources says where to look. Paths are absolute; an empty one is not looked at.
type Sources struct {
	Home     string   // own data directory, as a rule ~/.troupe
	UserHome string   // home directory of the user
	Dir      string   // where the session works; must exist
	Managed  string   // settings file of the machine's owner, above all others; it need not exist. So is what is in NAME.d beside NAME.json
	Layers   []string // of the settings that are read: user, project, local; nil is all
	Settings string   // value of --settings: a path, from Dir on, or a JSON object
	Agents   string   // value of --agents: a JSON object of definitions by name
	AddDirs  []string // values of --add-dir, from Dir on
	Tools    []string // names of the tools there are, to find misspelt ones; nil: not checked

	// Reaches says whether a variable decides where and how models are
	// reached. If it is nil no variable does.
	Reaches func(name string) bool

	// Trusted says whether the user trusts a directory. If it is nil the
	// store that [Trust] writes in Home is asked.
	Trusted func(dir string) bool
}

// Config is what Load found, merged. It is a value of its caller: nobody else
// holds on to it.
type Config struct {
	Dir     string // Sources.Dir with its links resolved
	Root    string // of the repository: the nearest directory at or above Dir that has a .git, else Dir
	Trusted bool   // whether the user trusts Dir

	Rules       []RuleText            // of all layers, the weakest layer first
	Dirs        []Value               // further directories to work in, absolute: flags first, then settings
	Mode        Value                 // permission mode to start in; no Text: nobody has set one
	Model       Value                 // model to start with; no Text: nobody has set one
	Aliases     map[string]Value      // models by their short name
	NoBypass    Value                 // has a text if the mode bypassPermissions is forbidden
	Env         map[string]Value      // variables by name: see [Config.Environ]
	PassKeys    []Value               // names of variables with keys of providers that programs get
	Proxy       Value                 // for requests to models and pages; as HTTPS_PROXY
	NoProxy     Value                 // as NO_PROXY
	CAFile      Value                 // certificates to trust on top of the system's, absolute
	Catalogue   map[string]ModelFacts // by the whole name of the model
	Sandbox     Sandbox               // what confines commands
	Limits      Limits                // of the session; the lowest that a file says
	Each        Limits                // of each agent below its lead
	limits      []Entry               // all that files say of them
	Crew        Crew                  // how agents below the lead work
	Definitions []troupe.Definition   // by name; a name is there once, whatever its case
	Context     []ContextFile         // in the order in which a model should read them

	Managed   []string // settings files of the machine's owner that are there
	Withheld  []string // what a folder that is not trusted asks for and does not get
	Reach     []string // what a trusted project decides of how models are reached
	Elsewhere []string // keys of other tools that have no effect

	Problems []Problem // what is wrong in files, and what was left out for it
	Warnings []string  // what the user should know before the first turn
	Unused   []string  // what was found and has no effect in this version
}

// A Value is a setting and where it came from: a path or [CommandLine].
type Value struct{ Text, Source string }

// A RuleText is a permission rule as it was written, such as "Bash(git diff:*)".
type RuleText struct {
	Text   string
	Effect troupe.Effect
	Source string // path or CommandLine
	Root   string // directory that a pattern with one leading slash starts at
}

// A ContextFile is a text that agents are given before their first turn.
type ContextFile struct{ Path, Text string }

// A Problem is a mistake in a file. Line and Column count from 1; 0 is unknown.
type Problem struct {
	File         string
	Line, Column int
	Reason       string
}

// Error returns the problem as file:line:column: reason, without what is unknown.
func (p Problem) Error() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
		if p.Column > 0 {
			s += fmt.Sprintf(":%d", p.Column)
		}
	}
	return s + ": " + p.Reason
}

// Load reads what is in src. It fails if Dir is not there, with [ErrFlag] if
// a flag has a wrong value, and with [ErrRules] if deny or ask rules may have
// been lost. Everything else that is wrong is in the Config. The Config is
// whole also when Load fails with ErrRules, to show it: nobody must work by it.
func Load(src Sources) (*Config, error) {
	l, err := newLoader(src)
	if err != nil {
		return nil, err
	}
	lost, err := l.loadSettings()
	if err != nil {
		return nil, err
	}
	if err := l.loadAgents(); err != nil {
		return nil, err
	}
	l.loadContext()
	l.warnOfTrust()
	if len(lost) > 0 {
		return l.cfg, fmt.Errorf("load settings: %w: %s", ErrRules, strings.Join(lost, "; "))
	}
	return l.cfg, nil
}

// A loader is one run of Load: what it was asked for and what it has so far.
type loader struct {
	src      Sources
	userHome string // as in src, with links resolved
	cfg      *Config
}

func newLoader(src Sources) (*loader, error) {
	for _, p := range []string{src.Home, src.UserHome, src.Dir, src.Managed} {
		if p != "" && !filepath.IsAbs(p) {
			return nil, fmt.Errorf("load configuration: %q is not an absolute path", p)
		}
	}
	dir, err := filepath.EvalSymlinks(src.Dir)
	if err != nil {
		return nil, fmt.Errorf("load configuration of %q: %w", src.Dir, err)
	}
	if src.Trusted == nil {
		home := src.Home
		src.Trusted = func(dir string) bool { return Trusted(home, dir) }
	}
	l := &loader{src: src, userHome: realPath(src.UserHome)}
	l.cfg = &Config{
		Dir:     dir,
		Root:    repositoryRoot(dir),
		Trusted: src.Trusted(dir) || dir == l.userHome,
		Aliases: map[string]Value{}, Env: map[string]Value{}, Catalogue: map[string]ModelFacts{},
	}
	return l, nil
}

// problem notes a mistake. The reason may quote what is in the file, of any size.
func (l *loader) problem(p Problem) {
	const most = 300
	if len(p.Reason) > most {
		p.Reason = prefix(p.Reason, most) + "…"
	}
	l.cfg.Problems = append(l.cfg.Problems, p)
}

func (l *loader) warn(format string, args ...any) {
	l.cfg.Warnings = append(l.cfg.Warnings, fmt.Sprintf(format, args...))
}

func (l *loader) unused(file, what string) {
	l.cfg.Unused = append(l.cfg.Unused, fmt.Sprintf("%s: %s by this version", l.show(file), what))
}

// withhold notes something that file asks for and that only a trusted folder gets.
func (l *loader) withhold(file, what string) {
	l.cfg.Withheld = append(l.cfg.Withheld, l.show(file)+": "+what)
}

// warnOfTrust says once, for all files, what trust would change.
func (l *loader) warnOfTrust() {
	if len(l.cfg.Withheld) > 0 {
		l.warn("ignored because this folder is not trusted (to trust it run `troupe trust` in it): %s",
			strings.Join(l.cfg.Withheld, "; "))
	}
	if len(l.cfg.Reach) > 0 {
		first := "this project, which you trust, decides how models are reached: " + strings.Join(l.cfg.Reach, "; ")
		l.cfg.Warnings = append([]string{first}, l.cfg.Warnings...)
	}
}

// ofUser says whether a directory of the project is the user's own home, where
// what a project would have is the user's.
func (l *loader) ofUser(dir string) bool { return l.userHome != "" && dir == l.userHome }

// show is the short form of a path, for people.
func (l *loader) show(path string) string {
	if rel, ok := below(l.cfg.Root, path); ok && !l.ofUser(l.cfg.Root) {
		return rel
	}
	for _, home := range []string{l.src.UserHome, l.userHome} {
		if rel, ok := below(home, path); home != "" && ok {
			return "~" + string(filepath.Separator) + rel
		}
	}
	return path
}
