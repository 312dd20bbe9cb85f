package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe/internal/statefile"
)

// ErrNoSandbox reports that nothing here confines programs.
var ErrNoSandbox = errors.New("no sandbox")

// A Sandbox is a means of the system to confine programs, that was seen to
// work; see [FindSandbox]. It does not change, and may be used concurrently.
type Sandbox struct {
	kind string
	path string // of bwrap, or of the launcher
}

// The kinds of sandbox.
const (
	bubblewrap = "bubblewrap"
	landlock   = "landlock"
)

// Name is "bubblewrap" or "landlock".
func (s *Sandbox) Name() string { return s.kind }

// helpers is the number of processes of its own by which the sandbox waits for
// those that a program leaves.
func (s *Sandbox) helpers() int {
	if s.kind == bubblewrap {
		return 1 // the first process of the program's process IDs
	}
	return 0
}

// Limits are what a confined program may do. Paths are absolute and have their
// links resolved. What is not there is passed over. Reading is free and writing
// is not; of the paths in Write and NoWrite the longest above a file counts.
type Limits struct {
	Write     []string // files, and directories with all below them
	NoWrite   []string // the same; of what is in both lists nothing is writable
	NoRead    []string // cannot be seen into, nor connected to
	Read      []string // parts of NoRead that can
	NoNetwork bool
}

// Lacks says what of l the sandbox cannot hold, a line each; nil is nothing.
func (s *Sandbox) Lacks(l Limits) (lacks []string) {
	if s.kind == bubblewrap {
		return nil
	}
	for _, p := range l.NoWrite {
		if above, inside := l.parent(p); inside {
			lacks = append(lacks, fmt.Sprintf("it cannot keep %s from being written, as %s is writable", p, above))
		}
	}
	if len(l.NoRead) > 0 {
		lacks = append(lacks, "it cannot keep anything from being read: "+strings.Join(l.NoRead, ", "))
	}
	if l.NoNetwork {
		lacks = append(lacks, "it cannot cut off the network")
	}
	return lacks
}

// parent returns the nearest path of Write that p lies below, if nothing in
// between is not writable.
func (l Limits) parent(p string) (string, bool) {
	best, writable := "", false
	for _, w := range l.Write {
		if w != p && Below(w, p) && len(w) > len(best) {
			best, writable = w, true
		}
	}
	for _, n := range l.NoWrite {
		if n != p && Below(n, p) && len(n) >= len(best) {
			best, writable = n, false
		}
	}
	return best, writable
}

// Writable reports whether a path may be written under l. It must have its
// links resolved.
func (l Limits) Writable(path string) bool {
	above, writable := l.parent(path)
	switch {
	case slices.Contains(l.NoWrite, path):
		return false
	case slices.Contains(l.Write, path):
		return true
	}
	return above != "" && writable
}

// Below reports whether path is dir or lies in it. Both are absolute and clean.
func Below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// FindSandbox returns the best sandbox that there is: bubblewrap if it is in the
// PATH of env, else Landlock. Each is tried, in a directory made below dir: what
// does not keep a program from a forbidden write is none. Landlock needs a
// launcher, the path of a program that calls [Confined] first; "" is none. The
// error says why there is no sandbox and wraps [ErrNoSandbox].
func FindSandbox(ctx context.Context, dir, launcher string, env []string) (*Sandbox, error) {
	var why []string
	for _, find := range []func(string, []string) (*Sandbox, error){findBubblewrap, findLandlock} {
		s, err := find(launcher, env)
		if err == nil {
			if err = s.try(ctx, dir, env); err == nil {
				return s, nil
			}
			err = fmt.Errorf("%s does not work here: %w", s.kind, err)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("try a sandbox: %w", context.Cause(ctx))
		}
		why = append(why, err.Error())
	}
	return nil, fmt.Errorf("%w: %s", ErrNoSandbox, strings.Join(why, "; "))
}

// trial tries what is allowed and what is forbidden. It must not stop at an error.
const trial = `echo x > in/new; echo x > in/kept; echo x > out/new; echo x >> out/old; rm -f out/old; mv out/old in/moved; cat hidden/secret; readlink /proc/self/ns/net`

// try finds out whether s does what it should.
func (s *Sandbox) try(ctx context.Context, parent string, env []string) error {
	dir, err := os.MkdirTemp(parent, "sandbox-")
	if err != nil {
		return err
	}
	defer func() { _ = statefile.RemoveAll(dir) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	for _, file := range []string{"in/kept", "out/old", "hidden/secret"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte("secret"), 0o600); err != nil {
			return err
		}
	}
	limits := Limits{Write: []string{filepath.Join(dir, "in")}}
	if s.kind == bubblewrap {
		limits.NoWrite, limits.NoRead, limits.NoNetwork = []string{filepath.Join(dir, "in/kept")}, []string{filepath.Join(dir, "hidden")}, true
	}
	var said bytes.Buffer
	c := Command{Path: "sh", Args: []string{"-c", trial}, Dir: dir, Env: env, Stdout: &said, Stderr: &said, Sandbox: s, Limits: limits}
	if _, err := Run(ctx, c); err != nil {
		return err
	}
	return s.held(dir, said.String())
}

// held looks at what the trial has left.
func (s *Sandbox) held(dir, said string) error {
	content := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		return string(data)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	switch {
	case content("in/new") == "":
		return fmt.Errorf("a permitted write failed (%s)", first)
	case content("out/new") != "" || content("out/old") != "secret":
		return errors.New("a forbidden write succeeded")
	case s.kind == landlock:
		return nil
	case content("in/kept") != "secret":
		return errors.New("a forbidden write in a writable directory succeeded")
	case strings.Contains(said, "secret\n") || strings.HasSuffix(said, "secret"):
		return errors.New("a forbidden reading succeeded")
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil || !strings.Contains(said, "net:[") || strings.Contains(said, ours) {
		return errors.New("the network was not cut off")
	}
	return nil
}
