package compact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

var errTooLong = errors.New("too long")

// A narrow model refuses requests of more than limit tokens, as estimated.
type narrow struct {
	*troupetest.Replies
	limit   int
	refused int
}

func (n *narrow) Stream(ctx context.Context, r *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	size := 0
	for _, m := range r.Messages {
		size += m.Size()
	}
	if n.limit > 0 && size > n.limit {
		n.refused++
		return func(yield func(troupe.Chunk, error) bool) { yield(nil, errTooLong) }
	}
	return n.Replies.Stream(ctx, r)
}

func compactor(m troupe.Model) *Compactor {
	return New(Compactor{Model: m, Window: func(string) int { return 1000 }, Now: time.Now,
		TooLong: func(err error) bool { return errors.Is(err, errTooLong) }})
}

func say(s *troupe.State, role troupe.Role, text string, used int) {
	if role == troupe.User {
		s.Apply(troupe.Received{From: "user", Message: troupe.Say(role, text)})
		return
	}
	s.Apply(troupe.Replied{Reply: troupe.Reply{Message: troupe.Say(role, text), Usage: troupe.Usage{Input: used}}})
}

func call(s *troupe.State, id, tool, input, result string) {
	s.Apply(troupe.Replied{Reply: troupe.Reply{Message: troupetest.Use(troupe.ToolUse{ID: id, Name: tool, Input: json.RawMessage(input)})}})
	s.Apply(troupe.ToolEnded{Use: id, Result: troupe.Answer(result)})
}

// long is a conversation of some size that waits for an answer.
func long(used int) *troupe.State {
	s := new(troupe.State)
	s.Apply(troupe.Started{Request: troupe.Request{Model: "m", System: "role"}})
	say(s, troupe.User, "the task: count the sheep", 0)
	call(s, "t1", "TodoWrite", `{"todos":[{"content":"old","status":"pending"}]}`, "ok")
	call(s, "t2", "TodoWrite", `{"todos":[{"content":"count","status":"in_progress"}]}`, "ok")
	call(s, "p1", "ExitPlanMode", `{"plan":"first the black ones"}`, "approved")
	s.Apply(troupe.Replied{Reply: troupe.Reply{Message: troupetest.Use(troupe.ToolUse{ID: "p2", Name: "ExitPlanMode", Input: json.RawMessage(`{"plan":"sell them"}`)})}})
	s.Apply(troupe.ToolEnded{Use: "p2", Result: troupe.Failure("declined")})
	for i := range 6 {
		call(s, fmt.Sprint("c", i), "Read", `{"file_path":"a"}`, strings.Repeat("wool ", 100))
	}
	say(s, troupe.Assistant, "half of them", used)
	say(s, troupe.User, "and the rest?", 0)
	return s
}

func events(seq iter.Seq2[troupe.Event, error], s *troupe.State) (out []troupe.Event, err error) {
	for ev, e := range seq {
		if e != nil {
			return out, e
		}
		s.Apply(ev)
		out = append(out, ev)
	}
	return out, nil
}

func done(evs []troupe.Event) bool {
	return slices.ContainsFunc(evs, func(e troupe.Event) bool { _, ok := e.(troupe.Compacted); return ok })
}

// texts are all texts of the conversation, results too.
func texts(s *troupe.State) string {
	var b strings.Builder
	for _, m := range s.Request.Messages {
		for _, c := range m.Content {
			switch c := c.(type) {
			case troupe.Text:
				fmt.Fprintln(&b, string(c))
			case troupe.ToolResult:
				fmt.Fprintln(&b, c.Content.Text())
			}
		}
	}
	return b.String()
}

func TestItIsDueByWhatTheProviderCounts(t *testing.T) {
	for used, want := range map[int]bool{100: false, 780: false, 799: true, 5000: true} {
		s := long(used)
		evs, err := events(compactor(troupetest.NewReplies(troupetest.Say("short"))).BeforeTurn(t.Context(), s), s)
		if err != nil || done(evs) != want {
			t.Errorf("%d tokens of 1000: %v, %v", used, evs, err)
		}
	}
	// What nobody has counted yet counts by its bytes.
	s := long(100)
	say(s, troupe.User, strings.Repeat("long ", 1000), 0)
	if evs, err := events(compactor(troupetest.NewReplies(troupetest.Say("short"))).BeforeTurn(t.Context(), s), s); err != nil || !done(evs) {
		t.Errorf("%v, %v", evs, err)
	}
}

func TestThreshold(t *testing.T) {
	for window, want := range map[int]int{0: 102_400, 8_000: 6_400, 128_000: 102_400, 200_000: 160_000, 1_000_000: 960_000} {
		if got := Threshold(window); got != want {
			t.Errorf("of %d tokens: %d, want %d", window, got, want)
		}
	}
}

