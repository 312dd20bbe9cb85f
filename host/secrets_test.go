package host_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// A key that lies in a file is found by agents in many ways. None of them may
// carry it into a request, a log or a file of results.
func TestKeysInFilesAreMasked(t *testing.T) {
	p := newPlace(t)
	other := "other-key-of-the-user"
	p.env = append(p.env, "OPENROUTER_API_KEY="+other, "GROQ_API_KEY=short")
	p.write(t, "notes.txt", "the key is "+key+" and\n"+other+" is another; a short one is masked nowhere\n")
	p.write(t, "long.txt", strings.Repeat("a line with "+key+"\n", 4000))
	p.write(t, key+".txt", "a file with an unlucky name\n")
	s := p.open(t, bypass, func(o *host.Options) {
		o.Append = "Never tell " + key
		o.Config.Context = append(o.Config.Context, config.ContextFile{Path: "AGENTS.md", Text: "our key: " + key})
		o.Config.Definitions = append(o.Config.Definitions, troupe.Definition{Name: "knows", Description: "knows " + key, Prompt: "It is " + key, First: key})
	})
	notes := filepath.Join(p.dir, "notes.txt")
	for _, tt := range []struct {
		name, tool string
		input      map[string]any
	}{
		{"echo", "Bash", map[string]any{"command": "echo $(cat notes.txt)"}},
		{"pieces", "Bash", map[string]any{"command": "for c in $(sed 's/./& /g; q' notes.txt); do printf %s $c; done"}},
		{"long", "Bash", map[string]any{"command": "cat long.txt"}},
		{"errors", "Bash", map[string]any{"command": "cat notes.txt >&2; exit 3"}},
		{"read", "Read", map[string]any{"file_path": notes}},
		{"read long", "Read", map[string]any{"file_path": filepath.Join(p.dir, "long.txt")}},
		{"grep", "Grep", map[string]any{"pattern": "key", "output_mode": "content"}},
		{"glob", "Glob", map[string]any{"pattern": "*.txt"}},
		{"edit", "Edit", map[string]any{"file_path": notes, "old_string": "another", "new_string": "one more"}},
		{"fails", "Read", map[string]any{"file_path": filepath.Join(p.dir, "none.txt")}},
		{"sub-agents", "Agent", map[string]any{"description": "d", "prompt": "p", "subagent_type": "knows"}},
	} {
		if tt.tool == "Agent" {
			p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Agent", tt.input))},
				troupetest.Reply{Message: troupetest.Use(use("b", "Bash", map[string]any{"command": "cat notes.txt"}))},
				troupetest.Reply{Message: troupetest.Say("x")}, troupetest.Reply{Message: troupetest.Say("x")})
			ask(t, s, "let one look for "+key)
			continue
		}
		res := p.call(t, s, tt.tool, tt.input)
		hasNot(t, res.Content.Text(), key, other)
		if tt.name != "fails" && tt.name != "edit" && !strings.Contains(res.Content.Text(), "[key]") {
			t.Errorf("%s: it is not said that there is a key: %.300s", tt.name, res.Content.Text())
		}
	}
	closed(t, s)
	for _, r := range p.provider.Requests() {
		hasNot(t, string(r.Body), key, other)
	}
	kept := 0
	for path, text := range tree(t, p.home) {
		if strings.Contains(text, key) || strings.Contains(text, other) {
			t.Errorf("%s holds a key", path)
		}
		if strings.HasSuffix(path, ".output") && strings.Contains(text, "a line with [key]\n") {
			kept++
		}
	}
	if kept == 0 {
		t.Error("the long output was not kept")
	}
	if text := string(read(t, notes)); !strings.Contains(text, key) || !strings.Contains(text, "one more") {
		t.Errorf("the file itself was changed to %q", text)
	}
	body := string(p.provider.Requests()[1].Body)
	has(t, body, "a short one is masked")
}

// Errors of a session name no key either.
func TestKeysAreMaskedInErrors(t *testing.T) {
	p := newPlace(t)
	o := p.options(t)
	o.Agent = key
	if _, err := host.Open(t.Context(), o); err == nil || strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "[key]") {
		t.Errorf("got %v", err)
	}
	o = p.options(t)
	text := o.Models.Hidden(append(p.env, "openrouter_api_key=another-key-1"))("a " + key + " b another-key-1")
	if text != "a [key] b [key]" {
		t.Errorf("got %q", text)
	}
}

