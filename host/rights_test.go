package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// A deny rule holds whoever calls, in every mode, and a rule that asks denies
// where nobody can be asked; what is allowed still runs.
func TestS76DenyRulesHoldForAll(t *testing.T) {
	for _, mode := range []permission.Mode{permission.Default, permission.Bypass} {
		callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
			set := with(t, inMode(mode), rule(troupe.Deny, "Bash(git stash:*)"), rule(troupe.Deny, "Read(./.env)"), rule(troupe.Ask, "Bash(mkdir *)"), rule(troupe.Allow, "Bash(touch *)"))
			got := call(t, set, bash("d1", "git stash"), bash("d2", "touch x && git stash pop"), use("d3", "Read", map[string]any{"file_path": ".env"}), use("d4", "Read", map[string]any{"file_path": "link.txt"}),
				bash("d5", "cat .env"), bash("d6", "mkdir made"), use("d7", "mcp__x__drop", map[string]any{}), bash("ok", "touch made2"))
			for _, id := range []string{"d1", "d2", "d3", "d4", "d5", "d6"} {
				if !got[id].Denied() {
					t.Errorf("%s: %s: %+v", mode, id, got[id])
				}
			}
			if !got["d7"].Result.IsError || got["ok"].Verdict.Effect != troupe.Allow || !set.p.made("made2") || set.p.made("made") || set.p.made("x") {
				t.Errorf("%s: %+v, %+v", mode, got["d7"], got["ok"])
			}
		})
	}
}

// Nothing is changed in plan mode, whoever is told to do it.
func TestS77PlanModeHoldsForAll(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, inMode(permission.Plan), rule(troupe.Allow, "Bash"), rule(troupe.Allow, "Edit"))
		got := call(t, set, use("write", "Write", map[string]any{"file_path": "new.txt", "content": "x"}), use("edit", "Edit", map[string]any{"file_path": "main.go", "old_string": "main", "new_string": "x"}),
			bash("touch", "touch new.txt"), bash("sh", "sh -c 'echo > new.txt'"), bash("read", "cat main.go"))
		for _, id := range []string{"write", "edit", "touch", "sh"} {
			if !got[id].Denied() || !strings.Contains(got[id].Verdict.Reason, "mode plan") {
				t.Errorf("%s: %+v", id, got[id])
			}
		}
		if got["read"].Verdict.Effect != troupe.Allow || set.p.made("new.txt") || string(read(t, filepath.Join(set.p.dir, "main.go"))) != "package main\n" {
			t.Errorf("reading: %+v", got["read"])
		}
	})
}

// What a definition's tools leave out is not kept from those below it, and rules
// of the user hold for all of them, in whatever order they are.
func TestS78ACoordinatorsWorkersHaveTheirOwnTools(t *testing.T) {
	for _, denied := range []bool{true, false} {
		rules := []func(*host.Options){rule(troupe.Allow, "Bash(rm:*)"), rule(troupe.Allow, "Write")}
		if denied {
			rules = append(rules, rule(troupe.Deny, "Bash(rm:*)"))
		}
		for range 2 {
			slices.Reverse(rules)
			set := with(t, append(rules, inMode(permission.AcceptEdits), func(o *host.Options) { o.Agent = "coordinator" })...)
			set.p.write(t, ".claude/agents/coordinator.md", "---\nname: coordinator\ndescription: leads\ntools: Agent, Read\n---\nYou lead.\n")
			set.p.write(t, ".claude/agents/worker.md", "---\nname: worker\ndescription: works\ntools: Write, Bash\n---\nYou work.\n")
			set.p.write(t, "old.txt", "x")
			got := by(fresh, "worker")(t, set,
				use("write", "Write", map[string]any{"file_path": "new.txt", "content": "x"}), bash("ls", "ls"), bash("rm", "rm old.txt"))
			if got["write"].Verdict.Effect != troupe.Allow || got["ls"].Verdict.Effect != troupe.Allow || !set.p.made("new.txt") {
				t.Errorf("the worker may not work: %+v", got)
			}
			if got["rm"].Denied() != denied || set.p.made("old.txt") != denied {
				t.Errorf("denied %v: %+v", denied, got["rm"])
			}
		}
	}
}

