package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// A sleeper waits as long as its input says and answers with the call's ID.
type sleeper struct{ lane string }

func (sleeper) Spec() troupe.ToolSpec { return troupe.ToolSpec{Name: "sleep"} }

func (s sleeper) Lane(*troupe.Call) string { return s.lane }

func (sleeper) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	var in struct{ For string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return troupe.Result{}, err
	}
	d, err := time.ParseDuration(in.For)
	if err != nil {
		return troupe.Result{}, err
	}
	select {
	case <-time.After(d):
		return troupe.Answer(c.ID), nil
	case <-ctx.Done():
		return troupe.Answer("so far: " + c.ID), ctx.Err()
	}
}

func sleep(id, d string) troupe.ToolUse {
	return troupe.ToolUse{ID: id, Name: "sleep", Input: json.RawMessage(`{"For":"` + d + `"}`)}
}

// asked is a conversation that waits for its first answer.
func asked() *troupe.State {
	s := new(troupe.State)
	s.Apply(troupe.Received{ID: "1", From: "user", Message: troupe.Say(troupe.User, "go")})
	return s
}

func config(m troupe.Model) troupe.Config {
	return troupe.Config{State: asked(), Model: m, Tools: []troupe.Tool{sleeper{}}, Guard: troupetest.Allow{}}
}

// play runs c to its end and returns what was yielded.
func play(ctx context.Context, c troupe.Config) (events []troupe.Event, err error) {
	for ev, e := range troupe.Run(ctx, c) {
		if e != nil {
			err = e
		} else {
			events = append(events, ev)
		}
	}
	return events, err
}

func ended(t *testing.T, events []troupe.Event) troupe.Ended {
	t.Helper()
	end, ok := events[len(events)-1].(troupe.Ended)
	if !ok {
		t.Fatalf("the last event is %T, want Ended", events[len(events)-1])
	}
	return end
}

// results returns the results in the last message of a request, by order.
func results(req troupe.Request) (out []troupe.ToolResult) {
	for _, b := range req.Messages[len(req.Messages)-1].Content {
		if r, ok := b.(troupe.ToolResult); ok {
			out = append(out, r)
		}
	}
	return out
}

func TestResultsKeepTheOrderOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := troupetest.NewReplies(troupetest.Use(sleep("slow", "3s"), sleep("fast", "1s")), troupetest.Say("done"))
		start := time.Now()
		events, err := play(t.Context(), config(m))
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("took %v, want 3s: calls did not run side by side", got)
		}
		var order []string
		for _, ev := range events {
			if ev, ok := ev.(troupe.ToolEnded); ok {
				order = append(order, ev.Use)
			}
		}
		if want := []string{"fast", "slow"}; !slices.Equal(order, want) {
			t.Errorf("ended %v, want %v", order, want)
		}
		res := results(m.Sent()[1])
		if res[0].ID != "slow" || res[1].ID != "fast" {
			t.Errorf("results out of order: %v", res)
		}
	})
}

// S97: each result belongs to its call, however many run at once.
func TestResultsBelongToTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var replies []troupe.Message
		for round := range 20 {
			var uses []troupe.ToolUse
			for i := range 32 {
				uses = append(uses, sleep(fmt.Sprintf("r%dc%d", round, i), fmt.Sprintf("%dms", (i*7919+round*31)%97)))
			}
			replies = append(replies, troupetest.Use(uses...))
		}
		m := troupetest.NewReplies(append(replies, troupetest.Say("done"))...)
		if _, err := play(t.Context(), config(m)); err != nil {
			t.Fatal(err)
		}
		for round, req := range m.Sent()[1:] {
			for i, r := range results(req) {
				if want := fmt.Sprintf("r%dc%d", round, i); r.ID != want || r.Content.Text() != want {
					t.Fatalf("result %d of round %d is %s: %s", i, round, r.ID, r.Content.Text())
				}
			}
		}
	})
}

func TestCallsOfOneLaneKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := troupetest.NewReplies(troupetest.Use(sleep("a", "3s"), sleep("b", "2s"), sleep("c", "1s")), troupetest.Say("done"))
		c := config(m)
		c.Tools = []troupe.Tool{sleeper{lane: "shell"}}
		start := time.Now()
		events, err := play(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != 6*time.Second {
			t.Errorf("took %v, want 6s: calls of one lane overlapped", got)
		}
		var order []string
		for _, ev := range events {
			if ev, ok := ev.(troupe.ToolEnded); ok {
				order = append(order, ev.Use)
			}
		}
		if want := []string{"a", "b", "c"}; !slices.Equal(order, want) {
			t.Errorf("ended %v, want %v", order, want)
		}
	})
}

