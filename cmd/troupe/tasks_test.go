//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe/troupetest"
)

// From another terminal one sees what a session does in the background, and ends it;
// afterwards one sees what became of it.
func TestTasksFromAnotherTerminal(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		last := r.Messages[len(r.Messages)-1].Content.Text()
		switch first := r.FirstUser(); {
		case strings.Contains(first, "watch the child") && len(r.Messages) == 1:
			return troupetest.Reply{Message: troupetest.Use(call("c1", "Agent", `{"description":"the child","prompt":"stay there","name":"kid","run_in_background":true}`))}
		case strings.Contains(first, "stay there"):
			return troupetest.Reply{Message: troupetest.Use(call("c2", "Bash", `{"command":"`+strings.ReplaceAll(tree, `"`, `\"`)+`","timeout":600000}`))}
		case strings.Contains(last, "<task-notification>"):
			return troupetest.Reply{Message: troupetest.Say("it was stopped")}
		}
		return troupetest.Reply{Message: troupetest.Say("I wait")}
	})
	cmd, out := b.command(t, "watch the child", "--model", b.model)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	other := func(args ...string) (string, int) {
		c, err := exec.LookPath("troupe")
		if err != nil {
			t.Fatal(err)
		}
		x := exec.Command(c, append([]string{"tasks"}, args...)...)
		x.Dir, x.Env = b.dir, b.env
		text, _ := x.CombinedOutput()
		return string(text), x.ProcessState.ExitCode()
	}
	for started := filepath.Join(b.dir, "started"); !exists(started); {
		select {
		case err := <-ended:
			t.Fatalf("%v: %s", err, out)
		case <-time.After(20 * time.Millisecond):
		}
	}
	for text := ""; !strings.Contains(text, "pending") && !strings.Contains(text, "kid"); {
		text, _ = other()
	}
	if text, code := other("stop", "nobody"); code == 0 || !strings.Contains(text, "there are: a") {
		t.Errorf("%d %s", code, text)
	}
	if text, code := other("stop", "kid"); code != 0 || !strings.Contains(text, "killed: stopped by the user") {
		t.Errorf("%d %s", code, text)
	}
	if err := <-ended; err != nil || !strings.Contains(out.String(), "it was stopped") {
		t.Errorf("%v: %s", err, out)
	}
	for pid := range strings.FieldsSeq(readFile(t, filepath.Join(b.dir, "pids"))) {
		if state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output(); err == nil && !strings.HasPrefix(string(state), "Z") {
			t.Errorf("process %s lives", pid)
		}
	}
	for args, want := range map[string]string{"": "killed", "show kid": "stopped by the user", "list --output-format json": `"status": "killed"`, "output kid": ""} {
		if text, code := other(strings.Fields(args)...); code != 0 || !strings.Contains(text, want) {
			t.Errorf("tasks %s: %d %s", args, code, text)
		}
	}
	if text, code := other("stop", "kid"); code != exitFailed || !strings.Contains(text, "has ended") {
		t.Errorf("%d %s", code, text)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
