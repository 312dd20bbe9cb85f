package statefile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Of all there is in a directory only what a dead one has left goes.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	gone := func(name string) bool { return name != "alive" }
	dead, alive, nobody := Owner{"dead", gone}, Owner{"alive", gone}, Owner{}
	kept := []string{filepath.Base(alive.Temporary(dir)), filepath.Base(nobody.Temporary(dir)), ".troupe-dead-short.tmp", ".troupe-dead.tmp", "x" + filepath.Base(dead.Temporary(dir)),
		filepath.Base(dead.Temporary(dir)) + "x", "notes.txt", ".troupe"}
	for _, name := range append(slices.Clone(kept), filepath.Base(dead.Temporary(dir)), filepath.Base(dead.Temporary(dir))) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dead.Temporary(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	nobody.Sweep(dir)
	if left, err := os.ReadDir(dir); err != nil || len(left) != len(kept)+3 {
		t.Errorf("one that knows of nobody has swept: %v, %v", left, err)
	}
	alive.Sweep(dir)
	left, err := os.ReadDir(dir)
	var files []string
	for _, e := range left {
		if !e.IsDir() {
			files = append(files, e.Name())
		}
	}
	slices.Sort(kept)
	if err != nil || len(left) != len(kept)+1 || !slices.Equal(files, kept) {
		t.Errorf("left are %v, %v; want %v and a directory", files, err, kept)
	}
	alive.Sweep(filepath.Join(dir, "none"))
}
