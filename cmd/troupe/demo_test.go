package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// play runs `troupe demo` as the built command, with an environment that would
// spoil it if anything of it were read.
func play(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	home, tmp := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		".gitconfig":                "[commit]\n\tgpgSign = true\n[core]\n\thooksPath = /nonexistent\n[alias]\n\tcommit = !false\n",
		".troupe/settings.json":     `{"permissions": {"deny": ["Agent", "Bash", "Edit"]}}`,
		".claude/settings.json":     `{"permissions": {"deny": ["Read"]}}`,
		".claude/agents/explore.md": "---\nname: Explore\ndescription: mine\ntools: []\n---\nSay nothing.\n",
		".config/go/env":            "GOFLAGS=-mod=vendor\n",
	} {
		if err := write(filepath.Join(home, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("troupe")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"demo"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "GOCACHE=" + strings.TrimSpace(string(cache)),
		"ANTHROPIC_API_KEY=" + key, "TROUPE_MODEL=anthropic/none", "GOFLAGS=-mod=vendor", "GIT_DIR=/nonexistent"}
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	kept, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Contains(b.String(), "Kept: "); want != (len(kept) > 0) {
		t.Errorf("kept is said: %v; there are %d directories", want, len(kept))
	}
	if _, err := os.Stat(filepath.Join(home, ".troupe", "sessions")); err == nil {
		t.Error("the demo wrote into the user's home")
	}
	return b.String(), cmd.ProcessState.ExitCode()
}

func wants(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("the output has no %q", text)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestDemo(t *testing.T) {
	out, code := play(t)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	wants(t, out, "The model is scripted", "→ Agent Explore", "→ Agent general-purpose", "→ Agent verification", "✓ Bash go test ./...",
		"+\treturn s.From < other.To && other.From < s.To", "green: the test passes", "Removed the repository and the logs", "ANTHROPIC_API_KEY")
	out, code = play(t, "--keep")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	wants(t, out, "green", "Kept: ")
}

// spoilt is the demo's script with one text replaced.
func spoilt(t *testing.T, old, with string) string {
	t.Helper()
	text, err := demoFiles.ReadFile("demo/demo.json")
	if err != nil {
		t.Fatal(err)
	}
	out := strings.Replace(string(text), old, with, 1)
	if out == string(text) {
		t.Fatalf("the script has no %q", old)
	}
	path := filepath.Join(t.TempDir(), "spoilt.json")
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whatever the agents say, the demo is as good as its own last test.
func TestDemoWithoutTheFixIsRed(t *testing.T) {
	for name, script := range map[string]string{
		"wrong edit": spoilt(t, `"new_string": "return s.From < other.To && other.From < s.To"`, `"new_string": "return s.From < other.To || other.From < s.To"`),
		"no edit":    spoilt(t, `"old_string": "return s.From <= other.To && other.From <= s.To"`, `"old_string": "return nothing of the kind"`),
	} {
		t.Run(name, func(t *testing.T) {
			out, code := play(t, "--script", script)
			if code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			wants(t, out, "RED: the test still fails", "FAIL", "Kept: ")
		})
	}
}

func TestDemoSaysWhatItNeeds(t *testing.T) {
	path, err := exec.LookPath("troupe")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "demo")
	cmd.Env = []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "the demo needs the program g") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
