package script

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
)

func sampleRequests() []*troupe.Request {
	return []*troupe.Request{ask(user("a prompt with \"quotes\" and ${braces}")), conversation()}
}

// checkReply checks that a conversation remains valid when a reply to its
// request is appended, and its calls are answered.
func checkReply(t rapid.TB, req *troupe.Request, r troupe.Reply) {
	t.Helper()
	msgs := append(slices.Clone(req.Messages), r.Message)
	var results []troupe.ToolResult
	for _, u := range r.Message.ToolUses() {
		var input map[string]any
		if err := json.Unmarshal(u.Input, &input); err != nil {
			t.Fatalf("input of %s: %v", u.Name, err)
		}
		results = append(results, success(u.ID, "done"))
	}
	if results != nil {
		msgs = append(msgs, answered(results...))
	}
	if err := troupe.Valid(msgs); err != nil {
		t.Fatal(err)
	}
}

const propertyScript = `{"rules": [
	{"when": {"last": {"regexp": "(?s)say (?P<what>.*)"}, "times": 2}, "reply": {"content": [{"text": "I say: ${what}"}]}},
	{"when": {"last": {"regexp": "(?s)run (?P<what>.*)"}}, "reply": {"content": [
		{"text": "${what}"},
		{"call": "Bash", "input": {"command": "${what}", "deep": [{"a": "<${what}>"}]}},
		{"call": "Read", "input": {}}]}},
	{"when": {"results": [{"text": {"regexp": "(?s)^(?P<out>.*)$"}}], "seen": [{"tool": "Read"}], "turn": {"from": 3}}, "reply": {"content": [{"text": "it says ${out}!"}]}},
	{"when": {"first": "x", "times": 1}, "reply": {"content": [{"text": "an x"}]}},
	{"reply": {"content": [{"thinking": "no idea"}, {"text": "go on"}]}}]}`

// A conversation of any texts: each request gets the same reply however often
// and by whichever Model of the script it is answered, a fact stays the one
// string it is, and the conversation stays valid.
func TestSameRequestSameReply(t *testing.T) {
	live, later := parse(t, propertyScript), parse(t, propertyScript)
	rapid.Check(t, func(t *rapid.T) {
		verb := rapid.SampledFrom([]string{"say ", "run ", ""})
		text := rapid.StringMatching("[a-z \"$\\{\\}\\\\\n<>äx]{1,20}[a-z]")
		var sent []*troupe.Request
		var got []troupe.Reply
		var msgs []troupe.Message
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			said := rapid.String().Filter(utf8.ValidString).Draw(t, "noise")
			word := text.Draw(t, "text")
			if len(msgs) > 0 && len(msgs[len(msgs)-1].ToolUses()) > 0 {
				var results []troupe.ToolResult
				for _, u := range msgs[len(msgs)-1].ToolUses() {
					results = append(results, success(u.ID, word+said))
				}
				msgs = append(msgs, answered(results...))
			} else {
				msgs = append(msgs, user(said+verb.Draw(t, "verb")+word))
			}
			req := ask(slices.Clone(msgs)...)
			r := play(t, live, req)
			checkReply(t, req, r)
			checkFacts(t, req, r)
			sent, got, msgs = append(sent, req), append(got, r), append(msgs, r.Message)
		}
		for i, req := range slices.Backward(sent) {
			if diff := cmp.Diff(got[i], play(t, later, req)); diff != "" {
				t.Fatalf("another reply to request %d (-first +again):\n%s", i, diff)
			}
		}
	})
}

func play(t rapid.TB, m *Model, req *troupe.Request) troupe.Reply {
	t.Helper()
	var reply troupe.Reply
	streamed := ""
	for c, err := range m.Stream(context.Background(), req) {
		if err != nil {
			t.Fatal(err)
		}
		switch c := c.(type) {
		case troupe.Delta:
			if !c.Thinking {
				streamed += c.Text
			}
		case troupe.Reply:
			reply = c
		}
	}
	if streamed != reply.Message.Content.Text() {
		t.Fatalf("streamed %q, replied %q", streamed, reply.Message.Content.Text())
	}
	return reply
}

// checkFacts checks the input of the Bash call, if there is one, against the
// text that the rule captured for it.
func checkFacts(t rapid.TB, req *troupe.Request, r troupe.Reply) {
	t.Helper()
	for _, u := range r.Message.ToolUses() {
		if u.Name != "Bash" {
			continue
		}
		var in struct {
			Command string
			Deep    []struct{ A string }
		}
		if err := json.Unmarshal(u.Input, &in); err != nil {
			t.Fatal(err)
		}
		said := req.Messages[len(req.Messages)-1].Content.Text()
		want := said[strings.Index(said, "run ")+len("run "):]
		if in.Command != want || in.Deep[0].A != "<"+want+">" {
			t.Fatalf("input %s, want the command %q", u.Input, want)
		}
	}
}
