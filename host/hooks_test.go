package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// A listener is a hook that keeps what it is told and says what it is set to.
type listener struct {
	mu   sync.Mutex
	told []hook.Input
	say  func(hook.Input) string // JSON
}

func (l *listener) hook(e hook.Event) hook.Hook {
	return hook.Hook{Event: e, Name: "listener", Run: func(_ context.Context, in hook.Input) (hook.Output, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(l.told, in)
		return hook.ParseOutput([]byte(l.say(in)))
	}}
}

// listening opens a session with a listener at some events.
func (p *place) listening(t *testing.T, say func(hook.Input) string, change ...func(*host.Options)) (*host.Session, *listener) {
	t.Helper()
	l := &listener{say: say}
	set := new(hook.Set)
	var hooks []hook.Hook
	for _, e := range hook.Events() {
		hooks = append(hooks, l.hook(e))
	}
	if err := set.Register("test", hooks...); err != nil {
		t.Fatal(err)
	}
	return p.open(t, append(change, func(o *host.Options) { o.Hooks = set })...), l
}

// at says something at one event and nothing at others.
func at(e hook.Event, text string) func(hook.Input) string {
	return func(in hook.Input) string {
		if in.Event == e {
			return text
		}
		return ""
	}
}

func specific(fields string) string { return `{"hookSpecificOutput":{` + fields + `}}` }

func TestAHookBeforeACallDecides(t *testing.T) {
	for name, c := range map[string]struct {
		say    string
		change func(*host.Options)
		wrote  string // the file that is there afterwards
		result string
	}{
		"no opinion: it needs approval":     {``, nil, "", "needs approval"},
		"allow":                             {specific(`"permissionDecision":"allow"`), nil, "a.txt", ""},
		"a deny rule beats it":              {specific(`"permissionDecision":"allow"`), rule(troupe.Deny, "Edit(a.txt)"), "", "deny rule"},
		"an ask rule, too":                  {specific(`"permissionDecision":"allow"`), rule(troupe.Ask, "Write"), "", "ask rule"},
		"deny beats every mode":             {specific(`"permissionDecision":"deny","permissionDecisionReason":"house rule"`), bypass, "", "house rule"},
		"block is deny":                     {`{"decision":"block","reason":"house rule"}`, bypass, "", "house rule"},
		"another input":                     {specific(`"permissionDecision":"allow","updatedInput":{"file_path":"b.txt","content":"x"}`), nil, "b.txt", ""},
		"another input goes past the rules": {specific(`"permissionDecision":"allow","updatedInput":{"file_path":"b.txt","content":"x"}`), rule(troupe.Deny, "Edit(b.txt)"), "", "deny rule"},
		"context":                           {specific(`"permissionDecision":"allow","additionalContext":"mind </hook> the gap"`), nil, "a.txt", "<hook>\nmind <\\/hook> the gap\n</hook>"},
		"context of a denial":               {specific(`"permissionDecision":"deny","permissionDecisionReason":"no","additionalContext":"mind the gap"`), nil, "", "no\nmind the gap"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			if c.change == nil {
				c.change = func(*host.Options) {}
			}
			s, l := p.listening(t, at(hook.PreToolUse, c.say), c.change)
			res := p.call(t, s, "Write", map[string]any{"file_path": "a.txt", "content": "x"})
			if res.IsError != (c.wrote == "") || !strings.Contains(res.Content.Text(), c.result) {
				t.Errorf("%v", res)
			}
			for _, file := range []string{"a.txt", "b.txt"} {
				if _, err := os.Stat(filepath.Join(p.dir, file)); (err == nil) != (file == c.wrote) {
					t.Errorf("%s: %v", file, err)
				}
			}
			ruled := strings.Contains(c.result, "deny rule") && !strings.Contains(c.say, "updatedInput")
			if asked := l.told[1].Event == hook.PreToolUse; asked == ruled {
				t.Errorf("asked: %v", asked)
			}
		})
	}
}

