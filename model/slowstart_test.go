package model_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// A desk answers each request after a while, or never, and counts how many
// wait for an answer at the same time.
type desk struct {
	mu      sync.Mutex
	refuse  int           // so many requests are refused first
	after   time.Duration // that the refusals ask for
	answers time.Duration // until an answer
	hang    int           // so many requests after that are never answered

	starts []time.Time
}

func (d *desk) begin() (refused, hangs bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starts = append(d.starts, time.Now())
	if d.refuse > 0 {
		d.refuse--
		return true, false
	}
	if d.hang > 0 {
		d.hang--
		return false, true
	}
	return false, false
}

// count is how many requests have come.
func (d *desk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.starts)
}

func (d *desk) Stream(ctx context.Context, _ *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		refused, hangs := d.begin()
		switch {
		case refused:
			yield(nil, &model.APIError{Provider: "p", Status: 429, After: d.after, Transient: true})
			return
		case hangs:
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
			return
		}
		time.Sleep(d.answers)
		if yield(troupe.Opened{}, nil) {
			yield(troupe.Reply{}, nil)
		}
	}
}

// After a limit was hit, the next request is alone until it is answered, however
// long that takes, and then there may be a few more.
func TestGovernorSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{refuse: 1, after: time.Second, answers: 5 * time.Second}
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(d, 0)
		names(m.Stream(t.Context(), &troupe.Request{}))
		var agents sync.WaitGroup
		for range 12 {
			agents.Go(func() { names(m.Stream(t.Context(), &troupe.Request{})) })
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := d.count() - 1; n != 1 {
			t.Errorf("%d requests before the first was answered", n)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := d.count() - 1; n != 3 {
			t.Errorf("%d requests when one was answered, want 3", n)
		}
		agents.Wait()
		if d.count() != 13 {
			t.Errorf("%d requests of 13", d.count())
		}
	})
}

// One request that gets no answer does not hold up the account.
func TestGovernorHangingRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{refuse: 1, after: time.Second, hang: 1}
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(d, 0)
		names(m.Stream(t.Context(), &troupe.Request{}))
		ctx, hangUp := context.WithCancel(t.Context())
		var hanging, agents sync.WaitGroup
		hanging.Go(func() { names(m.Stream(ctx, &troupe.Request{})) })
		time.Sleep(2 * time.Second)
		start := time.Now()
		for range 3 {
			agents.Go(func() { names(m.Stream(t.Context(), &troupe.Request{})) })
		}
		agents.Wait()
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("the others waited %v", took)
		}
		hangUp()
		hanging.Wait()
	})
}

// A long wait is told of, once and before it; a short one is not.
func TestGovernorTellsOfItsWait(t *testing.T) {
	for after, want := range map[time.Duration]int{20 * time.Second: 1, 100 * time.Millisecond: 0} {
		synctest.Test(t, func(t *testing.T) {
			m := model.NewGovernor(time.Now, rand.Float64).Wrap(&desk{refuse: 1, after: after}, 0)
			names(m.Stream(t.Context(), &troupe.Request{}))
			start, told := time.Now(), 0
			for c := range m.Stream(t.Context(), &troupe.Request{}) {
				w, ok := c.(troupe.Waiting)
				if !ok {
					continue
				}
				told++
				if w.For != after || !strings.Contains(w.Cause, "429") || time.Since(start) != 0 {
					t.Errorf("%+v after %v", w, time.Since(start))
				}
			}
			if told != want {
				t.Errorf("%v: told %d times, want %d", after, told, want)
			}
		})
	}
}

// Who has waited unexpectedly long is told, too: here for a request without an answer.
func TestGovernorTellsOfAnUnexpectedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{refuse: 1, answers: 8 * time.Second}
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(d, 0)
		names(m.Stream(t.Context(), &troupe.Request{}))
		var agents sync.WaitGroup
		told := make(chan troupe.Waiting, 6)
		for range 3 {
			agents.Go(func() {
				for c := range m.Stream(t.Context(), &troupe.Request{}) {
					if w, ok := c.(troupe.Waiting); ok {
						told <- w
					}
				}
			})
		}
		agents.Wait()
		// The first is told, too, if its back-off happens to be long.
		if n := len(told); n < 2 || n > 3 {
			t.Errorf("%d of three were told that they wait, want at least 2", n)
		}
	})
}

// So is the only one that waits, when it has waited for a second.
func TestGovernorTellsTheFirstInTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.NewGovernor(time.Now, func() float64 { return 0 }).Wrap(&desk{refuse: 1, answers: 8 * time.Second}, 0)
		names(m.Stream(t.Context(), &troupe.Request{}))
		time.Sleep(time.Second)
		var first sync.WaitGroup
		first.Go(func() { names(m.Stream(t.Context(), &troupe.Request{})) })
		time.Sleep(time.Second)
		start, after := time.Now(), time.Duration(0)
		for c := range m.Stream(t.Context(), &troupe.Request{}) {
			if _, ok := c.(troupe.Waiting); ok {
				after = time.Since(start)
			}
		}
		if after != time.Second {
			t.Errorf("told after %v", after)
		}
		first.Wait()
	})
}

// Nobody leaves a place behind that others wait for.
func TestGovernorConsumerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(&desk{refuse: 1, after: 10 * time.Second}, 0)
		names(m.Stream(t.Context(), &troupe.Request{}))
		for range m.Stream(t.Context(), &troupe.Request{}) {
			break // at Waiting
		}
		time.Sleep(10 * time.Second)
		for range m.Stream(t.Context(), &troupe.Request{}) {
			break // at Opened
		}
		start := time.Now()
		if _, _, err := names(m.Stream(t.Context(), &troupe.Request{})); err != nil || time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Nobody waits for an account that is closed for hours: each agent is told.
func TestGovernorClosedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{refuse: 1, after: 3 * time.Hour}
		m := model.Retry(model.NewGovernor(time.Now, rand.Float64).Wrap(d, 0), model.Policy{})
		for range 3 {
			start := time.Now()
			_, _, err := names(m.Stream(t.Context(), &troupe.Request{}))
			var f model.Failure
			if !errors.As(err, &f) || f.HTTPStatus() != 429 || time.Since(start) != 0 || !strings.Contains(err.Error(), "3h0m0s") {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
		if len(d.starts) != 1 {
			t.Errorf("%d requests to a closed account", len(d.starts))
		}
	})
}

// alive shows signs of life for ever and never answers.
type alive struct{}

func (alive) Stream(ctx context.Context, _ *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		for yield(troupe.Delta{Text: "."}, nil) {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

// There is an end to each request, also of one that goes on for ever or is
// refused again and again.
func TestRetryTotal(t *testing.T) {
	for name, m := range map[string]troupe.Model{"alive": alive{}, "refused": fake(func(int) error { return status(500) }).model()} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _, err := names(model.Retry(m, model.Policy{Attempts: 1000, Total: 10 * time.Minute}).Stream(t.Context(), &troupe.Request{}))
			if took := time.Since(start); !errors.Is(err, model.ErrTotal) || took != 10*time.Minute {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		})
	}
}
