package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// A setting is where a caller runs and what is set there.
type setting struct {
	p      *place
	change []func(*host.Options)
	run    func(*testing.T, *host.Session) // the turn of the calls; nil is one that is let end
}

// callers starts an agent of a session in each way there is.
func callers() troupetest.Callers[setting] {
	reopen := func(fork bool) func(*testing.T, setting) *host.Session {
		return func(t *testing.T, s setting) *host.Session {
			old := s.p.once(t, s.change...)
			return s.p.open(t, append([]func(*host.Options){resume(t, old), func(o *host.Options) { o.Fork = fork }}, s.change...)...)
		}
	}
	fresh := func(t *testing.T, s setting) *host.Session { return s.p.open(t, s.change...) }
	defined := func(t *testing.T, s setting) *host.Session {
		s.p.write(t, ".claude/agents/boss.md", "---\nname: boss\ndescription: leads\n---\nYou lead.\n")
		return s.p.open(t, append([]func(*host.Options){func(o *host.Options) { o.Agent = "boss" }}, s.change...)...)
	}
	return troupetest.Callers[setting]{
		"lead":                                   by(fresh),
		"lead with a definition":                 by(defined),
		"resumed lead":                           by(reopen(false)),
		"fork of a session":                      by(reopen(true)),
		"sub-agent":                              by(fresh, ""),
		"sub-agent with a wider mode of its own": by(fresh, "wide"),
		"sub-agents side by side":                sideBySide,
		"nested sub-agent":                       by(fresh, "", "", ""),
		"sub-agent of a resumed lead":            by(reopen(false), ""),
		"sub-agent of a fork":                    by(reopen(true), ""),
		"sub-agent of a lead with a definition":  by(defined, ""),
	}
}

// by opens a session and has an agent make the calls: its lead, or the last in a
// chain of sub-agents of these types.
func by(open func(*testing.T, setting) *host.Session, types ...string) troupetest.Caller[setting] {
	return func(t *testing.T, set setting, calls ...troupe.ToolUse) map[string]troupetest.Made {
		t.Helper()
		set.p.write(t, ".claude/agents/wide.md", "---\nname: wide\ndescription: may all\npermissionMode: bypassPermissions\n---\nYou act.\n")
		s := open(t, set)
		for i, kind := range types {
			set.p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use(fmt.Sprintf("start%d", i), "Agent", startInput(kind)))})
		}
		for _, c := range calls {
			set.p.provider.Queue(troupetest.Reply{Message: troupetest.Use(c)})
		}
		set.p.provider.Say(make([]string, len(types)+1)...)
		return asked(t, set, s)
	}
}

func startInput(kind string) map[string]any {
	in := map[string]any{"description": "act", "prompt": "act"}
	if kind != "" {
		in["subagent_type"] = kind
	}
	return in
}

// sideBySide has two sub-agents share the calls, at the same time.
func sideBySide(t *testing.T, set setting, calls ...troupe.ToolUse) map[string]troupetest.Made {
	t.Helper()
	s := set.p.open(t, set.change...)
	set.p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("start1", "Agent", startInput("")), use("start2", "Agent", startInput("")))})
	for _, c := range calls {
		set.p.provider.Queue(troupetest.Reply{Message: troupetest.Use(c)})
	}
	set.p.provider.Say("", "", "")
	return asked(t, set, s)
}

// asked gives the lead its prompt and returns what became of all calls.
func asked(t *testing.T, set setting, s *host.Session) map[string]troupetest.Made {
	t.Helper()
	if set.run == nil {
		set.run = func(t *testing.T, s *host.Session) { ask(t, s, "have it done") }
	}
	set.run(t, s)
	made := map[string]troupetest.Made{}
	for log := range tree(t, s.Path()) {
		if !strings.HasSuffix(log, ".jsonl") || strings.HasSuffix(log, ".sent.jsonl") {
			continue
		}
		agent := strings.TrimSuffix(filepath.Base(log), ".jsonl")
		state := new(troupe.State)
		for r, err := range session.Read(log) {
			if err != nil {
				t.Fatal(err)
			}
			state.Apply(r.Event)
			switch ev := r.Event.(type) {
			case troupe.Decided:
				m := made[ev.Use]
				m.Agent, m.Mode, m.Verdict = agent, state.Mode, ev.Verdict
				made[ev.Use] = m
			case troupe.ToolEnded:
				m := made[ev.Use]
				m.Result = ev.Result
				made[ev.Use] = m
			}
		}
	}
	return made
}

// with is a setting of a new place in which files are, and what is set.
func with(t *testing.T, change ...func(*host.Options)) setting {
	t.Helper()
	p := newPlace(t)
	for name, text := range map[string]string{"main.go": "package main\n", ".env": "SECRET=canary\n", ".env.example": "SECRET=\n", "a/b.txt": "b\n"} {
		p.write(t, name, text)
	}
	for link, to := range map[string]string{"link.txt": ".env", "d": "."} {
		if err := os.Symlink(to, filepath.Join(p.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return setting{p: p, change: change}
}

func inMode(m permission.Mode) func(*host.Options) { return func(o *host.Options) { o.Mode = m } }

func bash(id, command string) troupe.ToolUse {
	return use(id, "Bash", map[string]any{"command": command})
}

// made is whether there is a file in the directory of the session.
func (p *place) made(name string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, name))
	return err == nil
}

// The input of the Agent tool starts agents in no way that is not in the table. Who
// adds a field by which an agent runs otherwise adds a way and then the field here.
func TestWaysOfTheAgentTool(t *testing.T) {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[delegate.Input]()) {
		fields = append(fields, f.Name)
	}
	if diff := cmp.Diff([]string{"Description", "Prompt", "Type", "Model", "Effort"}, fields); diff != "" {
		t.Error(diff)
	}
}

// Each caller makes its calls as the agent that it is for.
func TestCallersAreWhatTheySay(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t)
		got := call(t, set, use("one1", "Glob", map[string]any{"pattern": "*.go"}), use("two2", "Glob", map[string]any{"pattern": "*.go"}))
		for _, id := range []string{"one1", "two2"} {
			m := got[id]
			if lead := m.Agent == session.Lead; m.Verdict.Effect != troupe.Allow || lead != strings.HasPrefix(way.Runs, "host.Session.Run") || m.Mode != "default" {
				t.Errorf("%s: %+v", id, m)
			}
		}
	})
}
