package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// descriptors counts those of inotify.
func descriptors(t *testing.T) (n int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}

// All watches of a process share one descriptor, which is there while one lasts.
func TestOneDescriptor(t *testing.T) {
	a, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	if n := descriptors(t); n != 0 {
		t.Errorf("%d while nobody watches", n)
	}
	for range a.Watch(t.Context(), "") {
		for range a.Watch(t.Context(), "x/") {
			for range b.Watch(t.Context(), "") {
				if n := descriptors(t); n != 1 {
					t.Errorf("%d for three watches", n)
				}
				break
			}
			break
		}
		if n := descriptors(t); n != 1 {
			t.Errorf("%d for one watch", n)
		}
		break
	}
	if n := descriptors(t); n != 0 {
		t.Errorf("%d when nobody watches any more", n)
	}
}

// The kernel tells of each file, by all paths that lead to it.
func TestNotices(t *testing.T) {
	real, link := filepath.Join(t.TempDir(), "real"), filepath.Join(t.TempDir(), "link")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, do := range []struct {
		what string
		do   func() error
		all  bool
	}{
		{"make", func() error { return os.WriteFile(filepath.Join(real, "k"), []byte("1"), 0o600) }, false},
		{"change", func() error { return os.WriteFile(filepath.Join(real, "k"), []byte("2"), 0o600) }, false},
		{"link", func() error { return os.Link(filepath.Join(real, "k"), filepath.Join(real, "l")) }, false},
		{"make another", func() error {
			return errors.Join(os.Remove(filepath.Join(real, "l")), os.WriteFile(filepath.Join(real, "l"), nil, 0o600))
		}, false},
		{"replace", func() error { return os.Rename(filepath.Join(real, "l"), filepath.Join(real, "k")) }, false},
		{"remove", func() error { return os.Remove(filepath.Join(real, "k")) }, false},
		{"directory", func() error { return os.Mkdir(filepath.Join(real, "d"), 0o700) }, true},
		{"end of the directory", func() error { return os.RemoveAll(real) }, true},
	} {
		var subs []*sub
		for _, dir := range []string{real, link} {
			subs = append(subs, notices.subscribe(dir))
			if !notices.enter(dir) {
				t.Errorf("%s: not told of", dir)
			}
		}
		if err := do.do(); err != nil {
			t.Fatal(err)
		}
		for i, s := range subs {
			dir := []string{real, link}[i]
			for files, all := []string(nil), false; all != do.all || !all && !slices.ContainsFunc(files, func(f string) bool { return filepath.Dir(f) == dir }); {
				<-s.wake // the test is over in time or this hangs
				files, all = s.take()
			}
			notices.unsubscribe(s)
		}
	}
	if n := descriptors(t); n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
}
