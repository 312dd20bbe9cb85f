package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/proc"
)

// A cage is how the commands of a session are confined.
type cage struct {
	sandbox  *proc.Sandbox
	refuse   error       // why no command may run
	limits   proc.Limits // of all commands, besides the places that they work in
	asked    []string    // what the settings name as writable
	denied   []string    // and as not writable, whatever else says
	home     string      // troupe's own directory
	excluded []string

	mu     sync.Mutex
	places map[string][]string // what is writable for a place
	made   []string            // directories of settings that were missing
}

// FindSandbox returns what would confine the commands of a session, found by a
// trial, or why there is nothing. env is the environment of commands, launcher as
// in [Options].
func FindSandbox(ctx context.Context, launcher string, env []string) (*proc.Sandbox, error) {
	return proc.FindSandbox(ctx, temporary(env), launcher, env)
}

// enclose finds the sandbox that the settings ask for and tells p of it. It does
// nothing if they ask for none.
func (s *Session) enclose(ctx context.Context, p *permission.Policy) error {
	c := s.opts.Config.Sandbox
	if c.Mode.Text == "" || c.Mode.Text == config.SandboxOff {
		return nil
	}
	s.cage = &cage{home: realPath(s.opts.Home), places: map[string][]string{}}
	var err error
	if s.cage.sandbox, err = FindSandbox(ctx, s.opts.Launcher, s.env); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return s.unconfined(fmt.Sprint(err))
	}
	s.cage.fill(s, p)
	user := proc.Limits{Write: slices.Concat(s.cage.limits.Write, s.cage.writable(s.place())), NoWrite: realPaths(c.NoWrite), NoRead: realPaths(c.NoRead), NoNetwork: c.NoNetwork}
	if lacks := s.cage.sandbox.Lacks(user); lacks != nil {
		if err := s.unconfined(s.cage.sandbox.Name() + ": " + strings.Join(lacks, "; ")); err != nil || s.cage.refuse != nil {
			return err
		}
	}
	dirs := s.cage.writable(s.place())
	if lacks := s.cage.sandbox.Lacks(proc.Limits{Write: dirs, NoWrite: append(guarded(dirs), s.cage.home)}); lacks != nil {
		// A command could write by what rules the next one runs, so mode auto
		// must not rest on it.
		s.warn("the sandbox, %s, does not hold settings, git hooks and git's configuration in the directories that commands may write to (bubblewrap does); mode %s asks about commands therefore",
			s.cage.sandbox.Name(), permission.Auto)
		return nil
	}
	cut := c.NoNetwork && s.cage.sandbox.Lacks(proc.Limits{NoNetwork: true}) == nil
	p.Sandbox = &permission.Sandbox{NoNetwork: cut, Free: s.cage.free, Trusted: c.Trusted}
	return nil
}

// tellOfAuto says once that mode auto has no sandbox to rest on.
func (s *Session) tellOfAuto(p permission.Policy) {
	if p.Mode == permission.Auto && p.Sandbox == nil {
		s.warn("mode %s allows commands that a sandbox confines, and none does: it allows what %s does (sandbox.mode on, in the settings, turns it on where there is one)",
			permission.Auto, permission.AcceptEdits)
	}
}

// unconfined says what the sandbox cannot do. Where it is required no command
// runs then.
func (s *Session) unconfined(why string) error {
	mode := s.opts.Config.Sandbox.Mode
	if mode.Text != config.SandboxRequired {
		s.warn("sandbox.mode is on (%s), but not all of it can be had: %s", mode.Source, why)
		return nil
	}
	s.cage.refuse = fmt.Errorf("sandbox.mode is required (%s), so commands do not run without what it asks for: %s; install bubblewrap, or change the settings", mode.Source, why)
	s.warn("%v", s.cage.refuse)
	return nil
}

// place is where the lead works.
func (s *Session) place() troupe.Place { return troupe.Place{Dir: s.Dir, Also: s.opts.Also} }

