package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// What becomes of files without any rule, in every mode: d denied, ? asked, + allowed.
func TestFilesUnderModes(t *testing.T) {
	place := workspace(t)
	for _, c := range []struct{ tool, field, path, plan, dontAsk, normal, acceptEdits, bypass string }{
		{"Read", "file_path", "main.go", "+", "+", "+", "+", "+"},
		{"Read", "file_path", "here/src/a.go", "+", "+", "+", "+", "+"},
		{"Read", "file_path", "new/file", "+", "+", "+", "+", "+"},
		{"Read", "file_path", "../outside/file", "?", "d", "?", "?", "+"},
		{"Read", "file_path", "out/file", "?", "d", "?", "?", "+"},
		{"Read", "file_path", "dangling", "?", "d", "?", "?", "+"},
		{"Read", "file_path", "/etc/passwd", "?", "d", "?", "?", "+"},
		{"Read", "file_path", "loop", "d", "d", "d", "d", "d"},
		{"Read", "file_path", "", "d", "d", "d", "d", "d"},
		{"Glob", "pattern", "**/*.go", "+", "+", "+", "+", "+"},
		{"Glob", "pattern", "/etc/*", "?", "d", "?", "?", "+"},
		{"Glob", "pattern", "../*", "?", "d", "?", "?", "+"},
		{"Glob", "pattern", "*/../../*", "d", "d", "d", "d", "d"},
		{"Grep", "pattern", "/etc/x", "+", "+", "+", "+", "+"},
		{"Grep", "path", "/etc", "?", "d", "?", "?", "+"},
		{"Grep", "path", "src", "+", "+", "+", "+", "+"},
		{"Write", "file_path", "main.go", "d", "d", "?", "+", "+"},
		{"Write", "file_path", "new/dir/file", "d", "d", "?", "+", "+"},
		{"Edit", "file_path", "src/../main.go", "d", "d", "?", "+", "+"},
		{"NotebookEdit", "notebook_path", "x.ipynb", "d", "d", "?", "+", "+"},
		{"Write", "file_path", "../outside/file", "d", "d", "?", "?", "+"},
		{"Write", "file_path", "out/new", "d", "d", "?", "?", "+"},
		{"Write", "file_path", "dangling", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".git/hooks/pre-commit", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".GIT/config", "d", "d", "?", "?", "+"},
		{"Write", "file_path", "sub/.git/config", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".troupe/settings.json", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".claude/agents/x.md", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".claude/worktrees/x/main.go", "d", "d", "?", "+", "+"},
		{"Write", "file_path", ".troupe/worktrees/x/.git", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".vscode/tasks.json", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".bashrc", "d", "d", "?", "?", "+"},
		{"Write", "file_path", "x/.npmrc", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".config/git/config", "d", "d", "?", "?", "+"},
		{"Write", "file_path", "lefthook.yml", "d", "d", "?", "?", "+"},
		{"Write", "file_path", ".gitignore", "d", "d", "?", "+", "+"},
		{"TodoWrite", "", "", "+", "+", "+", "+", "+"},
		{"AskUserQuestion", "", "", "+", "+", "+", "+", "+"},
		{"EnterPlanMode", "", "", "+", "d", "?", "?", "+"},
		{"ExitPlanMode", "plan", "x", "?", "+", "+", "+", "+"},
		{"Agent", "prompt", "x", "+", "+", "+", "+", "+"},
		{"Unheard", "x", "y", "d", "d", "?", "?", "+"},
		{"Bash", "command", "echo x > new", "d", "d", "?", "+", "+"},
		{"Bash", "command", "echo x > .git/config", "d", "d", "?", "?", "+"},
		{"Bash", "command", "touch x", "d", "d", "?", "?", "+"},
		{"Bash", "command", "cat /etc/passwd", "?", "d", "?", "?", "+"},
	} {
		for mode, want := range map[Mode]string{Plan: c.plan, DontAsk: c.dontAsk, Default: c.normal, AcceptEdits: c.acceptEdits, Bypass: c.bypass, "": c.normal} {
			v := policy(t, mode).Decide(call(place, c.tool, c.field, c.path))
			if got := map[troupe.Effect]string{troupe.Deny: "d", troupe.Ask: "?", troupe.Allow: "+"}[v.Effect]; got != want {
				t.Errorf("%s %s in mode %q: %s, want %s (%s: %s)", c.tool, c.path, mode, got, want, v.By, v.Reason)
			}
			if v.Reason == "" || strings.Contains(v.Reason, "\n") || v.By == "" {
				t.Errorf("%s %s in mode %q: reason %q by %q", c.tool, c.path, mode, v.Reason, v.By)
			}
		}
	}
}