// A stuck tool ends only with its context and counts its calls.
type stuck struct{ running *atomic.Int32 }

func (stuck) Spec() troupe.ToolSpec { return troupe.ToolSpec{Name: "stuck"} }

func (s stuck) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	s.running.Add(1)
	defer s.running.Add(-1)
	<-ctx.Done()
	return troupe.Result{}, ctx.Err()
}

// A consumer may leave at any event, and then nothing of the run is left.
func TestLeaveAtAnyEvent(t *testing.T) {
	for leave := range 7 {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running atomic.Int32
				m := troupetest.NewReplies(troupetest.Use(sleep("b", "1s"), troupe.ToolUse{ID: "a", Name: "stuck"}))
				c := config(m)
				c.Tools = append(c.Tools, stuck{&running})
				n := 0
				for range troupe.Run(t.Context(), c) {
					if n == leave {
						break
					}
					n++
				}
				if n != leave {
					t.Fatalf("the run had only %d events", n)
				}
				if got := running.Load(); got != 0 {
					t.Errorf("%d tool calls outlive the range statement", got)
				}
			})
		})
	}
}

// S87: an interrupt before, during and after each of five calls leaves a
// conversation that a provider takes, with five results in the order asked.
func TestInterruptKeepsTheConversationValid(t *testing.T) {
	for after := range 7 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				var uses []troupe.ToolUse
				for i := range 5 {
					uses = append(uses, sleep(fmt.Sprint("c", i), fmt.Sprintf("%ds", 2*(i+1))))
				}
				m := troupetest.NewReplies(troupetest.Use(uses...), troupetest.Say("never"))
				c := config(m)
				timer := time.AfterFunc(time.Duration(2*after-1)*time.Second, func() { stop(troupe.ErrInterrupted) })
				defer timer.Stop()
				if after == 0 {
					stop(troupe.ErrInterrupted)
				}
				events, err := play(ctx, c)
				if after == 6 { // everything was over before
					if err != nil || ended(t, events).Reason != troupe.Done {
						t.Fatalf("got %v, %v", ended(t, events), err)
					}
					return
				}
				if !errors.Is(err, troupe.ErrInterrupted) || ended(t, events).Reason != troupe.Interrupted {
					t.Fatalf("got %v, %v; want an interrupt", ended(t, events), err)
				}
				if after == 0 {
					return // nothing was sent yet
				}
				c.State.Apply(troupe.Received{ID: "2", From: "user", Message: troupe.Say(troupe.User, "continue")})
				next := c.State.Request
				if err := troupe.Valid(next.Messages); err != nil {
					t.Fatal(err)
				}
				res := results(troupe.Request{Messages: next.Messages[:len(next.Messages)-1]})
				if len(res) != 5 {
					t.Fatalf("%d results, want 5", len(res))
				}
				for i, r := range res {
					if want := i >= after-1; r.IsError != want || r.ID != fmt.Sprint("c", i) {
						t.Errorf("result %d: %s, error %v, want error %v", i, r.ID, r.IsError, want)
					}
					if r.IsError && !strings.Contains(r.Content.Text(), "interrupted") {
						t.Errorf("result %d does not say why: %s", i, r.Content.Text())
					}
				}
			})
		})
	}
}

func TestWhatAToolHasWhenItIsInterruptedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := config(troupetest.NewReplies(troupetest.Use(sleep("a", "1h"))))
		_, err := play(ctx, c)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want deadline exceeded", err)
		}
		if got := results(c.State.Request)[0].Content.Text(); !strings.Contains(got, "so far: a") || !strings.Contains(got, "out of time") {
			t.Errorf("got %q", got)
		}
	})
}