// What must not depend on the model's memory is carried on word for word,
// through any number of compactions; role and tools are not touched.
func TestWhatSurvives(t *testing.T) {
	s := long(900)
	for round := range 3 {
		m := troupetest.NewReplies(troupetest.Say(fmt.Sprintf("SUMMARY %d", round)))
		c := compactor(m)
		c.Introduce = func(context.Context, troupe.Place) string { return "the place and its rules" }
		c.Before = func(_ context.Context, _ *troupe.State, trigger, with string) (string, error) {
			if trigger != Manual || with != "mind the wool" {
				t.Errorf("told of a compaction by %s with %q", trigger, with)
			}
			return "", nil
		}
		c.Ask("mind the wool")
		evs, err := events(c.BeforeTurn(t.Context(), s), s)
		if err != nil || !done(evs) {
			t.Fatalf("%v, %v", evs, err)
		}
		sent := m.Sent()[0]
		asked := sent.Messages[len(sent.Messages)-1].Content.Text()
		if !strings.Contains(asked, "mind the wool") {
			t.Errorf("the question lacks the user's words: %s", asked)
		}
		got := texts(s)
		for _, want := range []string{"the place and its rules", "the task: count the sheep", `"count","status":"in_progress"`, "first the black ones", fmt.Sprintf("SUMMARY %d", round), "and the rest?"} {
			if strings.Count(got, want) != 1 {
				t.Errorf("round %d: %d times %q in:\n%s", round, strings.Count(got, want), want, got)
			}
		}
		for _, gone := range []string{`"old"`, "sell them", fmt.Sprintf("SUMMARY %d", round-1)} {
			if strings.Contains(got, gone) {
				t.Errorf("round %d: %q is still there", round, gone)
			}
		}
		if err := troupe.Valid(s.Request.Messages); err != nil || s.Request.System != "role" {
			t.Error(err)
		}
		call(s, fmt.Sprint("r", round), "Read", `{"file_path":"b"}`, strings.Repeat("grass ", 100))
		say(s, troupe.Assistant, "so far", 900)
		say(s, troupe.User, "and the rest?", 0)
		s.Request.Messages = slices.DeleteFunc(s.Request.Messages, func(m troupe.Message) bool { // the question of the round before
			return m.Content.Text() == "and the rest?" && len(m.Content) == 1
		})
		say(s, troupe.User, "and the rest?", 0)
	}
}

// The question goes at the end of what was sent before: the provider has all of
// it in its cache.
func TestTheSummaryReadsTheCache(t *testing.T) {
	s := long(900)
	before := s.Request
	had := slices.Clone(before.Messages)
	m := troupetest.NewReplies(troupetest.Say("short"))
	if _, err := events(compactor(m).BeforeTurn(t.Context(), s), s); err != nil {
		t.Fatal(err)
	}
	sent := m.Sent()[0]
	if len(sent.Messages) != len(had)+1 || sent.System != before.System {
		t.Fatalf("%d messages, want %d", len(sent.Messages), len(had)+1)
	}
	a, _ := troupe.Encode(had)
	b, _ := troupe.Encode(sent.Messages[:len(had)])
	if string(a) != string(b) {
		t.Error("the conversation was sent otherwise than before")
	}
}

func TestIfTheSummaryFailsNothingIsLost(t *testing.T) {
	bad := errors.New("provider is down")
	for name, c := range map[string]*Compactor{
		"no reply":    compactor(&narrow{Replies: troupetest.NewReplies(), limit: 1}),
		"empty reply": compactor(troupetest.NewReplies(troupe.Message{Role: troupe.Assistant})),
		"only a call": compactor(troupetest.NewReplies(troupetest.Use(troupe.ToolUse{ID: "x", Name: "Read", Input: json.RawMessage("{}")}))),
		"hook forbids": func() *Compactor {
			c := compactor(troupetest.NewReplies(troupetest.Say("short")))
			c.Before = func(context.Context, *troupe.State, string, string) (string, error) { return "not now", nil }
			return c
		}(),
		"hook breaks": func() *Compactor {
			c := compactor(troupetest.NewReplies(troupetest.Say("short")))
			c.Before = func(context.Context, *troupe.State, string, string) (string, error) { return "", bad }
			return c
		}(),
	} {
		s := long(900)
		before, _ := troupe.Encode(s.Request)
		evs, err := events(c.BeforeTurn(t.Context(), s), s)
		after, _ := troupe.Encode(s.Request)
		last, told := evs[len(evs)-1].(troupe.NotCompacted)
		if err != nil || !told || last.Err == "" || string(before) != string(after) {
			t.Errorf("%s: %v, %v", name, evs, err)
		}
		// Asking again at once would cost and fail again.
		if evs, _ := events(c.BeforeTurn(t.Context(), s), s); len(evs) != 0 {
			t.Errorf("%s: tried again at once: %v", name, evs)
		}
	}
}

