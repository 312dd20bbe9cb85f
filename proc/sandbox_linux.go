package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// confinedArg is the first argument of the launcher. Behind it are the path and
// the arguments of the program; the limits are read from rulesFD.
const confinedArg = "__confined"

// rulesFD is where the sandbox finds what it is told: the first of the files
// that exec.Cmd passes on besides the streams. A list of paths may be longer
// than arguments can be, and is nobody's business.
const rulesFD = 3

func findBubblewrap(_ string, env []string) (*Sandbox, error) {
	path, err := Look("bwrap", env)
	if err != nil {
		return nil, errors.New("bubblewrap (bwrap) is not installed")
	}
	return &Sandbox{bubblewrap, path}, nil
}

func findLandlock(launcher string, _ []string) (*Sandbox, error) {
	if launcher == "" {
		return nil, errors.New("Landlock needs a launcher, and none is given")
	}
	if abi := landlockABI(); abi < leastABI {
		return nil, fmt.Errorf("the kernel does not offer Landlock as of Linux 6.2 (it has version %d of it, needed is %d)", abi, leastABI)
	}
	return &Sandbox{landlock, launcher}, nil
}

// confine makes cmd run in the sandbox of c. The caller closes the files of cmd
// once it has started.
func (c Command) confine(cmd *exec.Cmd) error {
	var rules []byte
	args := append([]string{c.Path}, c.Args...)
	switch c.Sandbox.kind {
	case bubblewrap:
		rules = []byte(strings.Join(c.Limits.bubblewrap(), "\x00") + "\x00")
		cmd.Args = append([]string{"bwrap", "--args", fmt.Sprint(rulesFD)}, args...)
	default:
		var err error
		if rules, err = json.Marshal(c.Limits); err != nil {
			return err
		}
		cmd.Args = append([]string{"troupe", confinedArg}, args...)
	}
	cmd.Path = c.Sandbox.path
	f, err := inMemory(rules)
	if err != nil {
		return fmt.Errorf("pass the limits on: %w", err)
	}
	cmd.ExtraFiles = []*os.File{f}
	return nil
}

// inMemory returns an open file with data that no directory has.
func inMemory(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("limits", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "limits")
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// bubblewrap returns l as options of bwrap. Of several mounts over one another
// the last counts, so a directory comes before what is in it.
func (l Limits) bubblewrap() []string {
	args := []string{"--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	if l.NoNetwork {
		args = append(args, "--unshare-net")
	}
	for _, p := range l.mounts() {
		switch {
		case slices.Contains(l.NoWrite, p):
			args = append(args, "--ro-bind", p, p)
		case Below("/dev", p):
			args = append(args, "--dev-bind-try", p, p)
		default:
			args = append(args, "--bind-try", p, p)
		}
	}
	return append(args, l.hidden()...)
}

// mounts returns the paths that need a mount of their own, what is above first:
// those that can be written, those in them that cannot, and the directories in
// between. For what is a mount cannot be renamed, to put another in its place.
func (l Limits) mounts() []string {
	paths := slices.Clone(l.Write)
	for _, p := range l.NoWrite {
		top, inside := l.parent(p)
		if !exists(p) || !inside && !slices.Contains(l.Write, p) {
			continue
		}
		for dir := p; dir != top && Below(top, dir); dir = filepath.Dir(dir) {
			paths = append(paths, dir)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// hidden returns the options for what cannot be read: nothing is put over it.
func (l Limits) hidden() (args []string) {
	var empty []string
	for _, p := range l.NoRead {
		st, err := os.Stat(p)
		switch {
		case err != nil:
		case st.IsDir():
			args = append(args, "--tmpfs", p)
			empty = append(empty, p)
		default:
			args = append(args, "--ro-bind", "/dev/null", p)
		}
	}
	for _, p := range l.Read {
		if !slices.ContainsFunc(l.NoRead, func(hidden string) bool { return Below(hidden, p) }) {
			continue
		}
		bind := "--ro-bind-try"
		if l.Writable(p) {
			bind = "--bind-try"
		}
		args = append(args, bind, p, p)
	}
	for _, p := range empty {
		args = append(args, "--remount-ro", p)
	}
	return args
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Denied returns paths in the output of a failed program that the sandbox kept
// from being written, under l, as far as that can be told: they stand in a line
// that says so, the limits forbid them, and without them they could be written.
// dir is where relative ones start.
func (s *Sandbox) Denied(l Limits, dir, output string) (paths []string) {
	const most = 5
	for line := range strings.Lines(output) {
		if len(paths) == most || !slices.ContainsFunc(s.refusals(), func(words string) bool { return strings.Contains(line, words) }) {
			continue
		}
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`‘’:,;()[]{}<>=", r) }) {
			path := word
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			real, ok := l.forbidden(filepath.Clean(path))
			if ok && !slices.Contains(paths, real) && len(paths) < most {
				paths = append(paths, real)
			}
		}
	}
	return paths
}

// refusals are how programs name the errors of a sandbox.
func (s *Sandbox) refusals() []string {
	if s.kind == bubblewrap {
		return []string{"Read-only file system", "read-only file system", "EROFS", "Device or resource busy", "device or resource busy", "EBUSY"}
	}
	return []string{"Permission denied", "permission denied", "EACCES", "cross-device link", "EXDEV"}
}

// forbidden reports whether l, and nothing else, keeps a path from being written;
// it returns the path with its links resolved. The file need not exist, but its
// directory must.
func (l Limits) forbidden(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	target := real
	if err != nil {
		parent, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil || filepath.Base(path) == path {
			return "", false
		}
		real, target = filepath.Join(parent, filepath.Base(path)), parent
	}
	if l.Writable(real) || unix.Access(target, unix.W_OK) != nil {
		return "", false
	}
	for _, device := range []string{"/dev", "/proc", "/sys"} {
		if Below(device, real) {
			return "", false
		}
	}
	return real, true
}
