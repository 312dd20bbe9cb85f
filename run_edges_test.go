package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// strict is an inbox that wants to be asked while somebody still listens.
type strict struct {
	box
	err error
}

func (s *strict) Ack(ctx context.Context, ids []string) error {
	s.err = ctx.Err()
	return s.box.Ack(ctx, ids)
}

func TestWhatIsLoggedIsAcknowledgedThoughTheRunEnds(t *testing.T) {
	in := &strict{box: box{got: []troupe.Received{
		{ID: "1", From: "user", Message: troupe.Say(troupe.User, "again")}, // known already
		{ID: "2", From: "user", Message: troupe.Say(troupe.User, "new")},
	}}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := config(troupetest.NewReplies())
	c.Inbox = in
	var received []string
	for ev := range troupe.Run(ctx, c) {
		if r, ok := ev.(troupe.Received); ok {
			received = append(received, r.ID)
			stop()
		}
	}
	if !slices.Equal(received, []string{"2"}) {
		t.Errorf("logged %v, want 2 alone: 1 is in the log", received)
	}
	if in.err != nil || !slices.Equal(in.acked, []string{"1", "2"}) {
		t.Errorf("acknowledged %v with %v", in.acked, in.err)
	}
}

func TestAnInterruptedStreamSaysWhy(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var end troupe.Ended
	var err error
	for ev, e := range troupe.Run(ctx, config(failing{[]troupe.Chunk{troupe.Delta{Text: "half"}}})) {
		err = e
		switch ev := ev.(type) {
		case troupe.Streaming:
			stop(troupe.ErrInterrupted)
		case troupe.Ended:
			end = ev
		}
	}
	if !errors.Is(err, troupe.ErrInterrupted) || end.Reason != troupe.Interrupted || end.Text != "half" {
		t.Errorf("ended %+v with %v", end, err)
	}
}

func TestUsageIsThatOfAllReplies(t *testing.T) {
	c := config(troupetest.NewReplies(troupetest.Use(sleep("a", "0s")), troupetest.Say("done")))
	events, err := play(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var sum troupe.Usage
	for _, ev := range events {
		if r, ok := ev.(troupe.Replied); ok {
			sum = sum.Add(r.Usage)
		}
	}
	if got := ended(t, events).Usage; got != sum || got != c.State.Usage {
		t.Errorf("usage %+v, the state's %+v, want %+v", got, c.State.Usage, sum)
	}
}

func TestAToolThatDoesNotExistIsNamedThoughAllIsDenied(t *testing.T) {
	c := config(troupetest.NewReplies(troupetest.Use(troupe.ToolUse{ID: "a", Name: "Reed"}), troupetest.Say("done")))
	c.Guard = asking{troupe.Deny}
	if _, err := play(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := results(troupe.Request{Messages: c.State.Request.Messages[:3]})[0].Content.Text(); !strings.Contains(got, `There is no tool "Reed"`) {
		t.Errorf("got %q", got)
	}
}

func TestAWakeForNothingSendsNothing(t *testing.T) {
	m := troupetest.NewReplies()
	c := troupe.Config{State: new(troupe.State), Model: m}
	if _, err := play(t.Context(), c); err != nil || len(m.Sent()) != 0 {
		t.Errorf("sent %d requests, %v", len(m.Sent()), err)
	}
}

// A poet answers with data that is no JSON.
type poet struct{ sleeper }

func (poet) Call(context.Context, *troupe.Call) (troupe.Result, error) {
	return troupe.Result{Content: troupe.Blocks{troupe.Text("ok")}, Data: json.RawMessage(`{"half`)}, nil
}

func TestDataThatIsNoJSONIsDropped(t *testing.T) {
	c := config(troupetest.NewReplies(troupetest.Use(sleep("a", "0s")), troupetest.Say("done")))
	c.Tools = []troupe.Tool{poet{}}
	events, err := play(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if _, err := troupe.EncodeEvent(ev); err != nil {
			t.Errorf("%T cannot be logged: %v", ev, err)
		}
	}
}

// A grumbler fails in its own way while the run is interrupted.
type grumbler struct {
	sleeper
	stop func()
}

func (g grumbler) Call(context.Context, *troupe.Call) (troupe.Result, error) {
	g.stop()
	return troupe.Result{}, errors.New("the disk is full")
}

func TestAnErrorOfItsOwnIsKeptInAnInterrupt(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	c := config(troupetest.NewReplies(troupetest.Use(sleep("a", "0s"))))
	c.Tools = []troupe.Tool{grumbler{stop: func() { stop(troupe.ErrInterrupted) }}}
	if _, err := play(ctx, c); !errors.Is(err, troupe.ErrInterrupted) {
		t.Fatal(err)
	}
	if got := results(c.State.Request)[0].Content.Text(); got != "the disk is full" {
		t.Errorf("got %q", got)
	}
}

func TestOpenCallsAreNotIdle(t *testing.T) {
	s := new(troupe.State)
	s.Apply(user("1", "go"))
	s.Apply(replied(use("a")))
	if s.Idle() {
		t.Error("idle with an open call")
	}
}

func TestSwitchedChangesWhatItNames(t *testing.T) {
	s := new(troupe.State)
	s.Apply(troupe.Started{Request: troupe.Request{Model: "m", Effort: "low"}, Mode: "default"})
	s.Apply(troupe.Switched{Mode: "plan"})
	if s.Mode != "plan" || s.Request.Model != "m" || s.Request.Effort != "low" {
		t.Errorf("got mode %s, model %s, effort %s", s.Mode, s.Request.Model, s.Request.Effort)
	}
}

func TestCallsAreCleaned(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"\ud800"}`: "{\"a\":\"\uFFFD\"}",
		`{"a":"\ud83d\ude00","n":12345678901234567890}`: `{"a":"😀","n":12345678901234567890}`,
	} {
		got := new(troupe.State).Clean(troupetest.Use(troupe.ToolUse{ID: "a", Name: strings.Repeat("x", 200), Input: json.RawMessage(in)})).ToolUses()[0]
		if string(got.Input) != want || len(got.Name) != 128 {
			t.Errorf("%s became %s, the name has %d characters", in, got.Input, len(got.Name))
		}
	}
}