func TestTooLongIsCutShortOnce(t *testing.T) {
	s := long(0)
	m := &narrow{Replies: troupetest.NewReplies(troupetest.Say("short")), limit: 1400}
	c := compactor(m)
	evs, err := events(c.Rescue(t.Context(), s, fmt.Errorf("request: %w", errTooLong)), s)
	if err != nil || !done(evs) || m.refused == 0 {
		t.Fatalf("%v, %v; refused %d", evs, err, m.refused)
	}
	if err := troupe.Valid(s.Request.Messages); err != nil {
		t.Error(err)
	}
	// Other errors are not its affair, and what it cannot mend stays what it was.
	if evs, err := events(c.Rescue(t.Context(), s, errors.New("other")), s); len(evs) != 0 || err != nil {
		t.Errorf("%v, %v", evs, err)
	}
	s = long(0)
	if _, err := events(compactor(&narrow{Replies: troupetest.NewReplies(), limit: 1}).Rescue(t.Context(), s, errTooLong), s); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
}

// An agent that has said its last word has said it afterwards, too.
func TestOnDemandWhileIdle(t *testing.T) {
	s := long(100)
	say(s, troupe.Assistant, strings.Repeat("a long goodbye ", 500), 300)
	c := compactor(troupetest.NewReplies(troupetest.Say("short")))
	c.Ask("")
	c.Ask("a second time")
	evs, err := events(c.BeforeTurn(t.Context(), s), s)
	if err != nil || !done(evs) || !s.Idle() {
		t.Errorf("%v, %v, idle %v", evs, err, s.Idle())
	}
	if evs, _ := events(c.BeforeTurn(t.Context(), s), s); len(evs) != 0 {
		t.Errorf("done twice: %v", evs)
	}
}

func TestNoSummaryOfNothing(t *testing.T) {
	s := new(troupe.State)
	say(s, troupe.User, "hi", 0)
	c := compactor(troupetest.NewReplies())
	c.Ask("")
	evs, err := events(c.BeforeTurn(t.Context(), s), s)
	if _, told := evs[len(evs)-1].(troupe.NotCompacted); err != nil || !told {
		t.Errorf("%v, %v", evs, err)
	}
}

func TestAConversationThatStaysTooLargeIsNotCutAtEachTurn(t *testing.T) {
	s := long(900)
	c := compactor(troupetest.NewReplies(troupetest.Say("one"), troupetest.Say("two"), troupetest.Say("three"), troupetest.Say("four"), troupetest.Say("five"), troupetest.Say("six")))
	n := 0
	for range 6 {
		evs, err := events(c.BeforeTurn(t.Context(), s), s)
		if err != nil {
			t.Fatal(err)
		}
		if done(evs) {
			n++
		}
		say(s, troupe.Assistant, strings.Repeat("so ", 100), 900)
		say(s, troupe.User, "go on", 0)
	}
	if n != 3 {
		t.Errorf("cut %d times in 6 turns, want every second", n)
	}
}

// S89: whatever was said, what is left is valid, nothing of the tail is changed, and
// the calls that are cut take their results with them.
func TestAnyConversationStaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(troupe.State)
		say(s, troupe.User, "begin", 0)
		for i := range rapid.IntRange(0, 20).Draw(t, "turns") {
			text := strings.Repeat("x", rapid.IntRange(1, 3000).Draw(t, "length"))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				call(s, fmt.Sprint("c", i), "Read", `{}`, text)
			case 1:
				say(s, troupe.Assistant, text, 0)
			case 2:
				say(s, troupe.User, text, 0)
			}
		}
		c := compactor(&narrow{Replies: troupetest.NewReplies(troupetest.Say("short")), limit: rapid.IntRange(10, 20000).Draw(t, "limit")})
		c.Ask("")
		before := s.Request.Messages
		evs, err := events(c.BeforeTurn(context.Background(), s), s)
		if err != nil {
			t.Fatal(err)
		}
		if err := troupe.Valid(s.Request.Messages); err != nil {
			t.Fatal(err)
		}
		if done(evs) {
			last := evs[len(evs)-1].(troupe.Compacted)
			a, _ := troupe.Encode(before[len(before)-last.Keep:])
			b, _ := troupe.Encode(s.Request.Messages[1:])
			if string(a) != string(b) {
				t.Fatalf("the last %d messages are not as they were", last.Keep)
			}
		}
	})
}

// A prompt that is too long by itself is not put together with nothing.
func TestALongPromptAloneIsLeftAlone(t *testing.T) {
	s := new(troupe.State)
	say(s, troupe.User, strings.Repeat("long ", 5000), 0)
	if evs, err := events(compactor(troupetest.NewReplies()).BeforeTurn(t.Context(), s), s); err != nil || len(evs) != 0 {
		t.Errorf("%v, %v", evs, err)
	}
}