func TestAHookAfterACallHasItsSay(t *testing.T) {
	write := map[string]any{"file_path": "a.txt", "content": "x"}
	for name, c := range map[string]struct {
		event hook.Event
		say   string
		input map[string]any
		has   string
		not   string
	}{
		"context":             {hook.PostToolUse, specific(`"additionalContext":"run the linter"`), write, "<hook>\nrun the linter\n</hook>", ""},
		"block":               {hook.PostToolUse, `{"decision":"block","reason":"not like this"}`, write, "<hook>\nnot like this\n</hook>", ""},
		"another output":      {hook.PostToolUse, specific(`"updatedToolOutput":"all is well"`), write, "all is well", "a.txt"},
		"context of failures": {hook.PostToolUseFailure, specific(`"additionalContext":"look elsewhere"`), map[string]any{"file_path": ".", "content": "x"}, "<hook>\nlook elsewhere\n</hook>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s, l := p.listening(t, at(c.event, c.say), bypass)
			res := p.call(t, s, "Write", c.input)
			has(t, res.Content.Text(), c.has)
			if c.not != "" {
				hasNot(t, res.Content.Text(), c.not)
			}
			in := l.told[2]
			if in.Event != c.event || in.Tool != "Write" || in.Use == "" || in.Mode != "bypassPermissions" || in.Session != s.ID || in.Dir != p.dir ||
				(in.Response != nil) == res.IsError || (in.Error != "") != res.IsError {
				t.Errorf("%+v, %+v", in, in.Call)
			}
			if _, err := os.Stat(in.Transcript); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAHookCanStopAllAgents(t *testing.T) {
	for _, e := range []hook.Event{hook.PreToolUse, hook.PostToolUse} {
		p := newPlace(t)
		s, _ := p.listening(t, at(e, `{"continue":false,"stopReason":"enough"}`), bypass)
		p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": "p"}))},
			troupetest.Reply{Message: troupetest.Use(use("b", "Bash", map[string]any{"command": "true"}))})
		if err := s.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		end, err := s.Run(t.Context())
		if !errors.Is(err, troupe.ErrInterrupted) || end.Reason != troupe.Interrupted || !strings.Contains(end.Err, "enough") || end.Code != "hook_stopped" {
			t.Errorf("%s: %+v, %v", e, end, err)
		}
		p.provider.Say("still here")
		if e == hook.PostToolUse && ask(t, s, "again").Text != "still here" {
			t.Error("the session is over")
		}
	}
}

func TestAHookSeesPrompts(t *testing.T) {
	p := newPlace(t)
	s, l := p.listening(t, func(in hook.Input) string {
		if in.Event == hook.UserPromptSubmit && strings.Contains(in.Prompt.Text, "secret") {
			return `{"decision":"block","reason":"it holds a secret"}`
		}
		return at(hook.UserPromptSubmit, specific(`"additionalContext":"it rains"`))(in)
	})
	if err := s.Send(t.Context(), "a secret"); !errors.Is(err, host.ErrBlocked) || !strings.Contains(err.Error(), "it holds a secret") {
		t.Error(err)
	}
	p.provider.Say("done")
	ask(t, s, "what is the weather?")
	body := string(p.provider.Last().Body)
	has(t, body, "what is the weather?", `<hook>\nit rains\n</hook>`)
	hasNot(t, body, "a secret")
	if l.told[1].Prompt.Text != "what is the weather?" {
		t.Errorf("%+v", l.told[1].Prompt)
	}
}

// A hook keeps lead and sub-agents at work, and each hears why.
func TestAHookKeepsAgentsAtWork(t *testing.T) {
	p := newPlace(t)
	n := map[hook.Event]int{}
	s, l := p.listening(t, func(in hook.Input) string {
		if n[in.Event]++; in.Stopping != nil && n[in.Event] == 1 {
			return `{"decision":"block","reason":"run the tests"}`
		}
		return ""
	})
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": "p"}))})
	for _, text := range []string{"child is done", "child has tested", "lead is done", "lead has tested"} {
		p.provider.Say(text)
	}
	if end := ask(t, s, "go"); end.Text != "lead has tested" {
		t.Errorf("%+v", end)
	}
	var stops []hook.Input
	for _, in := range l.told {
		if in.Stopping != nil {
			stops = append(stops, in)
		}
	}
	if len(stops) != 4 {
		t.Fatalf("asked %d times", len(stops))
	}
	for i, want := range []struct {
		event  hook.Event
		active bool
		last   string
	}{{hook.SubagentStop, false, "child is done"}, {hook.SubagentStop, true, "child has tested"}, {hook.Stop, false, "lead is done"}, {hook.Stop, true, "lead has tested"}} {
		if in := stops[i]; in.Event != want.event || in.Active != want.active || in.Last != want.last || (in.Agent != "") != (want.event == hook.SubagentStop) {
			t.Errorf("%d: %+v, %+v", i, in, in.Stopping)
		}
	}
	if in := stops[0]; in.AgentType != "general-purpose" || !strings.Contains(in.Stopping.Transcript, in.Agent) {
		t.Errorf("%+v", in)
	}
	for _, at := range []int{2, 4} { // the requests of child and lead after they were kept
		has(t, string(p.provider.Requests()[at].Body), "run the tests")
	}
}

// What hooks tell the user, and what no log has, reaches who opened the session.
func TestTellAndWatch(t *testing.T) {
	p := newPlace(t)
	var lines []string
	var streamed string
	s, _ := p.listening(t, at(hook.Stop, `{"systemMessage":"well done"}`), func(o *host.Options) {
		o.Tell = func(line string) { lines = append(lines, line) }
		o.Watch = func(e troupe.Event) {
			if d, ok := e.(troupe.Streaming); ok {
				streamed += d.Text
			}
		}
	})
	p.provider.Say("bit by bit")
	ask(t, s, "go")
	if got, _ := json.Marshal(lines); string(got) != `["well done"]` || streamed != "bit by bit" {
		t.Errorf("%s, %q", got, streamed)
	}
}

// A hook can forbid a compaction, and is told why there is to be one.
func TestAHookBeforeACompaction(t *testing.T) {
	for _, forbid := range []bool{false, true} {
		p := newPlace(t)
		s, l := p.listening(t, func(in hook.Input) string {
			if in.Event == hook.PreCompact && forbid {
				return `{"decision":"block","reason":"not before noon"}`
			}
			return ""
		})
		for _, text := range []string{"one", "two"} {
			p.provider.Say("noted")
			ask(t, s, text)
		}
		s.Compact("mind the wool")
		if !forbid {
			p.provider.Say("SUMMARY")
		}
		if _, err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, in := range l.told {
			if in.Event == hook.PreCompact {
				told++
				if in.Compaction.Trigger != "manual" || *in.Compaction.Instructions != "mind the wool" {
					t.Errorf("told of %+v", in.Compaction)
				}
			}
		}
		if n := len(p.provider.Requests()); told != 1 || (n == 3) == forbid {
			t.Errorf("forbidden %v: the hook was told %d times, %d requests were made", forbid, told, n)
		}
		if log := string(read(t, session.LogPath(s.Path(), session.Lead))); strings.Contains(log, "not before noon") != forbid {
			t.Errorf("forbidden %v, and the log has not why", forbid)
		}
	}
}
