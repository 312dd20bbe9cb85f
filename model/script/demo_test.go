package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
)

const (
	demoDir    = "../../cmd/troupe/demo"
	faulty     = "return s.From <= other.To && other.From <= s.To"
	fixed      = "return s.From < other.To && other.From < s.To"
	demoPrompt = "Make the failing test TestOverlaps pass."
	editOfDemo = `{ "call": "Edit", "id": "edit", "input": { "file_path": "${file}", "old_string": "` + faulty + `", "new_string": "` + fixed + `" } }`
)

// A stage stands in for the tools of the demonstration: files in memory, and
// commands that answer as the real ones do. Its agents play the script.
type stage struct {
	model    *Model
	files    map[string]string
	disturb  func(tool string, input map[string]string) *troupe.Result // nil, or nil from it: nothing special
	reached  map[string]bool                                           // places of rules
	commands []string
	calls    int // of tools
	waited   time.Duration
}

// newStage sets the sample up. Each pair of edits changes the script.
func newStage(t *testing.T, edits ...string) *stage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(demoDir, "demo.json"))
	if err != nil {
		t.Fatal(err)
	}
	script := string(text)
	for i := 0; i < len(edits); i += 2 {
		if n := strings.Count(script, edits[i]); n != 1 {
			t.Fatalf("demo.json has %d times %s, want once", n, edits[i])
		}
		script = strings.Replace(script, edits[i], edits[i+1], 1)
	}
	s := &stage{files: sample(t), reached: make(map[string]bool)}
	if s.model, err = Parse("demo.json", []byte(script)); err != nil {
		t.Fatal(err)
	}
	return s
}

