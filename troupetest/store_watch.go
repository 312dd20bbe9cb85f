package troupetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-sh/troupe/store"
)

// watching runs a watch until the test ends and sends what it yields.
func watching(t *testing.T, s store.Store, prefix string) <-chan store.Entry {
	ctx, cancel := context.WithCancel(t.Context())
	ch := make(chan store.Entry)
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		defer close(ch)
		for e, err := range s.Watch(ctx, prefix) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			select {
			case ch <- e:
			case <-ctx.Done():
			}
		}
	})
	return ch
}

// sees checks what the watch yields next; a value of "" is gone.
func sees(t *testing.T, ch <-chan store.Entry, key, val string, rev store.Rev) {
	t.Helper()
	e, ok := <-ch
	if !ok || e.Key != key || string(e.Value) != val || (e.Value == nil) != (val == "") || rev != "" && e.Rev != rev || val == "" && e.Rev != "" {
		t.Fatalf("got %+v %v, want %s %q %s", e, ok, key, val, rev)
	}
}

func storeWatches(t *testing.T, a, b store.Store) {
	put(t, a, "w/old", "1", "")
	put(t, a, "other", "1", "")
	ch := watching(t, b, "w/")
	sees(t, ch, "w/old", "1", "")
	sees(t, ch, "", "", "")
	rev := put(t, a, "w/deep/down/new", "2", "")
	sees(t, ch, "w/deep/down/new", "2", rev)
	put(t, a, "w-other/x", "2", "")
	rev = put(t, b, "w/deep/down/new", "3", rev)
	sees(t, ch, "w/deep/down/new", "3", rev)
	rev = put(t, b, "w/deep/down/new", "3", rev) // not told, or told as another Rev
	if err := a.Delete(t.Context(), "w/deep/down/new", rev); err != nil {
		t.Fatal(err)
	}
	e := <-ch
	if e.Value != nil && e.Rev == rev {
		e = <-ch
	}
	if e.Key != "w/deep/down/new" || e.Value != nil || e.Rev != "" {
		t.Fatalf("a deletion is %+v", e)
	}
	rev = put(t, a, "w/deep/down/new", "3", "")
	sees(t, ch, "w/deep/down/new", "3", rev)
}

// storeWatchesPrefix watches what is not there yet, and all there is.
func storeWatchesPrefix(t *testing.T, a, b store.Store) {
	below, all := watching(t, b, "x/y/z/"), watching(t, a, "")
	sees(t, below, "", "", "")
	sees(t, all, "", "", "")
	put(t, a, "x/y/z0", "no", "")
	sees(t, all, "x/y/z0", "no", "")
	put(t, a, "x/y/z/k", "yes", "")
	sees(t, below, "x/y/z/k", "yes", "")
	sees(t, all, "x/y/z/k", "yes", "")
	put(t, b, "top", "yes", "")
	sees(t, all, "top", "yes", "")
}

