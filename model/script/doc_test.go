package script

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/troupe-sh/troupe"
)

// example is the script in the description of the format.
func example(t *testing.T) *Model {
	t.Helper()
	page, err := os.ReadFile("../../doc/script.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, begins := strings.Cut(string(page), "```jsonc\n")
	text, _, ends := strings.Cut(after, "```")
	if !begins || !ends {
		t.Fatal("doc/script.md has no example")
	}
	m, err := Parse("example.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The example does what its comments say.
func TestExampleOfTheDescription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := example(t)
		lead := []troupe.Message{user("Please greet the author of poem.txt!")}
		req := func(msgs []troupe.Message) *troupe.Request {
			r := ask(msgs...)
			r.Tools = append(r.Tools, troupe.ToolSpec{Name: "Agent"})
			return r
		}
		call := replyTo(t, m, req(lead))
		lead = append(lead, call.Message)
		use := call.Message.ToolUses()[0]
		if use.Name != "Agent" || !strings.Contains(string(use.Input), `"prompt":"Who wrote poem.txt!?"`) {
			t.Fatalf("call %s %s", use.Name, use.Input)
		}

		sub := []troupe.Message{user("Who wrote poem.txt?")}
		read := replyTo(t, m, ask(sub...))
		use2 := read.Message.ToolUses()[0]
		if use2.Name != "Read" || string(use2.Input) != `{"file_path":"poem.txt"}` {
			t.Fatalf("call %s %s", use2.Name, use2.Input)
		}
		sub = append(sub, read.Message, answered(success(use2.ID, "A poem\nAuthor: Ada L\n")))
		report := replyTo(t, m, ask(sub...)).Message.Content.Text()
		if report != "The author is Ada L." {
			t.Errorf("report %q", report)
		}

		said := replyTo(t, m, req(append(lead[:2:2], answered(success(use.ID, report)))))
		if got := said.Message.Content.Text(); got != "Good morning, Ada L!" || said.Usage.Input != 900 {
			t.Errorf("lead says %q, usage %+v", got, said.Usage)
		}
		said = replyTo(t, m, req(append(lead[:2:2], answered(failed(use.ID, "The author is hidden.")))))
		if got := said.Message.Content.Text(); got != "I could not find out whom to greet." {
			t.Errorf("lead says %q", got)
		}
	})
	var e *Error
	if _, err := collect(t.Context(), example(t), ask(user("be busy"))); !errors.As(err, &e) || e.Status != 429 {
		t.Errorf("be busy: %v", err)
	}
	if _, err := collect(t.Context(), example(t), ask(user("break off"))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("break off: %v", err)
	}
	if _, err := collect(t.Context(), example(t), ask(user("anything else"))); !errors.Is(err, ErrNoRule) {
		t.Errorf("anything else: %v", err)
	}
}

// The description names all that a script may hold. The names are those that
// the messages about an unknown one list.
func TestDescriptionNamesEverything(t *testing.T) {
	page, err := os.ReadFile("../../doc/script.md")
	if err != nil {
		t.Fatal(err)
	}
	when := func(s string) string { return one(s, `"content": [{"text": "x"}]`) }
	for _, unknown := range []string{
		when(`"?": 1`), when(`"results": [{"?": 1}]`), when(`"turn": {"?": 1}`), when(`"last": {"?": 1}`),
		one(``, `"?": 1`), one(``, `"content": [{"?": 1}]`), one(``, `"content": [{"text": "x"}], "usage": {"?": 1}`), one(``, `"error": {"?": 1}`),
	} {
		_, err := Parse("x", []byte(unknown))
		if err == nil {
			t.Fatalf("%s: no error", unknown)
		}
		_, list, _ := strings.Cut(err.Error(), "here may be ")
		for _, name := range strings.Split(list, ", ") {
			if name == "" || !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), `"`+name+`"`) {
				t.Errorf("doc/script.md does not name %q", name)
			}
		}
	}
}
