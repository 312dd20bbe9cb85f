package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/troupetest"
)

func open(t testing.TB, root string) *store.Dir {
	t.Helper()
	d, err := store.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestDir(t *testing.T) {
	troupetest.TestStore(t, func(t *testing.T) (a, b store.Store) {
		root := t.TempDir()
		return open(t, root), open(t, root)
	})
}

// Where files cannot have two names, values are made under a lock.
func TestDirWithoutLinks(t *testing.T) {
	troupetest.TestStore(t, func(t *testing.T) (a, b store.Store) {
		root := t.TempDir()
		return store.Unlinked(open(t, root)), store.Forbidden(open(t, root))
	})
}

// Without the kernel's notices a watch looks for itself.
func TestDirBlind(t *testing.T) {
	store.Blind(t)
	troupetest.TestStore(t, func(t *testing.T) (a, b store.Store) {
		root := t.TempDir()
		return open(t, root), open(t, root)
	})
}

// Then it sees what another process does within a second.
func TestDirBlindLooksOften(t *testing.T) {
	store.Blind(t)
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var wrote time.Time
		for e, err := range open(t, root).Watch(t.Context(), "") {
			must(t, err)
			if e.Key != "" {
				break
			}
			must(t, os.WriteFile(filepath.Join(root, "k.json"), nil, 0o600))
			wrote = time.Now()
		}
		if took := time.Since(wrote); took > time.Second {
			t.Errorf("seen after %v", took)
		}
	})
}

// tree lists all below root but what is the store's own, as far as it is no
// directory with a slash at its end.
func tree(t *testing.T, root string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if d.Name() == ".store" {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if d.IsDir() {
			rel += "/"
		}
		out = append(out, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A session's directory has more in it than a store: none of that is an entry,
// and all of it stays.
func TestDirAmongOthers(t *testing.T) {
	root := t.TempDir()
	others := []string{"lead.jsonl", "lock", "owner", "agents/a1.jsonl", "tasks/b1.output", "X.json", "a b.json", "..json", ".x.json", "x.json.tmp", "x~.json", "results/lead-c1.txt"}
	for _, dir := range []string{"agents", "tasks", "results", "dir.json", "empty", "Upper", "tasks/items"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(others, "Upper/x.json", "dir.json/x.json") {
		if err := os.WriteFile(filepath.Join(root, name), []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, root)
	d := open(t, root)
	for range d.List(t.Context(), "") {
		t.Error("there is an entry")
	}
	if entries, err := os.ReadDir(root); err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".store" }) {
		t.Errorf("something was made before the first write: %v", err)
	}
	for _, key := range []string{"tasks/items/1", "agents/x", "empty/x", "new/deep/x"} {
		rev, err := d.Put(t.Context(), key, []byte("mine"), "")
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(filepath.Join(root, key+".json")); err != nil || string(raw) != "mine" {
			t.Errorf("%q, %v", raw, err)
		}
		if err := d.Delete(t.Context(), key, rev); err != nil {
			t.Error(err)
		}
	}
	want := append(before, "new/", "new/deep/")
	slices.Sort(want)
	got := tree(t, root)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("left: %q\nwant: %q", got, want)
	}
}

// What is no entry is none for Get either, and keeps nobody from listing.
func TestDirStrangeFiles(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	must(t, os.Mkdir(filepath.Join(root, "dir.json"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, "large.json"), make([]byte, store.MaxValue+1), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "good.json"), []byte("by hand"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "lease.lease"), []byte("rubbish"), 0o600))
	if err := os.Symlink(filepath.Join(root, "good.json"), filepath.Join(root, "link.json")); err != nil {
		t.Log(err) // Windows may forbid it
	}
	var got []string
	for e, err := range d.List(t.Context(), "") {
		must(t, err)
		got = append(got, e.Key+" "+string(e.Value))
	}
	if !slices.Equal(got, []string{"good by hand"}) {
		t.Errorf("listed %q", got)
	}
	for key, want := range map[string]error{"dir": store.ErrNotFound, "link": store.ErrNotFound, "large": store.ErrTooLarge, "lease": store.ErrNotFound} {
		if _, err := d.Get(t.Context(), key); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", key, err, want)
		}
	}
	_, err := d.Hold(t.Context(), "lease", nil)
	if err == nil || !strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a damaged lease: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(root, "lease.lease"), []byte("7\n"), 0o600)) // as the error says
	l, err := d.Hold(t.Context(), "lease", nil)
	must(t, err)
	if l.Gen != 8 {
		t.Errorf("generation %d", l.Gen)
	}
	must(t, l.Release())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A value that is changed by hand is a new state, also to a watch.