// Each simple command of a command line is judged by itself, whoever calls.
func TestS79ListsAreTakenApart(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, rule(troupe.Allow, "Bash(git:*)"), rule(troupe.Deny, "Bash(rm:*)"))
		set.p.write(t, "old.txt", "x")
		var calls []troupe.ToolUse
		for i, command := range []string{"git log && touch pwned", "git log; touch pwned", "git log | touch pwned", "git log & touch pwned", "git log || touch pwned", "git log\ntouch pwned", "git log |& touch pwned", "git log > ../pwned", "git --version > pwned"} {
			calls = append(calls, bash(fmt.Sprintf("ask%d", i), command))
		}
		calls = append(calls, bash("deny", "true; rm -rf old.txt"), bash("allow", "git --version && git --version"))
		got := call(t, set, calls...)
		for _, c := range calls[:len(calls)-1] {
			if !got[c.ID].Denied() {
				t.Errorf("%s: %+v", c.Input, got[c.ID])
			}
		}
		if got["deny"].Verdict.By != "rule" || got["allow"].Verdict.Effect != troupe.Allow || got["allow"].Result.IsError {
			t.Errorf("%+v, %+v", got["deny"], got["allow"])
		}
		if set.p.made("pwned") || set.p.made("../pwned") || !set.p.made("old.txt") {
			t.Error("it was done")
		}
	})
}

// So is each command in a substitution, a subshell, a function, a here-document.
func TestS80NestedCommandsAreSeen(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, rule(troupe.Allow, "Bash(echo:*)"), rule(troupe.Allow, "Bash(git:*)"), rule(troupe.Deny, "Bash(rm:*)"))
		set.p.write(t, "old", "x")
		var calls []troupe.ToolUse
		for i, command := range []string{"echo $(rm old)", "echo `rm old`", "(rm old)", "{ rm old; }", `echo "${x:-$(rm old)}"`, "if true; then rm old; fi", "f(){ rm old; }; f", "cat <<E\n$(rm old)\nE"} {
			calls = append(calls, bash(fmt.Sprintf("deny%d", i), command))
		}
		got := call(t, set, append(calls, bash("ask", "git status $(touch pwned)"), bash("allow", "echo '$(rm old)'"))...)
		for _, c := range calls {
			if !got[c.ID].Denied() || got[c.ID].Verdict.By != "rule" {
				t.Errorf("%s: %+v", c.Input, got[c.ID])
			}
		}
		if !got["ask"].Denied() || got["allow"].Verdict.Effect != troupe.Allow || set.p.made("pwned") || !set.p.made("old") {
			t.Errorf("%+v, %+v", got["ask"], got["allow"])
		}
	})
}

// A file that must not be read is not read by another name, nor by a command.
func TestS81DeniedFilesByOtherNames(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, inMode(permission.Bypass), rule(troupe.Deny, "Read(./.env)"), rule(troupe.Deny, "Edit(./locked/**)"))
		set.p.write(t, "locked/x", "x")
		if err := os.Symlink("locked", filepath.Join(set.p.dir, "open")); err != nil {
			t.Fatal(err)
		}
		var calls []troupe.ToolUse
		for i, name := range []string{".env", "link.txt", "d/.env", "a/../.env", ".ENV", filepath.Join(set.p.dir, "d", "link.txt")} {
			calls = append(calls, use(fmt.Sprintf("read%d", i), "Read", map[string]any{"file_path": name}), use(fmt.Sprintf("grep%d", i), "Grep", map[string]any{"pattern": "SECRET", "path": name, "output_mode": "content"}))
		}
		for i, command := range []string{"cat .env", "grep K .env", "cp .env x", "cat link.txt", "cat d/.env", "cat < .env", "cat .e*", "base64 .env", "cd a && cat ../.env", "tar cf x .", "cat $F"} {
			calls = append(calls, bash(fmt.Sprintf("bash%d", i), command))
		}
		calls = append(calls, use("write", "Write", map[string]any{"file_path": "open/new", "content": "x"}))
		got := call(t, set, append(calls, use("example", "Read", map[string]any{"file_path": ".env.example"}), use("all", "Grep", map[string]any{"pattern": "SECRET", "output_mode": "content"}))...)
		for _, c := range calls {
			if !got[c.ID].Denied() || strings.Contains(got[c.ID].Result.Content.Text(), "canary") {
				t.Errorf("%s: %+v", c.Input, got[c.ID])
			}
		}
		if got["example"].Result.IsError || got["all"].Result.IsError || strings.Contains(got["all"].Result.Content.Text(), "canary") || set.p.made("locked/new") {
			t.Errorf("%+v, %+v", got["example"], got["all"])
		}
	})
}

// Where nobody can be asked nothing waits: what would be asked about is denied at
// once, told to the agent, and noted.
func TestS82NobodyIsAsked(t *testing.T) {
	for mode, runs := range map[permission.Mode]bool{permission.Default: false, permission.AcceptEdits: false, permission.DontAsk: false, permission.Bypass: true} {
		callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
			set := with(t, inMode(mode))
			got := call(t, set, bash("one", "mkdir made"), bash("two", "cat main.go"))
			if got["one"].Denied() == runs || set.p.made("made") != runs || got["two"].Verdict.Effect != troupe.Allow {
				t.Errorf("%s: %+v, %+v", mode, got["one"], got["two"])
			}
			if !runs && !strings.Contains(got["one"].Verdict.Reason, "approval") {
				t.Errorf("%s: the agent is told %q", mode, got["one"].Verdict.Reason)
			}
		})
	}
}

