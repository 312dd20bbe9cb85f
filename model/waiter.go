package model

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/troupe-sh/troupe"
)

// noticed is the wait from which on a governor tells of it.
const noticed = time.Second

// A waiter tells once of a long wait for a [Governor].
type waiter struct {
	tell  func(troupe.Waiting) bool
	why   string
	since time.Time
	now   func() time.Time
	told  bool
}

// say tells of the wait; expect is how long it is likely to be, 0 if nobody
// knows. It reports whether somebody still wants the answer.
func (w *waiter) say(expect time.Duration) bool {
	w.told = true
	return w.tell(troupe.Waiting{For: expect, Cause: w.why})
}

// due reports whether the wait has become long, and nobody was told.
func (w *waiter) due() bool { return !w.told && w.now().Sub(w.since) >= noticed }

// atMost is wait, or what is left until somebody has to be told.
func (w *waiter) atMost(wait time.Duration) time.Duration {
	if w.told {
		return wait
	}
	return min(wait, noticed-w.now().Sub(w.since))
}

// silence returns a channel that says when it has.
func (w *waiter) silence() <-chan time.Time {
	if w.told {
		return nil
	}
	return time.After(noticed - w.now().Sub(w.since))
}

// await waits for d, for the closing of changed, or for the end of ctx, whose
// cause it returns then.
func await(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// A closedError is the [Failure] of a request that was not sent: the account is
// not to be used for longer than anybody waits.
type closedError struct {
	reason string // the refusal that it was told by
	wait   time.Duration
}

// Error implements error.
func (e *closedError) Error() string {
	return fmt.Sprintf("%s; the account is not to be used for another %s", e.reason, e.wait.Round(time.Second))
}

// HTTPStatus implements [Failure].
func (*closedError) HTTPStatus() int { return http.StatusTooManyRequests }

// RetryAfter implements [Failure].
func (e *closedError) RetryAfter() time.Duration { return e.wait }

// Temporary implements [Failure].
func (*closedError) Temporary() bool { return false }

// Code is api_error.
func (*closedError) Code() string { return "api_error" }
