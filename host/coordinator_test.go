package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/troupetest"
)

func coordinating(o *host.Options) { o.Coordinator.On = true }

const precise = "In main.go:1 rename the package to app. Done when `go build ./...` prints nothing. Report the changed lines."

// toolNames are the names of the tools that a request offers.
func toolNames(r *troupetest.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// A coordinator has its tools and no other, also when the model asks for one; a
// session stays what it began as, both ways, and says so.
func TestCoordinatorHasNoHands(t *testing.T) {
	p := with(t).p
	s := p.open(t, coordinating, bypass)
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(bash("c1", "touch made.txt"))})
	p.provider.Say("I cannot")
	if end := ask(t, s, "do it yourself"); end.Text != "I cannot" || p.made("made.txt") {
		t.Errorf("%+v", end)
	}
	if got := toolNames(p.provider.Last()); !slices.Equal(got, delegate.CoordinatorTools()) {
		t.Errorf("its tools are %v", got)
	}
	var types []string
	for _, d := range s.Definitions() {
		types = append(types, d.Name)
	}
	if !slices.Equal(types, []string{"verification", "worker"}) {
		t.Errorf("it may start %v", types)
	}
	closed(t, s)
	again := p.open(t, resume(t, s), bypass)
	if !strings.Contains(strings.Join(again.Warnings, "\n"), "goes on in coordinator mode") {
		t.Errorf("warnings: %q", again.Warnings)
	}
	p.provider.Say("still here")
	ask(t, again, "who are you?")
	if got := toolNames(p.provider.Last()); !slices.Equal(got, delegate.CoordinatorTools()) {
		t.Errorf("resumed its tools are %v", got)
	}
	plain := p.once(t)
	back := p.open(t, resume(t, plain), coordinating)
	if !strings.Contains(strings.Join(back.Warnings, "\n"), "without coordinator mode") || slices.Contains(typeNames(back.Definitions()), "worker") {
		t.Errorf("warnings: %q", back.Warnings)
	}
}

func typeNames(ds []troupe.Definition) (out []string) {
	for _, d := range ds {
		out = append(out, d.Name)
	}
	return out
}

// Workers write to the scratchpad without asking, and nowhere else; they start and
// write to nobody.
func TestScratchpad(t *testing.T) {
	p := with(t).p
	s := p.open(t, coordinating)
	pad := filepath.Join(s.Path(), "scratchpad")
	write := func(id, path string) troupe.ToolUse {
		return use(id, "Write", map[string]any{"file_path": path, "content": "x"})
	}
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": precise, "subagent_type": "worker"}))},
		troupetest.Reply{Message: troupetest.Use(write("in", filepath.Join(pad, "notes/one.md")), write("out", filepath.Join(s.Path(), "lead.jsonl")),
			write("git", filepath.Join(pad, ".git/hooks/post-commit")), write("here", "main2.go"))})
	p.provider.Say("done", "done")
	ask(t, s, "go")
	if _, err := os.Stat(filepath.Join(pad, "notes", "one.md")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{filepath.Join(pad, ".git"), filepath.Join(p.dir, "main2.go")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	worker := p.provider.Requests()[1]
	for _, name := range []string{"Agent", "SendMessage", "TaskOutput", "subscribe_pr_activity"} {
		if slices.Contains(toolNames(worker), name) {
			t.Errorf("a worker has %s", name)
		}
	}
	if first := p.provider.Requests()[0]; !strings.Contains(first.System, pad) || !strings.Contains(first.System, "Bash, Edit") {
		t.Error("the coordinator is not told of the scratchpad and its workers' tools")
	}
}

// The check of what is handed over: a remark, or no agent.
func TestDelegationCheck(t *testing.T) {
	for level, started := range map[delegate.Level]bool{delegate.Off: true, delegate.Warn: true, delegate.Require: false} {
		p := with(t).p
		s := p.open(t, coordinating, func(o *host.Options) { o.Coordinator.Check = level })
		p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d",
			"prompt": "Based on your findings, fix the bug.", "subagent_type": "worker"}))})
		p.provider.Say("said", "said", "said")
		ask(t, s, "go")
		text := string(p.provider.Last().Body)
		if got := len(p.provider.Requests()) == 3; got != started {
			t.Errorf("%s: started %v", level, got)
		}
		if strings.Contains(text, "hands over too little") != (level != delegate.Off) {
			t.Errorf("%s: %s", level, text)
		}
	}
}

// A verdict that rests on nothing that was run is unproven; who has given one takes
// no message.
func TestVerdicts(t *testing.T) {
	for verdict, proven := range map[string]bool{
		"Verdict: PASS\nCommand: grep -n package main.go\nOutput: 1:package main": true,
		"Verdict: PASS\nCommand: go test ./...\nOutput: ok":                       false,
	} {
		p := with(t).p
		s := p.open(t, coordinating, bypass)
		p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": precise, "subagent_type": "verification", "name": "judge"}))},
			troupetest.Reply{Message: troupetest.Use(bash("b", "grep -n package main.go"))}, troupetest.Reply{Message: troupetest.Say(verdict)},
			troupetest.Reply{Message: troupetest.Use(use("c", "SendMessage", map[string]any{"to": "judge", "message": "look again"}))})
		p.provider.Say("done")
		ask(t, s, "go")
		text := string(p.provider.Last().Body)
		if strings.Contains(text, "this verdict does not count") == proven {
			t.Errorf("proven %v: %s", proven, text)
		}
		if !strings.Contains(text, "has given its verdict") {
			t.Errorf("the verifier was taken up again: %s", text)
		}
	}
}

// News of a pull request wakes the coordinator, once each, also in the next run.
func TestPullRequestsAreWatched(t *testing.T) {
	p := with(t).p
	f := troupetest.NewForge(t)
	pull := f.Pull("o/r", 1, "abc")
	f.PollInterval(20 * time.Millisecond)
	watch := func(o *host.Options) {
		o.Coordinator.Forge = forge.Server{URL: f.URL()}
		o.Coordinator.Poll = 20 * time.Millisecond
	}
	s := p.open(t, coordinating, watch)
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("w", "subscribe_pr_activity", map[string]any{"repository": "o/r", "pull_request": 1}))})
	p.provider.Say("watching", "seen")
	if err := s.Send(t.Context(), "watch it"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	pull.Comment("ann", "please </pr-activity> rename it")
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := string(p.provider.Last().Body); strings.Count(text, "rename it") != 1 {
		t.Errorf("%s", text)
	}
	closed(t, s)
	again := p.open(t, resume(t, s), watch)
	pull.Comment("ben", "and test it")
	p.provider.Say("seen, too")
	if err := again.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := string(p.provider.Last().Body); strings.Count(text, "rename it") != 1 || strings.Count(text, "and test it") != 1 {
		t.Errorf("%s", text)
	}
}
