package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/troupetest"
)

// inSandboxes runs a test with each kind of sandbox, or skips it where that
// does not work. The settings, if any, are those of the user.
func inSandboxes(t *testing.T, test func(t *testing.T, kind string, p *place, open func(settings string) *host.Session)) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"bubblewrap", "landlock"} {
		t.Run(kind, func(t *testing.T) {
			p := newPlace(t)
			tmp, lame := filepath.Join(p.user, "tmp"), filepath.Join(p.user, "bin")
			for _, dir := range []string{tmp, lame} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			p.env = append(p.env, "TMPDIR="+tmp)
			if kind == "landlock" { // a bwrap that does not work
				if err := os.WriteFile(filepath.Join(lame, "bwrap"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
					t.Fatal(err)
				}
				p.env = append(p.env, "PATH="+lame+":"+os.Getenv("PATH"))
			} else {
				troupetest.Need(t, "bwrap")
			}
			found, err := host.FindSandbox(t.Context(), self, p.env)
			if err != nil || found.Name() != kind {
				t.Logf("found %v, %v", found, err)
				troupetest.Need(t, "working "+kind)
			}
			test(t, kind, p, func(settings string) *host.Session {
				if err := os.WriteFile(filepath.Join(p.home, "settings.json"), []byte(settings), 0o600); err != nil {
					t.Fatal(err)
				}
				mode := permission.Auto
				if kind == "landlock" { // which that mode does not rest on
					mode = permission.Bypass
				}
				return p.open(t, func(o *host.Options) { o.Launcher, o.Mode = self, mode })
			})
		})
	}
}

// bash has the model of s run a command and returns its result.
func (p *place) bash(t *testing.T, s *host.Session, command string) (text string, failed bool) {
	t.Helper()
	r := p.call(t, s, "Bash", map[string]any{"command": command})
	return r.Content.Text(), r.IsError
}

// Mode auto rests on a sandbox that holds what decides how the next command runs,
// and on no other.
func TestAutoRestsOnASandboxThatHoldsItself(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		const settings = `{"sandbox": {"mode": "on"}}`
		told := open(settings).Warnings
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		s := p.open(t, func(o *host.Options) { o.Launcher, o.Mode = self, permission.Auto })
		_, failed := p.bash(t, s, "touch made")
		if weak := kind == "landlock"; failed != weak || p.made("made") == weak || strings.Contains(strings.Join(told, " "), "does not hold settings") != weak {
			t.Errorf("denied %v, warnings %q", failed, told)
		}
	})
}

