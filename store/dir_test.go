package store_test

import (
	"testing"

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