// sample reads the program of the demonstration: names lose ".txt".
func sample(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	entries, err := os.ReadDir(filepath.Join(demoDir, "sample"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(demoDir, "sample", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(e.Name(), ".txt")] = string(data)
	}
	return files
}

// run plays one agent and returns what it said last.
func (s *stage) run(ctx context.Context, prompt string) (string, error) {
	msgs := []troupe.Message{user(prompt)}
	for range 20 {
		req := ask(msgs...)
		r, _, err := s.model.choose(req)
		if err != nil {
			return "", err
		}
		s.reached[r.place] = true
		var reply troupe.Reply
		for c, err := range s.model.Stream(ctx, req) {
			if err != nil {
				return "", err
			}
			if whole, ok := c.(troupe.Reply); ok {
				reply = whole
			}
		}
		msgs = append(msgs, reply.Message)
		var results []troupe.ToolResult
		for _, u := range reply.Message.ToolUses() {
			result, err := s.call(ctx, u)
			if err != nil {
				return "", err
			}
			results = append(results, troupe.ToolResult{ID: u.ID, Content: result.Content, IsError: result.IsError})
		}
		if len(results) == 0 {
			return reply.Message.Content.Text(), nil
		}
		msgs = append(msgs, answered(results...))
	}
	return "", fmt.Errorf("the agent that was asked %q comes to no end", prompt)
}

func (s *stage) call(ctx context.Context, u troupe.ToolUse) (troupe.Result, error) {
	var in map[string]string
	if err := json.Unmarshal(u.Input, &in); err != nil {
		return troupe.Result{}, fmt.Errorf("input of %s: %w", u.Name, err)
	}
	if s.calls++; s.calls > 100 {
		return troupe.Result{}, errors.New("the agents come to no end")
	}
	if s.disturb != nil {
		if r := s.disturb(u.Name, in); r != nil {
			return *r, nil
		}
	}
	switch u.Name {
	case "Agent":
		text, err := s.run(ctx, in["prompt"])
		return troupe.Answer(text + "\n\n[agent a1b2c3 (Explore, script/demo): 3 turns]"), err
	case "Grep":
		return s.grep("Overlaps("), nil
	case "Read":
		return s.read(in["file_path"]), nil
	case "Edit":
		return s.edit(in), nil
	case "Bash":
		s.commands = append(s.commands, in["command"])
		return s.bash(in["command"]), nil
	}
	return troupe.Result{}, fmt.Errorf("the demonstration uses an unknown tool %s", u.Name)
}

func (s *stage) grep(text string) troupe.Result {
	var b strings.Builder
	for name, content := range s.files {
		for i, line := range strings.Split(content, "\n") {
			if strings.Contains(line, text) {
				fmt.Fprintf(&b, "%s:%d:%s\n", name, i+1, line)
			}
		}
	}
	return troupe.Answer(b.String())
}

func (s *stage) read(name string) troupe.Result {
	content, ok := s.files[name]
	if !ok {
		return troupe.Failure("no such file")
	}
	var b strings.Builder
	for i, line := range strings.Split(content, "\n") {
		fmt.Fprintf(&b, "%6d\t%s\n", i+1, line)
	}
	return troupe.Answer(b.String())
}

func (s *stage) edit(in map[string]string) troupe.Result {
	content := s.files[in["file_path"]]
	if strings.Count(content, in["old_string"]) != 1 {
		return troupe.Failure("old_string is not there exactly once")
	}
	s.files[in["file_path"]] = strings.Replace(content, in["old_string"], in["new_string"], 1)
	return troupe.Answer("edited")
}

func (s *stage) bash(command string) troupe.Result {
	switch {
	case strings.HasPrefix(command, "git commit -am "):
		return troupe.Answer("[main 0a1b2c3] Overlaps: a message\n 1 file changed, 1 insertion(+), 1 deletion(-)\n")
	case command == "go test ./..." && strings.Contains(s.files["conflict.go"], fixed):
		return troupe.Answer("ok  \texample.com/rota\t0.004s\n")
	case command == "go test ./...":
		return troupe.Failure("--- FAIL: TestOverlaps (0.00s)\n    --- FAIL: TestOverlaps/back_to_back (0.00s)\nFAIL\nFAIL\texample.com/rota\t0.004s\nFAIL\n")
	}
	return troupe.Failure("unexpected command " + command)
}

// perform plays the lead in fake time.
func (s *stage) perform(t *testing.T) string {
	t.Helper()
	var text string
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var err error
		if text, err = s.run(t.Context(), demoPrompt); err != nil {
			t.Fatal(err)
		}
		s.waited = time.Since(begin)
	})
	return text
}

func TestDemo(t *testing.T) {
	s := newStage(t)
	text := s.perform(t)
	for _, want := range []string{
		"The test passes.", "Fault: conflict.go:13.", "Fixed in conflict.go, commit 0a1b2c3", "`go test ./...` passed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the lead says\n%s\nwant %q in it", text, want)
		}
	}
	want := []string{`git commit -am "Overlaps: shifts that only touch do not overlap"`, "go test ./..."}
	if strings.Join(s.commands, "\n") != strings.Join(want, "\n") {
		t.Errorf("commands %q, want %q", s.commands, want)
	}
	if s.waited < time.Second || s.waited > 5*time.Second {
		t.Errorf("the agents take %s, want 1s to 5s", s.waited)
	}
}