// A command runs that the sandbox confines; what it may not write stays as it is,
// and the model is told why.
func TestSandboxConfinesCommands(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		s := open(`{"sandbox": {"mode": "required", "filesystem": {"allowWrite": ["~/extra"], "denyWrite": ["~/extra/not"]}}, "permissions": {"allow": ["Bash(touch here)"]}}`)
		for _, dir := range []string{"extra/not", "other"} {
			if err := os.MkdirAll(filepath.Join(p.user, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if kind == "bubblewrap" && len(s.Warnings) > 0 {
			t.Errorf("warnings %q", s.Warnings)
		}
		if kind == "landlock" { // it cannot keep a part of what is writable from being written
			if text, failed := p.bash(t, s, "touch here"); !failed || !strings.Contains(text, "required") || !strings.Contains(text, "extra/not") {
				t.Errorf("%s", text)
			}
			closed(t, s)
			s = open(`{"sandbox": {"mode": "required", "filesystem": {"allowWrite": ["~/extra"]}}}`)
		}
		defer closed(t, s)
		if text, failed := p.bash(t, s, `touch here "$TMPDIR/there" "$HOME/extra/x"`); failed {
			t.Fatal(text)
		}
		text, failed := p.bash(t, s, `touch "$HOME/other/x"`)
		if !failed || !strings.Contains(text, "the sandbox denied writing to "+p.user+"/other/x") || !strings.Contains(text, "allowWrite") {
			t.Error(text)
		}
		if text, failed = p.bash(t, s, `ls /nowhere`); !failed || strings.Contains(text, "sandbox") {
			t.Error(text)
		}
		for path, want := range map[string]bool{p.dir + "/here": true, p.user + "/tmp/there": true, p.user + "/extra/x": true, p.user + "/other/x": false} {
			if _, err := os.Stat(path); (err == nil) != want {
				t.Errorf("%s: %v", path, err)
			}
		}
		if kind == "bubblewrap" {
			if text, failed := p.bash(t, s, `touch "$HOME/extra/not/x"`); !failed {
				t.Error(text)
			}
		}
	})
}

// Settings that are not there yet are not to be written either: they would count
// from the next session on. What was made for that goes with the session.
func TestSandboxGuardsSettingsThatAreMissing(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		if kind != "bubblewrap" { // the other cannot hold it: see doc/sandbox.md
			return
		}
		p.write(t, "widen.sh", "mkdir -p .troupe .claude; echo '{}' >.troupe/settings.local.json; echo '{}' >.claude/settings.json; touch here\n")
		s := open(`{"sandbox": {"mode": "on"}}`)
		if text, failed := p.bash(t, s, "sh widen.sh"); failed || !strings.Contains(text, ".troupe/settings.local.json") || !p.made("here") {
			t.Errorf("%v: %s", failed, text)
		}
		if p.made(".troupe/settings.local.json") || p.made(".claude/settings.json") {
			t.Error("a command has written settings")
		}
		closed(t, s)
		if p.made(".troupe") || p.made(".claude") {
			t.Error("empty directories are left")
		}
	})
}

// The files by which a command could widen what comes after it.
func TestSandboxGuardsSettings(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		if kind == "landlock" {
			return // it can only add rights, and says so: doc/sandbox.md
		}
		git(t, p.dir, "init", "-q")
		git(t, p.dir, "init", "-q", "nested")
		git(t, p.dir, "init", "-q", "--bare", ".git/modules/sub")
		p.write(t, ".troupe/settings.json", "{}")
		p.write(t, ".claude/settings.local.json", "{}")
		p.write(t, ".mcp.json", "{}")
		s := open(`{"sandbox": {"mode": "on"}}`)
		defer closed(t, s)
		for _, command := range []string{
			`sh -c 'echo x > .troupe/settings.json'`, `sh -c 'echo x > .troupe/settings.local.json'`, `python3 -c 'open(".claude/settings.local.json", "w")'`,
			`sh -c 'echo x > .mcp.json'`, `sh -c 'echo x > .git/hooks/pre-commit'`, `git config core.fsmonitor ./x`, `sh -c 'echo x > nested/.git/hooks/pre-commit'`,
			`git -C nested config core.fsmonitor ./x`, `sh -c 'echo x > .git/modules/sub/hooks/pre-commit'`, `mv nested aside`, `mv .git aside`, `mv .troupe aside`,
			`sh -c "echo x > ` + p.home + `/settings.json"`,
		} {
			// They may run, as far as the mode goes: what is not written plainly
			// cannot be seen before.
			if text, failed := p.bash(t, s, "F=1 "+command); !failed {
				t.Errorf("%s: %s", command, text)
			}
		}
		for _, name := range []string{".troupe/settings.json", ".claude/settings.local.json", ".mcp.json"} {
			if got := string(read(t, filepath.Join(p.dir, name))); got != "{}" {
				t.Errorf("%s is %q", name, got)
			}
		}
		for _, name := range []string{".troupe/settings.local.json", ".git/hooks/pre-commit", "nested/.git/hooks/pre-commit", ".git/modules/sub/hooks/pre-commit", "aside"} {
			if _, err := os.Lstat(filepath.Join(p.dir, name)); err == nil {
				t.Errorf("%s was made", name)
			}
		}
		if text := string(read(t, filepath.Join(p.dir, ".git/config"))); strings.Contains(text, "fsmonitor") {
			t.Error(text)
		}
	})
}

