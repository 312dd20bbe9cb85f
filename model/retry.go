package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/troupe-sh/troupe"
)

// A Policy says how often and how fast a request is sent again. The zero value
// is ready for use.
type Policy struct {
	Attempts int            // at most, the first included; 0 is 10
	Base     time.Duration  // wait after the first attempt, doubled after each; 0 is 1 s
	Longest  time.Duration  // that the doubling comes to; 0 is 60 s
	Patience time.Duration  // longest wait that a provider may ask for; 0 is DefaultPatience
	Total    time.Duration  // for all attempts together, waits included; 0 is DefaultTotal
	Rand     func() float64 // jitter, in [0,1), safe for concurrent use; nil is math/rand
}

// What a [Policy] says if nothing else is said. A large reply of a slow local
// model may take an hour.
const (
	DefaultPatience = 10 * time.Minute
	DefaultTotal    = 2 * time.Hour
)

// ErrTotal is the cause of an error of a request that took longer than its
// [Policy] allows, however much the provider has shown signs of life.
var ErrTotal = errors.New("no reply in time")

// Retry returns a Model that sends a request again when m fails with a
// temporary [Failure]: a rate limit, a fault of the server, a lost or a silent
// connection. Between two attempts it yields [troupe.Retrying], also when text
// had been streamed: what was streamed is void then. It waits at least as long
// as the provider asks for, and each wait has jitter, so that agents which were
// refused together do not come back together. The end of the context ends a
// wait at once; so does the end of the policy's total, and of an attempt that is
// under way.
func Retry(m troupe.Model, p Policy) troupe.Model {
	return &retrying{m, p.filled()}
}

// filled is p with what it does not say.
func (p Policy) filled() Policy {
	if p.Attempts <= 0 {
		p.Attempts = 10
	}
	if p.Base <= 0 {
		p.Base = time.Second
	}
	if p.Longest <= 0 {
		p.Longest = 60 * time.Second
	}
	if p.Patience <= 0 {
		p.Patience = DefaultPatience
	}
	if p.Total <= 0 {
		p.Total = DefaultTotal
	}
	if p.Rand == nil {
		p.Rand = rand.Float64
	}
	return p
}

type retrying struct {
	model  troupe.Model
	policy Policy
}

// Stream implements [troupe.Model].
func (r *retrying) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		over := fmt.Errorf("%w: %s have passed since the request was first sent; TROUPE_REQUEST_TIMEOUT sets how long to wait", ErrTotal, r.policy.Total)
		ctx, cancel := context.WithTimeoutCause(ctx, r.policy.Total, over)
		defer cancel()
		for attempt := 1; ; attempt++ {
			err, left := forward(r.model.Stream(ctx, req), yield)
			if left || err == nil {
				return
			}
			var f Failure
			if context.Cause(ctx) != nil || !errors.As(err, &f) || !f.Temporary() || r.policy.Attempts == 1 {
				yield(nil, err)
				return
			}
			if attempt == r.policy.Attempts {
				yield(nil, fmt.Errorf("gave up after %d attempts: %w", attempt, err))
				return
			}
			if asked := f.RetryAfter(); asked > r.policy.Patience {
				yield(nil, fmt.Errorf("the provider asks to come back in %s: %w", asked.Round(time.Second), err))
				return
			}
			after := r.policy.Wait(attempt, f.RetryAfter())
			again := troupe.Retrying{Attempt: attempt, Of: r.policy.Attempts, After: after, Status: f.HTTPStatus(), Cause: err.Error()}
			if !yield(again, nil) {
				return
			}
			if err := Sleep(ctx, after); err != nil {
				yield(nil, fmt.Errorf("wait before the next attempt: %w", err))
				return
			}
		}
	}
}

// forward passes the chunks of one attempt on. It returns the error that ended
// the attempt, which it does not pass on, and whether the consumer has left.
func forward(chunks iter.Seq2[troupe.Chunk, error], yield func(troupe.Chunk, error) bool) (err error, left bool) {
	for c, err := range chunks {
		if err != nil {
			return err, false
		}
		if !yield(c, nil) {
			return nil, true
		}
		if _, ok := c.(troupe.Reply); ok {
			return nil, false
		}
	}
	return errors.New("the model ended without a reply"), false
}

// Wait is the time between an attempt, the first of which is 1, and the next.
// Half of what the doubling gives is jitter; what the server asks for, if that
// is not 0, is never shortened.
func (p Policy) Wait(attempt int, asked time.Duration) time.Duration {
	p = p.filled()
	d := p.Longest
	if n := attempt - 1; n < 30 && p.Base<<n > 0 {
		d = min(d, p.Base<<n)
	}
	jitter := time.Duration(p.Rand() * float64(d) / 2)
	if asked > 0 {
		return max(asked+jitter/2, d/2+jitter)
	}
	return d/2 + jitter
}

// Sleep waits for d or for the end of ctx, whose cause it returns then.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
