package troupetest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/troupe-sh/troupe"
)

func TestReplies(t *testing.T) {
	use := Use(troupe.ToolUse{ID: "a", Name: "Read", Input: []byte(`{}`)})
	m := NewReplies(Say("one"), use)
	for i, want := range []troupe.Message{Say("one"), use} {
		o, err := answered(t.Context(), m, hello())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o.reply.Message); diff != "" {
			t.Errorf("reply %d: %s", i, diff)
		}
		if stop := []string{"end_turn", "tool_use"}[i]; o.reply.Stop != stop || o.reply.Usage.Output == 0 || o.reply.Usage.Input == 0 {
			t.Errorf("reply %d: got %+v", i, o.reply)
		}
	}
	o, err := ask(t.Context(), m, hello())
	if err != nil || !errors.Is(o.err, ErrNoReply) {
		t.Errorf("a third reply of two: %v, %v", o.err, err)
	}
	if sent := m.Sent(); len(sent) != 3 || len(sent[0].Messages) != 1 {
		t.Errorf("sent is %v", sent)
	}
}

func TestRepliesRefuse(t *testing.T) {
	m := NewReplies(Say("one"))
	o, err := ask(t.Context(), m, asking(Say("I begin")))
	if err != nil || !errors.Is(o.err, ErrRefused) {
		t.Errorf("got %v, %v", o.err, err)
	}
	if o, err := answered(t.Context(), m, hello()); err != nil || o.reply.Message.Content.Text() != "one" {
		t.Errorf("the refused request used a reply up: %v", err)
	}
}

func TestRepliesHonourCtx(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if o, err := ask(ctx, NewReplies(Say("one")), hello()); err != nil || !errors.Is(o.err, over) {
		t.Errorf("got %v, %v", o.err, err)
	}
}

func TestAllow(t *testing.T) {
	v, err := Allow{}.Check(t.Context(), &troupe.Call{})
	if err != nil || v.Effect != troupe.Allow {
		t.Errorf("got %+v, %v", v, err)
	}
}
