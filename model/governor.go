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
// over, and then they start one after another. The first must be answered before
// the second goes; each answer lets one more be under way without an answer.
// Without a hit there is no limit and no delay. It is safe for concurrent use.
type Governor struct {
	now    func() time.Time
	random func() float64

	turn chan struct{} // held by the first of those that wait; the rest queues for it

	mu      sync.Mutex
	shut    time.Time     // nothing starts before
	next    time.Time     // earliest start of the next request while there is a pace
	pace    time.Duration // between two starts; 0 is none
	hits    int           // times that a limit was hit, as far as it changed the pace
	out     int           // requests that have started and are not answered
	width   int           // how many of them there may be while there is a pace
	waiting int           // requests that wait
	changed chan struct{} // closed when a request is answered
	reason  string        // the last refusal
}

// NewGovernor returns a governor without a limit. It reads the time from now
// and takes jitter, in [0,1), from random; both must be safe for concurrent use.
func NewGovernor(now func() time.Time, random func() float64) *Governor {
	return &Governor{now: now, random: random, turn: make(chan struct{}, 1), changed: make(chan struct{})}
}

// Wrap returns m with its requests under g. Every attempt has to pass, so
// [Retry] goes around it and not inside. A request that has to wait yields
// [troupe.Waiting] first. One that would wait for longer than patience fails
// with a final [Failure] at once; 0 is DefaultPatience.
func (g *Governor) Wrap(m troupe.Model, patience time.Duration) troupe.Model {
	if patience <= 0 {
		patience = DefaultPatience
	}
	return &governed{m, g, patience}
}

type governed struct {
	model    troupe.Model
	governor *Governor
	patience time.Duration
}

// Stream implements [troupe.Model].
func (m *governed) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		hits, err := m.governor.pass(ctx, m.patience, func(w troupe.Waiting) bool { return yield(w, nil) })
		if errors.Is(err, errLeft) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		finish := sync.OnceFunc(m.governor.done)
		defer finish()
		for c, err := range m.model.Stream(ctx, req) {
			var f Failure
			if errors.As(err, &f) && f.Temporary() && (f.HTTPStatus() == http.StatusTooManyRequests || f.HTTPStatus() == statusOverloaded) {
				m.governor.hit(hits, f)
			}
			if _, ok := c.(troupe.Opened); ok {
				m.governor.answered(hits)
				finish()
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

var errLeft = errors.New("nobody waits for the answer")

// pass waits until a request may start; who starts one calls done when it is
// answered. It returns how many hits there were before: a later one says nothing
// about this request's share in it. tell is called once if the wait is long, and
// reports whether somebody still wants the answer.
func (g *Governor) pass(ctx context.Context, patience time.Duration, tell func(troupe.Waiting) bool) (hits int, err error) {
	if hits, free := g.free(); free {
		if err := context.Cause(ctx); err != nil {
			g.done()
			return 0, fmt.Errorf("wait for the provider's rate limit: %w", err)
		}
		return hits, nil
	}
	expect, why := g.queue()
	defer g.leave()
	w := &waiter{tell: tell, why: why, since: g.now(), now: g.now}
	if expect >= noticed && !w.say(expect) {
		return 0, errLeft
	}
	for held := false; !held; {
		select {
		case g.turn <- struct{}{}:
			held = true
		case <-w.silence():
			if !w.say(0) {
				return 0, errLeft
			}
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for the provider's rate limit: %w", context.Cause(ctx))
		}
	}
	defer func() { <-g.turn }()
	latest := g.now().Add(longestPace) // one that is never answered must not hold up all others
	for {
		hits, wait, changed, err := g.enter(latest, patience)
		if err != nil || wait <= 0 {
			return hits, err
		}
		if w.due() && !w.say(0) {
			return 0, errLeft
		}
		if err := await(ctx, w.atMost(wait), changed); err != nil {
			return 0, fmt.Errorf("wait for the provider's rate limit: %w", err)
		}
	}
}

// enter starts a request, or returns how long to wait before another try; one
// that is answered meanwhile closes changed. From latest on, those that are not
// answered hold up nothing.
func (g *Governor) enter(latest time.Time, patience time.Duration) (hits int, wait time.Duration, changed <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	switch {
	case g.shut.Sub(now) > patience:
		return 0, 0, nil, &closedError{g.reason, g.shut.Sub(now)}
	case now.Before(g.shut):
		return 0, g.shut.Sub(now), nil, nil
	case g.pace > 0 && now.Before(g.next):
		return 0, g.next.Sub(now), g.changed, nil
	case g.pace > 0 && g.out >= g.width && now.Before(latest):
		return 0, latest.Sub(now), g.changed, nil
	}
	g.start(now)
	return g.hits, 0, nil, nil
}

// free starts a request if there is no limit.
func (g *Governor) free() (hits int, free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if g.pace > 0 || now.Before(g.shut) {
		return 0, false
	}
	g.start(now)
	return g.hits, true
}

func (g *Governor) start(now time.Time) {
	g.out++
	if g.pace > 0 {
		g.next = now.Add(time.Duration(float64(g.pace) * (0.75 + g.random()/2)))
	}
}

// queue counts a request as waiting. It returns about how long that will take
// at least, and why.
func (g *Governor) queue() (expect time.Duration, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	expect = max(0, g.shut.Sub(now), g.next.Sub(now)) + time.Duration(g.waiting)*g.pace
	g.waiting++
	return expect, g.reason
}

func (g *Governor) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
}

// done counts a request as answered, well or not.
func (g *Governor) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.out--
	close(g.changed)
	g.changed = make(chan struct{})
}

// hit shuts the gate for as long as the provider asks, at least for the pace.
// Requests that were under way together count as one hit.
func (g *Governor) hit(hits int, f Failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if hits == g.hits {
		g.hits++
		g.pace = min(max(firstPace, 2*g.pace), longestPace)
		g.next = time.Time{}
		g.width = 1
	}
	g.reason = f.Error()
	if until := g.now().Add(max(f.RetryAfter(), g.pace)); until.After(g.shut) {
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
	g.width++
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
