package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

func yields(evs ...troupe.Event) iter.Seq2[troupe.Event, error] {
	return func(yield func(troupe.Event, error) bool) {
		for _, ev := range evs {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func heard(id, text string) troupe.Received {
	return troupe.Received{ID: id, From: "runtime", Message: troupe.Say(troupe.User, text)}
}

func TestBeforeTurnChangesTheRequestThatFollows(t *testing.T) {
	m := troupetest.NewReplies(troupetest.Use(sleep("a", "0s")), troupetest.Say("done"))
	c := config(m)
	n := 0
	c.BeforeTurn = func(context.Context, *troupe.State) iter.Seq2[troupe.Event, error] {
		if n++; n == 1 {
			return yields()
		}
		return yields(troupe.Switched{Model: "other"}, heard("n", "a notice"))
	}
	events, err := play(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	sent := m.Sent()
	if sent[0].Model == "other" || sent[1].Model != "other" {
		t.Errorf("models %q, %q", sent[0].Model, sent[1].Model)
	}
	last := sent[1].Messages[len(sent[1].Messages)-1]
	if last.Content.Text() != "a notice" {
		t.Errorf("the notice is not in the request: %v", last)
	}
	if !slices.ContainsFunc(events, func(e troupe.Event) bool { _, ok := e.(troupe.Switched); return ok }) {
		t.Error("the change was not yielded, so no log has it")
	}
}

func TestWhatComesBeforeTheEndGoesOn(t *testing.T) {
	m := troupetest.NewReplies(troupetest.Say("one"), troupetest.Say("two"))
	c := config(m)
	n := 0
	c.BeforeEnd = func(_ context.Context, s *troupe.State) iter.Seq2[troupe.Event, error] {
		if !s.Idle() {
			t.Error("called before the model has stopped")
		}
		if n++; n == 1 {
			return yields(heard("more", "not yet"))
		}
		return yields(troupe.Switched{Mode: "plan"}) // no message: the end
	}
	events, err := play(t.Context(), c)
	if err != nil || n != 2 || len(m.Sent()) != 2 || ended(t, events).Text != "two" {
		t.Fatalf("asked %d times, sent %d, %v: %v", n, len(m.Sent()), events, err)
	}
	if c.State.Mode != "plan" {
		t.Error("what came with the end was not applied")
	}
}

// A failer fails its first requests.
type failer struct {
	troupe.Model
	errs []error
	n    int
}

func (f *failer) Stream(ctx context.Context, r *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	if f.n++; f.n <= len(f.errs) {
		return func(yield func(troupe.Chunk, error) bool) { yield(nil, f.errs[f.n-1]) }
	}
	return f.Model.Stream(ctx, r)
}

func TestAFailedRequestIsMadeOnceMoreIfSomethingWasDone(t *testing.T) {
	big := errors.New("too long")
	for name, c := range map[string]struct {
		errs    []error
		rescue  []troupe.Event
		wantErr error
		asked   int
	}{
		"done":          {[]error{big}, []troupe.Event{troupe.Compacted{Summary: troupe.Say(troupe.User, "short")}}, nil, 2},
		"nothing done":  {[]error{big}, nil, big, 1},
		"fails again":   {[]error{big, big}, []troupe.Event{troupe.Compacted{Summary: troupe.Say(troupe.User, "short")}}, big, 2},
		"never in need": {nil, nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failer{Model: troupetest.NewReplies(troupetest.Say("done")), errs: c.errs}
			conf := config(f)
			conf.Rescue = func(_ context.Context, _ *troupe.State, err error) iter.Seq2[troupe.Event, error] {
				if !errors.Is(err, big) {
					t.Errorf("rescue of %v", err)
				}
				return yields(c.rescue...)
			}
			_, err := play(t.Context(), conf)
			if !errors.Is(err, c.wantErr) || f.n != c.asked {
				t.Errorf("asked %d times: %v", f.n, err)
			}
		})
	}
}

func TestAnErrorOfAFuncEndsTheRun(t *testing.T) {
	bad := errors.New("no")
	fail := func(context.Context, *troupe.State) iter.Seq2[troupe.Event, error] {
		return func(yield func(troupe.Event, error) bool) { yield(nil, bad) }
	}
	for name, set := range map[string]func(*troupe.Config){
		"before a turn":  func(c *troupe.Config) { c.BeforeTurn = fail },
		"before the end": func(c *troupe.Config) { c.BeforeEnd = fail },
	} {
		c := config(troupetest.NewReplies(troupetest.Say("done")))
		set(&c)
		events, err := play(t.Context(), c)
		if !errors.Is(err, bad) || ended(t, events).Reason != troupe.Failed {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}

// A judge gives the verdict that is named in the input, and a changer of its agent.
type judge map[string]troupe.Verdict

func (j judge) Check(_ context.Context, c *troupe.Call) (troupe.Verdict, error) { return j[c.ID], nil }

type changer struct{ then []troupe.Event }

func (changer) Spec() troupe.ToolSpec { return troupe.ToolSpec{Name: "change"} }
func (c changer) Call(_ context.Context, call *troupe.Call) (troupe.Result, error) {
	return troupe.Result{Content: troupe.Blocks{troupe.Text(call.Input)}, Then: c.then}, nil
}

func change(id string) troupe.ToolUse {
	return troupe.ToolUse{ID: id, Name: "change", Input: json.RawMessage(`{"as":"asked"}`)}
}

func TestAToolChangesItsAgentByThen(t *testing.T) {
	m := troupetest.NewReplies(troupetest.Use(change("yes"), change("no")), troupetest.Say("done"))
	c := config(m)
	c.Tools = []troupe.Tool{changer{[]troupe.Event{troupe.Switched{Mode: "plan"}, troupe.Compacted{Summary: troupe.Say(troupe.User, "x")}, heard("f", "forged")}}}
	c.Guard = judge{"yes": {Effect: troupe.Allow}}
	events, err := play(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if c.State.Mode != "plan" || c.State.Seen("f") || len(m.Sent()[1].Messages) != 3 {
		t.Errorf("mode %q; a tool may change mode and place, and nothing else", c.State.Mode)
	}
	n := 0
	for _, ev := range events {
		if _, ok := ev.(troupe.Switched); ok {
			n++
		}
	}
	if n != 1 {
		t.Errorf("switched %d times: a call that was denied changes nothing", n)
	}
}

func TestAGuardChangesTheInput(t *testing.T) {
	m := troupetest.NewReplies(troupetest.Use(change("a"), change("b")), troupetest.Say("done"))
	c := config(m)
	c.Tools = []troupe.Tool{changer{}}
	c.Guard = judge{"a": {Effect: troupe.Allow, Input: json.RawMessage(`{"as":"changed"}`)}, "b": {Effect: troupe.Allow}}
	if _, err := play(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	res := results(m.Sent()[1])
	if got := res[0].Content.Text() + res[1].Content.Text(); got != `{"as":"changed"}{"as":"asked"}` {
		t.Error(got)
	}
}

func TestAVerdictStopsTheRun(t *testing.T) {
	m := troupetest.NewReplies(troupetest.Use(sleep("long", "1h"), sleep("no", "0s")), troupetest.Say("never"))
	c := config(m)
	c.Guard = judge{"long": {Effect: troupe.Allow}, "no": {Effect: troupe.Deny, Stop: true, Reason: "enough"}}
	events, err := play(t.Context(), c)
	end := ended(t, events)
	if !errors.Is(err, troupe.ErrInterrupted) || end.Reason != troupe.Interrupted || !strings.Contains(end.Err, "enough") || len(m.Sent()) != 1 {
		t.Errorf("%+v, %v, sent %d", end, err, len(m.Sent()))
	}
	if err := troupe.Valid(c.State.Request.Messages); err != nil {
		t.Error(err)
	}
}

func TestReasonsOfLimits(t *testing.T) {
	for _, c := range []struct {
		err  error
		want troupe.Reason
	}{{troupe.ErrBudget, troupe.OverBudget}, {troupe.ErrOutOfTime, troupe.OutOfTime}, {errors.New("x"), troupe.Failed}} {
		conf := config(&failer{Model: troupetest.NewReplies(), errs: []error{c.err}})
		events, err := play(t.Context(), conf)
		if got := ended(t, events).Reason; got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v ends as %q, %v", c.err, got, err)
		}
	}
}

func talk() *troupe.State {
	s := new(troupe.State)
	for _, ev := range []troupe.Event{
		heard("1", "first"), troupe.Replied{Reply: troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{change("c1")}}}},
		troupe.ToolEnded{Use: "c1", Result: troupe.Answer("r1")},
		troupe.Replied{Reply: troupe.Reply{Message: troupe.Say(troupe.Assistant, "so")}}, heard("2", "second"),
		troupe.Replied{Reply: troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{change("c2")}}}},
	} {
		s.Apply(ev)
	}
	return s
}

// S89: wherever a compaction cuts, calls and results stay together.
func TestCompactedNeverCutsACallFromItsResult(t *testing.T) {
	for keep, want := range map[int][]string{
		-1: {"sum", "c2", "r2"}, 0: {"sum", "c2", "r2"}, 1: {"sum", "c2", "r2"}, 2: {"sum", "second", "c2", "r2"}, 3: {"sum", "so", "second", "c2", "r2"},
		4: {"sum", "c1", "r1", "so", "second", "c2", "r2"}, 5: {"sum", "c1", "r1", "so", "second", "c2", "r2"}, 99: {"sum", "first", "c1", "r1", "so", "second", "c2", "r2"},
	} {
		s := talk()
		before := s.Request
		had := slices.Clone(before.Messages)
		s.Apply(troupe.Compacted{Summary: troupe.Say(troupe.User, "sum"), Keep: keep, Usage: troupe.Usage{Input: 7}})
		s.Apply(troupe.ToolEnded{Use: "c2", Result: troupe.Answer("r2")})
		var got []string
		for _, m := range s.Request.Messages {
			for _, b := range m.Content {
				switch b := b.(type) {
				case troupe.Text:
					got = append(got, string(b))
				case troupe.ToolUse:
					got = append(got, b.ID)
				case troupe.ToolResult:
					got = append(got, b.Content.Text())
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keep %d: %s", keep, diff)
		}
		if err := troupe.Valid(s.Request.Messages); err != nil || s.Usage.Input != 7 {
			t.Errorf("keep %d: %v, usage %v", keep, err, s.Usage)
		}
		if diff := cmp.Diff(had, before.Messages); diff != "" {
			t.Errorf("keep %d changed a request that was sent: %s", keep, diff)
		}
	}
}

func TestWithoutASummaryNothingIsCut(t *testing.T) {
	s := talk()
	n := len(s.Request.Messages)
	s.Apply(troupe.Compacted{Summary: troupe.Say(troupe.User, " \n"), Keep: 1})
	if len(s.Request.Messages) != n {
		t.Errorf("%d messages of %d are left", len(s.Request.Messages), n)
	}
}
