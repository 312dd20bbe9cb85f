package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// A shop is a model that notes when its requests begin. Each plays the script of
// its number: waits and chunks, and an error, a panic or a reply at the end.
type shop struct {
	script func(n int) []step

	mu    sync.Mutex
	began []time.Time
}

type step struct {
	wait  time.Duration
	chunk troupe.Chunk
	err   error
	panic bool
}

var errShut = errors.New("the shop is shut")

func (s *shop) Stream(ctx context.Context, _ *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		s.mu.Lock()
		n := len(s.began)
		s.began = append(s.began, time.Now())
		s.mu.Unlock()
		for _, st := range s.script(n) {
			select {
			case <-time.After(st.wait):
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
			if st.panic {
				panic(errShut)
			}
			if !yield(st.chunk, st.err) || st.err != nil {
				return
			}
		}
	}
}

// answers is the script of a request that is answered after some time.
func answers(after time.Duration) []step {
	return []step{{chunk: troupe.Sending{}}, {wait: after, chunk: troupe.Opened{}}, {wait: time.Minute, chunk: troupe.Reply{}}}
}

// together starts n siblings at one moment and returns how each ended.
func together(ctx context.Context, s *model.Stagger, m troupe.Model, n int) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = one(ctx, s.Join("key", m)) })
	}
	wg.Wait()
	return errs
}

// one makes a request and returns its error.
func one(ctx context.Context, m troupe.Model) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for _, e := range m.Stream(ctx, &troupe.Request{}) {
		err = e
	}
	return err
}

// begun returns when the requests began, in seconds since start.
func (s *shop) begun(start time.Time) (out []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.began {
		out = append(out, int(t.Sub(start)/time.Second))
	}
	return out
}

// When the siblings of one that goes ahead begin, in seconds.
func TestStagger(t *testing.T) {
	fails := []step{{chunk: troupe.Sending{}}, {wait: 2 * time.Second, err: errShut}}
	again := []step{{wait: time.Second, chunk: troupe.Retrying{}}, {wait: time.Minute, chunk: troupe.Opened{}}, {chunk: troupe.Reply{}}}
	other := []step{{wait: time.Second, chunk: troupe.Switched{Model: "b"}}, {wait: time.Second, chunk: troupe.Opened{}}, {wait: 9 * time.Second, chunk: troupe.Reply{}}}
	bare := func(c troupe.Chunk) []step {
		return []step{{wait: 3 * time.Second, chunk: c}, {wait: time.Minute, chunk: troupe.Reply{}}}
	}
	for name, tt := range map[string]struct {
		scripts [][]step // of the first requests; the others are answered after 4 s
		want    []int
	}{
		"the answer begins":      {[][]step{answers(3 * time.Second)}, []int{0, 3, 3, 3}},
		"a model without Opened": {[][]step{bare(troupe.Delta{Text: "x"})}, []int{0, 3, 3, 3}},
		"a whole reply":          {[][]step{bare(troupe.Reply{})}, []int{0, 3, 3, 3}},
		"Waiting says nothing":   {[][]step{bare(troupe.Waiting{})}, []int{0, 15, 15, 15}},
		"a slow leader":          {[][]step{answers(20 * time.Second)}, []int{0, 15, 15, 15}},
		"it fails":               {[][]step{fails}, []int{0, 2, 6, 6}},
		"two fail":               {[][]step{fails, fails}, []int{0, 2, 4, 8}},
		"all fail":               {[][]step{fails, fails, fails, fails}, []int{0, 2, 4, 6}},
		"it panics":              {[][]step{{{wait: time.Second, panic: true}}}, []int{0, 1, 5, 5}},
		"it is sent again":       {[][]step{again}, []int{0, 1, 5, 5}},
		"another model is asked": {[][]step{other}, []int{0, 1, 5, 5}},
		"fails after the answer": {[][]step{{{wait: time.Second, chunk: troupe.Opened{}}, {wait: time.Second, err: errShut}}}, []int{0, 1, 1, 1}},
		"no wait is longer":      {[][]step{{{wait: 8 * time.Second, err: errShut}}, {{wait: 14 * time.Second, err: errShut}}}, []int{0, 8, 15, 15}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &shop{script: func(n int) []step {
					if n < len(tt.scripts) {
						return tt.scripts[n]
					}
					return answers(4 * time.Second)
				}}
				start := time.Now()
				together(t.Context(), model.NewStagger(time.Now), m, 4)
				if got := m.begun(start); !slices.Equal(got, tt.want) {
					t.Errorf("they began at %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// While the prompt is in the cache nobody waits; each answer keeps it there.
func TestStaggerWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model.NewStagger(time.Now)
		s.TTL = time.Minute
		m := &shop{script: func(int) []step { return []step{{wait: time.Second, chunk: troupe.Opened{}}, {chunk: troupe.Reply{}}} }}
		check := func(when string, n int, want ...int) {
			t.Helper()
			m.began = nil
			start := time.Now()
			together(t.Context(), s, m, n)
			if got := m.begun(start); !slices.Equal(got, want) {
				t.Errorf("%s: they began at %v, want %v", when, got, want)
			}
		}
		check("cold", 3, 0, 1, 1)
		check("warm", 3, 0, 0, 0)
		time.Sleep(50 * time.Second)
		check("still warm", 1, 0)
		time.Sleep(50 * time.Second)
		check("kept warm by that", 2, 0, 0)
		time.Sleep(time.Minute)
		check("cold again", 2, 0, 1)
		time.Sleep(time.Minute)
		s.Warm("other")
		check("another key is warm", 2, 0, 1)
		time.Sleep(time.Minute)
		s.Warm("key")
		check("said to be warm", 3, 0, 0, 0)
	})
}

// Who is interrupted leaves at once, waiting or ahead, and the others go on.
func TestStaggerCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model.NewStagger(time.Now)
		m := &shop{script: func(int) []step { return answers(5 * time.Second) }}
		start := time.Now()
		ended := make([]int, 4)
		errs := make([]error, 4)
		var cancels []context.CancelCauseFunc
		var wg sync.WaitGroup
		for i := range 4 {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			cancels = append(cancels, cancel)
			wg.Go(func() {
				errs[i] = one(ctx, s.Join("key", m))
				ended[i] = int(time.Since(start) / time.Second)
			})
			synctest.Wait() // so the first is ahead, and the others come in their order
		}
		time.Sleep(time.Second)
		cancels[3](troupe.ErrInterrupted) // it waits
		time.Sleep(time.Second)
		cancels[0](troupe.ErrInterrupted) // it is ahead
		wg.Wait()
		if got := m.begun(start); !slices.Equal(got, []int{0, 2, 7}) {
			t.Errorf("they began at %v", got)
		}
		for i, want := range []error{troupe.ErrInterrupted, nil, nil, troupe.ErrInterrupted} {
			if !errors.Is(errs[i], want) || want == nil && errs[i] != nil {
				t.Errorf("%d ended with %v", i, errs[i])
			}
		}
		if ended[0] != 2 || ended[3] != 1 {
			t.Errorf("they ended at %v", ended)
		}
	})
}

