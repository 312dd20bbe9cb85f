//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// mortal builds the command that dies where it is told to.
func mortal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "troupe")
	if out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// A victim is a directory in which a session is killed.
type victim struct {
	*bench
	path string
}

func newVictim(t *testing.T, path string) *victim {
	v := &victim{newBench(t, 0), path}
	v.provider.Respond(v.play)
	if err := errors.Join(os.WriteFile(filepath.Join(v.dir, "old.txt"), []byte("old\n"), 0o600), os.Mkdir(filepath.Join(v.dir, ".home"), 0o700),
		os.WriteFile(filepath.Join(v.dir, "big.txt"), bytes.Repeat([]byte("one line of many\n"), 9000), 0o600)); err != nil {
		t.Fatal(err)
	}
	return v
}

// play answers without a memory of its own: whatever came before, a prompt is
// answered by what it asks for.
func (v *victim) play(r *troupetest.Request) troupetest.Reply {
	last := r.Messages[len(r.Messages)-1]
	text := last.Content.Text()
	results := strings.Contains(fmt.Sprintf("%T", last.Content[0]), "ToolResult")
	reply := troupetest.Say("This is what was said.")
	switch {
	case strings.Contains(text, "after the crash"):
		reply = troupetest.Say("Going on.")
	case strings.Contains(r.System, "You are the scribe.") && !results:
		reply = troupetest.Use(call("s1", "Bash", `{"command":"echo $$ >> pids; echo below"}`))
	case strings.Contains(text, "the first prompt") && !strings.Contains(text, "summary"):
		reply = troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text("I begin."),
			call("c1", "Read", `{"file_path":"old.txt"}`), call("c2", "Bash", `{"command":"echo $$ >> pids; seq 12000; if test -e hang; then sleep 1000; fi"}`),
			call("c5", "Grep", `{"pattern":"line","path":"big.txt","output_mode":"content","head_limit":0}`),
			call("c3", "Write", content("new.txt", "new")), call("c4", "Agent", `{"subagent_type":"scribe","description":"d","prompt":"write"}`),
			call("c6", "Agent", `{"subagent_type":"scribe","description":"d","prompt":"write beside","run_in_background":true}`)}}
	}
	return troupetest.Reply{Message: reply}
}

// run runs the command, to die at the nth time at a step, if one is named.
func (v *victim) run(p failpoint.Point, nth int, args ...string) (died bool, out string, err error) {
	cmd := exec.Command(v.path, append([]string{"--model", v.model, "--dangerously-skip-permissions", "--agents",
		`{"scribe":{"description":"writes","prompt":"You are the scribe.","tools":"Bash"}}`}, args...)...)
	cmd.Dir, cmd.Env = v.dir, v.env
	if p != "" {
		cmd.Env = append(cmd.Env, fmt.Sprintf("TROUPE_FAILPOINT=%s:%d", p, nth))
	}
	file, err := os.Create(filepath.Join(v.dir, ".home", "out")) // a pipe would be held open by what the dead one has left
	if err != nil {
		return false, "", err
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	err = cmd.Run()
	raw, rerr := os.ReadFile(file.Name())
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		died = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	}
	return died, string(raw), errors.Join(err, rerr)
}

// killed plays the whole session up to the nth time that one of its two commands
// is at a step.
func (v *victim) killed(t *testing.T, p failpoint.Point, nth int) bool {
	t.Helper()
	for _, args := range [][]string{{"-p", "the first prompt"}, {"-p", "/compact", "--continue"}} {
		died, out, err := v.run(p, nth, args...)
		if died {
			return true
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
	}
	return false
}

// logs returns what the lead's log holds of the first prompt, and whether
// there is a session at all.
func (v *victim) logs(t *testing.T) (prompts int, compacted, begun bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(v.dir, ".home", ".troupe", "sessions", "*", "*", "lead.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		for r, err := range session.Read(path) {
			if err != nil {
				continue // the half of a record
			}
			switch ev := r.Event.(type) {
			case troupe.Started:
				begun = true
			case troupe.Received:
				prompts += strings.Count(ev.Message.Content.Text(), "the first prompt")
			case troupe.Compacted:
				compacted = true
			}
		}
	}
	return prompts, compacted, begun
}