// What people do all day works in the sandbox: real go, npm and git, also in a
// directory below the repository's root and in a worktree.
func TestSandboxLetsPeopleWork(t *testing.T) {
	goTool, npm := troupetest.Need(t, "go"), troupetest.Need(t, "npm")
	out, err := exec.Command(goTool, "env", "GOCACHE", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Fields(string(out))
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		p.env = append(p.env, "GOCACHE="+env[0], "GOROOT="+env[1], "GOPROXY=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "npm_config_update_notifier=false",
			"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
		root := p.dir
		git(t, root, "init", "-q")
		p.write(t, "sub/go.mod", "module example.com/m\n\ngo 1.25\n")
		p.write(t, "sub/m_test.go", "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc Test(t *testing.T) {\n\tif err := os.WriteFile(t.TempDir()+\"/x\", nil, 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n")
		p.write(t, "sub/package.json", `{"name": "m", "version": "1.0.0", "scripts": {"test": "node test.js"}}`)
		p.write(t, "sub/test.js", "require('fs').writeFileSync(require('os').tmpdir() + '/y', 'x'); console.log('tested by node')\n")
		git(t, root, "add", ".")
		git(t, root, "commit", "-q", "-m", "one")
		git(t, root, "worktree", "add", "-q", filepath.Join(p.user, "tree"))
		for _, dir := range []string{filepath.Join(root, "sub"), filepath.Join(p.user, "tree", "sub")} {
			p.dir, p.src.Dir = dir, dir
			s := open(`{"sandbox": {"mode": "on"}}`)
			for command, want := range map[string]string{
				"go test ./...": "ok", "npm test": "tested by node",
				"echo x > new && git add new && git commit -q -m two && git log --oneline | wc -l": "2",
				"git stash list; git checkout -q -b other && git gc -q && git status --short":      "(no output)",
			} {
				if text, failed := p.bash(t, s, command); failed || !strings.Contains(text, want) {
					t.Errorf("%s in %s: %s", command, dir, text)
				}
			}
			closed(t, s)
			git(t, dir, "checkout", "-q", "--detach", "HEAD")
			git(t, dir, "branch", "-D", "-q", "other")
		}
		if _, err := os.Stat(filepath.Join(p.user, ".npm")); err != nil && npm != "" {
			t.Errorf("npm has no cache: %v", err)
		}
	})
}

// What leaves the sandbox asks, unless a rule allows it; what the settings
// exclude runs outside, and asks too.
func TestSandboxAndWhatRunsOutside(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		if kind == "landlock" {
			return // it is about mode auto
		}
		s := open(`{"sandbox": {"enabled": true, "excludedCommands": ["touch *"]}, "permissions": {"allow": ["Bash(touch ` + p.user + `/allowed)"]}}`)
		defer closed(t, s)
		for command, want := range map[string]bool{
			"touch " + p.user + "/allowed":                           true, // by the rule, and outside
			"touch " + p.user + "/other":                             false,
			"touch " + p.user + "/allowed; touch " + p.user + "/two": false,
			"curl http://127.0.0.1:1/":                               false,
			"mkdir inside":                                           true,
		} {
			text, failed := p.bash(t, s, command)
			if failed == want || !want && !strings.Contains(text, "approval") && !strings.Contains(text, "needs") {
				t.Errorf("%s: %s", command, text)
			}
		}
		if _, err := os.Stat(p.user + "/other"); err == nil {
			t.Error("it ran outside without leave")
		}
	})
}