// A consumer that leaves lets the next one go ahead.
func TestStaggerLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model.NewStagger(time.Now)
		m := &shop{script: func(int) []step { return answers(5 * time.Second) }}
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			for range s.Join("key", m).Stream(t.Context(), &troupe.Request{}) {
				time.Sleep(2 * time.Second)
				break // at Sending
			}
		})
		synctest.Wait()
		wg.Go(func() { _ = one(t.Context(), s.Join("key", m)) })
		wg.Wait()
		if got := m.begun(start); !slices.Equal(got, []int{0, 2}) {
			t.Errorf("they began at %v", got)
		}
	})
}

// Whatever becomes of the requests of however many keys: each of them is made,
// none waits for longer than the deadline, and while one of a cold key is ahead no
// other is sent, unless somebody has waited to the deadline. In the end nothing is
// kept.
func TestStaggerProperty(t *testing.T) {
	type request struct {
		key, at, takes int // seconds
		end            string
	}
	rapid.Check(t, func(rt *rapid.T) {
		requests := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) request {
			return request{rapid.IntRange(0, 2).Draw(t, "key"), rapid.IntRange(0, 40).Draw(t, "at"), rapid.IntRange(0, 25).Draw(t, "takes"),
				rapid.SampledFrom([]string{"answer", "error", "panic", "cancel"}).Draw(t, "end")}
		}), 1, 20).Draw(rt, "requests")
		synctest.Test(t, func(*testing.T) {
			s := model.NewStagger(time.Now)
			start := time.Now()
			began := make([]time.Duration, len(requests))
			var wg sync.WaitGroup
			for i, r := range requests {
				began[i] = -1
				steps := map[string][]step{
					"answer": answers(time.Duration(r.takes) * time.Second),
					"error":  {{wait: time.Duration(r.takes) * time.Second, err: errShut}},
					"panic":  {{wait: time.Duration(r.takes) * time.Second, panic: true}},
					"cancel": answers(time.Hour),
				}[r.end]
				m := &shop{script: func(int) []step { began[i] = time.Since(start); return steps }}
				wg.Go(func() {
					time.Sleep(time.Duration(r.at) * time.Second)
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if r.end == "cancel" {
						time.AfterFunc(time.Duration(r.takes)*time.Second, cancel)
					}
					_ = one(ctx, s.Join(fmt.Sprint(r.key), m))
				})
			}
			wg.Wait()
			for i, r := range requests {
				waited := began[i] - time.Duration(r.at)*time.Second
				if began[i] < 0 && r.end != "cancel" || began[i] >= 0 && (waited < 0 || waited > model.DefaultDeadline) {
					rt.Errorf("request %d of %+v began at %v", i, requests, began[i])
				}
			}
			// settled is when a request is no longer ahead of others.
			settled := func(i int) time.Duration {
				from := began[i]
				if requests[i].end == "cancel" {
					from = time.Duration(requests[i].at) * time.Second
				}
				return from + time.Duration(requests[i].takes)*time.Second
			}
			for j, r := range requests {
				may := began[j] < 0
				for i, o := range requests {
					if i == j || o.key != r.key {
						continue
					}
					if began[i] < 0 { // given up at the very moment of the deadline, it may have gone ahead, and not been seen
						due := time.Duration(o.at)*time.Second + model.DefaultDeadline
						may = may || o.end == "cancel" && time.Duration(o.takes)*time.Second == model.DefaultDeadline && due <= began[j]
						continue
					}
					answered := o.end == "answer" && settled(i) <= began[j]
					patient := began[i]-time.Duration(o.at)*time.Second == model.DefaultDeadline && began[i] <= began[j]
					may = may || answered || patient || began[j]-time.Duration(r.at)*time.Second == model.DefaultDeadline
				}
				for i, o := range requests {
					if i != j && o.key == r.key && !may && began[i] >= 0 && began[i] < began[j] && settled(i) > began[j] {
						rt.Errorf("of %+v request %d began at %v, while %d was ahead", requests, j, began[j], i)
					}
				}
			}
			time.Sleep(2 * model.DefaultTTL)
			_ = one(context.Background(), s.Join("last", &shop{script: func(int) []step { return []step{{err: errShut}} }}))
			if n := s.Keys(); n != 0 {
				rt.Errorf("%d keys are kept", n)
			}
		})
	})
}