// recovers goes on with the session and checks that nothing is lost, doubled,
// torn or left alive.
func (v *victim) recovers(t *testing.T) {
	t.Helper()
	prompts, compacted, begun := v.logs(t)
	_, out, err := v.run("", 0, "-p", "after the crash", "--continue")
	if err != nil && !begun { // nothing was said: there may be nothing to go on with
		_, out, err = v.run("", 0, "-p", "after the crash")
	}
	if err != nil || !strings.Contains(out, "Going on.") {
		t.Fatalf("it does not go on: %v: %s", err, out)
	}
	for _, r := range v.provider.Requests() {
		if r.Refused != "" {
			t.Errorf("the provider refuses: %s", r.Complaint)
		}
	}
	last := v.provider.Last()
	if got := strings.Count(string(last.Body), "the first prompt"); !compacted && got != prompts || prompts > 1 {
		t.Errorf("the prompt is %d times in the log and %d times in the conversation", prompts, got)
	}
	if strings.Count(string(last.Body), "after the crash") != 1 {
		t.Errorf("the new prompt is not there once: %s", last.Body)
	}
	v.logged(t, last)
	v.alone(t)
	v.whole(t)
}

// logged checks that the log holds what was sent, and what came of it: no new
// record was lost to the half of an old one.
func (v *victim) logged(t *testing.T, last *troupetest.Request) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(v.dir, ".home", ".troupe", "sessions", "*", "*", "lead.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		state, _, err := session.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(fmt.Sprint(state.Request.Messages), "after the crash") {
			continue // a session that died before anything was said
		}
		if got, want := rounds(state.Request.Messages), rounds(last.Messages)+1; got != want || state.Mode != "bypassPermissions" {
			t.Errorf("in the log the word goes round %d times, mode %s; want %d", got, state.Mode, want)
		}
		return
	}
	t.Error("the log does not hold the new prompt")
}

// rounds counts how often the word goes from one side to the other: messages of
// one side in a row are sent as one.
func rounds(msgs []troupe.Message) (n int) {
	for i, m := range msgs {
		if i == 0 || m.Role != msgs[i-1].Role {
			n++
		}
	}
	return n
}

// alone checks that no program of the session lives.
func (v *victim) alone(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(v.dir, "pids"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for pid := range strings.FieldsSeq(string(raw)) {
		if state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output(); err == nil && !strings.HasPrefix(string(state), "Z") {
			t.Errorf("process %s lives", pid)
		}
	}
	notes, err := filepath.Glob(filepath.Join(v.dir, ".home", ".troupe", "run", "*.json"))
	if err != nil || len(notes) > 0 {
		t.Errorf("in the ledger are still %v (%v)", notes, err)
	}
}

// whole checks the files that were written, and that no half of one lies beside them.
func (v *victim) whole(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"", ".home/.troupe", ".home/.troupe/run"} {
		if left, err := filepath.Glob(filepath.Join(v.dir, dir, ".troupe-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	for name, want := range map[string]string{"old.txt": "old\n", "new.txt": "new"} {
		raw, err := os.ReadFile(filepath.Join(v.dir, name))
		if err == nil && string(raw) != want || err != nil && name == "old.txt" {
			t.Errorf("%s holds %q (%v)", name, raw, err)
		}
	}
	err := filepath.WalkDir(filepath.Join(v.dir, ".home"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if !json.Valid(raw) {
			t.Errorf("%s is torn: %s", path, raw)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A session is killed at each step there is, and at each record it writes: it
// goes on afterwards as if it had been stopped.
func TestKilledAtEveryStep(t *testing.T) {
	path := mortal(t)
	for _, p := range failpoint.Points() {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			most := 2
			if p == failpoint.LogAppended {
				most = 100
			}
			reached := 0
			for nth := 1; nth <= most; nth++ {
				v := newVictim(t, path)
				if strings.HasPrefix(string(p), "proc.") && p != failpoint.ProcEnded && nth == 1 {
					if err := os.WriteFile(filepath.Join(v.dir, "hang"), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if !v.killed(t, p, nth) {
					break
				}
				reached++
				v.recovers(t)
				if t.Failed() {
					t.Fatalf("killed at %s, time %d", p, nth)
				}
			}
			if reached == 0 {
				t.Error("the session does not come by")
			}
			if p == failpoint.LogAppended && (reached < 20 || reached == most) {
				t.Errorf("it was killed at %d records", reached)
			}
		})
	}
}
