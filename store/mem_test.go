package store_test

import (
	"testing"

	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/troupetest"
)

func TestMem(t *testing.T) {
	troupetest.TestStore(t, func(*testing.T) (a, b store.Store) { m := new(store.Mem); return m, m })
}