func TestFileRules(t *testing.T) {
	place := workspace(t)
	for _, c := range []struct {
		rule, tool, path string
		covers           bool
	}{
		// deny: bare names at any depth, links and targets, other case
		{"deny Read(.env)", "Read", ".env", true}, {"deny Read(.env)", "Read", "src/.env", true}, {"deny Read(.env)", "Read", "/elsewhere/.env", true}, {"deny Read(.env)", "Read", ".env.example", false},
		{"deny Read(.env)", "Read", "link.txt", true}, {"deny Read(.env)", "Read", "here/.env", true}, {"deny Read(.env)", "Read", "src/../.env", true}, {"deny Read(.env)", "Read", ".ENV", true},
		{"deny Read(./.env)", "Read", ".env", true}, {"deny Read(./.env)", "Read", "src/.env", false}, {"deny Read(./.env)", "Grep", ".env", true}, {"deny Read(./.env)", "Glob", ".env", true},
		{"deny Read(./.env)", "Edit", ".env", true}, {"deny Read(./.env)", "Write", "link.txt", true}, {"deny Read(link.txt)", "Read", "link.txt", true}, {"deny Read(link.txt)", "Read", ".env", false},
		{"deny Read(secrets)", "Read", "secrets/key", true}, {"deny Read(secrets/)", "Read", "secrets/key", true}, {"deny Read(./secrets/**)", "Read", "secrets/key", true}, {"deny Read(./secrets/**)", "Read", "deep/key", true},
		{"deny Read(./secrets/**)", "Write", "deep/new/file", true}, {"deny Edit(./secrets/**)", "Write", "deep/new/file", true}, {"deny Edit(./secrets/**)", "NotebookEdit", "secrets/n.ipynb", true}, {"deny Edit(./secrets/**)", "Read", "secrets/key", false},
		{"deny Read(*.go)", "Read", "src/a.go", true}, {"deny Read(src/*.go)", "Read", "src/a.go", true}, {"deny Read(src/*.go)", "Read", "src/x/a.go", false}, {"deny Read(//etc/**)", "Read", "/etc/passwd", true},
		{"deny Read(~/.ssh/**)", "Read", "/home/user/.ssh/id", true}, {"deny Read(/x)", "Read", "/project/x", true}, {"deny Read(/x)", "Read", "x", false}, {"deny Read", "Glob", "src", true},
		// allow: anchored, both names
		{"allow Read(//etc/**)", "Read", "/etc/passwd", true}, {"allow Read(//etc)", "Grep", "/etc", true}, {"allow Read(passwd)", "Read", "/etc/passwd", false}, {"allow Read(~/notes)", "Read", "/home/user/notes/a", true},
		{"allow Read(~/notes)", "Read", "/home/user/notes/../x", false}, {"allow Read(/docs)", "Read", "/project/docs/a", true}, {"allow Edit(main.go)", "Write", "main.go", true}, {"allow Edit(main.go)", "Edit", "src/main.go", false},
		{"allow Edit(src/**)", "Edit", "src/new.go", true}, {"allow Edit(src)", "Edit", "src/new.go", true}, {"allow Edit(out/**)", "Edit", "out/new", false}, {"allow Edit(dangling)", "Write", "dangling", false}, {"allow Edit", "Write", "main.go", true},
		{"allow Edit", "Write", "/etc/x", true}, {"allow Edit", "Write", ".git/config", false}, {"allow Edit(**)", "Write", ".git/config", false}, {"allow Edit(.git/info/exclude)", "Write", ".git/info/exclude", true}, {"allow Write", "Write", "main.go", true},
		{"allow Write", "Edit", "main.go", false}, {"allow Read", "Read", "/etc/passwd", true}, {"allow Read(main.go)", "Write", "main.go", false},
		// ask beats allow
		{"ask Read(main.go)", "Read", "main.go", true}, {"ask Edit(main.go)", "Write", "main.go", true}, {"ask Edit(main.go)", "Read", "main.go", false},
	} {
		field := map[string]string{"Read": "file_path", "Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path", "Grep": "path", "Glob": "path"}[c.tool]
		effect, _, _ := strings.Cut(c.rule, " ")
		mode := map[string]Mode{"deny": Bypass, "ask": Bypass, "allow": Default}[effect]
		p := policy(t, mode, c.rule)
		if effect != "allow" { // and no allow rule lifts them
			p.Rules = append(p.Rules, policy(t, mode, "allow Read", "allow Edit", "allow Read(//**)", "allow Edit(//**)").Rules...)
		}
		v := p.Decide(call(place, c.tool, field, c.path))
		if got := string(v.Effect) == effect && v.By == "rule" && strings.Contains(v.Reason, "settings.json"); got && strings.Contains(v.Reason, effect+" rule "+c.rule[len(effect)+1:]) != c.covers || !got && c.covers {
			t.Errorf("%s on %s %s: %+v", c.rule, c.tool, c.path, v)
		}
	}
}

