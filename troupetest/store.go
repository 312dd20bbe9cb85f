package troupetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-sh/troupe/store"
)

// TestStore checks that a store keeps the contract of [store.Store]. Each
// implementation's tests call it. open is called once for each part; it returns
// the store and a second handle on the same data, as another process has it,
// and closes what is to be closed by t.Cleanup.
func TestStore(t *testing.T, open func(t *testing.T) (a, b store.Store)) {
	for _, part := range []struct {
		name string
		run  func(t *testing.T, a, b store.Store)
	}{
		{"create", storeCreates}, {"revisions", storeRevisions}, {"keys", storeKeys}, {"sizes", storeSizes}, {"order", storeOrder},
		{"copies", storeCopies}, {"like a map", storeLikeMap}, {"many writers", storeWriters}, {"one creator", storeCreators},
		{"end of ctx", storeEnds}, {"watch", storeWatches}, {"watch of the rest", storeWatchesPrefix}, {"watch converges", storeConverges},
		{"leaving a watch", storeLeaves}, {"hold", storeHolds}, {"generations", storeGenerations}, {"one holder", storeHolders}, {"wait", storeWaits},
	} {
		t.Run(part.name, func(t *testing.T) {
			a, b := open(t)
			part.run(t, a, b)
		})
	}
}

// put is a Put that must succeed, and get a Get.
func put(t *testing.T, s store.Store, key, val string, rev store.Rev) store.Rev {
	t.Helper()
	next, err := s.Put(t.Context(), key, []byte(val), rev)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func get(t *testing.T, s store.Store, key string) store.Entry {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// wants checks that err is want.
func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func storeCreates(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	_, err := a.Get(ctx, "a/b")
	wants(t, "get of nothing", err, store.ErrNotFound)
	put(t, a, "a/b", "1", "")
	_, err = b.Put(ctx, "a/b", []byte("2"), "")
	wants(t, "second create", err, store.ErrConflict)
	if _, err := store.Create(ctx, b, "a/b", []byte("1")); err != nil {
		t.Errorf("repeated create: %v", err)
	}
	_, err = store.Create(ctx, b, "a/b", []byte("2"))
	wants(t, "foreign create", err, store.ErrConflict)
	if e := get(t, b, "a/b"); string(e.Value) != "1" || e.Key != "a/b" {
		t.Errorf("got %+v", e)
	}
	put(t, b, "a", "above", "") // both may exist
	put(t, b, "a/b/c", "below", "")
}

func storeRevisions(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	r1 := put(t, a, "k", "1", "")
	r2 := put(t, b, "k", "2", r1)
	if r1 == r2 {
		t.Error("two values, one revision")
	}
	_, err := a.Put(ctx, "k", []byte("3"), r1)
	wants(t, "stale put", err, store.ErrConflict)
	wants(t, "stale delete", a.Delete(ctx, "k", r1), store.ErrConflict)
	wants(t, "delete without a revision", a.Delete(ctx, "k", ""), store.ErrKey)
	if err := a.Delete(ctx, "k", r2); err != nil {
		t.Error(err)
	}
	wants(t, "second delete", b.Delete(ctx, "k", r2), store.ErrConflict)
	_, err = b.Get(ctx, "k")
	wants(t, "get after delete", err, store.ErrNotFound)
	_, err = b.Put(ctx, "k", []byte("4"), r2)
	wants(t, "put over a deleted entry", err, store.ErrConflict)
	_, err = b.Put(ctx, "never", []byte("4"), r2)
	wants(t, "put over nothing", err, store.ErrConflict)
	r5 := put(t, b, "k", "5", "")
	_, err = a.Put(ctx, "k", []byte("6"), r2)
	wants(t, "put with a revision of before", err, store.ErrConflict)
	if e := get(t, a, "k"); e.Rev != r5 || string(e.Value) != "5" {
		t.Errorf("got %+v", e)
	}
	r5 = put(t, a, "k", "5", r5) // the same again
	if e := get(t, b, "k"); e.Rev != r5 {
		t.Errorf("got %+v, want revision %s", e, r5)
	}
}

func storeKeys(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	long := strings.Repeat("x", 128)
	for _, k := range []string{"", "/", "a/", "/a", "a//b", "A", "a.b", "..", "a/../b", "ä", "a b", "*", ">", "a\n", "a\x00b", "a~", long + "x", strings.Repeat("abc/", 128) + "a"} {
		_, err := a.Put(ctx, k, nil, "")
		wants(t, "put of "+k, err, store.ErrKey)
		_, err = a.Get(ctx, k)
		wants(t, "get of "+k, err, store.ErrKey)
		wants(t, "delete of "+k, a.Delete(ctx, k, "x"), store.ErrKey)
		_, err = a.Hold(ctx, k, nil)
		wants(t, "hold of "+k, err, store.ErrKey)
	}
	good := []string{"0", "-", "_", "con", "nul/aux/com1", long, strings.Repeat(long[:100]+"/", 5) + "a"}
	for _, k := range good {
		put(t, a, k, k, "")
		if e := get(t, b, k); e.Key != k || string(e.Value) != k {
			t.Errorf("got %+v", e)
		}
	}
	slices.Sort(good)
	if got := keys(t, b, ""); !slices.Equal(got, good) {
		t.Errorf("listed %q", got)
	}
	for _, p := range []string{"a", "a//", "/", "A/", "../"} {
		var last error
		for _, err := range a.List(ctx, p) {
			last = err
		}
		wants(t, "list of "+p, last, store.ErrKey)
		for _, err := range a.Watch(ctx, p) {
			last = err
		}
		wants(t, "watch of "+p, last, store.ErrKey)
	}
}

// keys lists the keys below prefix.
func keys(t *testing.T, s store.Store, prefix string) (out []string) {
	t.Helper()
	for e, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Key)
	}
	return out
}