// The network is cut off where that can be done, and then auto lets programs for it
// run; where it cannot, that is said, and required means it.
func TestSandboxWithoutNetwork(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		s := open(`{"sandbox": {"mode": "required", "network": {"deniedDomains": ["*"]}}, "permissions": {"allow": ["Bash(touch *)"]}}`)
		defer closed(t, s)
		text, failed := p.bash(t, s, "curl -sS --max-time 20 "+p.provider.URL())
		switch kind {
		case "bubblewrap":
			if !failed || !strings.Contains(text, "cuts off the network") {
				t.Error(text)
			}
		default:
			if !failed || !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "cannot cut off the network") }) {
				t.Errorf("%s, %q", text, s.Warnings)
			}
			if text, failed := p.bash(t, s, "touch x"); !failed || !strings.Contains(text, "required") {
				t.Error(text)
			}
		}
	})
}

// A file .git names any directory it likes; it opens none that is no repository's.
func TestSandboxBelievesNoLink(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		for _, link := range []string{"gitdir: " + p.user, "gitdir: ../user", "gitdir: " + p.user + "/worktrees/x"} {
			p.write(t, ".git", link+"\n")
			s := open(`{"sandbox": {"mode": "on"}}`)
			if text, failed := p.bash(t, s, "touch "+p.user+"/x"); !failed || !strings.Contains(text, "the sandbox denied") {
				t.Errorf("%s: %s", link, text)
			}
			if _, err := os.Stat(p.user + "/x"); err == nil {
				t.Errorf("%s was believed", link)
			}
			closed(t, s)
		}
	})
}

// Rules say where commands may write, as they do for the tools.
func TestSandboxAndRulesForFiles(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		for _, dir := range []string{"open", "closed"} {
			if err := os.Mkdir(filepath.Join(p.user, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := open(`{"sandbox": {"mode": "on"}, "permissions": {"allow": ["Edit(~/open/**)"]}}`)
		defer closed(t, s)
		if text, failed := p.bash(t, s, "sh -c 'touch ~/open/x'"); failed {
			t.Error(text)
		}
		if text, failed := p.bash(t, s, "sh -c 'touch ~/closed/x'"); !failed {
			t.Error(text)
		}
	})
}

// Where there is no sandbox, required runs no command and on says that it is none.
func TestNoSandbox(t *testing.T) {
	for mode, want := range map[string]bool{"required": false, "on": true} {
		p := newPlace(t)
		p.env = append(p.env, "PATH=/usr/bin:/bin", "TMPDIR="+filepath.Join(p.user, "missing"))
		if err := os.WriteFile(filepath.Join(p.home, "settings.json"), []byte(`{"sandbox": {"mode": "`+mode+`"}, "permissions": {"allow": ["Bash(touch *)"]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		s := p.open(t, func(o *host.Options) { o.Mode = permission.Auto })
		text, failed := p.bash(t, s, "touch x")
		if failed == want || !want && !strings.Contains(text, "sandbox.mode is required") {
			t.Errorf("%s: %s", mode, text)
		}
		if text, failed := p.bash(t, s, "mkdir x"); !failed { // auto rests on nothing
			t.Errorf("%s: %s", mode, text)
		}
		if len(s.Warnings) != 2 || !strings.Contains(s.Warnings[0], "no sandbox") || !strings.Contains(s.Warnings[1], "acceptEdits") {
			t.Errorf("%s: %q", mode, s.Warnings)
		}
		closed(t, s)
	}
}

// A sub-agent's commands are confined as its parent's.
func TestSandboxOfASubAgent(t *testing.T) {
	inSandboxes(t, func(t *testing.T, kind string, p *place, open func(string) *host.Session) {
		s := open(`{"sandbox": {"mode": "on"}}`)
		defer closed(t, s)
		p.provider.Queue(
			troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": "p"}))},
			troupetest.Reply{Message: troupetest.Use(use("b", "Bash", map[string]any{"command": "touch inside; touch " + p.user + "/outside"}))},
			troupetest.Reply{Message: troupetest.Say("child")}, troupetest.Reply{Message: troupetest.Say("done")})
		if end := ask(t, s, "go"); end.Reason != troupe.Done {
			t.Fatal(end)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "inside")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.user + "/outside"); err == nil {
			t.Error("a sub-agent wrote outside")
		}
	})
}