// storeConverges has several write what two watch, one of them slowly.
func storeConverges(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	ch, slow := watching(t, b, "c/"), watching(t, a, "c/")
	var wg sync.WaitGroup
	for w := range 4 {
		s := []store.Store{a, b}[w%2]
		wg.Go(func() {
			for i := range 40 {
				key := fmt.Sprintf("c/%d/k%d", (w+i)%3, i%5)
				e, err := s.Get(ctx, key)
				switch {
				case err != nil && !errors.Is(err, store.ErrNotFound):
				case i%4 == 3 && e.Rev != "":
					err = s.Delete(ctx, key, e.Rev)
				default:
					_, err = s.Put(ctx, key, fmt.Append(nil, w, i), e.Rev)
				}
				if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	put(t, a, "c/last", "x", "")
	want := map[string]string{}
	for e, err := range a.List(ctx, "c/") {
		if err != nil {
			t.Fatal(err)
		}
		want[e.Key] = string(e.Value)
	}
	converges(t, ch, want)
	converges(t, slow, want)
}

// converges reads a watch until it has come to what is wanted.
func converges(t *testing.T, ch <-chan store.Entry, want map[string]string) {
	t.Helper()
	got, revs := map[string]string{}, map[string]store.Rev{}
	for !maps.Equal(got, want) {
		e, ok := <-ch
		if !ok {
			t.Fatal("the watch has ended")
		}
		if e.Key == "" {
			continue
		}
		if rev, known := revs[e.Key]; known && rev == e.Rev {
			t.Errorf("%+v twice", e)
		}
		if revs[e.Key] = e.Rev; e.Value == nil {
			delete(got, e.Key)
		} else {
			got[e.Key] = string(e.Value)
		}
	}
}

// storeLeaves leaves watches at each point at which they can be left.
func storeLeaves(t *testing.T, a, _ store.Store) {
	put(t, a, "k", "v", "")
	for stop := range 3 {
		n := 0
		for e, err := range a.Watch(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > stop {
				break
			}
			if e.Key == "" {
				put(t, a, "k2", "v", "")
			}
		}
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for e, err := range a.Watch(ctx, "") {
		if e.Key == "" {
			cancel(why)
		}
		last = err
	}
	wants(t, "the last of a watch", last, why)
}

func storeHolds(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	ch := watching(t, b, "l/")
	sees(t, ch, "", "", "")
	l, err := a.Hold(ctx, "l/lead", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	sees(t, ch, "l/lead", "one", "")
	_, err = b.Hold(ctx, "l/lead", []byte("two"))
	wants(t, "second holder", err, store.ErrHeld)
	_, err = a.Hold(ctx, "l/lead", []byte("two"))
	wants(t, "the same again", err, store.ErrHeld)
	if e := get(t, b, "l/lead"); string(e.Value) != "one" || e.Rev == "" {
		t.Errorf("holder is %+v", e)
	}
	if got := keys(t, b, ""); fmt.Sprint(got) != "[l/lead]" {
		t.Errorf("listed %v", got)
	}
	select {
	case <-l.Lost:
		t.Error("lost while it is held")
	default:
	}
	if err := errors.Join(l.Release(), l.Release()); err != nil {
		t.Error(err)
	}
	<-l.Lost
	sees(t, ch, "l/lead", "", "")
	_, err = b.Get(ctx, "l/lead")
	wants(t, "after the release", err, store.ErrNotFound)
	if got := keys(t, a, ""); got != nil {
		t.Errorf("listed %v", got)
	}
}

func storeGenerations(t *testing.T, a, b store.Store) {
	var last uint64
	for i := range 12 {
		l, err := []store.Store{a, b}[i%2].Hold(t.Context(), "lead", fmt.Append(nil, i))
		if err != nil || l.Gen <= last {
			t.Fatalf("generation %d after %d, %v", l.Gen, last, err)
		}
		if e := get(t, a, "lead"); string(e.Value) != fmt.Sprint(i) {
			t.Errorf("holder is %q, want %d", e.Value, i)
		}
		last = l.Gen
		if err := errors.Join(l.Release(), l.Release()); err != nil {
			t.Error(err)
		}
	}
	old, err := a.Hold(t.Context(), "lead", []byte("old"))
	if err != nil {
		t.Fatal(err)
	}
	_ = old.Release()
	l, err := b.Hold(t.Context(), "lead", []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	_ = old.Release() // the old lease has no say in the new one
	if e := get(t, a, "lead"); string(e.Value) != "new" {
		t.Errorf("got %+v", e)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// storeHolders has many want a lease while others look at it: one gets it, and
// to look keeps nobody from it.
func storeHolders(t *testing.T, a, b store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for i := range 2 {
		s := []store.Store{a, b}[i]
		looking.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Get(ctx, "h/k"); err != nil && !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		var won atomic.Pointer[store.Lease]
		var wg sync.WaitGroup
		for i := range 8 {
			s := []store.Store{a, b}[i%2]
			wg.Go(func() {
				l, err := s.Hold(t.Context(), "h/k", fmt.Append(nil, i))
				if err == nil && !won.CompareAndSwap(nil, l) {
					t.Error("two holders")
				} else if err != nil && !errors.Is(err, store.ErrHeld) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		l := won.Load()
		if l == nil {
			t.Fatal("nobody got it")
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	cancel()
	looking.Wait()
}

func storeWaits(t *testing.T, a, b store.Store) {
	var in, most atomic.Int32
	var wg sync.WaitGroup
	for i := range 6 {
		s := []store.Store{a, b}[i%2]
		wg.Go(func() {
			l, err := store.Wait(t.Context(), s, "x/edges", []byte("me"))
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), in.Add(1)))
			in.Add(-1)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d holders at once", most.Load())
	}
	l, err := a.Hold(t.Context(), "top", nil)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	wg.Go(func() {
		_, err := store.Wait(ctx, b, "top", nil)
		wants(t, "wait", err, why)
	})
	cancel(why)
	wg.Wait()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}