// So it is with whatever agent there is below a coordinator: what the tools of its
// own definition give it may run, but for what the user denies.
func TestS78ADietIsNotHandedDown(t *testing.T) {
	allow, deny := rule(troupe.Allow, "Bash(rm:*)"), rule(troupe.Deny, "Bash(rm:*)")
	for _, rules := range [][]func(*host.Options){{allow, deny}, {deny, allow}, {allow}} {
		callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
			set := with(t, append(rules, inMode(permission.AcceptEdits), func(o *host.Options) { o.Agent = "coordinator" })...)
			set.p.write(t, ".claude/agents/coordinator.md", "---\nname: coordinator\ndescription: leads\ntools: Agent, SendMessage, TaskOutput, Read\n---\nYou lead.\n")
			set.p.write(t, "old.txt", "x")
			got := call(t, set, use("write", "Write", map[string]any{"file_path": "new.txt", "content": "x"}), bash("ls", "ls"), bash("rm", "rm old.txt"))
			kind := got["ls"].Definition
			own := kind != "coordinator" && kind != delegate.Fork // a fork has its parent's
			for id, m := range map[string]bool{"write": own, "ls": own, "rm": own && len(rules) == 1} {
				if got[id].Result.IsError == m || !own && !strings.Contains(got[id].Result.Content.Text(), "There is no tool") {
					t.Errorf("%s: %+v", id, got[id])
				}
			}
			if set.p.made("new.txt") != own || set.p.made("old.txt") == (own && len(rules) == 1) || own && len(rules) == 2 && !got["rm"].Denied() {
				t.Errorf("it may, by itself: %v; rm: %+v", own, got["rm"])
			}
		})
	}
}

// What a definition keeps its agent from, those that the agent starts are kept
// from too, however deep, and whatever they bring.
func TestS83RestrictionsBindAllBelow(t *testing.T) {
	const narrow = "---\nname: narrow\ndescription: leads\ntools: ['*', Agent]\ndisallowedTools: [Write, 'Bash(curl:*)']\n---\nYou lead.\n"
	check := func(t *testing.T, call troupetest.Caller[setting], change ...func(*host.Options)) {
		set := with(t, append(change, inMode(permission.Bypass), rule(troupe.Allow, "Write"), rule(troupe.Allow, "Bash"))...)
		set.p.write(t, ".claude/agents/narrow.md", narrow)
		got := call(t, set,
			use("write", "Write", map[string]any{"file_path": "new.txt", "content": "x"}), bash("curl", "curl -s file:///etc/hostname"), use("glob", "Glob", map[string]any{"pattern": "*.go"}))
		for _, id := range []string{"write", "curl"} {
			if m := got[id]; !m.Result.IsError || m.Verdict.Effect == troupe.Allow || set.p.made("new.txt") {
				t.Errorf("%s: %+v", id, m)
			}
		}
		if got["glob"].Result.IsError || got["glob"].Agent == "" {
			t.Errorf("what nobody keeps it from: %+v", got["glob"])
		}
	}
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		check(t, call, func(o *host.Options) { o.Agent = "narrow" })
	})
	check(t, by(fresh, "narrow", "wide")) // also if it is not the lead that is kept from it
}

// Rights do not depend on who calls: a call that the lead may make is allowed to
// all below it, by the same rule, and so is what it may not.
func TestOneDecisionForAll(t *testing.T) {
	var first map[string]troupetest.Made
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, rule(troupe.Allow, "Bash(touch *)"), rule(troupe.Deny, "Edit(a/**)"))
		got := call(t, set, bash("u1", "touch x"), bash("u2", "mkdir x"), use("u3", "Write", map[string]any{"file_path": "a/n", "content": "x"}), use("u4", "Write", map[string]any{"file_path": ".git/config", "content": "x"}),
			use("u5", "Read", map[string]any{"file_path": "/etc/hostname"}), use("u6", "WebFetch", map[string]any{"url": "http://localhost:1/", "prompt": "x"}), bash("u7", "git -c core.pager=x log"))
		if way.Name == "lead" {
			first = got
		}
		for id, m := range first {
			if g := got[id]; g.Verdict.Effect != m.Verdict.Effect || g.Verdict.By != m.Verdict.By {
				t.Errorf("%s: %+v, the lead: %+v", id, g.Verdict, m.Verdict)
			}
		}
		if way.Name == "lead" && got["u1"].Agent != session.Lead {
			t.Errorf("%+v", got["u1"])
		}
	})
}
