package ask_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
)

func yes(by string) ask.Answer {
	return ask.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: by}}
}

func next(t *testing.T, d *ask.Desk, n int) []ask.Question {
	t.Helper()
	for open := range d.Watch(t.Context()) {
		if len(open) == n {
			return open
		}
	}
	t.Fatal("the test is over")
	return nil
}

func TestWithNobodyThereThereIsNoWaiting(t *testing.T) {
	d := ask.NewDesk(time.Now)
	if _, err := d.Ask(t.Context(), ask.Question{}); !errors.Is(err, ask.ErrNobody) {
		t.Error(err)
	}
}

func TestTheFirstAnswerIsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := ask.NewDesk(time.Now)
		defer d.Attend()()
		const faces = 8
		var got ask.Answer
		var err error
		var asked, answering sync.WaitGroup
		asked.Go(func() { got, err = d.Ask(t.Context(), ask.Question{Kind: ask.Permission, Agent: "a1", Why: "no rule"}) })
		q := next(t, d, 1)[0]
		if q.Agent != "a1" || q.Why != "no rule" || q.ID == "" || !q.Since.Equal(time.Now()) {
			t.Errorf("%+v", q)
		}
		var won atomic.Int32
		var winner atomic.Value
		for i := range faces {
			answering.Go(func() {
				by := fmt.Sprint("face ", i)
				switch err := d.Answer(q.ID, yes(by)); {
				case err == nil:
					won.Add(1)
					winner.Store(by)
				case !errors.Is(err, ask.ErrAnswered):
					t.Error(err)
				}
			})
		}
		answering.Wait()
		asked.Wait()
		if err != nil || won.Load() != 1 || got.By != winner.Load() {
			t.Errorf("%d answers were taken, the asker got %q: %v", won.Load(), got.By, err)
		}
		next(t, d, 0)
	})
}

func TestAnswersInAnyOrderReachTheirAskers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := ask.NewDesk(time.Now)
		defer d.Attend()()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				name := fmt.Sprint("a", i)
				a, err := d.Ask(t.Context(), ask.Question{Agent: name})
				if err != nil || a.Text != "for "+name {
					t.Errorf("%s got %q: %v", name, a.Text, err)
				}
			})
		}
		open := next(t, d, 5)
		for i := len(open) - 1; i >= 0; i-- {
			if err := d.Answer(open[i].ID, ask.Answer{Text: "for " + open[i].Agent}); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
	})
}

func TestAQuestionGoesWithItsAsker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := ask.NewDesk(time.Now)
		defer d.Attend()()
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := d.Ask(ctx, ask.Question{}); !errors.Is(err, gone) {
				t.Error(err)
			}
		})
		q := next(t, d, 1)[0]
		cancel(gone)
		wg.Wait()
		if err := d.Answer(q.ID, yes("late")); !errors.Is(err, ask.ErrAnswered) {
			t.Errorf("a question that was withdrawn was answered: %v", err)
		}
		next(t, d, 0)
	})
}

func TestWhenTheLastFaceLeavesNobodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := ask.NewDesk(time.Now)
		first, second := d.Attend(), d.Attend()
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { _, err = d.Ask(t.Context(), ask.Question{}) })
		next(t, d, 1)
		first()
		first() // once is enough: the other is still there
		if len(next(t, d, 1)) != 1 {
			t.Error("the question went though a face is left")
		}
		second()
		wg.Wait()
		if !errors.Is(err, ask.ErrNobody) {
			t.Error(err)
		}
		if _, err := d.Ask(t.Context(), ask.Question{}); !errors.Is(err, ask.ErrNobody) {
			t.Error(err)
		}
	})
}