// fill takes in what settings and rules say of files.
func (c *cage) fill(s *Session, p *permission.Policy) {
	set := s.opts.Config.Sandbox
	c.asked, c.denied = realPaths(set.Write), realPaths(set.NoWrite)
	l := proc.Limits{NoRead: realPaths(set.NoRead), Read: realPaths(set.Read), NoNetwork: set.NoNetwork}
	for _, r := range p.Rules {
		path, ok := r.Path(s.Dir)
		if !ok {
			continue
		}
		switch path = realPath(path); {
		case r.Effect() == troupe.Allow && r.Tool() == "Edit":
			c.asked = append(c.asked, path)
		case r.Effect() == troupe.Deny && r.Tool() == "Edit":
			c.denied = append(c.denied, path)
		case r.Effect() == troupe.Deny && r.Tool() == "Read":
			l.NoRead = append(l.NoRead, path)
			c.denied = append(c.denied, path)
		}
	}
	home := variable(s.env, "HOME")
	if home == "" {
		home = s.opts.UserHome
	}
	l.Write = slices.Concat([]string{temporary(s.env)}, caches(s.env, home), c.asked)
	if !set.AllSockets {
		open := realPaths(set.Sockets)
		if agent := variable(s.env, "SSH_AUTH_SOCK"); agent != "" && !set.NoNetwork {
			open = append(open, realPath(agent)) // what may speak to other machines may say who it is
		}
		l.NoRead, l.Read = append(l.NoRead, others(s.env)...), append(l.Read, open...)
		l.NoRead = slices.DeleteFunc(l.NoRead, func(p string) bool { return slices.Contains(open, p) })
	}
	for _, v := range set.Excluded {
		c.excluded = append(c.excluded, v.Text)
	}
	c.limits = l
}

// free reports whether a command line runs outside.
func (c *cage) free(command string) bool {
	return len(c.excluded) > 0 && permission.Covers(c.excluded, command)
}

// confine says how a command runs that an agent in a place gives.
func (c *cage) confine(command string, place troupe.Place) (*proc.Sandbox, proc.Limits, error) {
	switch {
	case c.refuse != nil:
		return nil, proc.Limits{}, c.refuse
	case c.sandbox == nil || c.free(command):
		return nil, proc.Limits{}, nil
	}
	l := c.limits
	dirs := c.writable(place)
	for _, dir := range dirs {
		// Whoever put something else in its place may not write there.
		if realPath(dir) != dir {
			return nil, proc.Limits{}, fmt.Errorf("%s has become a link to somewhere else, so commands do not run there", dir)
		}
	}
	c.occupy(place)
	l.Write = slices.Concat(l.Write, dirs)
	l.NoWrite = append(guarded(dirs), c.home)
	l.NoWrite = slices.DeleteFunc(l.NoWrite, func(p string) bool { return slices.Contains(c.asked, p) })
	for _, no := range c.denied {
		l.Write = slices.DeleteFunc(l.Write, func(p string) bool { return proc.Below(no, p) })
		l.NoWrite = append(l.NoWrite, no)
	}
	return c.sandbox, l, nil
}

// writable returns the directories that commands in a place may write to, the
// repository's own among them. It is found before the first command there runs:
// what a command writes must not widen what the next may.
func (c *cage) writable(place troupe.Place) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.Join(append([]string{place.Dir}, place.Also...), "\x00")
	dirs, known := c.places[key]
	if known {
		return dirs
	}
	for _, dir := range append([]string{place.Dir}, place.Also...) {
		dir = realPath(dir)
		dirs = append(dirs, dir)
		for _, git := range gitDirs(dir) {
			if !slices.ContainsFunc(dirs, func(d string) bool { return proc.Below(d, git) }) {
				dirs = append(dirs, git)
			}
		}
	}
	c.places[key] = dirs
	return dirs
}

// occupy makes the directories of settings that are missing in a place: what is
// not there cannot be kept from being written, and a command could say by it that
// the next one needs no sandbox. Git does not see empty directories.
func (c *cage) occupy(place troupe.Place) {
	for _, dir := range append([]string{place.Dir}, place.Also...) {
		for _, name := range settingsDirs {
			path := filepath.Join(realPath(dir), name)
			if c.sandbox.Lacks(proc.Limits{Write: []string{filepath.Dir(path)}, NoWrite: []string{path}}) != nil {
				return // it would be of no use
			}
			if os.Mkdir(path, 0o700) != nil { // it is there, or nobody can make it
				continue
			}
			c.mu.Lock()
			c.made = append(c.made, path)
			c.mu.Unlock()
		}
	}
}

// leave removes what occupy has made, unless something is in it by now.
func (c *cage) leave() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range c.made {
		_ = statefile.Remove(path)
	}
	c.made = nil
}

func realPaths(values []config.Value) (out []string) {
	for _, v := range values {
		out = append(out, realPath(v.Text))
	}
	return out
}

// variable returns a variable of env, of which the last entry counts.
func variable(env []string, name string) (value string) {
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// temporary is the directory for temporary files of programs.
func temporary(env []string) string {
	if dir := variable(env, "TMPDIR"); filepath.IsAbs(dir) {
		return realPath(dir)
	}
	return realPath("/tmp")
}
