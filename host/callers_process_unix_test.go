//go:build linux || darwin

package host_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/proc"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// treeOfProcesses is a command that starts processes in ways in which one can get away, one of
// which writes without end, notes the numbers of all and stays.
const treeOfProcesses = `echo $$ >a.pid; set -m; yes & echo $! >y.pid; (sh -c 'echo $$ >b.pid; exec sleep 600' &)
(trap '' TERM HUP INT; nohup sh -c 'echo $$ >c.pid; exec sleep 600' >/dev/null 2>&1 &)
sh -c 'echo $$ >d.pid; exec sleep 600'`

// flooded lets commands act, and keeps little of what they print.
func flooded() []func(*host.Options) {
	return []func(*host.Options){bypass, func(o *host.Options) { o.LimitOutput(mostOutput) }}
}

const mostOutput = 1 << 20 // in bytes

// gone fails for processes that are still there, and for output that has outgrown
// its limit.
func gone(t *testing.T, p *place, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	files, err := filepath.Glob(filepath.Join(host.Sessions(p.home), "*", "*", "output", "*"))
	if err != nil || len(files) == 0 {
		t.Errorf("no output was kept: %v", err)
	}
	for _, file := range files {
		text := read(t, file)
		if len(text) > mostOutput+64<<10 || !bytes.HasPrefix(text, []byte("y\ny\n")) || !bytes.HasSuffix(text, []byte("the rest was not kept]\n")) {
			t.Errorf("%s: %d bytes, from %.100q to %q", file, len(text), text, text[max(0, len(text)-100):])
		}
	}
}

// overflows reports whether some output of the place's sessions has come to its limit.
func overflows(p *place) bool {
	files, _ := filepath.Glob(filepath.Join(host.Sessions(p.home), "*", "*", "output", "*"))
	return slices.ContainsFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > mostOutput
	})
}

// S48, S125: when the run is told to end, as by a terminal that is closed, all that
// any agent has started is gone when it returns, what writes without end, too; each
// call has its result, and the session goes on.
func TestS48S125ARunThatEndsLeavesNothing(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, flooded()...)
		var left []int
		var s *host.Session
		set.run = func(t *testing.T, opened *host.Session) {
			s = opened
			end := stopped(t, s, func() bool { left = pids(set.p.dir); return len(left) == 5 && overflows(set.p) }, nil)
			if way.Apart { // it works on when the turn is over, until the session is
				closed(t, s)
			} else if end.Reason != troupe.Interrupted {
				t.Errorf("ended with %+v", end)
			}
		}
		made := call(t, set, bash("c1", treeOfProcesses))
		gone(t, set.p, left)
		if res := made["c1"].Result; !res.IsError || !strings.Contains(res.Content.Text(), "interrupted") || len(res.Content.Text()) > 40_000 {
			t.Errorf("the call came to %.1000v", res)
		}
		closed(t, s)
		again := set.p.open(t, append([]func(*host.Options){resume(t, s)}, set.change...)...)
		set.p.provider.Say("here")
		if end := ask(t, again, "still there?"); end.Text != "here" {
			t.Errorf("%+v", end)
		}
	})
}

// victimOf names, in a process that is to be killed, the directory of its place.
const victimOf = "TROUPE_TEST_VICTIM"

// S48, S49, S125: what any agent of a run that was killed has left behind is ended
// by the next start, what writes without end has ended before, and the session goes
// on. A process that merely has a number that was noted is let live.
func TestS48S49S125AKilledRunIsSweptAndNobodyElse(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		if root := os.Getenv(victimOf); root != "" {
			call(t, setting{p: placeIn(t, root), change: flooded()}, bash("c1", treeOfProcesses))
			return
		}
		bystander := exec.Command("sleep", "600")
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
		p := newPlace(t)
		left := killed(t, p)
		plant(t, filepath.Join(p.home, "run"), bystander.Process.Pid)
		info, err := host.Latest(p.home, p.dir)
		if err != nil {
			t.Fatal(err)
		}
		again := p.open(t, bypass, func(o *host.Options) { o.Resume, o.Model = &info, "" })
		gone(t, p, left)
		if !running(bystander.Process.Pid) {
			t.Error("a process that is not ours was ended")
		}
		if notes, err := os.ReadDir(filepath.Join(p.home, "run")); err != nil || len(notes) > 0 {
			t.Errorf("notes are left: %v, %v", notes, err)
		}
		has(t, strings.Join(again.Warnings, "\n"), "killed run of troupe had left behind")
		p.provider.Say("here")
		if end := ask(t, again, "still there?"); end.Text != "here" {
			t.Errorf("%+v", end)
		}
		for _, path := range logs(t, again) {
			state, bad, err := session.Load(path)
			if err != nil || len(bad) > 0 {
				t.Errorf("%s: %v, %v", path, bad, err)
			}
			for _, ev := range state.Repair() {
				state.Apply(ev)
			}
			if err := troupe.Valid(state.Request.Messages); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// killed has this test, in a process of its own, make the call of the tree in place
// p, kills the process in the middle of it, and returns what runs still.
func killed(t *testing.T, p *place) (left []int) {
	t.Helper()
	var only []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		only = append(only, "^"+regexp.QuoteMeta(part)+"$")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", strings.Join(only, "/"))
	cmd.Env = append(os.Environ(), victimOf+"="+filepath.Dir(p.dir))
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	ended := func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
	waitFor(t, func() bool { left = pids(p.dir); return ended() || len(left) == 5 && overflows(p) })
	if ended() {
		t.Fatalf("it has ended by itself: %s", out)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-over
	// What writes without end ends with the one it writes to; the others are those
	// that the next start is to find.
	waitFor(t, func() bool {
		n := 0
		for _, pid := range left {
			if running(pid) {
				n++
			}
		}
		if n < 4 {
			t.Fatalf("only %d processes have outlived the run: this shows nothing", n)
		}
		return n == 4
	})
	return left
}

// plant writes notes as that of the killed run beside it, which name a process that
// has nothing to do with it: one says that it started earlier, one that it was in
// another run of the machine.
func plant(t *testing.T, ledger string, pid int) {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(ledger, "*.json"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("notes: %v, %v", notes, err)
	}
	first, _, _ := bytes.Cut(read(t, notes[0]), []byte("\n"))
	alive, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	earlier, reboot := alive, alive
	earlier.Start--
	reboot.Boot = "another"
	mark := strings.TrimSuffix(filepath.Base(notes[0]), ".json")
	for letter, who := range map[string]proc.Identity{"A": earlier, "B": reboot} {
		leader, err := json.Marshal(map[string]proc.Identity{"leader": who})
		if err != nil {
			t.Fatal(err)
		}
		other := letter + letter + mark[2:]
		text := append(bytes.ReplaceAll(first, []byte(mark), []byte(other)), "\n"+string(leader)+"\n"...)
		if err := os.WriteFile(filepath.Join(ledger, other+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
