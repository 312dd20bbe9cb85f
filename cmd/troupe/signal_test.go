//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// A bench is a directory with a provider in which troupe is run.
type bench struct {
	dir      string
	provider *troupetest.Provider
	env      []string
	model    string
}

func newBench(t *testing.T, dialect int, opts ...troupetest.Option) *bench {
	t.Helper()
	d := dialects[dialect]
	b := &bench{dir: t.TempDir(), provider: troupetest.NewProvider(t, append(opts, troupetest.Key(key))...), model: d.model}
	b.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(b.dir, ".home"), d.base + "=" + b.provider.URL() + d.path, d.key + "=" + key, "GORACE=" + noExitSleep}
	return b
}

// command is troupe with a prompt, allowed to do everything.
func (b *bench) command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	path, err := exec.LookPath("troupe")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"-p", "--dangerously-skip-permissions"}, args...)...)
	cmd.Dir, cmd.Env = b.dir, b.env
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// tree is a shell command that starts processes in every way in which one can
// get away, notes their numbers and stays.
const tree = `echo $$ > pids; sleep 1000 & echo $! >> pids; setsid sleep 1001 & echo $! >> pids; (nohup sleep 1002 >/dev/null 2>&1 & echo $! >> pids); touch started; sleep 1003`

func call(id, name, input string) troupe.ToolUse {
	return troupe.ToolUse{ID: id, Name: name, Input: []byte(input)}
}

// startTree has the model call the tree and others beside, and waits until it runs.
func (b *bench) startTree(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(
		call("c1", "Glob", `{"pattern":"*"}`), call("c2", "Bash", `{"command":"`+tree+`"}`), call("c3", "Bash", `{"command":"touch late"}`),
		call("c4", "Read", `{"file_path":"none"}`), call("c5", "Glob", `{"pattern":"*.go"}`))})
	cmd, out := b.command(t, "go", "--model", b.model)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the tree to run", func() bool { _, err := os.Stat(filepath.Join(b.dir, "started")); return err == nil })
	return cmd, out
}

// waitFor looks again until what is waited for is there. The test's own limit
// ends it if it never comes.
func waitFor(t *testing.T, what string, there func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !there() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("waited in vain for " + what)
		}
	}
}

// alive returns which processes of the tree are there.
func (b *bench) alive(t *testing.T) (pids []int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(raw))
	if len(lines) != 4 {
		t.Fatalf("the tree has noted %q", raw)
	}
	for _, line := range lines {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		// One that has ended and whose parent does not care is still listed.
		if state, err := exec.Command("ps", "-o", "stat=", "-p", line).Output(); err == nil && !strings.HasPrefix(string(state), "Z") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// resumed goes on with the session and checks what the model is told of its calls.
func (b *bench) resumed(t *testing.T) (out string) {
	t.Helper()
	b.provider.Say("going on")
	cmd, buf := b.command(t, "continue", "--continue")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, buf)
	}
	req := b.provider.Last()
	if req.Refused != "" {
		t.Fatalf("refused: %s", req.Complaint)
	}
	var ids []string
	for _, m := range req.Messages {
		for _, c := range m.Content {
			if r, ok := c.(troupe.ToolResult); ok {
				ids = append(ids, r.ID)
				text := r.Content.Text()
				if (r.ID == "c2" || r.ID == "c3") && !strings.Contains(text, "nterrupted") && !strings.Contains(text, "cut off") {
					t.Errorf("of the call %s that was cut off is told: %s", r.ID, text)
				}
			}
		}
	}
	if strings.Join(ids, " ") != "c1 c2 c3 c4 c5" {
		t.Errorf("results for %v, want one for each call, in order", ids)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "late")); err == nil {
		t.Error("the call behind the one that was cut off has run")
	}
	return buf.String()
}

// S48, S87: a signal ends the run with its code, leaves no process behind and a
// session that goes on.
func TestSignals(t *testing.T) {
	hear(t)
	for dialect := range dialects {
		for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
			t.Run(dialects[dialect].name+"/"+sig.String(), func(t *testing.T) {
				b := newBench(t, dialect)
				cmd, out := b.startTree(t)
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				err := cmd.Wait()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != code {
					t.Errorf("ended with %v, want code %d: %s", err, code, out)
				}
				if !strings.Contains(out.String(), "interrupted") {
					t.Errorf("it does not say so: %s", out)
				}
				if left := b.alive(t); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
				b.resumed(t)
			})
		}
	}
}

// S88: what a killed run has left behind is ended at the next start, and its
// session goes on.
func TestKilledRunsAreCleanedUpAtTheNextStart(t *testing.T) {
	for dialect := range dialects {
		t.Run(dialects[dialect].name, func(t *testing.T) {
			b := newBench(t, dialect)
			bystander := exec.Command("sleep", "1000")
			if err := bystander.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
			cmd, _ := b.startTree(t)

			// While it lives its session is not to be had, nor its shell ended.
			second, out := b.command(t, "me too", "--continue")
			if err := second.Run(); err == nil || !strings.Contains(out.String(), "in use by process "+strconv.Itoa(cmd.Process.Pid)) {
				t.Errorf("a second writer: %v, %s", err, out)
			}
			if left := b.alive(t); len(left) != 4 {
				t.Errorf("of a living run only %v are left", left)
			}

			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if left := b.alive(t); len(left) != 4 {
				t.Errorf("before the next start only %v are left: the test shows nothing", left)
			}
			if out := b.resumed(t); !strings.Contains(out, "killed run of troupe had left behind") {
				t.Errorf("it does not say what it ended: %s", out)
			}
			if left := b.alive(t); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
			if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("a process that is not ours was ended: %v", err)
			}
		})
	}
}

// An output that nobody reads any more ends the run, and what it has started.
func TestClosedOutput(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Glob", `{"pattern":"*"}`), call("c2", "Bash", `{"command":"`+tree+`"}`))})
	cmd, notes := b.command(t, "go", "--model", b.model, "--output-format", "stream-json")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var one [1]byte
	if _, err := r.Read(one[:]); err != nil {
		t.Fatal(err)
	}
	_, _ = r.Close(), w.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(notes.String(), "write a message") {
		t.Errorf("ended with %v: %s", err, notes)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "started")); err == nil {
		if left := b.alive(t); len(left) > 0 {
			t.Errorf("processes %v are left", left)
		}
	}
}