// A directory that the agent may also work in counts as its own, under the
// name of a link too.
func TestFurtherDirectories(t *testing.T) {
	place := workspace(t)
	outside := filepath.Join(filepath.Dir(place.Dir), "outside")
	link := filepath.Join(filepath.Dir(place.Dir), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	for _, also := range []string{outside, link} {
		place.Also = []string{also}
		for _, name := range []string{"out/file", "../outside/file", link + "/file", "dangling"} {
			v := policy(t, DontAsk).Decide(call(place, "Read", "file_path", name))
			if want := also == link || !strings.HasPrefix(name, link); (v.Effect == troupe.Allow) != want {
				t.Errorf("%s with %s: %+v", name, also, v)
			}
		}
	}
	place.Also = []string{"relative"}
	if v := policy(t, Bypass).Decide(call(place, "Read", "file_path", "main.go")); v.Effect != troupe.Deny {
		t.Errorf("a relative working directory: %+v", v)
	}
}

func TestInputThatIsNotClear(t *testing.T) {
	place := workspace(t)
	for _, c := range []struct{ tool, input string }{
		{"Read", `{"file_path":"main.go","file_path":"/etc/passwd"}`}, {"Read", `{"file_path":"main.go","FILE_PATH":"/etc/passwd"}`}, {"Read", `{"FILE_path":".env"}`}, {"Read", `[]`}, {"Read", `{`}, {"Read", ``}, {"Read", `{"file_path":7}`},
		{"Read", `{"file_path":"a\u0000b"}`}, {"Bash", `{}`}, {"Bash", `{"command":["ls"]}`}, {"Bash", `{"command":"ls","Command":"rm x"}`}, {"Agent", `{"subagent_type":7}`}, {"WebFetch", `{"url":"x"}`}, {"Unheard", `null`},
	} {
		v := policy(t, Bypass, "deny Read(.env)").Decide(&troupe.Call{ToolUse: troupe.ToolUse{Name: c.tool, Input: []byte(c.input)}, Place: place})
		if v.Effect != troupe.Deny {
			t.Errorf("%s %s: %+v", c.tool, c.input, v)
		}
	}
}

func TestRealPath(t *testing.T) {
	place := workspace(t)
	base := filepath.Dir(place.Dir)
	for name, want := range map[string]string{
		"main.go": "work/main.go", "link.txt": "work/.env", "here/here/src": "work/src", "out/file": "outside/file", "dangling": "outside/new", "dangling/x": "outside/new/x", "up/main.go": "work/main.go",
		"out/../x": "x", "nothing/../x": "work/x", "deep/new": "work/secrets/new", "./src//a.go": "work/src/a.go",
	} {
		got, err := RealPath(place.Dir + "/" + name)
		if err != nil || got != filepath.Join(base, want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := RealPath(place.Dir + "/loop/x"); err == nil {
		t.Error("a loop of links has a real path")
	}
}

func TestHidden(t *testing.T) {
	place := workspace(t)
	hidden := policy(t, Default, "deny Read(.env)", "deny Read(./secrets/**)", "ask Read(main.go)", "allow Read").Hidden(place)
	for name, want := range map[string]bool{
		".env": true, "link.txt": true, "src/.env": true, "secrets/key": true, "deep/key": true, "secrets": true, filepath.Join(place.Dir, ".env"): true, "main.go": false, ".env.example": false, "src": false, "loop": true,
	} {
		if hidden(name) != want {
			t.Errorf("hidden(%s) = %v", name, !want)
		}
	}
	child := policy(t, Default, "deny Read(.env)").Narrow(Plan)
	if !child.Hidden(place)(".env") {
		t.Error("a child sees what its parent must not")
	}
	if policy(t, Default).Hidden(place)(".env") {
		t.Error("a file is hidden without a rule")
	}
}