// Keys are forgotten: those that came to nothing at once, the others when their
// prompts are not in the cache any more.
func TestStaggerForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model.NewStagger(time.Now)
		const many = 5000
		for i := range many {
			_ = s.Join(fmt.Sprint("joined", i), &shop{})
			_ = one(t.Context(), s.Join(fmt.Sprint("failed", i), &shop{script: func(int) []step { return []step{{err: errShut}} }}))
		}
		if n := s.Keys(); n != 0 {
			t.Errorf("%d keys of requests that failed are kept", n)
		}
		answered := &shop{script: func(int) []step { return []step{{chunk: troupe.Opened{}}, {chunk: troupe.Reply{}}} }}
		for i := range many {
			_ = one(t.Context(), s.Join(fmt.Sprint("answered", i), answered))
		}
		if n := s.Keys(); n != many {
			t.Errorf("%d keys of %d are known while they are warm", n, many)
		}
		time.Sleep(model.DefaultTTL)
		_ = one(t.Context(), s.Join("one more", answered))
		if n := s.Keys(); n != 1 {
			t.Errorf("%d keys are kept", n)
		}
	})
}

// Who comes when the one ahead was waited for in vain does not wait for it, too.
func TestStaggerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model.NewStagger(time.Now)
		m := &shop{script: func(n int) []step {
			return answers([]time.Duration{40 * time.Second, 40 * time.Second, 5 * time.Second, 0}[n])
		}}
		start := time.Now()
		var wg sync.WaitGroup
		for _, at := range []int{0, 0, 16, 17} {
			wg.Go(func() {
				time.Sleep(time.Duration(at) * time.Second)
				_ = one(t.Context(), s.Join("key", m))
			})
		}
		wg.Wait()
		if got := m.begun(start); !slices.Equal(got, []int{0, 15, 16, 21}) {
			t.Errorf("they began at %v", got)
		}
	})
}