// A lead that follows a definition begins with its words, and a decision may
// name what a link leads to.
func TestKeysAreMaskedInWhatOthersSay(t *testing.T) {
	p := newPlace(t)
	p.write(t, key+"/x", "")
	if err := os.Symlink(filepath.Join(p.dir, key, "x"), filepath.Join(p.dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := p.open(t, func(o *host.Options) {
		o.Config.Definitions = append(o.Config.Definitions, troupe.Definition{Name: "knows", Description: "d", Prompt: "p", First: "first " + key})
		o.Agent = "knows"
	})
	res := p.call(t, s, "Write", map[string]any{"file_path": filepath.Join(p.dir, "link"), "content": "y"})
	has(t, res.Content.Text(), "[key]/x")
	closed(t, s)
	has(t, string(p.provider.Requests()[0].Body), "first [key]")
	for path, text := range tree(t, p.home) {
		if strings.Contains(text, key) {
			t.Errorf("%s holds the key", path)
		}
	}
}

// A server that tells another key than its own in an error, and in those after
// which it is asked again.
func TestKeysAreMaskedInErrorsOfServers(t *testing.T) {
	const other = "another-key-1"
	for _, status := range []int{http.StatusBadRequest, http.StatusServiceUnavailable} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"not %s"}}`, other)
		}))
		t.Cleanup(server.Close)
		p := newPlace(t)
		p.env = slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, "ANTHROPIC_BASE_URL=") })
		p.env = append(p.env, "GROQ_API_KEY="+other, "TROUPE_MAX_RETRIES=1", "ANTHROPIC_BASE_URL="+server.URL)
		s := p.open(t)
		if err := s.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		end, err := s.Run(t.Context())
		if err == nil || strings.Contains(err.Error()+end.Err, other) || !strings.Contains(end.Err, "not [key]") {
			t.Errorf("%v; %s", err, end.Err)
		}
		closed(t, s)
		log := string(read(t, session.LogPath(s.Path(), session.Lead)))
		hasNot(t, log, other)
		if status == http.StatusServiceUnavailable {
			has(t, log, `"Retrying"`)
		}
	}
}

// What hooks say comes before the model, too.
func TestKeysAreMaskedInWordsOfHooks(t *testing.T) {
	p := newPlace(t)
	ended := false
	s, _ := p.listening(t, func(in hook.Input) string {
		switch in.Event {
		case hook.UserPromptSubmit, hook.PostToolUse:
			return specific(`"additionalContext":"told at ` + string(in.Event) + " " + key + `"`)
		case hook.PreToolUse:
			return specific(`"permissionDecision":"allow","updatedInput":{"command":"echo ` + key + `"}`)
		case hook.Stop:
			if ended = !ended; ended {
				return `{"decision":"block","reason":"told at Stop ` + key + `"}`
			}
		}
		return ""
	})
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Bash", map[string]any{"command": "echo one"}))},
		troupetest.Reply{Message: troupetest.Say("x")}, troupetest.Reply{Message: troupetest.Say("y")})
	ask(t, s, "go")
	closed(t, s)
	all := p.provider.Requests()
	last := string(all[len(all)-1].Body)
	has(t, last, "told at UserPromptSubmit [key]", "told at PostToolUse [key]", "told at Stop [key]")
	log := string(read(t, session.LogPath(s.Path(), session.Lead)))
	hasNot(t, last+log, key)
}

// What a model knows it may say, in pieces or in a call. It is in no log and is not
// shown, and what is shown is all the same all that was said.
func TestKeysAreMaskedInWordsOfModels(t *testing.T) {
	p := newPlace(t)
	var shown strings.Builder
	s := p.open(t, bypass, func(o *host.Options) {
		o.Watch = func(ev troupe.Event) {
			if d, ok := ev.(troupe.Streaming); ok {
				shown.WriteString(d.Text)
			}
		}
	})
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("w", "Write", map[string]any{"file_path": "a.txt", "content": key}))})
	said := "the key is " + key + ", and " + key[:len(key)-1]
	p.provider.Say(said)
	end := ask(t, s, "tell")
	want := strings.ReplaceAll(said, key, "[key]")
	if end.Text != want || shown.String() != want {
		t.Errorf("it said %q and was seen to say %q, want %q", end.Text, shown.String(), want)
	}
	closed(t, s)
	for path, text := range tree(t, p.home) {
		hasNot(t, path+": "+text, key)
	}
}
