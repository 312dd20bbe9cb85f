package model_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// A limited is a provider that takes so many requests a second and answers the
// others with 429 and a wait.
type limited struct {
	mu    sync.Mutex
	rate  int
	after time.Duration

	latency time.Duration // until a request is there
	starts  []time.Time   // of all requests
	hits    []time.Time   // when one was refused
}

func (l *limited) take() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	recent := 0
	for _, t := range l.starts {
		if now.Sub(t) < time.Second {
			recent++
		}
	}
	l.starts = append(l.starts, now)
	if recent < l.rate {
		return nil
	}
	l.hits = append(l.hits, now)
	return &model.APIError{Provider: "p", Status: 429, After: l.after, Transient: true}
}

func (l *limited) Stream(context.Context, *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		time.Sleep(l.latency)
		if err := l.take(); err != nil {
			yield(nil, err)
			return
		}
		if yield(troupe.Opened{}, nil) {
			yield(troupe.Reply{}, nil)
		}
	}
}

func TestGovernorTwelveAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &limited{rate: 3, after: 2 * time.Second, latency: 10 * time.Millisecond}
		g := model.NewGovernor(time.Now, rand.Float64)
		m := model.Retry(g.Wrap(provider, 0), model.Policy{})
		var agents sync.WaitGroup
		for range 12 {
			agents.Go(func() {
				if _, _, err := names(m.Stream(t.Context(), &troupe.Request{})); err != nil {
					t.Errorf("an agent failed: %v", err)
				}
			})
		}
		agents.Wait()
		for _, hit := range provider.hits {
			for _, s := range provider.starts {
				if s.After(hit.Add(provider.latency)) && s.Before(hit.Add(2*time.Second)) {
					t.Fatalf("a request %v after a refusal that asked for 2s", s.Sub(hit))
				}
			}
		}
		slices.SortFunc(provider.starts, time.Time.Compare)
		later := provider.starts[12:] // the first twelve were under way before any refusal
		for i := range later {
			if i+4 < len(later) && later[i+4].Sub(later[i]) < 100*time.Millisecond {
				t.Fatalf("five requests within %v", later[i+4].Sub(later[i]))
			}
		}
		if len(later) < 9 {
			t.Errorf("%d requests after the first twelve", len(later))
		}
	})
}

func TestGovernorNoDelayWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(&limited{rate: 1000}, 0)
		start := time.Now()
		for range 100 {
			if _, _, err := names(m.Stream(t.Context(), &troupe.Request{})); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("100 requests took %v", took)
		}
	})
}

// One hit slows, and enough answers after it lift the limit again.
func TestGovernorRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &limited{rate: 0, after: time.Second}
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(provider, 0)
		if _, _, err := names(m.Stream(t.Context(), &troupe.Request{})); err == nil {
			t.Fatal("no refusal")
		}
		provider.rate = 1000
		var gaps []time.Duration
		last := time.Now()
		for range 40 {
			if _, _, err := names(m.Stream(t.Context(), &troupe.Request{})); err != nil {
				t.Fatal(err)
			}
			gaps = append(gaps, time.Since(last))
			last = time.Now()
		}
		if gaps[0] < time.Second || gaps[1] < 200*time.Millisecond {
			t.Errorf("no slow start: %v", gaps[:3])
		}
		if gaps[39] != 0 {
			t.Errorf("still slowed after 40 answers: %v", gaps[39])
		}
	})
}

// Who waits for a place in the row waits on when the gate is shut again.
func TestGovernorShutAgainWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &limited{rate: 0, after: 10 * time.Second}
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(provider, 0)
		names(m.Stream(t.Context(), &troupe.Request{}))
		var agents sync.WaitGroup
		for range 4 {
			agents.Go(func() { names(m.Stream(t.Context(), &troupe.Request{})) })
		}
		agents.Wait()
		for i := 1; i < len(provider.starts); i++ {
			if gap := provider.starts[i].Sub(provider.starts[i-1]); gap < 10*time.Second {
				t.Errorf("request %d came %v after a refusal that asked for 10s", i, gap)
			}
		}
	})
}

// Requests that were refused together are one hit, however many they are.
func TestGovernorHitsTogetherAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &limited{rate: 0, after: time.Second, latency: 10 * time.Millisecond}
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(provider, 0)
		var agents sync.WaitGroup
		for range 12 {
			agents.Go(func() { names(m.Stream(t.Context(), &troupe.Request{})) })
		}
		agents.Wait()
		provider.rate = 1000
		start := time.Now()
		for range 2 {
			names(m.Stream(t.Context(), &troupe.Request{}))
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("two requests after one hit took %v", took)
		}
	})
}

func TestGovernorEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.NewGovernor(time.Now, rand.Float64).Wrap(&limited{rate: 0, after: 9 * time.Minute}, 0)
		names(m.Stream(t.Context(), &troupe.Request{}))
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		start := time.Now()
		if _, _, err := names(m.Stream(ctx, &troupe.Request{})); !errors.Is(err, gone) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestGovernorsOneForEachAccount(t *testing.T) {
	g := model.NewGovernors(time.Now, rand.Float64)
	e := model.Endpoint{Provider: "p", BaseURL: "http://h", Key: "k", Name: "a"}
	other := e
	other.Name = "b" // the same account
	if g.For(e) != g.For(other) {
		t.Error("two models of one account have two governors")
	}
	for _, change := range []func(*model.Endpoint){
		func(e *model.Endpoint) { e.Key = "l" },
		func(e *model.Endpoint) { e.Key, e.Token = "", "k" },
		func(e *model.Endpoint) { e.BaseURL = "http://i" },
		func(e *model.Endpoint) { e.Provider = "q" },
	} {
		other := e
		change(&other)
		if g.For(e) == g.For(other) {
			t.Errorf("%#v shares a governor with %#v", other, e)
		}
	}
}
