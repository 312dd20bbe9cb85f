package troupe_test

import (
	"context"
	"encoding/json"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

func user(id, text string) troupe.Event {
	return troupe.Received{ID: id, From: "user", Message: troupe.Say(troupe.User, text)}
}

func replied(b ...troupe.Block) troupe.Event {
	return troupe.Replied{Reply: troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: b}, Usage: troupe.Usage{Input: 1}}}
}

func use(id string) troupe.ToolUse {
	return troupe.ToolUse{ID: id, Name: "Read", Input: json.RawMessage(`{}`)}
}

func result(id string) troupe.Event {
	return troupe.ToolEnded{Use: id, Result: troupe.Answer("result of " + id)}
}

// resume does what a process does with a log that it finds: fold, repair,
// take a new prompt in.
func resume(events []troupe.Event) (*troupe.State, []troupe.Event) {
	s := new(troupe.State)
	for _, e := range events {
		s.Apply(e)
	}
	more := append(s.Repair(), user("resume", "hi"))
	for _, e := range more {
		s.Apply(e)
	}
	return s, append(events[:len(events):len(events)], more...)
}

// S88: whatever a log ends in, the next request is valid, the repair is in the
// log, and a second resume sees the same.
func TestDanglingLogs(t *testing.T) {
	for name, events := range map[string][]troupe.Event{
		"call without result":      {user("1", "go"), replied(use("a"))},
		"two of three results":     {user("1", "go"), replied(use("a"), use("b"), use("c")), result("c"), result("a")},
		"result without call":      {user("1", "go"), replied(troupe.Text("hm")), result("x")},
		"two replies in a row":     {user("1", "go"), replied(troupe.Text("one")), replied(troupe.Text("two"), use("a"))},
		"reply over an open call":  {user("1", "go"), replied(use("a")), replied(troupe.Text("two"))},
		"half a call":              {user("1", "go"), replied(troupe.ToolUse{ID: "a", Name: "Read", Input: json.RawMessage(`{"file_pa`)})},
		"message over an open one": {user("1", "go"), replied(use("a")), user("2", "and")},
		"beginning lost":           {replied(troupe.Text("so")), user("2", "and")},
		"calls only, at once":      {replied(use("a"))},
		"result twice":             {user("1", "go"), replied(use("a")), result("a"), result("a")},
		"nothing":                  nil,
	} {
		t.Run(name, func(t *testing.T) {
			s, log := resume(events)
			if err := troupe.Valid(s.Request.Messages); err != nil {
				t.Fatalf("%v in %v", err, s.Request.Messages)
			}
			again := new(troupe.State)
			for _, e := range log {
				again.Apply(e)
			}
			if diff := cmp.Diff(s.Request, again.Request); diff != "" {
				t.Errorf("a second resume differs:\n%s", diff)
			}
		})
	}
}

// S90: IDs that a provider gives twice or not at all become unique, and what
// came twice entirely is one call.
func TestPoisonedIDs(t *testing.T) {
	other := func(id, path string) troupe.ToolUse {
		return troupe.ToolUse{ID: id, Name: "Read", Input: json.RawMessage(`{"file_path":"` + path + `"}`)}
	}
	for name, tc := range map[string]struct {
		content troupe.Blocks
		calls   int
	}{
		"same ID, other input": {troupe.Blocks{other("a", "1"), other("a", "2")}, 2},
		"same block twice":     {troupe.Blocks{other("a", "1"), other("a", "1")}, 1},
		"empty IDs":            {troupe.Blocks{other("", "1"), other("", "1")}, 2},
		"ID of an old call":    {troupe.Blocks{other("old", "1")}, 1},
		"made-up ID taken":     {troupe.Blocks{other("call_2", "1"), other("", "2")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(troupe.State)
			for _, e := range []troupe.Event{user("1", "go"), replied(use("old")), result("old")} {
				s.Apply(e)
			}
			clean := s.Clean(troupe.Message{Content: tc.content})
			s.Apply(replied(clean.Content...))
			if diff := cmp.Diff(clean.ToolUses(), s.Open()); diff != "" {
				t.Errorf("cleaning twice is not cleaning once:\n%s", diff)
			}
			if got := len(s.Open()); got != tc.calls {
				t.Errorf("%d calls, want %d", got, tc.calls)
			}
			for _, e := range s.Repair() {
				s.Apply(e)
			}
			if err := troupe.Valid(s.Request.Messages); err != nil {
				t.Error(err)
			}
		})
	}
}