func storeSizes(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	_, err := a.Put(ctx, "large", make([]byte, store.MaxValue+1), "")
	wants(t, "large value", err, store.ErrTooLarge)
	_, err = a.Hold(ctx, "large", make([]byte, store.MaxValue+1))
	wants(t, "large lease", err, store.ErrTooLarge)
	rev := put(t, a, "full", strings.Repeat("x", store.MaxValue), "")
	if e := get(t, b, "full"); len(e.Value) != store.MaxValue || e.Rev != rev {
		t.Errorf("%d bytes", len(e.Value))
	}
	put(t, a, "empty", "", "")
	if e := get(t, b, "empty"); e.Value == nil || e.Rev == "" {
		t.Errorf("an empty value came back as %+v", e)
	}
	l, err := a.Hold(ctx, "lease", make([]byte, store.MaxValue))
	if err != nil {
		t.Fatal(err)
	}
	if e := get(t, b, "lease"); len(e.Value) != store.MaxValue {
		t.Errorf("a lease of %d bytes", len(e.Value))
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func storeOrder(t *testing.T, a, b store.Store) {
	for _, k := range []string{"p/a", "p/a/b", "p/a-b", "p/a0", "p/b/c/d", "p", "pq", "p/a_", "p-/x"} {
		put(t, a, k, k, "")
	}
	if got, want := keys(t, b, "p/"), []string{"p/a", "p/a-b", "p/a/b", "p/a0", "p/a_", "p/b/c/d"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := keys(t, b, ""), []string{"p", "p-/x", "p/a", "p/a-b", "p/a/b", "p/a0", "p/a_", "p/b/c/d", "pq"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := keys(t, b, "nothing/"); got != nil {
		t.Errorf("got %v", got)
	}
	for range b.List(t.Context(), "p/") {
		break // leaving is allowed
	}
}

func storeCopies(t *testing.T, a, _ store.Store) {
	v := []byte("abc")
	if _, err := a.Put(t.Context(), "k", v, ""); err != nil {
		t.Fatal(err)
	}
	v[0] = 'X'
	get(t, a, "k").Value[1] = 'X'
	for e := range a.List(t.Context(), "") {
		e.Value[2] = 'X'
	}
	if e := get(t, a, "k"); string(e.Value) != "abc" {
		t.Errorf("value is shared: %q", e.Value)
	}
}

// storeWriters has many change one value.
func storeWriters(t *testing.T, a, b store.Store) {
	const n = 16
	var wg sync.WaitGroup
	for i := range n {
		s := []store.Store{a, b}[i%2]
		wg.Go(func() {
			err := store.Update(t.Context(), s, "n", func(old []byte) ([]byte, error) {
				return append(slices.Clip(old), 'x'), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if e := get(t, a, "n"); len(e.Value) != n {
		t.Errorf("%d updates left of %d", len(e.Value), n)
	}
	refused := errors.New("refused")
	err := store.Update(t.Context(), a, "n", func([]byte) ([]byte, error) { return nil, refused })
	if e := get(t, b, "n"); !errors.Is(err, refused) || len(e.Value) != n {
		t.Errorf("a refused update: %v, %q", err, e.Value)
	}
}

func storeCreators(t *testing.T, a, b store.Store) {
	for k := range 5 {
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			s := []store.Store{a, b}[i%2]
			wg.Go(func() {
				if _, err := s.Put(t.Context(), fmt.Sprint("c/", k), fmt.Append(nil, i), ""); err == nil {
					won.Add(1)
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d creators of one key", won.Load())
		}
	}
}

// storeEnds checks that all is over, and nothing done, when ctx is.
func storeEnds(t *testing.T, a, b store.Store) {
	rev := put(t, a, "k", "v", "")
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := a.Get(ctx, "k")
	wants(t, "get", err, why)
	_, err = a.Put(ctx, "k", []byte("w"), rev)
	wants(t, "put", err, why)
	wants(t, "delete", a.Delete(ctx, "k", rev), why)
	_, err = a.Hold(ctx, "l", nil)
	wants(t, "hold", err, why)
	for _, seq := range []func(context.Context, string) iter.Seq2[store.Entry, error]{a.List, a.Watch} {
		var last error
		for _, err := range seq(ctx, "") {
			last = err
		}
		wants(t, "list or watch", last, why)
	}
	if e := get(t, b, "k"); string(e.Value) != "v" {
		t.Errorf("it was done all the same: %q", e.Value)
	}
}

// storeLikeMap compares a long run of operations, by either handle, with what a
// map does.
func storeLikeMap(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	type entry struct {
		val string
		rev store.Rev
	}
	model := map[string]entry{}
	names := []string{"m/a", "m/b", "m/a/c", "m/a-c"}
	old := map[string]store.Rev{}
	for i := range 200 {
		s, key := []store.Store{a, b}[i%2], names[i*7%11%len(names)]
		was, there := model[key]
		rev := was.rev
		if i%5 == 0 {
			rev = old[key] // one of before, or none
		}
		val := fmt.Sprint(i)
		switch i % 3 {
		case 2:
			err := s.Delete(ctx, key, rev)
			switch {
			case rev == "":
				wants(t, "delete", err, store.ErrKey)
			case !there || rev != was.rev:
				wants(t, "delete", err, store.ErrConflict)
			default:
				wants(t, "delete", err, nil)
				old[key] = was.rev
				delete(model, key)
			}
		default:
			next, err := s.Put(ctx, key, []byte(val), rev)
			if rev != was.rev {
				wants(t, "put", err, store.ErrConflict)
				break
			}
			wants(t, "put", err, nil)
			old[key], model[key] = was.rev, entry{val, next}
		}
		got := map[string]entry{}
		for e, err := range []store.Store{b, a}[i%2].List(ctx, "m/") {
			if err != nil {
				t.Fatal(err)
			}
			got[e.Key] = entry{string(e.Value), e.Rev}
		}
		if fmt.Sprint(got) != fmt.Sprint(model) {
			t.Fatalf("step %d, %s: got %v, want %v", i, key, got, model)
		}
	}
}