// S14: three turns are three requests, and the end says that it was the limit.
func TestTurnLimit(t *testing.T) {
	m := troupetest.NewReplies(troupetest.Use(sleep("a", "0s")), troupetest.Use(sleep("b", "0s")), troupetest.Use(sleep("c", "0s")), troupetest.Say("no"))
	c := config(m)
	c.MaxTurns = 3
	events, err := play(t.Context(), c)
	if !errors.Is(err, troupe.ErrMaxTurns) {
		t.Errorf("got error %v, want ErrMaxTurns", err)
	}
	if end := ended(t, events); end.Reason != troupe.OutOfTurns || end.Turns != 3 {
		t.Errorf("ended %+v", end)
	}
	if n := len(m.Sent()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	if err := troupe.Valid(c.State.Request.Messages); err != nil {
		t.Errorf("the conversation cannot go on: %v", err)
	}
}

// S13: the text of a run is the last that is not empty.
func TestTextIsTheLastNonEmptyOne(t *testing.T) {
	found := troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text("FOUND: x"), sleep("a", "0s")}}
	for name, last := range map[string]troupe.Message{
		"blank text":    troupetest.Say(" "),
		"only thinking": {Role: troupe.Assistant, Content: troupe.Blocks{troupe.Thinking{Text: "hm", Signature: "s"}}},
		"only a call":   troupetest.Use(sleep("b", "0s")),
	} {
		t.Run(name, func(t *testing.T) {
			c := config(troupetest.NewReplies(found, last))
			c.MaxTurns = 2
			events, _ := play(t.Context(), c)
			if got := ended(t, events).Text; got != "FOUND: x" {
				t.Errorf("text %q", got)
			}
		})
	}
}

// failing is a model that streams text and then fails.
type failing struct{ chunks []troupe.Chunk }

func (f failing) Stream(context.Context, *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		for _, c := range f.chunks {
			if !yield(c, nil) {
				return
			}
		}
		yield(nil, errors.New("connection lost"))
	}
}

func TestAStreamThatIsCutKeepsItsText(t *testing.T) {
	c := config(failing{[]troupe.Chunk{troupe.Sending{Body: []byte("x")}, troupe.Opened{}, troupe.Delta{Text: "void"},
		troupe.Retrying{Attempt: 1}, troupe.Delta{Text: "thought", Thinking: true}, troupe.Delta{Text: "half an "}, troupe.Delta{Text: "answer"}}})
	events, err := play(t.Context(), c)
	if err == nil || ended(t, events).Reason != troupe.Failed {
		t.Fatalf("got %v", err)
	}
	if got := ended(t, events).Text; got != "half an answer" {
		t.Errorf("text %q", got)
	}
	msgs := c.State.Request.Messages
	if got := msgs[len(msgs)-1]; got.Role != troupe.Assistant || got.Content.Text() != "half an answer" {
		t.Errorf("the conversation ends with %v", got)
	}
}

