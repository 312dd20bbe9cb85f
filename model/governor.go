package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
)

// How a governor slows: after a limit was hit, requests start one by one at
// firstPace; each further hit doubles it; each answer takes a part off, until
// it is so short that there is no limit any more.
const (
	firstPace   = 500 * time.Millisecond
	longestPace = 10 * time.Second
	fastPace    = 50 * time.Millisecond
)

// A Governor keeps all agents of one account from running into its rate limit
// again and again: when one request is answered with "too many" or
// "overloaded", no request of the account starts before the provider's wait is
// over, and then they start one after another. Without such an answer there is
// no limit and no delay. It is safe for concurrent use.
type Governor struct {
	now    func() time.Time
	random func() float64

	mu   sync.Mutex
	shut time.Time     // nothing starts before
	next time.Time     // earliest start of the next request while there is a pace
	pace time.Duration // between two starts; 0 is none
	hits int           // times that a limit was hit, as far as it changed the pace
}

// NewGovernor returns a governor without a limit. It reads the time from now
// and takes jitter, in [0,1), from random; both must be safe for concurrent use.
func NewGovernor(now func() time.Time, random func() float64) *Governor {
	return &Governor{now: now, random: random}
}

// Wrap returns m with its requests under g. Every attempt has to pass, so
// [Retry] goes around it and not inside.
func (g *Governor) Wrap(m troupe.Model) troupe.Model { return &governed{m, g} }

type governed struct {
	model    troupe.Model
	governor *Governor
}

// Stream implements [troupe.Model].
func (m *governed) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		hits, err := m.governor.pass(ctx)
		if err != nil {
			yield(nil, fmt.Errorf("wait for the provider's rate limit: %w", err))
			return
		}
		for c, err := range m.model.Stream(ctx, req) {
			var f Failure
			if errors.As(err, &f) && f.Temporary() && (f.HTTPStatus() == http.StatusTooManyRequests || f.HTTPStatus() == statusOverloaded) {
				m.governor.hit(hits, f.RetryAfter())
			}
			if _, ok := c.(troupe.Opened); ok {
				m.governor.answered(hits)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// pass waits until a request may start. It returns how many hits there were
// before: a later one says nothing about this request's share in it.
func (g *Governor) pass(ctx context.Context) (hits int, err error) {
	for {
		wait, hits, free := g.reserve()
		if free {
			return hits, context.Cause(ctx)
		}
		if err := sleep(ctx, wait); err != nil {
			return 0, err
		}
		if hits, open := g.open(); open {
			return hits, nil
		}
	}
}

// reserve takes the next place in the row of starts. It is free when there is
// nothing to wait for.
func (g *Governor) reserve() (wait time.Duration, hits int, free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	at := now
	for _, t := range []time.Time{g.shut, g.next} {
		if t.After(at) {
			at = t
		}
	}
	if g.pace > 0 {
		g.next = at.Add(time.Duration(float64(g.pace) * (0.75 + g.random()/2)))
	}
	return at.Sub(now), g.hits, !at.After(now)
}

// open reports whether the place that was waited for still counts: the gate may
// have been shut again meanwhile.
func (g *Governor) open() (hits int, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hits, !g.now().Before(g.shut)
}

// hit shuts the gate for as long as the provider asks, at least for the pace.
// Requests that were under way together count as one hit.
func (g *Governor) hit(hits int, asked time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if hits == g.hits {
		g.hits++
		g.pace = min(max(firstPace, 2*g.pace), longestPace)
		g.next = time.Time{}
	}
	if until := g.now().Add(max(asked, g.pace)); until.After(g.shut) {
		g.shut = until
	}
}

// answered quickens the pace: the provider has taken a request since the last hit.
func (g *Governor) answered(hits int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if hits != g.hits || g.pace == 0 {
		return
	}
	if g.pace -= g.pace / 8; g.pace < fastPace {
		g.pace, g.next = 0, time.Time{}
	}
}

// Governors has one governor for each account. It is safe for concurrent use;
// a process has one.
type Governors struct {
	now    func() time.Time
	random func() float64

	mu   sync.Mutex
	have map[string]*Governor
}

// NewGovernors returns an empty set, whose governors get now and random as in
// [NewGovernor].
func NewGovernors(now func() time.Time, random func() float64) *Governors {
	return &Governors{now: now, random: random, have: map[string]*Governor{}}
}

// For returns the governor of the account that e speaks for.
func (g *Governors) For(e Endpoint) *Governor {
	g.mu.Lock()
	defer g.mu.Unlock()
	account := e.Account()
	if g.have[account] == nil {
		g.have[account] = NewGovernor(g.now, g.random)
	}
	return g.have[account]
}
