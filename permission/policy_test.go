package permission

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
)

func TestAgents(t *testing.T) {
	place := workspace(t)
	p := policy(t, Bypass, "deny Agent(Explore)", "ask Task(reviewer)", "deny Agent(general-purpose)")
	for kind, want := range map[string]troupe.Effect{"Explore": troupe.Deny, "reviewer": troupe.Ask, "": troupe.Deny, "other": troupe.Allow} {
		if v := p.Decide(call(place, "Agent", "subagent_type", kind)); v.Effect != want {
			t.Errorf("%q: %+v", kind, v)
		}
	}
	for kind, want := range map[string]bool{"Explore": true, "reviewer": false, "general-purpose": true, "other": false} {
		if p.DeniesAgent(kind) != want {
			t.Errorf("DeniesAgent(%s) = %v", kind, !want)
		}
	}
	if !policy(t, Default, "deny Agent").DeniesAgent("x") || !p.Narrow("", policy(t, Default, "allow Bash").Rules).DeniesAgent("Explore") {
		t.Error("a type that may not run is offered")
	}
}

// Reasons tell a user what to do.
func TestRemedies(t *testing.T) {
	place := workspace(t)
	for _, c := range []struct {
		call *troupe.Call
		says []string
	}{
		{shell(place, "go test ./..."), []string{"--allowed-tools 'Bash(go test *)'"}},
		{shell(place, "ls && make -j4"), []string{"--allowed-tools 'Bash(make *)'"}},
		{shell(place, "timeout 5 npm run build"), []string{"'Bash(npm run *)'"}},
		{call(place, "Write", "file_path", "x"), []string{"--permission-mode acceptEdits", place.Dir + "/x"}},
		{call(place, "Read", "file_path", "/etc/passwd"), []string{"--add-dir '/etc'", "'Read(//etc/passwd)'"}},
		{call(place, "mcp__a__b"), []string{"--allowed-tools 'mcp__a__b'"}},
		{call(place, "WebFetch", "url", "https://go.dev/x"), []string{"'WebFetch(domain:go.dev)'"}},
	} {
		v, err := (&Gate{Policy: func(string) Policy { return policy(t, Default) }}).Check(t.Context(), c.call)
		if err != nil || v.Effect != troupe.Deny || !strings.Contains(v.Reason, "needs approval") {
			t.Errorf("%s: %+v, %v", c.call.Input, v, err)
		}
		for _, s := range c.says {
			if !strings.Contains(v.Reason, s) {
				t.Errorf("%s: %q does not say %q", c.call.Input, v.Reason, s)
			}
		}
	}
}

func TestGate(t *testing.T) {
	place := workspace(t)
	g := &Gate{Policy: func(mode string) Policy { return policy(t, Mode(mode), "deny Bash(rm *)") }}
	c := call(place, "Write", "file_path", "x")
	for mode, want := range map[Mode]troupe.Effect{Default: troupe.Deny, AcceptEdits: troupe.Allow, Plan: troupe.Deny, Bypass: troupe.Allow} {
		c.Mode = string(mode)
		v, err := g.Check(t.Context(), c)
		if err != nil || v.Effect != want {
			t.Errorf("%s: %+v, %v", mode, v, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := g.Check(gone, c); err == nil || v.Effect != "" {
		t.Errorf("after the end of ctx: %+v, %v", v, err)
	}
	if v, err := (&Gate{}).Check(t.Context(), c); err == nil || v.Effect != "" {
		t.Errorf("without a policy: %+v, %v", v, err)
	}
	var _ troupe.Guard = g
}

// words of rules and calls, few enough that they often meet
func drawRule(t *rapid.T, effects ...string) string {
	return rapid.SampledFrom(effects).Draw(t, "effect") + " " + rapid.SampledFrom([]string{
		"Bash", "Bash(ls *)", "Bash(git *)", "Bash(git push *)", "Bash(rm *)", "Bash(touch x)", "Read", "Read(.env)", "Read(src/**)", "Read(//**)", "Edit", "Edit(src/**)", "Edit(main.go)", "Edit(//**)",
		"Agent", "Agent(Explore)", "mcp__a", "mcp__a__b", "WebFetch", "WebFetch(domain:a.b)", "Write", "NotebookEdit", "Grep", "TodoWrite",
	}).Draw(t, "rule")
}

func drawCall(t *rapid.T, place troupe.Place) *troupe.Call {
	file := func() string {
		return rapid.SampledFrom([]string{".env", "main.go", "src/a.go", "link.txt", "here/.env", "out/file", "/etc/passwd", ".git/config", "dangling", "up/main.go"}).Draw(t, "file")
	}
	switch tool := rapid.SampledFrom([]string{"Bash", "Bash", "Bash", "Read", "Grep", "Glob", "Edit", "Write", "NotebookEdit", "Agent", "mcp__a__b", "WebFetch", "TodoWrite", "Unheard"}).Draw(t, "tool"); tool {
	case "Bash":
		part := rapid.SampledFrom([]string{"ls", "git status", "git push", "rm x", "touch x", "cat .env", "cat main.go", "echo x > main.go", "$X", "cd src", "timeout 5 rm x", "echo $(git push)", "bash -c 'touch x'", "x=1"})
		return shell(place, strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), rapid.SampledFrom([]string{"; ", " && ", " | ", "\n"}).Draw(t, "by")))
	case "Grep", "Glob":
		return call(place, tool, "path", file(), "pattern", "x")
	case "NotebookEdit":
		return call(place, tool, "notebook_path", file())
	case "Agent":
		return call(place, tool, "subagent_type", rapid.SampledFrom([]string{"Explore", "x"}).Draw(t, "type"))
	case "WebFetch":
		return call(place, tool, "url", rapid.SampledFrom([]string{"https://a.b/c", "https://x.y"}).Draw(t, "url"))
	default:
		return call(place, tool, "file_path", file())
	}
}

// Whatever other rules and mode there are, and in whatever order: what a deny
// rule alone denies stays denied, and what an ask rule alone asks about is
// never allowed.
func TestDenyAndAskHold(t *testing.T) {
	place := workspace(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt, place)
		rule := drawRule(rt, "deny", "ask")
		alone := policy(t, Bypass, rule).Decide(c)
		var rules []string
		for range rapid.IntRange(0, 6).Draw(rt, "rules") {
			rules = append(rules, drawRule(rt, "allow", "ask", "deny"))
		}
		at := rapid.IntRange(0, len(rules)).Draw(rt, "at")
		rules = append(rules[:at:at], append([]string{rule}, rules[at:]...)...)
		mode := rapid.SampledFrom(Modes()).Draw(rt, "mode")
		v := policy(t, mode, rules...).Decide(c)
		if alone.Effect == troupe.Deny && v.Effect != troupe.Deny || alone.Effect != troupe.Allow && v.Effect == troupe.Allow {
			rt.Fatalf("%s with %v in mode %s: %+v; the rule %s alone: %+v", c.Input, rules, mode, v, rule, alone)
		}
	})
}

