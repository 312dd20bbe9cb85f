package model_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// fake is a model that answers each attempt, which counts from 0, with what it
// returns: an error, or nil for a reply.
type fake func(attempt int) error

func (f fake) model() troupe.Model { return &attempts{answer: f} }

type attempts struct {
	answer fake
	made   int
}

func (a *attempts) Stream(_ context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		err := a.answer(a.made)
		a.made++
		if !yield(troupe.Sending{Body: []byte(req.Model)}, nil) || !yield(troupe.Opened{}, nil) || !yield(troupe.Delta{Text: "half"}, nil) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		yield(troupe.Reply{Stop: "end"}, nil)
	}
}

// names writes down what a stream yields.
func names(chunks iter.Seq2[troupe.Chunk, error]) (list []string, waits []troupe.Retrying, err error) {
	for c, e := range chunks {
		if e != nil {
			err = e
			continue
		}
		if r, ok := c.(troupe.Retrying); ok {
			waits = append(waits, r)
		}
		list = append(list, strings.TrimPrefix(fmt.Sprintf("%T", c), "troupe."))
	}
	return list, waits, err
}

func status(code int) *model.APIError {
	return &model.APIError{Provider: "p", Status: code, Message: "m", Transient: code == 429 || code >= 500}
}

func TestRetryUntilReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := []error{status(529), &model.APIError{Transient: true, Err: model.ErrCut}, nil}
		m := model.Retry(fake(func(n int) error { return errs[n] }).model(), model.Policy{Rand: func() float64 { return 0.5 }})
		start := time.Now()
		list, waits, err := names(m.Stream(t.Context(), &troupe.Request{}))
		attempt := "Sending Opened Delta "
		if want := attempt + "Retrying " + attempt + "Retrying " + attempt + "Reply"; err != nil || strings.Join(list, " ") != want {
			t.Errorf("yielded %v, %v; want %s", list, err, want)
		}
		if len(waits) != 2 || waits[0].Attempt != 1 || waits[0].Of != 10 || waits[0].Status != 529 || waits[0].Cause == "" || waits[1].Attempt != 2 {
			t.Fatalf("Retrying = %+v", waits)
		}
		if took := time.Since(start); took != waits[0].After+waits[1].After || waits[1].After <= waits[0].After {
			t.Errorf("took %v, said %v and %v", took, waits[0].After, waits[1].After)
		}
	})
}

func TestRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &attempts{answer: func(int) error { return status(500) }}
		_, waits, err := names(model.Retry(a, model.Policy{Attempts: 4}).Stream(t.Context(), &troupe.Request{}))
		var e *model.APIError
		if a.made != 4 || len(waits) != 3 || !errors.As(err, &e) || e.Status != 500 {
			t.Errorf("%d attempts, %d waits, %v", a.made, len(waits), err)
		}
	})
}

func TestRetryNotForFinalErrors(t *testing.T) {
	final := []error{errors.New("no failure")}
	for _, code := range []int{400, 401, 403, 404, 413} {
		final = append(final, status(code))
	}
	synctest.Test(t, func(t *testing.T) {
		for _, want := range final {
			a := &attempts{answer: func(int) error { return want }}
			_, waits, err := names(model.Retry(a, model.Policy{}).Stream(t.Context(), &troupe.Request{}))
			if a.made != 1 || waits != nil || !errors.Is(err, want) {
				t.Errorf("%v: %d attempts, %v", want, a.made, err)
			}
		}
	})
}

func TestRetryNeverBeforeRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for i := range 5 {
			e := status(429)
			e.After = 20 * time.Second
			m := model.Retry(fake(func(n int) error { return []error{e, nil}[n] }).model(), model.Policy{Rand: func() float64 { return float64(i) / 5 }})
			_, waits, err := names(m.Stream(t.Context(), &troupe.Request{}))
			if err != nil || len(waits) != 1 || waits[0].After < 20*time.Second {
				t.Fatalf("waits %+v, %v", waits, err)
			}
			seen[waits[0].After] = true
		}
		if len(seen) != 5 {
			t.Errorf("five agents wait in step: %v", seen)
		}
	})
}

func TestRetryWaitsNotLongerThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &attempts{answer: func(int) error { return status(503) }}
		_, waits, _ := names(model.Retry(a, model.Policy{Attempts: 100, Longest: 8 * time.Second}).Stream(t.Context(), &troupe.Request{}))
		for _, w := range waits {
			if w.After <= 0 || w.After > 8*time.Second {
				t.Fatalf("attempt %d waits %v", w.Attempt, w.After)
			}
		}
		if len(waits) != 99 {
			t.Errorf("%d waits", len(waits))
		}
	})
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		e := status(429)
		e.After = 9 * time.Minute
		start := time.Now()
		time.AfterFunc(time.Second, func() { cancel(gone) })
		_, _, err := names(model.Retry(fake(func(int) error { return e }).model(), model.Policy{}).Stream(ctx, &troupe.Request{}))
		if !errors.Is(err, gone) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestRetryConsumerLeaves(t *testing.T) {
	a := &attempts{answer: func(int) error { return status(500) }}
	for c := range model.Retry(a, model.Policy{}).Stream(t.Context(), &troupe.Request{}) {
		if _, ok := c.(troupe.Retrying); ok {
			break
		}
	}
	if a.made != 1 {
		t.Errorf("%d attempts after the consumer left", a.made)
	}
}

var _ model.Failure = (*model.APIError)(nil)

func TestStatusText(t *testing.T) {
	e := &model.APIError{Provider: "p", Status: http.StatusBadGateway}
	if got := e.Error(); got != "p: 502 Bad Gateway" {
		t.Errorf("%q", got)
	}
}
