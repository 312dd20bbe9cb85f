package script

import (
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// conversation is at its third reply: two calls side by side, then one.
func conversation() *troupe.Request {
	return ask(
		user("first line\nfix main.go, please"),
		troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
			troupe.ToolUse{ID: "old_1", Name: "Bash", Input: []byte(`{}`)},
			troupe.ToolUse{ID: "src_2", Name: "Read", Input: []byte(`{}`)},
		}},
		answered(failed("old_1", "exit status 7"), success("src_2", "package main")),
		troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
			troupe.ToolUse{ID: "new_3", Name: "Bash", Input: []byte(`{}`)},
			troupe.ToolUse{ID: "new_4", Name: "Bash", Input: []byte(`{}`)},
		}},
		answered(success("new_3", "ok 12 tests"), failed("new_4", "no such file")),
		user("by the way: hurry"),
	)
}

func TestConditions(t *testing.T) {
	tests := []struct {
		when string
		want bool
	}{
		{``, true},
		{`"model": "some-"`, true},
		{`"model": {"regexp": "^model$"}`, false},
		{`"system": "You are a test"`, true},
		{`"system": "you are a test"`, false},
		{`"system": {"regexp": "(?i)YOU ARE"}`, true},
		{`"first": "fix main.go"`, true},
		{`"first": "hurry"`, false},
		{`"first": ["first line", {"regexp": "(?m)^fix"}]`, true},
		{`"first": ["first line", "second line"]`, false},
		{`"last": "hurry"`, true},
		{`"last": "fix main.go"`, false},
		{`"last": "ok 12 tests"`, false}, // is a result, not a text of the user
		{`"turn": 3`, true},
		{`"turn": 2`, false},
		{`"turn": 4`, false},
		{`"turn": {"from": 3}`, true},
		{`"turn": {"from": 4}`, false},
		{`"turn": {"to": 3}`, true},
		{`"turn": {"to": 2}`, false},
		{`"turn": {"from": 2, "to": 4}`, true},
		{`"tools": ["Bash"]`, true},
		{`"tools": ["Read", "Bash"]`, true},
		{`"tools": ["Bash", "Agent"]`, false},
		{`"tools": ["Bas"]`, false},
		{`"results": [{}]`, true},
		{`"results": [{"tool": "Bash"}]`, true},
		{`"results": [{"tool": "Read"}]`, false},
		{`"results": [{"id": "new"}]`, true},
		{`"results": [{"id": "old"}]`, false},
		{`"results": [{"id": "ne"}]`, false},
		{`"results": [{"isError": true, "text": "no such file"}]`, true},
		{`"results": [{"isError": false, "text": "no such file"}]`, false},
		{`"results": [{"text": ["ok", {"regexp": "\\d+ tests"}]}]`, true},
		{`"results": [{"text": "ok"}, {"text": "no such"}]`, true},
		{`"results": [{"text": "ok"}, {"text": "something else"}]`, false},
		{`"results": [{"text": "package main"}]`, false},
		{`"seen": [{"tool": "Read", "text": "package main"}]`, true},
		{`"seen": [{"id": "old", "isError": true}, {"text": "ok"}]`, true},
		{`"seen": [{"id": "old", "isError": false}]`, false},
		{`"first": "fix", "last": "hurry", "turn": 3, "tools": ["Bash"], "results": [{}], "seen": [{}], "times": 1`, true},
		{`"first": "fix", "last": "slowly"`, false},
	}
	for _, tt := range tests {
		m := parse(t, `{"rules": [
			{"when": {`+tt.when+`}, "reply": {"content": [{"text": "yes"}]}},
			{"reply": {"content": [{"text": "no"}]}}]}`)
		want := "no"
		if tt.want {
			want = "yes"
		}
		if got := replyTo(t, m, conversation()).Message.Content.Text(); got != want {
			t.Errorf("%s: %s, want %s", tt.when, got, want)
		}
	}
}

func TestNoResultsSinceTheLastReply(t *testing.T) {
	m := parse(t, `{"rules": [
		{"when": {"results": [{}]}, "reply": {"content": [{"text": "results"}]}},
		{"when": {"seen": [{}]}, "reply": {"content": [{"text": "seen"}]}},
		{"reply": {"content": [{"text": "none"}]}}]}`)
	msgs := []troupe.Message{
		user("x"), use("a_1", "Bash"), answered(success("a_1", "y")), troupe.Say(troupe.Assistant, "done"), user("z"),
	}
	for n, want := range map[int]string{1: "none", 3: "results", 5: "seen"} {
		if got := replyTo(t, m, ask(msgs[:n]...)).Message.Content.Text(); got != want {
			t.Errorf("after %d messages: %s, want %s", n, got, want)
		}
	}
}