func TestDirByHand(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	rev, err := d.Put(t.Context(), "k", []byte("one"), "")
	must(t, err)
	steps := []func(){
		func() { must(t, os.WriteFile(filepath.Join(root, "k.json"), []byte("two"), 0o600)) },
		func() {
			must(t, os.MkdirAll(filepath.Join(root, "made/by"), 0o700))
			must(t, os.WriteFile(filepath.Join(root, "made/by/hand.json"), []byte("x"), 0o600))
		},
		func() { must(t, os.RemoveAll(filepath.Join(root, "made"))) },
	}
	want := []string{"k one", " ", "k two", "made/by/hand x", "made/by/hand "}
	var got []string
	for e, err := range d.Watch(t.Context(), "") {
		must(t, err)
		got = append(got, e.Key+" "+string(e.Value))
		if len(got) == len(want) {
			break
		}
		if len(got) > 1 {
			steps[len(got)-2]()
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("saw %q, want %q", got, want)
	}
	if _, err := d.Put(t.Context(), "k", []byte("three"), rev); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a put that knew nothing of it: %v", err)
	}
}

// What a killed writer has left goes when nobody writes.
func TestDirSweeps(t *testing.T) {
	root := t.TempDir()
	a, b := open(t, root), open(t, root)
	_, err := a.Put(t.Context(), "k", nil, "")
	must(t, err)
	left := filepath.Join(root, ".store", "new-LEFT")
	must(t, os.WriteFile(left, nil, 0o600))
	_, err = b.Put(t.Context(), "k2", nil, "")
	must(t, err)
	if _, err := os.Stat(left); err != nil {
		t.Errorf("it is gone while another writes: %v", err)
	}
	must(t, errors.Join(a.Close(), b.Close()))
	_, err = open(t, root).Put(t.Context(), "k3", nil, "")
	must(t, err)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(root, ".store", "new-*")); err != nil || len(files) > 0 {
		t.Errorf("left: %v, %v", files, err)
	}
}

// A store whose directory is gone, as that of a session that was removed, does
// not come back by a write.
func TestDirGone(t *testing.T) {
	for _, written := range []bool{false, true} {
		root := filepath.Join(t.TempDir(), "root")
		d := open(t, root)
		if written {
			_, err := d.Put(t.Context(), "k", nil, "")
			must(t, err)
		}
		must(t, os.Rename(root, root+"-away"))
		if _, err := d.Put(t.Context(), "a/b", nil, ""); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("put: %v", err)
		}
		if _, err := d.Hold(t.Context(), "a/l", nil); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("hold: %v", err)
		}
		if err := d.Delete(t.Context(), "k", "x"); err == nil || errors.Is(err, store.ErrConflict) {
			t.Errorf("delete: %v", err)
		}
		for e, err := range d.List(t.Context(), "") {
			t.Errorf("list: %+v, %v", e, err)
		}
		if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there again: %v", err)
		}
	}
}

// Errors of the system say what can be done, as everywhere.
func TestDirErrorsAreExplained(t *testing.T) {
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	if _, err := store.OpenDir(filepath.Join(root, "file", "store")); err == nil || !strings.Contains(err.Error(), "set TROUPE_HOME") {
		t.Errorf("open: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(root, "a"), nil, 0o600)) // where a directory should be
	d := open(t, root)
	_, perr := d.Put(t.Context(), "a/b", nil, "")
	_, herr := d.Hold(t.Context(), "a/l", nil)
	for _, err := range []error{perr, herr} {
		if err == nil || !strings.Contains(err.Error(), "set TROUPE_HOME") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	}
}

// Many wait for locks at once: each gets its turn, and none is left.
func TestDirManyKeys(t *testing.T) {
	root := t.TempDir()
	dirs := []*store.Dir{open(t, root), open(t, root)}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			d, key := dirs[i%2], fmt.Sprintf("k/%d", i)
			rev, err := d.Put(t.Context(), key, []byte("1"), "")
			if err == nil {
				rev, err = d.Put(t.Context(), key, []byte("2"), rev)
			}
			if err == nil {
				err = d.Delete(t.Context(), key, rev)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if files, err := filepath.Glob(filepath.Join(root, ".store", "*")); err != nil || len(files) > 65 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// To open a store that nobody writes or watches must cost nothing that the start
// of the command would feel.
func BenchmarkOpenDir(b *testing.B) {
	root := b.TempDir()
	for b.Loop() {
		d, err := store.OpenDir(root)
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