func TestWithoutAGuardNothingRuns(t *testing.T) {
	var running atomic.Int32
	c := config(troupetest.NewReplies(troupetest.Use(sleep("a", "0s")), troupetest.Say("done")))
	c.Guard = nil
	c.Tools = append(c.Tools, stuck{&running})
	if _, err := play(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r := results(troupe.Request{Messages: c.State.Request.Messages[:3]})[0]
	if !r.IsError || !strings.Contains(r.Content.Text(), "denied") {
		t.Errorf("got %v", r)
	}
}

// asking answers every check with an effect that is not Allow.
type asking struct{ effect troupe.Effect }

func (a asking) Check(context.Context, *troupe.Call) (troupe.Verdict, error) {
	return troupe.Verdict{Effect: a.effect, By: "rule", Reason: "because"}, nil
}

func TestOnlyAllowRuns(t *testing.T) {
	for _, effect := range []troupe.Effect{"", troupe.Ask, troupe.Deny, "yes"} {
		c := config(troupetest.NewReplies(troupetest.Use(sleep("a", "0s")), troupetest.Say("done")))
		c.Guard = asking{effect}
		if _, err := play(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if r := results(troupe.Request{Messages: c.State.Request.Messages[:3]})[0]; r.Content.Text() == "a" || !r.IsError {
			t.Errorf("effect %q ran the tool", effect)
		}
	}
}

type crasher struct{}

func (crasher) Spec() troupe.ToolSpec { return troupe.ToolSpec{Name: "crash"} }

func (crasher) Call(context.Context, *troupe.Call) (troupe.Result, error) { panic("boom") }

func TestCallsThatCannotRun(t *testing.T) {
	for name, tc := range map[string]struct {
		use  troupe.ToolUse
		want string
	}{
		"unknown tool":  {troupe.ToolUse{ID: "a", Name: "Reed"}, `There is no tool "Reed". The tools are: sleep, crash.`},
		"broken input":  {troupe.ToolUse{ID: "a", Name: "sleep", Input: json.RawMessage(`{"For": "1`)}, "not a JSON object"},
		"array input":   {troupe.ToolUse{ID: "a", Name: "sleep", Input: json.RawMessage(`[1]`)}, "not a JSON object"},
		"crash":         {troupe.ToolUse{ID: "a", Name: "crash"}, "crash crashed: boom"},
		"tool's error":  {sleep("a", "soon"), "invalid duration"},
		"name for none": {troupe.ToolUse{ID: "a", Name: "a b\x00"}, `no tool "a_b_"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(troupetest.NewReplies(troupetest.Use(tc.use), troupetest.Say("done")))
			c.Tools = append(c.Tools, crasher{})
			if _, err := play(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			r := results(troupe.Request{Messages: c.State.Request.Messages[:3]})[0]
			if !r.IsError || !strings.Contains(r.Content.Text(), tc.want) {
				t.Errorf("got %q, want %q", r.Content.Text(), tc.want)
			}
		})
	}
}

// A box is an inbox that tells when it was emptied.
type box struct {
	got   []troupe.Received
	acked []string
}

func (b *box) Take(context.Context) ([]troupe.Received, error) { return slices.Clone(b.got), nil }

func (b *box) Ack(_ context.Context, ids []string) error {
	b.acked = append(b.acked, ids...)
	b.got = slices.DeleteFunc(b.got, func(r troupe.Received) bool { return slices.Contains(ids, r.ID) })
	return nil
}

func TestInboxIsAcknowledgedAfterTheEventWasTaken(t *testing.T) {
	in := &box{got: []troupe.Received{
		{ID: "1", From: "user", Message: troupe.Say(troupe.User, "again")}, // known already
		{ID: "2", From: "user", Message: troupe.Say(troupe.User, "new")},
	}}
	c := config(troupetest.NewReplies(troupetest.Say("one"), troupetest.Say("two")))
	c.Inbox = in
	late := true
	for ev, err := range troupe.Run(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case troupe.Received:
			if slices.Contains(in.acked, ev.ID) {
				t.Errorf("%s was acknowledged before it was taken", ev.ID)
			}
		case troupe.Replied:
			if late { // arrives during the last reply
				late = false
				in.got = append(in.got, troupe.Received{ID: "3", From: "user", Message: troupe.Say(troupe.User, "late")})
			}
		}
	}
	if want := []string{"1", "2", "3"}; !slices.Equal(in.acked, want) {
		t.Errorf("acknowledged %v, want %v", in.acked, want)
	}
	var said []string
	for _, m := range c.State.Request.Messages {
		said = append(said, m.Content.Text())
	}
	if want := []string{"go", "new", "one", "late", "two"}; !cmp.Equal(said, want) {
		t.Errorf("conversation %v, want %v", said, want)
	}
}

func ExampleRun() {
	m := troupetest.NewReplies(troupetest.Say("hello"))
	for ev, err := range troupe.Run(context.Background(), troupe.Config{State: asked(), Model: m}) {
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		if ev, ok := ev.(troupe.Ended); ok {
			fmt.Println(ev.Text)
		}
	}
	// Output: hello
}

// A costly is a tool whose spec takes work to make.
type costly struct {
	troupe.Tool
	specs *atomic.Int32
	says  string
}

func (c costly) Spec() troupe.ToolSpec {
	c.specs.Add(1)
	return troupe.ToolSpec{Name: "costly"}
}

func (c costly) Call(context.Context, *troupe.Call) (troupe.Result, error) {
	return troupe.Answer(c.says), nil
}

// A run looks at each tool once, however many calls it makes; of two tools with
// one name the first is called.
func TestToolsAreFoundByName(t *testing.T) {
	use := func(id string) troupe.Message {
		return troupetest.Use(troupe.ToolUse{ID: id, Name: "costly", Input: json.RawMessage(`{}`)})
	}
	var first, second atomic.Int32
	c := config(troupetest.NewReplies(use("a"), use("b"), use("c"), troupetest.Say("done")))
	c.Tools = []troupe.Tool{sleeper{}, costly{specs: &first, says: "first"}, costly{specs: &second, says: "second"}}
	if _, err := play(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{3, 5, 7} {
		if got := results(troupe.Request{Messages: c.State.Request.Messages[:n]})[0].Content.Text(); got != "first" {
			t.Errorf("message %d: %q", n, got)
		}
	}
	if first.Load() != 1 || second.Load() != 1 {
		t.Errorf("specs were made %d and %d times, want once", first.Load(), second.Load())
	}
}