// A conversation that is resumed, or that goes on with another Model of the
// same script, knows what was answered before.
func TestTimes(t *testing.T) {
	const text = `{"rules": [
		{"when": {"last": "a", "times": 2}, "reply": {"content": [{"text": "rule one"}]}},
		{"when": {"times": 1}, "reply": {"content": [{"text": "rule two"}]}},
		{"reply": {"content": [{"text": "rule three"}]}}]}`
	var msgs []troupe.Message
	var got []string
	for _, said := range strings.Fields("a b a a b") {
		msgs = append(msgs, user(said))
		r := replyTo(t, parse(t, text), ask(msgs...))
		msgs = append(msgs, r.Message)
		got = append(got, strings.TrimPrefix(r.Message.Content.Text(), "rule "))
	}
	if strings.Join(got, " ") != "one two one three three" {
		t.Errorf("rules that answered: %s", got)
	}
}

func TestFactsOfTheLatestResult(t *testing.T) {
	m := parse(t, one(`"seen": [{"tool": "Bash", "text": {"regexp": "v(?P<n>\\d)"}}], "first": {"regexp": "(?P<who>\\w+)( and (?P<other>\\w+))?"}`,
		`"content": [{"text": "${who}${other}: ${n}"}]`))
	req := ask(user("ann"), use("a_1", "Bash"), answered(success("a_1", "v1")), use("a_2", "Bash"), answered(success("a_2", "v2")))
	if got := replyTo(t, m, req).Message.Content.Text(); got != "ann: 2" {
		t.Errorf("got %q, want the fact of the latest result, and nothing for a group that took no part", got)
	}
}

// A fact may be empty, or not be UTF-8. What is said is neither.
func TestUnsayableFacts(t *testing.T) {
	const when = `"system": {"regexp": "(?s)<(?P<fact>.*)>"}`
	tests := []struct{ fact, content, want string }{
		{"", `{"text": "${fact}"}, {"text": "more"}`, "more"},
		{" \n", `{"thinking": "${fact}"}, {"text": "more"}`, "more"},
		{"", `{"text": "${fact}"}`, ""},
		{"a\xffb", `{"text": "${fact}"}`, "a\uFFFDb"},
	}
	for _, tt := range tests {
		req := ask(user("x"))
		req.System = "<" + tt.fact + ">"
		chunks, err := collect(t.Context(), parse(t, one(when, `"content": [`+tt.content+`]`)), req)
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "test.json:1:12: nothing is left") || len(chunks) != 1 {
				t.Errorf("%s of %q: %d chunks and error %v", tt.content, tt.fact, len(chunks), err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s of %q: %v", tt.content, tt.fact, err)
			continue
		}
		got := chunks[len(chunks)-1].(troupe.Reply).Message.Content
		if len(got) != 1 || got.Text() != tt.want {
			t.Errorf("%s of %q: %#v", tt.content, tt.fact, got)
		}
	}
}

func TestCallsHaveTheirOwnIDs(t *testing.T) {
	m := parse(t, one(``, `"content": [{"call": "Bash"}, {"call": "Bash"}, {"call": "Read", "id": "x"}]`))
	seen := make(map[string]bool)
	for _, first := range []string{"one agent", "another agent"} {
		msgs := []troupe.Message{user(first)}
		for range 3 {
			r := replyTo(t, m, ask(msgs...))
			var results []troupe.ToolResult
			for _, u := range r.Message.ToolUses() {
				if seen[u.ID] {
					t.Errorf("%s: id %s is used twice", first, u.ID)
				}
				seen[u.ID] = true
				results = append(results, success(u.ID, "done"))
			}
			msgs = append(msgs, r.Message, answered(results...))
		}
	}
	if len(seen) != 18 {
		t.Errorf("%d ids, want 18", len(seen))
	}
}

// After a summary the turns are counted anew, but calls of before may have
// been kept.
func TestIDIsNotThatOfAKeptCall(t *testing.T) {
	m := parse(t, one(``, `"content": [{"call": "Bash"}]`))
	id := replyTo(t, m, ask(user("summary"), troupe.Say(troupe.Assistant, "x"), user("go on"))).Message.ToolUses()[0].ID
	req := ask(user("summary"), use(id, "Bash"), answered(success(id, "kept")))
	if again := replyTo(t, m, req).Message.ToolUses()[0].ID; again == id {
		t.Errorf("id %s is used twice in a conversation", id)
	}
}
