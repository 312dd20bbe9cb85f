//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// hear makes signals count in the programs that the test starts, also where it
// was itself started with some of them ignored.
func hear(t *testing.T) {
	t.Helper()
	heard := make(chan os.Signal, 1)
	for _, s := range endings() {
		if signal.Ignored(s) {
			signal.Notify(heard, s)
		}
	}
	t.Cleanup(func() { signal.Stop(heard) })
}

// noted are the processes that tools have written into the file pids.
func (b *bench) noted(t *testing.T) (out []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "pids"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(raw)) {
		if state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output(); err == nil && !strings.HasPrefix(string(state), "Z") {
			out = append(out, pid)
		}
	}
	return out
}

// A moment is a point in the life of a run at which a signal comes: replies
// are what the provider says up to then.
type moment struct {
	name    string
	replies []troupetest.Reply
	there   func(t *testing.T, b *bench) // waits for the moment
}

const stays = `echo $$ >> pids; touch started; sleep 1000`

func use(id, name, input string) troupetest.Reply {
	return troupetest.Reply{Message: troupetest.Use(call(id, name, input))}
}

func stalled(r troupetest.Reply, at troupetest.Point) troupetest.Reply {
	r.Fault.Stall = at
	return r
}

// asked waits for the nth request.
func asked(n int) func(*testing.T, *bench) {
	return func(t *testing.T, b *bench) {
		t.Helper()
		if err := b.provider.Wait(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// started waits for the tool that stays.
func started(t *testing.T, b *bench) {
	t.Helper()
	waitFor(t, "the tool to run", func() bool { _, err := os.Stat(filepath.Join(b.dir, "started")); return err == nil })
}

func moments() []moment {
	bash := use("c1", "Bash", `{"command":"true"}`)
	agent := use("c1", "Agent", `{"description":"d","prompt":"work"}`)
	return []moment{
		{"before the headers", []troupetest.Reply{stalled(bash, troupetest.BeforeHeaders)}, asked(1)},
		{"after the headers", []troupetest.Reply{stalled(bash, troupetest.AfterHeaders)}, asked(1)},
		{"in a text", []troupetest.Reply{stalled(troupetest.Reply{Message: troupetest.Say("half of what I say")}, troupetest.Midway)}, asked(1)},
		{"in a call", []troupetest.Reply{stalled(bash, troupetest.InCall)}, asked(1)},
		{"before the end of the stream", []troupetest.Reply{stalled(bash, troupetest.BeforeEnd)}, asked(1)},
		{"in a tool", []troupetest.Reply{use("c1", "Bash", `{"command":"`+stays+`"}`)}, started},
		{"between two requests", []troupetest.Reply{bash, stalled(bash, troupetest.BeforeHeaders)}, asked(2)},
		{"while an agent streams", []troupetest.Reply{agent, stalled(troupetest.Reply{Message: troupetest.Say("half of its report")}, troupetest.Midway)}, asked(2)},
		{"in a tool of an agent", []troupetest.Reply{agent, use("c2", "Bash", `{"command":"`+stays+`"}`)}, started},
		{"before the second request of an agent", []troupetest.Reply{agent, use("c2", "Bash", `{"command":"true"}`), stalled(bash, troupetest.BeforeHeaders)}, asked(3)},
		{"while it waits to ask again", []troupetest.Reply{{Message: troupetest.Say("x"), Fault: troupetest.Fault{Status: 529, RetryAfter: "600"}}},
			func(t *testing.T, b *bench) {
				asked(1)(t, b)
				if err := b.provider.Idle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}},
	}
}

// Whenever a signal comes the run ends with its code, nothing it has started is
// left, and the session goes on with a conversation that the provider takes.
func TestSignalsAtAnyMoment(t *testing.T) {
	hear(t)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	for dialect, d := range dialects {
		for i, m := range moments() {
			t.Run(d.name+"/"+m.name, func(t *testing.T) {
				b := newBench(t, dialect)
				b.provider.Queue(m.replies...)
				cmd, out := b.command(t, "first", "--model", b.model)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				m.there(t, b)
				sig := signals[(i+dialect)%len(signals)]
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // the code tells
				b.interrupted(t, cmd.ProcessState.ExitCode(), 128+int(sig), out)
			})
		}
	}
}

// interrupted checks what is left of a run that a signal has ended.
func (b *bench) interrupted(t *testing.T, code, want int, out *bytes.Buffer) {
	t.Helper()
	if code != want || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("code %d, want %d: %s", code, want, out)
	}
	if left := b.noted(t); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	b.provider.Respond(func(*troupetest.Request) troupetest.Reply {
		return troupetest.Reply{Message: troupetest.Say("going on")}
	})
	cmd, _ := b.command(t, "second", "--continue")
	code, answer, notes := finish(t, cmd)
	if code != exitDone || answer != "going on\n" || strings.Contains(notes, "skipped") {
		t.Errorf("going on: code %d, %s%s", code, answer, notes)
	}
	last := b.provider.Last()
	if !strings.Contains(last.FirstUser(), "first") || !strings.Contains(last.LastUser(), "second") {
		t.Errorf("a prompt is lost: %s", last.Body)
	}
	for _, m := range last.Messages { // the strict provider has seen that each call has its result
		for _, u := range m.ToolUses() {
			if u.Input == nil {
				t.Errorf("half a call was kept: %+v", u)
			}
		}
	}
}

// A signal that comes from within a tool meets the end of the tool, the writing
// of its result and the next request, now this one first, now that.
func TestSignalsAmongResults(t *testing.T) {
	hear(t)
	for dialect, d := range dialects {
		for i, after := range []string{"", "sleep 0.001", "sleep 0.01", "seq 30000"} {
			t.Run(d.name+"/"+strconv.Itoa(i), func(t *testing.T) {
				b := newBench(t, dialect)
				b.provider.Queue(troupetest.Reply{Message: troupetest.Use(
					call("c1", "Bash", `{"command":"(sleep 0.0`+strconv.Itoa(i)+`; kill -TERM $PPID) & `+after+`"}`),
					call("c2", "Glob", `{"pattern":"*"}`), call("c3", "Read", `{"file_path":"none"}`))})
				b.provider.Respond(func(*troupetest.Request) troupetest.Reply {
					return stalled(troupetest.Reply{Message: troupetest.Say("too late")}, troupetest.BeforeHeaders)
				})
				cmd, out := b.command(t, "first", "--model", b.model)
				// What is left of the command is ended with it, and so perhaps the signal.
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				select {
				case <-ended:
				case err := <-second(t, b):
					if err != nil {
						t.Fatal(err)
					}
					_ = cmd.Process.Signal(syscall.SIGTERM) // it may have had one
					<-ended
				}
				if code := cmd.ProcessState.ExitCode(); code != 143 {
					t.Fatalf("code %d: %s", code, out)
				}
				b.provider.Respond(func(*troupetest.Request) troupetest.Reply {
					return troupetest.Reply{Message: troupetest.Say("going on")}
				})
				cmd, _ = b.command(t, "second", "--continue")
				if code, answer, notes := finish(t, cmd); code != exitDone || answer != "going on\n" {
					t.Errorf("going on: code %d, %s%s", code, answer, notes)
				}
				var ids []string
				for _, m := range b.provider.Last().Messages {
					for _, c := range m.Content {
						if r, ok := c.(troupe.ToolResult); ok {
							ids = append(ids, r.ID)
						}
					}
				}
				if !slices.Equal(ids, []string{"c1", "c2", "c3"}) {
					t.Errorf("results for %v, want one for each call", ids)
				}
			})
		}
	}
}

// second tells of the second request.
func second(t *testing.T, b *bench) <-chan error {
	there := make(chan error, 1)
	go func() { there <- b.provider.Wait(t.Context(), 2) }()
	return there
}

// A signal while the prompt is read ends the program before anything is begun.
func TestSignalWhileThePromptIsRead(t *testing.T) {
	hear(t)
	b := newBench(t, 0)
	cmd, out := b.command(t, "--model", b.model)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(make([]byte, 1<<20)); err != nil { // more than a pipe holds: it is being read
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || len(b.provider.Requests()) > 0 || b.files(t) != nil {
		t.Errorf("code %d, %d requests, files %q: %s", code, len(b.provider.Requests()), b.files(t), out)
	}
}

// The second signal ends the program at once, whatever it waits for.
func TestTheSecondSignal(t *testing.T) {
	hear(t)
	b := newBench(t, 0)
	b.provider.Queue(use("c1", "Bash", `{"command":"trap '' TERM; echo $$ >> pids; touch started; while :; do sleep 1000; done"}`))
	cmd, out := b.command(t, "first", "--model", b.model)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started(t, b)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGTERM} {
		_ = cmd.Process.Signal(sig) // it may have ended
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 && code != 143 {
		t.Errorf("code %d: %s", code, out)
	}
	b.provider.Say("going on")
	cmd, _ = b.command(t, "second", "--continue")
	if code, answer, notes := finish(t, cmd); code != exitDone || answer != "going on\n" {
		t.Errorf("going on: code %d, %s%s", code, answer, notes)
	}
	if left := b.noted(t); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// A signal that was ignored before the start, as by nohup, stays so.
func TestIgnoredSignals(t *testing.T) {
	hear(t)
	b := newBench(t, 0)
	goOn := make(chan struct{})
	r := stalled(troupetest.Reply{Message: troupetest.Say("done")}, troupetest.BeforeHeaders)
	r.Fault.Until = goOn
	b.provider.Queue(r)
	cmd, out := b.command(t, "first", "--model", b.model)
	cmd.Args = append([]string{"sh", "-c", `trap '' HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = troupetest.Need(t, "sh")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asked(1)(t, b)
	for range 3 { // two would end it at once
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "done\n") {
		t.Errorf("%v: %s", err, out)
	}
}
