package mail_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/troupetest"
)

var _ troupe.Inbox = new(mail.Box)

func send(t *testing.T, s store.Store, prefix string, m mail.Message) {
	t.Helper()
	if err := mail.Send(t.Context(), s, prefix, m); err != nil {
		t.Fatal(err)
	}
}

// texts takes what is in the box and returns its IDs and texts.
func texts(t *testing.T, b *mail.Box) (ids, out []string) {
	t.Helper()
	got, err := b.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got {
		ids = append(ids, r.ID)
		out = append(out, r.From+": "+r.Message.Content.Text())
	}
	return ids, out
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// Taken is not gone; acknowledged is. What comes between stays.
func TestTakeAndAck(t *testing.T) {
	s := new(store.Mem)
	box := &mail.Box{Store: s, Prefix: "inboxes/lead/"}
	send(t, s, "inboxes/lead/", mail.Message{ID: "2", From: "b", Text: "second"})
	send(t, s, "inboxes/lead/", mail.Message{ID: "1", From: "user", Text: "first"})
	send(t, s, "inboxes/lead/more/", mail.Message{ID: "1", From: "b", Text: "of another box"})
	send(t, s, "inboxes/other/", mail.Message{ID: "1", From: "b", Text: "of another"})
	want := []string{"user: first", "b: second"}
	_, got := texts(t, box)
	equal(t, "taken", got, want)
	ids, got := texts(t, box)
	equal(t, "taken again", got, want)
	send(t, s, "inboxes/lead/", mail.Message{ID: "0", From: "c", Text: "between"})
	if err := errors.Join(box.Ack(t.Context(), ids), box.Ack(t.Context(), ids), box.Ack(t.Context(), []string{"unknown"})); err != nil {
		t.Error(err)
	}
	_, got = texts(t, box)
	equal(t, "after the acknowledgement", got, []string{"c: between"})
	other := &mail.Box{Store: s, Prefix: "inboxes/lead/more/"}
	_, got = texts(t, other)
	equal(t, "the other box", got, []string{"b: of another box"})
}

// Sending twice is harmless, before it is acknowledged and after.
func TestSendAgain(t *testing.T) {
	s := new(store.Mem)
	m := mail.Message{ID: "task-a1", From: "a1", Kind: "task", Body: json.RawMessage(`{"status": "done"}`)}
	send(t, s, "b/", m)
	send(t, s, "b/", m)
	if err := mail.Send(t.Context(), s, "b/", mail.Message{ID: "task-a1", From: "a1", Text: "another"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another message with its ID: %v", err)
	}
	box := &mail.Box{Store: s, Prefix: "b/", Render: func(_ context.Context, m mail.Message) (string, bool) { return m.Kind + string(m.Body), true }}
	ids, got := texts(t, box)
	equal(t, "taken", got, []string{`a1: task{"status":"done"}`})
	if err := box.Ack(t.Context(), ids); err != nil {
		t.Error(err)
	}
	send(t, s, "b/", m)
	if ids, _ := texts(t, box); len(ids) != 1 || ids[0] != "task-a1" {
		t.Errorf("it comes with IDs %q", ids)
	}
}

func TestSendRefuses(t *testing.T) {
	s := new(store.Mem)
	for name, tt := range map[string]struct {
		prefix string
		m      mail.Message
		want   error
	}{
		"prefix":  {"b", mail.Message{ID: "1", From: "a"}, store.ErrKey},
		"ID":      {"b/", mail.Message{ID: "A.1", From: "a"}, store.ErrKey},
		"no ID":   {"b/", mail.Message{From: "a"}, store.ErrKey},
		"deep ID": {"b/", mail.Message{ID: "1/2", From: "a"}, store.ErrKey},
		"size":    {"b/", mail.Message{ID: "1", From: "a", Text: strings.Repeat("x", store.MaxValue)}, store.ErrTooLarge},
	} {
		if err := mail.Send(t.Context(), s, tt.prefix, tt.m); !errors.Is(err, tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}

// What the runtime handles goes without reaching the model.
func TestRuntimeKinds(t *testing.T) {
	s := new(store.Mem)
	handled := 0
	box := &mail.Box{Store: s, Prefix: "b/", Render: func(_ context.Context, m mail.Message) (string, bool) {
		if m.Kind == "shutdown_request" {
			handled++
		}
		return m.Text, m.Kind == ""
	}}
	send(t, s, "b/", mail.Message{ID: "1", From: "lead", Kind: "shutdown_request"})
	send(t, s, "b/", mail.Message{ID: "2", From: "lead", Text: "hello"})
	for range 2 {
		_, got := texts(t, box)
		equal(t, "taken", got, []string{"lead: hello"})
	}
	if handled != 1 {
		t.Errorf("handled %d times", handled)
	}
}

// signed is a store that vouches for another writer.
type signed struct{ store.Store }

func (s signed) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range s.Store.List(ctx, prefix) {
			e.By = "mallory"
			if !yield(e, err) {
				return
			}
		}
	}
}

// What cannot be read, and what is forged, stays, is told once and wakes nobody;
// mended, it is mail.
func TestUnreadable(t *testing.T) {
	for name, tt := range map[string]struct {
		val  string
		sign bool
	}{
		"no JSON":        {val: "not json"},
		"no object":      {val: "[]"},
		"another ID":     {val: `{"ID":"2","From":"a","Text":"x"}`},
		"no sender":      {val: `{"ID":"1","Text":"x"}`},
		"another's hand": {val: `{"ID":"1","From":"lead","Text":"x"}`, sign: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unreadable(t, tt.val, tt.sign) })
		})
	}
}