func genBlock() *rapid.Generator[troupe.Block] {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", " ", "\n", "hi", "\xff\xfe", "ü<&>\u2028"}), rapid.String())
	id := rapid.SampledFrom([]string{"", "a", "b", "c", "call_1", "\xff", "x y"})
	input := rapid.SampledFrom([]string{"", "{}", "[]", "null", `{"a":1}`, `{"a" : "\ud800"}`, "{\"a\":\"\xff\"}", `{"a`, ` { } `, `{"a":1e400}`})
	return rapid.Custom(func(t *rapid.T) troupe.Block {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return troupe.Text(text.Draw(t, "text"))
		case 1:
			return troupe.Thinking{Text: text.Draw(t, "thinking"), Signature: "s", Provider: "p"}
		case 2:
			return troupe.Opaque{Provider: "p", JSON: `{"type": "x"}`}
		case 3:
			return troupe.Image{Media: "image/png", Data: "eA=="}
		case 4:
			return troupe.ToolResult{ID: id.Draw(t, "id"), Content: troupe.Blocks{troupe.Text("x")}}
		}
		return troupe.ToolUse{ID: id.Draw(t, "id"), Name: rapid.SampledFrom([]string{"", "Read", "a b", "ü"}).Draw(t, "name"),
			Input: json.RawMessage(input.Draw(t, "input"))}
	})
}

func genEvent() *rapid.Generator[troupe.Event] {
	blocks := rapid.SliceOfN(genBlock(), 0, 4)
	id := rapid.SampledFrom([]string{"", "a", "b", "c", "call_1", "call_2"})
	return rapid.Custom(func(t *rapid.T) troupe.Event {
		content := troupe.Blocks(blocks.Draw(t, "blocks"))
		event := rapid.IntRange(0, 5).Draw(t, "event")
		for i, b := range content {
			if u, ok := b.(troupe.ToolUse); ok && event != 1 { // only a model sends what is no JSON
				u.Input = json.RawMessage("{}")
				content[i] = u
			}
		}
		switch event {
		case 0:
			return troupe.Received{ID: id.Draw(t, "id"), From: "user", Message: troupe.Message{Role: troupe.Assistant, Content: content}}
		case 1:
			return troupe.Replied{Reply: troupe.Reply{Message: troupe.Message{Role: troupe.User, Content: content}}}
		case 2:
			return troupe.Started{Request: troupe.Request{Model: "m", Messages: []troupe.Message{{Role: troupe.User, Content: content}}}}
		case 3:
			return troupe.Switched{Model: "n"}
		case 4:
			return troupe.Compacted{Summary: troupe.Message{Role: troupe.Assistant, Content: content}, Keep: rapid.IntRange(-1, 6).Draw(t, "keep")}
		}
		return troupe.ToolEnded{Use: id.Draw(t, "use"), Result: troupe.Result{Content: content}}
	})
}

// The fold is total: any events at all leave a conversation that is valid once
// it is repaired, and written down and read back they fold to the same.
func TestAnyLogFoldsToAValidConversation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, folded := new(troupe.State), new(troupe.State)
		for _, e := range rapid.SliceOfN(genEvent(), 0, 12).Draw(t, "events") {
			if r, ok := e.(troupe.Replied); ok { // as Run does it before anyone sees it
				r.Message = live.Clean(r.Message)
				e = r
			}
			live.Apply(e)
			raw, err := troupe.EncodeEvent(e)
			if err != nil {
				t.Fatal(err)
			}
			back, err := troupe.DecodeEvent(raw)
			if err != nil {
				t.Fatal(err)
			}
			folded.Apply(back)
		}
		if diff := cmp.Diff(live.Request, folded.Request); diff != "" {
			t.Fatalf("the log folds to something else:\n%s", diff)
		}
		for _, e := range live.Repair() {
			live.Apply(e)
		}
		if len(live.Request.Messages) == 0 {
			return
		}
		if err := troupe.Valid(live.Request.Messages); err != nil {
			t.Fatalf("%v in %v", err, live.Request.Messages)
		}
	})
}