// Whatever goes wrong, the lead does not say that the test passes, and what it
// does say tells what went wrong. Together, the ways reach every rule.
func TestDemoTellsTheTruth(t *testing.T) {
	fail := func(tool, when, text string) func(string, map[string]string) *troupe.Result {
		return func(name string, in map[string]string) *troupe.Result {
			if name != tool || !strings.Contains(in["command"]+in["subagent_type"]+in["file_path"], when) {
				return nil
			}
			r := troupe.Failure(text)
			return &r
		}
	}
	answer := func(tool, when, text string) func(string, map[string]string) *troupe.Result {
		disturb := fail(tool, when, text)
		return func(name string, in map[string]string) *troupe.Result {
			r := disturb(name, in)
			if r != nil {
				r.IsError = false
			}
			return r
		}
	}
	tests := []struct {
		name    string
		edits   []string
		disturb func(string, map[string]string) *troupe.Result
		says    string
	}{
		{"wrong edit", []string{fixed, "return s.From < other.To && other.From <= s.To"}, nil, "--- FAIL: TestOverlaps/back_to_back"},
		{"no edit", []string{editOfDemo, `{ "text": "Fixed in ${file}, commit 1234567." }`}, nil, "--- FAIL: TestOverlaps/back_to_back"},
		{"edit refused", nil, fail("Edit", "", "permission denied"), "--- FAIL: TestOverlaps/back_to_back"},
		{"nothing found", nil, fail("Grep", "", "grep is broken"), "I found no fault"},
		{"unreadable", nil, fail("Read", "conflict_test.go", "not yours"), "I found no fault"},
		{"no Explore", nil, fail("Agent", "Explore", "unknown type Explore"), "unknown type Explore"},
		{"no general-purpose", nil, fail("Agent", "general-purpose", "too many agents"), "too many agents"},
		{"no verification", nil, fail("Agent", "verification", "it is denied"), "it is denied"},
		{"verdict without proof", nil, answer("Agent", "verification", "VERDICT: PASS, I think"), "no proof"},
		{"no go command", nil, fail("Bash", "go test", "go: command not found"), "go: command not found"},
		{"no tests", nil, answer("Bash", "go test", "?   \texample.com/rota\t[no test files]"), "no test files"},
		{"build failure", nil, fail("Bash", "go test", "# example.com/rota\nFAIL\texample.com/rota [build failed]"), "build failed"},
		{"failed in spite of ok", nil, fail("Bash", "go test", "ok  \texample.com/rota\t0.1s"), "could not be run"},
	}
	reached := make(map[string]bool)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, tt.edits...)
			s.disturb = tt.disturb
			text := s.perform(t)
			if strings.Contains(text, "The test passes") || strings.Contains(text, "[agent") || !strings.Contains(text, "not ") {
				t.Errorf("the lead says\n%s", text)
			}
			if !strings.Contains(text, tt.says) {
				t.Errorf("the lead says\n%s\nwant %q in it", text, tt.says)
			}
			for place := range s.reached {
				reached[place] = true
			}
		})
	}

	// The fix is good and not committed: the tests pass, and the lead says both.
	uncommitted := newStage(t)
	uncommitted.disturb = fail("Bash", "git commit", "fatal: unable to write")
	if text := uncommitted.perform(t); !strings.Contains(text, "The test passes") || !strings.Contains(text, "Not committed") {
		t.Errorf("without a commit the lead says\n%s", text)
	}
	good := newStage(t)
	good.perform(t)
	for _, s := range []*stage{uncommitted, good} {
		for place := range s.reached {
			reached[place] = true
		}
	}
	for _, r := range good.model.rules {
		if !reached[r.place] {
			t.Errorf("nothing reaches the rule at %s", r.place)
		}
	}
}

// The sample is formatted, holds the fault once, and no file of it is taken
// for a part of this module.
func TestSampleOfTheDemo(t *testing.T) {
	files := sample(t)
	for name, content := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		if out, err := format.Source([]byte(content)); err != nil || string(out) != content {
			t.Errorf("%s is not formatted (%v)", name, err)
		}
	}
	if n := strings.Count(files["conflict.go"], faulty); n != 1 {
		t.Errorf("conflict.go holds the fault %d times", n)
	}
	if !strings.HasPrefix(files["go.mod"], "module example.com/rota\n") {
		t.Errorf("go.mod is %q", files["go.mod"])
	}
	for _, ext := range []string{"*.go", "go.mod"} {
		if found, _ := filepath.Glob(filepath.Join(demoDir, "sample", ext)); len(found) > 0 {
			t.Errorf("%s would be taken for a part of the module; their names must end in .txt", found)
		}
	}
}