func unreadable(t *testing.T, val string, sign bool) {
	mem := new(store.Mem)
	var s store.Store = mem
	if sign {
		s = signed{mem}
	}
	rev, err := s.Put(t.Context(), "b/1", []byte(val), "")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	box := &mail.Box{Store: s, Prefix: "b/", Unreadable: func(key string, err error) { told = append(told, key+" "+err.Error()) }}
	if err := box.Wait(t.Context()); err != nil { // it must be looked at once
		t.Fatal(err)
	}
	for range 3 {
		if got, err := box.Take(t.Context()); got != nil || err != nil {
			t.Fatal(got, err)
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "b/1 ") {
		t.Errorf("told %q", told)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := box.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("woken: %v", err)
	}
	if _, err := mem.Get(t.Context(), "b/1"); err != nil {
		t.Errorf("it is gone: %v", err)
	}
	if _, err := mem.Put(t.Context(), "b/1", []byte(`{"ID":"1","From":"mallory","Text":"mended"}`), rev); err != nil {
		t.Fatal(err)
	}
	if err := box.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	_, got := texts(t, box)
	equal(t, "mended", got, []string{"mallory: mended"})
}

// Wait returns at once if something is there, and wakes when something comes.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(store.Mem)
		box := &mail.Box{Store: s, Prefix: "b/"}
		woken := make(chan error, 1)
		go func() { woken <- box.Wait(t.Context()) }()
		synctest.Wait()
		send(t, s, "b/deeper/", mail.Message{ID: "1", From: "a"})
		synctest.Wait()
		select {
		case err := <-woken:
			t.Fatalf("woken by another's mail: %v", err)
		default:
		}
		send(t, s, "b/", mail.Message{ID: "1", From: "a"})
		if err := <-woken; err != nil {
			t.Error(err)
		}
		if err := box.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := (&mail.Box{Store: s, Prefix: "empty/"}).Wait(ctx); !errors.Is(err, why) {
			t.Error(err)
		}
	})
}

// IDs grow, also when the clock stands still or goes back, and are segments of keys.
func TestIDs(t *testing.T) {
	clock := []int64{100, 100, 50, 1 << 62, 101}
	ids := mail.NewIDs(func() time.Time {
		now := time.Unix(0, clock[0])
		clock = clock[1:]
		return now
	})
	last := ""
	for len(clock) > 0 {
		id := ids.New()
		if id <= last || store.CheckKey(id) != nil || strings.Contains(id, "/") {
			t.Errorf("%q after %q", id, last)
		}
		last = id
	}
	still := func() time.Time { return time.Unix(0, 1) }
	if a, b := mail.NewIDs(still).New(), mail.NewIDs(still).New(); a == b {
		t.Errorf("two senders made %q", a)
	}
}

// A run that dies between its log and the acknowledgement gets the message
// again, and has it once in its conversation.
func TestOnceInTheConversation(t *testing.T) {
	s, err := store.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	send(t, s, "b/", mail.Message{ID: "1", From: "user", Text: "hello"})
	var log []troupe.Event
	run := func(inbox troupe.Inbox, leaveAt string) {
		state := new(troupe.State)
		for _, e := range log {
			state.Apply(e)
		}
		model := troupetest.NewReplies(troupetest.Say("hi"))
		for e, err := range troupe.Run(t.Context(), troupe.Config{ID: "lead", State: state, Model: model, Inbox: inbox}) {
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, e)
			if fmt.Sprintf("%T", e) == leaveAt {
				return
			}
		}
	}
	run(&mail.Box{Store: s, Prefix: "b/"}, "troupe.Received")
	if ids, _ := texts(t, &mail.Box{Store: s, Prefix: "b/"}); len(ids) != 1 {
		t.Fatalf("acknowledged before it was recorded: %q", ids)
	}
	run(&mail.Box{Store: s, Prefix: "b/"}, "")
	state := new(troupe.State)
	for _, e := range log {
		state.Apply(e)
	}
	var said []string
	for _, m := range state.Request.Messages {
		said = append(said, m.Content.Text())
	}
	equal(t, "conversation", said, []string{"hello", "hi"})
	if ids, _ := texts(t, &mail.Box{Store: s, Prefix: "b/"}); len(ids) != 0 {
		t.Errorf("still there: %q", ids)
	}
}