func TestValidRefuses(t *testing.T) {
	say := troupe.Say
	calls := troupetest.Use(use("a"), use("b"))
	res := func(ids ...string) troupe.Message {
		m := troupe.Message{Role: troupe.User}
		for _, id := range ids {
			m.Content = append(m.Content, troupe.ToolResult{ID: id, Content: troupe.Blocks{troupe.Text("x")}})
		}
		return m
	}
	for name, msgs := range map[string][]troupe.Message{
		"nothing":               nil,
		"assistant first":       {say(troupe.Assistant, "hi")},
		"no content":            {{Role: troupe.User}},
		"blank text":            {say(troupe.User, " \n")},
		"not UTF-8":             {say(troupe.User, "\xff")},
		"call at the end":       {say(troupe.User, "go"), calls},
		"result missing":        {say(troupe.User, "go"), calls, res("a")},
		"results out of order":  {say(troupe.User, "go"), calls, res("b", "a")},
		"text before results":   {say(troupe.User, "go"), troupetest.Use(use("a")), {Role: troupe.User, Content: append(troupe.Blocks{troupe.Text("x")}, res("a").Content...)}},
		"result too many":       {say(troupe.User, "go"), calls, res("a", "b", "c")},
		"result without a call": {say(troupe.User, "go"), say(troupe.Assistant, "hm"), res("a")},
		"ID twice":              {say(troupe.User, "go"), troupetest.Use(use("a"), use("a")), res("a", "a")},
		"ID again later":        {say(troupe.User, "go"), troupetest.Use(use("a")), res("a"), troupetest.Use(use("a")), res("a")},
		"no ID":                 {say(troupe.User, "go"), troupetest.Use(use("")), res("")},
		"call by the user":      {{Role: troupe.User, Content: troupe.Blocks{use("a")}}, res("a")},
		"input no object":       {say(troupe.User, "go"), troupetest.Use(troupe.ToolUse{ID: "a", Name: "Read", Input: json.RawMessage(`1`)}), res("a")},
		"empty result":          {say(troupe.User, "go"), troupetest.Use(use("a")), {Role: troupe.User, Content: troupe.Blocks{troupe.ToolResult{ID: "a"}}}},
		"thinking by the user":  {{Role: troupe.User, Content: troupe.Blocks{troupe.Thinking{Text: "x"}}}},
	} {
		if troupe.Valid(msgs) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	good := []troupe.Message{say(troupe.User, "go"), calls, res("a", "b"), say(troupe.User, "and"), say(troupe.Assistant, "done")}
	if err := troupe.Valid(good); err != nil {
		t.Errorf("refused a good one: %v", err)
	}
}

// twisted is a model whose calls come as no provider should send them.
type twisted struct{ turn int }

func (m *twisted) Stream(_ context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		if err := troupe.Valid(req.Messages); err != nil {
			yield(nil, err)
			return
		}
		m.turn++
		r := troupe.Reply{Message: troupetest.Say("done")}
		if m.turn < 3 {
			r.Message = troupetest.Use(sleep("same", "0s"), sleep("", "0s"), sleep("same", "1ms"), sleep("same", "0s"))
		}
		yield(r, nil)
	}
}

// The IDs that Run works with are those that its log folds to.
func TestRunWithPoisonedIDs(t *testing.T) {
	c := config(&twisted{})
	events, err := play(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	folded := asked()
	for _, e := range events {
		if e, ok := e.(troupe.ToolEnded); ok {
			runs++
			if e.Result.IsError {
				t.Errorf("%s failed: %v", e.Use, e.Result.Content)
			}
		}
		folded.Apply(e)
	}
	if runs != 6 {
		t.Errorf("%d calls ran, want 6", runs)
	}
	if diff := cmp.Diff(c.State.Request, folded.Request); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrittenComesBackAsItWas(t *testing.T) {
	in := `{"b":"<a href=\"x\">&","a":1.0,"u":"\u00e9"}`
	s := new(troupe.State)
	msg := s.Clean(troupetest.Use(troupe.ToolUse{ID: "a", Name: "Read", Input: json.RawMessage(in)}))
	opaque := troupe.Opaque{Provider: "p", JSON: `{ "z" : "\u003c" , "a":[1.50] }`}
	msg.Content = append(msg.Content, opaque)
	raw, err := troupe.EncodeEvent(troupe.Replied{Reply: troupe.Reply{Message: msg}})
	if err != nil {
		t.Fatal(err)
	}
	back, err := troupe.DecodeEvent(raw)
	if err != nil {
		t.Fatal(err)
	}
	got := back.(troupe.Replied).Message.Content
	if in2 := string(got[0].(troupe.ToolUse).Input); in2 != in {
		t.Errorf("input became %s", in2)
	}
	if got[1] != opaque {
		t.Errorf("opaque block became %v", got[1])
	}
}

func TestDecodeRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, raw := range []string{"", "{}", "1", `{"Nonsense":{}}`, `{"Replied":1}`, `{"Received":{"Message":{"Content":[{"Sound":"x"}]}}}`} {
		if e, err := troupe.DecodeEvent([]byte(raw)); err == nil {
			t.Errorf("%s became %v", raw, e)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(`{"Received":{"ID":"1","From":"user","Message":{"Role":"user","Content":[{"Text":"hi"}]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := troupe.DecodeEvent(raw)
		if err != nil {
			return
		}
		s := new(troupe.State)
		s.Apply(e)
		for _, e := range s.Repair() {
			s.Apply(e)
		}
		if err := troupe.Valid(s.Request.Messages); err != nil && len(s.Request.Messages) > 0 {
			t.Errorf("%s: %v", raw, err)
		}
	})
}
