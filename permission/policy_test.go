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
	if !policy(t, Default, "deny Agent").DeniesAgent("x") || !p.Narrow("").DeniesAgent("Explore") {
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

// nest hides a command line in others, up to three deep.
func nest(t *rapid.T, command string) string {
	for range rapid.IntRange(0, 3).Draw(t, "depth") {
		form := rapid.SampledFrom([]string{"%s; ls", "ls && %s", "ls | %s", "(%s)", "{ %s; }", "echo $(%s)", `echo "${x:-$(%s)}"`, "if true; then %s; fi", "for i in 1; do %s; done", "f() { %s; }; f", "x=$(%s)", "cat <(%s)", "cat <<E\n$(%s)\nE", "[[ -n $(%s) ]]", "! %s", "%s &"}).Draw(t, "form")
		command = strings.Replace(form, "%s", command, 1)
	}
	return command
}

// No set of rules and no mode allows a command line in which a command is that a
// deny rule matches, however it is nested.
func TestNothingAllowsWhatADenyRuleMatches(t *testing.T) {
	place := workspace(t)
	rapid.Check(t, func(rt *rapid.T) {
		denied := rapid.SampledFrom([]struct{ rule, command string }{
			{"Bash(rm *)", "rm x"}, {"Bash(rm *)", "timeout 5 rm x"}, {"Bash(rm *)", "env A=b rm x"}, {"Bash(rm *)", "bash -c 'rm x'"}, {"Bash(git push *)", "git push origin"}, {"Bash(touch x)", "touch x"},
			{"Read(.env)", "cat .env"}, {"Read(.env)", "cat < link.txt"}, {"Edit(main.go)", "echo x > main.go"}, {"Edit(main.go)", "sed -i s/a/b/ main.go"}, {"Bash", "ls"},
		}).Draw(rt, "denied")
		rules := []string{"deny " + denied.rule, "allow Bash", "allow Bash(*)"}
		for range rapid.IntRange(0, 6).Draw(rt, "rules") {
			rules = append(rules, drawRule(rt, "allow", "ask"))
		}
		rules = rapid.Permutation(rules).Draw(rt, "order")
		mode := rapid.SampledFrom(Modes()).Draw(rt, "mode")
		c := shell(place, nest(rt, denied.command))
		if v := policy(t, mode, rules...).Decide(c); v.Effect == troupe.Allow {
			rt.Fatalf("%s with %v in mode %s: %+v", c.Input, rules, mode, v)
		}
	})
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

// A child never may what its parent may not, whatever it asks for; what it is
// kept from, all below it are.
func TestRightsOnlyShrink(t *testing.T) {
	place := workspace(t)
	tools := []string{"Bash", "Write", "Read", "mcp__*", "mcp__a", "Bash(rm *)", "Task", "WebFetch"}
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt, place)
		var rules []string
		for range rapid.IntRange(0, 4).Draw(rt, "rules") {
			rules = append(rules, drawRule(rt, "allow", "ask", "deny"))
		}
		parent := policy(t, rapid.SampledFrom(Modes()).Draw(rt, "mode"), rules...)
		above := parent.Decide(c)
		for range rapid.IntRange(1, 3).Draw(rt, "depth") {
			want := rapid.SampledFrom(append(Modes(), "")).Draw(rt, "want")
			child := parent.Narrow(want).Without(rapid.SliceOfN(rapid.SampledFrom(tools), 0, 2).Draw(rt, "without"), "a.md")
			v := child.Decide(c)
			if v.Effect == troupe.Allow && above.Effect != troupe.Allow || above.Effect == troupe.Deny && above.By == "rule" && v.Effect != troupe.Deny {
				rt.Fatalf("%s: the child in %s may: %+v; the parent %v in %s may not: %+v", c.Input, child.Mode, v, parent.Rules, parent.Mode, above)
			}
			if child.Withholds(c.Name) && v.Effect != troupe.Deny {
				rt.Fatalf("%s %s is withheld, and %+v", c.Name, c.Input, v)
			}
			parent, above = child, v
		}
	})
}

// What an agent is kept from, rules do not give back, in any mode, and nobody
// else is kept from it.
func TestWithout(t *testing.T) {
	place := workspace(t)
	p := policy(t, Bypass, "allow Bash", "allow Write", "allow mcp__a")
	below := p.Without([]string{"Write", "Bash(curl *)", "mcp__a", "Task"}, "narrow.md").Narrow(Bypass).Without([]string{"Glob"}, "lower.md")
	for name, kept := range map[string]bool{"Write": true, "Bash": true, "mcp__a__b": true, "mcp__ab__c": false, "Agent": true, "Glob": true, "Edit": false, "Read": false} {
		c := call(place, name, "command", "ls", "file_path", "src/a.go", "pattern", "*")
		v := below.Decide(c)
		if below.Withholds(name) != kept || (v.Effect == troupe.Deny) != kept || kept && !strings.Contains(v.Reason, ".md") {
			t.Errorf("%s: %+v", name, v)
		}
		if p.Withholds(name) || p.Decide(c).Effect == troupe.Deny {
			t.Errorf("%s is denied to the parent", name)
		}
	}
	if !policy(t, Bypass, "deny Write", "deny Bash(rm *)").Withholds("Write") || policy(t, Bypass, "deny Bash(rm *)", "ask Edit").Withholds("Bash") {
		t.Error("Withholds does not go by the rules")
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
