package store

import (
	"errors"
	"syscall"
	"testing"
)

// Unlinked is a Dir on a file system without second names for files.
func Unlinked(d *Dir) *Dir {
	d.link = func(string, string) error { return errors.ErrUnsupported }
	return d
}

// Forbidden is a Dir on one that says so in another way.
func Forbidden(d *Dir) *Dir {
	d.link = func(string, string) error { return syscall.EPERM }
	return d
}

// Blind has the kernel tell nothing until the test ends.
func Blind(t *testing.T) {
	notices.open = func(*notifier) *eyes { return nil }
	t.Cleanup(func() { notices.open = openEyes })
}

func TestNamesOnDisk(t *testing.T) {
	d := &Dir{root: "/r"}
	for key, path := range map[string]string{
		"a": "/r/a", "con": "/r/con~", "aux/nul": "/r/aux~/nul~", "com1/x": "/r/com1~/x", "com/lpt": "/r/com/lpt", "com10": "/r/com10", "lpt0": "/r/lpt0~",
	} {
		if got := d.path(key); got != path {
			t.Errorf("%s is at %s, want %s", key, got, path)
		}
		for _, ext := range []string{".json", ".lease", ".lease.shown"} {
			if got, ok := d.key(path + ext); got != key || !ok {
				t.Errorf("%s is %q", path+ext, got)
			}
		}
	}
	for _, file := range []string{"/r/x", "/r/x.jsonl", "/r/x.lease.taken", "/r/X.json", "/r/x~.json", "/r/.json", "/r/.store/a.json", "/other/x.json", "/r/a b/x.json"} {
		if key, ok := d.key(file); ok {
			t.Errorf("%s is %q", file, key)
		}
	}
}
