package model

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
)

// What a [Stagger] does if nothing else is said. Providers keep a prompt for five
// minutes after its last use; what is nearly as old as that may be gone on arrival.
const (
	DefaultDeadline = 15 * time.Second
	DefaultTTL      = 4 * time.Minute
)

// A Stagger has siblings, whose requests begin with the same bytes, pay for these
// bytes once. A provider can read a prompt out of its cache as soon as it has begun
// to answer the first request with it, and not before: of siblings that start
// together each one pays for all of it. So one goes ahead, and the others follow
// when its answer begins. If it fails before that, has to be sent again or is given
// up, the next one goes ahead. No request is held back for longer than Deadline,
// whatever becomes of those before it.
//
// While the prompt is likely to be in the cache nobody waits. The zero value is not
// ready; a Stagger is safe for concurrent use, and a process has one.
type Stagger struct {
	Deadline time.Duration // longest wait of a request; 0 is DefaultDeadline. Not changed once in use
	TTL      time.Duration // how long a prompt counts as cached; 0 is DefaultTTL. Not changed once in use

	now func() time.Time

	mu     sync.Mutex
	groups map[string]*siblings
	swept  time.Time
}

// siblings are the requests of one key. They are forgotten when there are none and
// their prompt is not in the cache any more.
type siblings struct {
	busy    int           // requests that wait or are under way
	used    time.Time     // when a provider last began to answer one; zero is never
	ahead   *place        // of the one that goes ahead, nil if nobody does
	changed chan struct{} // closed when somebody who waits may have to go
}

// A place is that of a request among its siblings.
type place struct {
	key      string
	group    *siblings
	answered bool // the provider answers; for its goroutine alone
	moved    bool // another model was asked, with a cache of its own; for its goroutine alone
}

// NewStagger returns a Stagger that has seen nothing. It reads the time from now,
// which must be safe for concurrent use.
func NewStagger(now func() time.Time) *Stagger {
	return &Stagger{now: now, groups: map[string]*siblings{}}
}

// Join returns m as the model of one of the siblings that key stands for. The key
// says all that decides whether two requests begin with the same bytes at the same
// provider: the model, and what fixes prompt and tools. Retries, fallbacks and
// accounts belong into m: a request that is held back is not one that was sent.
// Join itself keeps nothing.
func (s *Stagger) Join(key string, m troupe.Model) troupe.Model {
	return &sibling{stagger: s, key: key, model: m}
}

// Warm says that the prompt of key is in the provider's cache now, as that of a
// fork is when its parent has just been answered.
func (s *Stagger) Warm(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group(key).warm(s.now())
}

func (s *Stagger) ttl() time.Duration {
	if s.TTL > 0 {
		return s.TTL
	}
	return DefaultTTL
}

func (s *Stagger) deadline() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	return DefaultDeadline
}

// group returns the siblings of key and forgets, once in a TTL, those of other keys
// that are of no use any more. The caller holds mu.
func (s *Stagger) group(key string) *siblings {
	now := s.now()
	if now.Sub(s.swept) >= s.ttl() {
		for k, g := range s.groups {
			if g.busy == 0 && !s.cached(g, now) {
				delete(s.groups, k)
			}
		}
		s.swept = now
	}
	g := s.groups[key]
	if g == nil {
		g = &siblings{changed: make(chan struct{})}
		s.groups[key] = g
	}
	return g
}

// cached reports whether the prompt of g is likely to be in the cache. A clock that
// was set back says nothing.
func (s *Stagger) cached(g *siblings, now time.Time) bool {
	age := now.Sub(g.used)
	return !g.used.IsZero() && age >= 0 && age < s.ttl()
}

// warm notes that a provider answers, and lets all go. The caller holds mu.
func (g *siblings) warm(now time.Time) {
	g.used, g.ahead = now, nil
	g.wake()
}

// wake has those who wait look again. The caller holds mu.
func (g *siblings) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// enter counts a request among its siblings; leave ends that.
func (s *Stagger) enter(key string) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &place{key: key, group: s.group(key)}
	p.group.busy++
	return p
}

// leave ends a request. If it was ahead, the next one is.
func (s *Stagger) leave(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := p.group
	if g.busy--; g.busy == 0 && !s.cached(g, s.now()) {
		delete(s.groups, p.key)
	}
	g.yield(p)
}

// yield lets another one go ahead, if p does. The caller holds mu.
func (g *siblings) yield(p *place) {
	if g.ahead == p {
		g.ahead = nil
		g.wake()
	}
}

// await returns when p may go, or with the cause of ctx's end.
func (s *Stagger) await(ctx context.Context, p *place) error {
	first := s.look(p)
	if first.free {
		return context.Cause(ctx)
	}
	deadline := time.NewTimer(s.deadline())
	defer deadline.Stop()
	for now := first; !now.free; now = s.look(p) {
		select {
		case <-now.changed:
		case <-deadline.C:
			s.giveUp(now.ahead)
			return context.Cause(ctx)
		case <-ctx.Done():
			return fmt.Errorf("wait for an agent with the same prompt: %w", context.Cause(ctx))
		}
	}
	return context.Cause(ctx)
}

// A view is what one who waits sees.
type view struct {
	free    bool
	ahead   *place
	changed <-chan struct{}
}

// look reports whether p may go. If nobody is ahead, p is from now on.
func (s *Stagger) look(p *place) view {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := p.group
	switch {
	case s.cached(g, s.now()):
		return view{free: true}
	case g.ahead == nil:
		g.ahead = p
		return view{free: true}
	}
	return view{ahead: g.ahead, changed: g.changed}
}

// giveUp has nobody wait any longer for p: it was waited for to the deadline, or
// has failed for now.
func (s *Stagger) giveUp(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.group.yield(p)
}

// saw takes in what came of the request of p.
func (s *Stagger) saw(p *place, c troupe.Chunk) {
	switch c.(type) {
	case troupe.Opened, troupe.Delta, troupe.Reply:
		if !p.answered && !p.moved {
			p.answered = true
			s.mu.Lock()
			defer s.mu.Unlock()
			p.group.warm(s.now())
		}
	case troupe.Retrying, troupe.Switched:
		_, moved := c.(troupe.Switched)
		p.answered, p.moved = false, p.moved || moved
		s.giveUp(p)
	}
}

// A sibling is the model of one agent.
type sibling struct {
	stagger *Stagger
	key     string
	model   troupe.Model
}

// Stream implements [troupe.Model].
func (m *sibling) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		p := m.stagger.enter(m.key)
		defer m.stagger.leave(p) // also after a panic
		if err := m.stagger.await(ctx, p); err != nil {
			yield(nil, err)
			return
		}
		for c, err := range m.model.Stream(ctx, req) {
			if err == nil {
				m.stagger.saw(p, c)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}