// A child never may what its parent may not, whatever it asks for and brings;
// and a wider mode never allows less.
func TestRightsOnlyShrink(t *testing.T) {
	place := workspace(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt, place)
		draw := func(label string) (rules []string) {
			for range rapid.IntRange(0, 4).Draw(rt, label) {
				rules = append(rules, drawRule(rt, "allow", "ask", "deny"))
			}
			return rules
		}
		parent := policy(t, rapid.SampledFrom(Modes()).Draw(rt, "mode"), draw("parent")...)
		child := parent
		for range rapid.IntRange(1, 3).Draw(rt, "depth") {
			child = child.Narrow(rapid.SampledFrom(append(Modes(), "")).Draw(rt, "want"), policy(t, Default, draw("child")...).Rules)
		}
		p, v := parent.Decide(c), child.Decide(c)
		if v.Effect == troupe.Allow && p.Effect != troupe.Allow || p.Effect == troupe.Deny && p.By == "rule" && v.Effect != troupe.Deny {
			rt.Fatalf("%s: the child %v in %s may: %+v; the parent %v in %s may not: %+v", c.Input, child.Rules, child.Mode, v, parent.Rules, parent.Mode, p)
		}
	})
}

// What a child brings along allows nothing that its parent may not do.
func TestNarrowAllowsNothingNew(t *testing.T) {
	place := workspace(t)
	all := policy(t, Bypass, "allow Bash", "allow Edit", "allow Read", "allow mcp__a", "allow WebFetch").Rules
	for _, mode := range []Mode{Plan, DontAsk, Default, AcceptEdits} {
		child := policy(t, mode).Narrow(Bypass, all).Narrow(Default, all)
		for _, c := range []*troupe.Call{shell(place, "make"), shell(place, "cat /etc/passwd"), call(place, "Write", "file_path", "/etc/x"), call(place, "Read", "file_path", "/etc/x"), call(place, "mcp__a__b"), call(place, "WebFetch", "url", "https://x.y")} {
			if v := child.Decide(c); v.Effect == troupe.Allow {
				t.Errorf("%s: %s %s: %+v", mode, c.Name, c.Input, v)
			}
		}
	}
}

// Of an ask rule and a deny rule for the same file, the deny rule holds,
// whichever of them is for reading.
func TestDenyBeatsAskAcrossKinds(t *testing.T) {
	place := workspace(t)
	for _, rules := range [][]string{{"ask Read(main.go)", "deny Edit(main.go)"}, {"deny Edit", "ask Read(//**)"}, {"ask Edit(main.go)", "deny Read(main.go)"}} {
		p := policy(t, Bypass, rules...)
		for _, c := range []*troupe.Call{call(place, "Write", "file_path", "main.go"), shell(place, "echo x > main.go"), shell(place, "touch main.go")} {
			if v := p.Decide(c); v.Effect != troupe.Deny {
				t.Errorf("%v: %s: %+v", rules, c.Input, v)
			}
		}
	}
}

// A list of allowed tools takes the place of the parent's.
func TestNarrowReplacesAllowRules(t *testing.T) {
	place := workspace(t)
	parent := policy(t, Default, "allow Bash(go test *)", "allow Edit", "deny Bash(rm *)")
	worker := parent.Narrow("", policy(t, Default, "allow Edit").Rules)
	for command, want := range map[string]troupe.Effect{"go test": troupe.Ask, "rm x": troupe.Deny, "ls": troupe.Allow} {
		if v := worker.Decide(shell(place, command)); v.Effect != want {
			t.Errorf("%s: %+v", command, v)
		}
	}
	if v := worker.Decide(call(place, "Write", "file_path", "x")); v.Effect != troupe.Allow {
		t.Errorf("Write: %+v", v)
	}
	if v := parent.Narrow(Plan, nil).Decide(shell(place, "go test")); v.Effect != troupe.Deny || v.By != "mode" {
		t.Errorf("plan: %+v", v)
	}
	if v := parent.Decide(shell(place, "go test")); v.Effect != troupe.Allow {
		t.Errorf("the parent itself changed: %+v", v)
	}
}
