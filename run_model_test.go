package troupe_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// A turn is what a model yields for one request.
type turn struct {
	chunks []troupe.Chunk
	err    error
}

// A turns is a model that plays its turns and keeps the requests.
type turns struct {
	left []turn
	sent []troupe.Request
}

func (m *turns) Stream(_ context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		m.sent = append(m.sent, *req)
		now := m.left[0]
		m.left = m.left[1:]
		for _, c := range now.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if now.err != nil {
			yield(nil, now.err)
		}
	}
}

// What happens on the way to a reply is in the events, in order; what attempts
// without a reply have used is counted; and a run whose model was switched goes
// on with it.
func TestWhatHappensBeforeAReply(t *testing.T) {
	used := func(n int) troupe.Usage { return troupe.Usage{Input: n, Output: 1} }
	m := &turns{left: []turn{
		{chunks: []troupe.Chunk{
			troupe.Waiting{For: 5, Cause: "limit"}, troupe.Sending{}, troupe.Opened{}, troupe.Delta{Text: "void"},
			troupe.Billed{Usage: used(10)}, troupe.Retrying{Attempt: 1}, troupe.Sending{}, troupe.Billed{Usage: used(20)},
			troupe.Switched{Model: "other", Cause: "gone"}, troupe.Sending{},
			troupe.Reply{Message: troupetest.Use(sleep("a", "0s")), Usage: used(40)},
		}},
		{chunks: []troupe.Chunk{troupe.Reply{Message: troupetest.Say("done"), Usage: used(80)}}},
	}}
	c := config(m)
	c.State.Request.Model = "first"
	events, err := play(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	replayed := asked()
	for _, ev := range events {
		order = append(order, strings.TrimPrefix(fmt.Sprintf("%T", ev), "troupe."))
		replayed.Apply(ev)
	}
	want := "Waiting Sent Streaming Billed Retrying Sent Billed Switched Sent Replied ToolStarted Decided ToolEnded Replied Ended"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
	if sum := (troupe.Usage{Input: 150, Output: 4}); ended(t, events).Usage != sum || c.State.Usage != sum || replayed.Usage != sum {
		t.Errorf("usage of the run %+v, of the state %+v, of the log %+v; want %+v", ended(t, events).Usage, c.State.Usage, replayed.Usage, sum)
	}
	if m.sent[0].Model != "first" || m.sent[1].Model != "other" || replayed.Request.Model != "other" {
		t.Errorf("asked %s and %s; a resumed session asks %s", m.sent[0].Model, m.sent[1].Model, replayed.Request.Model)
	}
	for _, ev := range events {
		switch ev.(type) {
		case troupe.Waiting, troupe.Billed, troupe.Switched:
			raw, err := troupe.EncodeEvent(ev)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := troupe.DecodeEvent(raw); err != nil || cmp.Diff(ev, back) != "" {
				t.Errorf("%s comes back as %#v, %v", raw, back, err)
			}
		}
	}
}

// A call sees the request as it was sent to the model that answered.
func TestACallKnowsTheModelThatMadeIt(t *testing.T) {
	m := &turns{left: []turn{
		{chunks: []troupe.Chunk{troupe.Switched{Model: "other"}, troupe.Reply{Message: troupetest.Use(troupe.ToolUse{ID: "a", Name: "who"})}}},
		{chunks: []troupe.Chunk{troupe.Reply{Message: troupetest.Say("done")}}},
	}}
	c := config(m)
	c.State.Request.Model = "first"
	w := &who{}
	c.Tools = append(c.Tools, w)
	if _, err := play(t.Context(), c); err != nil || w.model != "other" {
		t.Errorf("the call was made for %q, %v", w.model, err)
	}
	if m.sent[0].Model != "first" {
		t.Error("a request that was sent has changed")
	}
}

type who struct{ model string }

func (*who) Spec() troupe.ToolSpec { return troupe.ToolSpec{Name: "who"} }

func (w *who) Call(_ context.Context, c *troupe.Call) (troupe.Result, error) {
	w.model = c.Request.Model
	return troupe.Answer(""), nil
}

type coded struct{ error }

func (coded) Code() string    { return "a_word" }
func (c coded) Unwrap() error { return c.error }

// Programs are told in a word what went wrong.
func TestAnEndSaysWhatWentWrong(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		err  error
		code string
		want troupe.Reason
	}{
		"an error with a word":       {fmt.Errorf("ask: %w", coded{broken}), "a_word", troupe.Failed},
		"any other of the model":     {broken, "model_error", troupe.Failed},
		"a model that ends":          {nil, "model_error", troupe.Failed},
		"a budget":                   {fmt.Errorf("ask: %w", troupe.ErrBudget), "", troupe.OverBudget},
		"a budget with a word":       {coded{troupe.ErrBudget}, "a_word", troupe.OverBudget},
		"an end that the user wants": {fmt.Errorf("ask: %w", troupe.ErrInterrupted), "", troupe.Interrupted},
	} {
		c := config(&turns{left: []turn{{err: tt.err}}})
		events, err := play(t.Context(), c)
		if end := ended(t, events); err == nil || end.Code != tt.code || end.Reason != tt.want {
			t.Errorf("%s: code %q, reason %q, %v", name, end.Code, end.Reason, err)
		}
	}
	c := config(&turns{})
	c.Inbox = noInbox{}
	events, _ := play(t.Context(), c)
	if end := ended(t, events); end.Code != "" || end.Reason != troupe.Failed {
		t.Errorf("a fault that is not the model's: %+v", end)
	}
}

type noInbox struct{}

func (noInbox) Take(context.Context) ([]troupe.Received, error) { return nil, errors.New("gone") }
func (noInbox) Ack(context.Context, []string) error             { return nil }
