//go:build !windows

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/secret"
	"github.com/troupe-sh/troupe/proc"
)

// A shed is where commands run on in these tests.
type shed struct {
	dir     string
	ask     func()    // is waited for before a job is taken
	join    func()    // and before it runs
	out     io.Writer // nil is a file
	refuses error

	stop context.CancelCauseFunc
	ctx  context.Context
	jobs []Job
	wg   sync.WaitGroup

	summary string
	err     error
}

func newShed(t *testing.T) *shed {
	s := &shed{dir: t.TempDir()}
	s.ctx, s.stop = context.WithCancelCause(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { s.stop(nil); s.wg.Wait() })
	return s
}

func (s *shed) path() string { return filepath.Join(s.dir, "b1.output") }

func (s *shed) take(_ context.Context, c *troupe.Call, j Job) (string, string, error) {
	if s.ask != nil {
		s.ask()
	}
	if s.refuses != nil {
		return "", "", s.refuses
	}
	s.jobs = append(s.jobs, j)
	s.wg.Go(func() {
		if s.join != nil {
			s.join()
		}
		out := s.out
		if out == nil {
			f, err := os.Create(s.path())
			if err != nil {
				s.err = err
				return
			}
			defer f.Close()
			out = f
		}
		s.summary, s.err = j.Run(s.ctx, out)
	})
	return "b1", s.path(), nil
}

// output waits for the end of the job and returns all that was printed.
func (s *shed) output(t *testing.T) string {
	t.Helper()
	s.wg.Wait()
	raw, err := os.ReadFile(s.path())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func backgroundBash(t *testing.T) (*Bash, *shed) {
	b, s := newBash(t), newShed(t)
	b.Background = s.take
	return b, s
}

// until waits for a file to be there.
func until(path string) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}

func noFiles(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
			t.Errorf("left in %s: %v, %v", dir, files, err)
		}
	}
}

// A command that counts without a pause is moved at its limit: each number
// arrives once and in order, whether what came before was in memory or in a
// file, and whether the job begins at once or later.
func TestBashMovedLosesNothing(t *testing.T) {
	for name, before := range map[string]int{"memory": 10, "file": 30000} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(name, late), func(t *testing.T) {
				b, s := backgroundBash(t)
				dir := t.TempDir()
				stop := filepath.Join(dir, "stop")
				if late {
					s.join = func() { until(filepath.Join(dir, "more")) }
				}
				// The numbers after the first go on in a loop until it is told to stop.
				command := fmt.Sprintf(`n=%d; seq $n; touch begun; until test -e go; do sleep 0.01; done
					until test -e stop; do n=$((n+1)); echo $n; test $((n%%500)) = 0 && touch more; done; true`, before)
				counting := make(chan struct{})
				go func() {
					defer close(counting)
					until(filepath.Join(dir, "begun"))
					_ = os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)
				}()
				got, err := b.Call(t.Context(), bashCall(t, dir, bashInput{Command: command, Timeout: 400}))
				if err != nil {
					t.Fatal(err)
				}
				<-counting
				until(filepath.Join(dir, "more"))
				if err := os.WriteFile(stop, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(strings.TrimSuffix(s.output(t), "\n"), "\n")
				for i, line := range lines {
					if line != strconv.Itoa(i+1) {
						t.Fatalf("line %d is %q", i+1, line)
					}
				}
				d := dataOf(t, got)
				if len(lines) <= before || s.err != nil || got.IsError || d.BackgroundTaskID != "b1" || d.TimedOutAfter != 400 || d.RawOutputPath != s.path() || d.ExitCode != -1 {
					t.Errorf("%d lines, %v, %+v", len(lines), s.err, got.IsError)
				}
				if !strings.Contains(s.summary, "\n"+lines[len(lines)-1]) || len(s.summary) > 2*lastOutput {
					t.Errorf("summary of %d bytes", len(s.summary))
				}
				noFiles(t, b.Output, b.Ledger)
			})
		}
	}
}

// Where there is no file to keep it in, the output has a gap, and says so.
func TestBashMovedWithoutAFile(t *testing.T) {
	b, s := backgroundBash(t)
	b.Output = ""
	dir := t.TempDir()
	s.ask = func() { until(filepath.Join(dir, "begun")) }
	s.join = func() { _ = os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600) }
	if _, err := b.Call(t.Context(), bashCall(t, dir, bashInput{Command: `seq 100000; touch begun; until test -e stop; do sleep 0.01; done; echo end`, Timeout: 500})); err != nil {
		t.Fatal(err)
	}
	out := s.output(t)
	if !strings.HasPrefix(out, "1\n2\n") || !strings.HasSuffix(out, "100000\nend\n") || strings.Count(out, "bytes left out here]") != 1 {
		t.Errorf("%d bytes: %.30q … %q", len(out), out, out[max(0, len(out)-60):])
	}
}

func TestBashMovedSaysSo(t *testing.T) {
	b, s := backgroundBash(t)
	dir := t.TempDir()
	s.ask = func() { until(filepath.Join(dir, "begun")) }
	c := bashCall(t, dir, bashInput{Command: "printf started; seq 30000; touch begun; until test -e stop; do sleep 0.01; done", Timeout: 300, Description: "  Serve\nthe page "})
	got, err := b.Call(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n(still running after its time limit of 300ms: it goes on in the background as task b1. All it prints, from the beginning, is in " + s.path() + "."
	// A pipe does not hold all those numbers, so the first are here.
	if text := got.Content.Text(); !strings.HasPrefix(text, "started1\n2\n") || !strings.Contains(text, want) || !strings.Contains(text, "You will be told when it ends") || !strings.Contains(text, "TaskOutput") || !strings.Contains(text, "TaskStop") {
		t.Errorf("result %q", text)
	}
	if d := dataOf(t, got); !strings.HasPrefix(d.Stdout, "started1\n2\n") || d.Interrupted {
		t.Errorf("data %+v", d)
	}
	if s.jobs[0].Title != "Serve the page" || !strings.HasPrefix(s.jobs[0].Command, "printf started; ") {
		t.Errorf("job %+v", s.jobs[0])
	}
	if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.output(t); !strings.HasPrefix(out, "started1\n") || !strings.HasSuffix(out, "\n30000\n") || !strings.HasSuffix(s.summary, "\n30000") || s.err != nil {
		t.Errorf("output of %d bytes, summary %q, %v", len(out), s.summary, s.err)
	}
}

func TestBashInBackground(t *testing.T) {
	long := strings.Repeat("x", 99)
	for name, tt := range map[string]struct {
		command string
		output  string
		summary string
		err     string
	}{
		"well":     {command: "echo a; echo b >&2", output: "a\nb\n", summary: "a\nb"},
		"nothing":  {command: "true"},
		"code":     {command: "echo a; exit 3", output: "a\n", summary: "a\n(exit code 3)", err: "exit code 3"},
		"signal":   {command: "kill -9 $$", summary: "(the command did not end by itself: signal: killed)", err: "the command did not end by itself: signal: killed"},
		"left":     {command: "sleep 1000 & echo a", output: "a\n", summary: "a\n(1 process that the command left running was ended)"},
		"colours":  {command: `printf '\033[31mred\033[0m'; false`, output: "\x1b[31mred\x1b[0m", summary: "red\n(exit code 1)", err: "exit code 1"},
		"binary":   {command: `printf 'a\0b'`, output: "a\x00b", summary: "(binary output, 3 bytes, not shown)"},
		"long":     {command: "for i in $(seq 200); do echo " + long + "; done; echo end", output: strings.Repeat(long+"\n", 200) + "end\n", summary: "[18100 bytes before this]\n" + strings.Repeat(long+"\n", 19) + "end"},
		"its time": {command: "sleep 0.3; echo late", output: "late\n", summary: "late"},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := backgroundBash(t)
			got, err := b.Call(t.Context(), bashCall(t, t.TempDir(), bashInput{Command: tt.command, RunInBackground: true, Timeout: 1}))
			if err != nil || got.IsError {
				t.Fatal(got, err)
			}
			text := got.Content.Text()
			for _, word := range []string{"task b1", s.path(), "You will be told when it ends", "TaskOutput", "TaskStop"} {
				if !strings.Contains(text, word) {
					t.Errorf("%q has no %q", text, word)
				}
			}
			if d := dataOf(t, got); d != (bashData{RawOutputPath: s.path(), BackgroundTaskID: "b1", ExitCode: -1}) {
				t.Errorf("data %+v", d)
			}
			if out := s.output(t); out != tt.output {
				t.Errorf("output %q, want %q", out, tt.output)
			}
			if s.summary != tt.summary || fmt.Sprint(s.err) != tt.err && (s.err != nil || tt.err != "") {
				t.Errorf("summary %q, error %v; want %q, %q", s.summary, s.err, tt.summary, tt.err)
			}
			noFiles(t, b.Output, b.Ledger)
		})
	}
}

// A job that is stopped takes all it has started with it: what ignores the
// request, what has left its session, what starts others.
func TestBashJobIsStopped(t *testing.T) {
	for name, in := range map[string]bashInput{"started there": {RunInBackground: true}, "moved": {Timeout: 300}} {
		t.Run(name, func(t *testing.T) {
			b, s := backgroundBash(t)
			dir := t.TempDir()
			in.Command = `(trap '' TERM; echo $BASHPID >>pids; while :; do sleep 1; done) & (setsid sh -c 'echo $$ >>pids; exec sleep 1000' &)
				nohup sh -c 'echo $$ >>pids; sleep 1000' >/dev/null 2>&1 & until test "$(wc -l <pids)" = 3; do sleep 0.01; done; echo ready; touch ready; sleep 1000`
			if _, err := b.Call(t.Context(), bashCall(t, dir, in)); err != nil {
				t.Fatal(err)
			}
			until(filepath.Join(dir, "ready"))
			why := errors.New("enough")
			s.stop(why)
			if out := s.output(t); out != "ready\n" || !errors.Is(s.err, why) || !strings.Contains(s.summary, "ready\n(interrupted") {
				t.Errorf("output %q, summary %q, %v", out, s.summary, s.err)
			}
			raw, err := os.ReadFile(filepath.Join(dir, "pids"))
			if err != nil {
				t.Fatal(err)
			}
			for f := range strings.FieldsSeq(string(raw)) {
				pid, err := strconv.Atoi(f)
				if err != nil {
					t.Fatal(err)
				}
				if id, err := proc.Of(pid); !errors.Is(err, os.ErrProcessDone) {
					t.Errorf("a process of the command runs: %+v, %v", id, err)
				}
			}
			noFiles(t, b.Ledger)
		})
	}
}

// A job that is stopped before it begins does not begin.
func TestBashJobStoppedBefore(t *testing.T) {
	b, s := backgroundBash(t)
	b.Shell = "/nowhere/bash" // who begins hears of it
	why := errors.New("too late")
	s.stop(why)
	dir := t.TempDir()
	if _, err := b.Call(t.Context(), bashCall(t, dir, bashInput{Command: "touch it", RunInBackground: true})); err != nil {
		t.Fatal(err)
	}
	if out := s.output(t); out != "" || !errors.Is(s.err, why) {
		t.Errorf("output %q, %v", out, s.err)
	}
	noFiles(t, dir)
}

// What may not go on in the background is ended at its limit, or not started.
func TestBashBackgroundRefused(t *testing.T) {
	b, s := backgroundBash(t)
	s.refuses = errors.New("8 tasks run already")
	place := t.TempDir()
	s.ask = func() { until(filepath.Join(place, "begun")) }
	got, err := b.Call(t.Context(), bashCall(t, place, bashInput{Command: "echo a; touch begun; sleep 1000", Timeout: 300}))
	if err != nil {
		t.Fatal(err)
	}
	text := got.Content.Text()
	if d := dataOf(t, got); !got.IsError || d.TimedOutAfter != 300 || d.BackgroundTaskID != "" || !strings.HasPrefix(text, "a\n(ended after its time limit of 300ms") || !strings.HasSuffix(text, "(it could not go on in the background: 8 tasks run already)") {
		t.Errorf("result %q, data %+v", text, d)
	}
	s.ask = nil
	dir := t.TempDir()
	if _, err := b.Call(t.Context(), bashCall(t, dir, bashInput{Command: "touch it", RunInBackground: true})); !errors.Is(err, s.refuses) {
		t.Errorf("got %v", err)
	}
	noFiles(t, dir, b.Ledger)
}

// Before it is moved a command ends with its call; what is wrong with it is told
// in the call, and nobody is asked to take it.
func TestBashNotMoved(t *testing.T) {
	b, s := backgroundBash(t)
	why := errors.New("interrupted")
	for name, step := range map[string]struct {
		in      bashInput
		confine error
		check   func(troupe.Result, error) bool
	}{
		"by itself":  {in: bashInput{Command: "echo a; exit 2"}, check: func(r troupe.Result, err error) bool { return r.Content.Text() == "a\n(exit code 2)" }},
		"empty":      {in: bashInput{Command: " ", RunInBackground: true}, check: func(_ troupe.Result, err error) bool { return strings.Contains(err.Error(), "empty") }},
		"no sandbox": {in: bashInput{Command: "true", RunInBackground: true}, confine: why, check: func(_ troupe.Result, err error) bool { return errors.Is(err, why) }},
		"interruption": {in: bashInput{Command: "echo partial; touch begun; sleep 1000"}, check: func(r troupe.Result, err error) bool {
			return strings.HasPrefix(r.Content.Text(), "partial\n(interrupted") && r.IsError
		}},
		"too late": {in: bashInput{Command: "touch begun"}, check: func(r troupe.Result, err error) bool {
			return strings.HasPrefix(r.Content.Text(), "(no output)\n(interrupted") && r.IsError
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b.Confine = func(string, troupe.Place) (*proc.Sandbox, proc.Limits, error) {
				return nil, proc.Limits{}, step.confine
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var wg sync.WaitGroup
			switch name {
			case "interruption":
				wg.Go(func() { until(filepath.Join(dir, "begun")); cancel(why) })
			case "too late":
				b.Shell = "/nowhere/bash" // who begins hears of it
				defer func() { b.Shell = "" }()
				cancel(why)
			}
			got, err := b.Call(ctx, bashCall(t, dir, step.in))
			wg.Wait()
			if !step.check(got, err) || len(s.jobs) > 0 {
				t.Errorf("result %q, %v, jobs %d", got.Content.Text(), err, len(s.jobs))
			}
			noFiles(t, b.Ledger)
		})
	}
}

// Keys are taken out of what goes to the background, too, also one that is
// printed in pieces before and after the move.
func TestBashBackgroundMasks(t *testing.T) {
	b, s := backgroundBash(t)
	key := "sk-0123456789abcdef"
	b.Mask = secret.New(key)
	dir := t.TempDir()
	s.ask = func() { until(filepath.Join(dir, "begun")) }
	s.join = func() { _ = os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600) }
	command := fmt.Sprintf("echo %[1]s; printf %[2]s; touch begun; until test -e stop; do sleep 0.01; done; echo %[3]s; echo %[1]s", key, key[:8], key[8:])
	got, err := b.Call(t.Context(), bashCall(t, dir, bashInput{Command: command, Timeout: 300}))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat(secret.Shown+"\n", 3)
	if out := s.output(t); out != want || s.summary != strings.TrimSpace(want) {
		t.Errorf("output %q, summary %q", out, s.summary)
	}
	if strings.Contains(got.Content.Text()+string(got.Data), key) || !strings.Contains(got.Content.Text(), "(still running") {
		t.Errorf("result %q", got.Content.Text())
	}
}

// A command is confined in the same way wherever it runs.
func TestBashBackgroundIsConfined(t *testing.T) {
	b := newBash(t)
	box, limits := new(proc.Sandbox), proc.Limits{NoNetwork: true}
	b.Confine = func(command string, place troupe.Place) (*proc.Sandbox, proc.Limits, error) {
		if command != "true" || place.Dir != "/" {
			t.Errorf("asked for %q in %+v", command, place)
		}
		return box, limits, nil
	}
	r, err := b.prepare("true", troupe.Place{Dir: "/"})
	if err != nil || r.command.Sandbox != box || !r.command.Limits.NoNetwork || r.command.Ledger != b.Ledger || r.command.Dir != "/" {
		t.Errorf("%+v, %v", r, err)
	}
}

// failing is a place that has room for so many bytes, and after a write that
// failed for many.
type failing struct {
	kept []byte
	room int
}

func (f *failing) Write(p []byte) (int, error) {
	n := min(len(p), f.room-len(f.kept))
	if f.kept = append(f.kept, p[:n]...); n < len(p) {
		f.room = 1 << 20
		return n, errors.New("no room left")
	}
	return n, nil
}

// A command whose output cannot be kept goes on, and its end says so.
func TestBashJobOutputFails(t *testing.T) {
	b, s := backgroundBash(t)
	f := &failing{room: 3}
	s.out = f
	dir := t.TempDir()
	if _, err := b.Call(t.Context(), bashCall(t, dir, bashInput{Command: "echo a && sleep 0.1 && echo b && sleep 0.1 && echo c && touch done", RunInBackground: true})); err != nil {
		t.Fatal(err)
	}
	s.wg.Wait()
	if want := "a\nb\nc\n(not all of the output could be kept: no room left)"; s.summary != want || s.err != nil || string(f.kept) != "a\nb" {
		t.Errorf("summary %q, %v, kept %q", s.summary, s.err, f.kept)
	}
	if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
		t.Error(err)
	}
}

// What cannot be copied stays in the file where it is.
func TestBashMovedOutputFails(t *testing.T) {
	b, s := backgroundBash(t)
	dir := t.TempDir()
	s.out = &failing{room: 100}
	s.ask = func() { until(filepath.Join(dir, "begun")) }
	s.join = func() { _ = os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600) }
	if _, err := b.Call(t.Context(), bashCall(t, dir, bashInput{Command: "seq 30000; touch begun; until test -e stop; do sleep 0.01; done", Timeout: 500})); err != nil {
		t.Fatal(err)
	}
	s.wg.Wait()
	if files, err := filepath.Glob(filepath.Join(b.Output, "*")); err != nil || len(files) != 1 || !strings.Contains(s.summary, "no room left") {
		t.Errorf("kept %v, %v, summary %q", files, err, s.summary)
	}
}

// The tool offers a background only if it has one.
func TestBashOffersBackground(t *testing.T) {
	plain, with := newBash(t).Spec(), (&Bash{Background: new(shed).take}).Spec()
	if strings.Contains(string(plain.Schema)+plain.Description, "ackground") || !strings.Contains(plain.Description, "- A command ends after 120 seconds") {
		t.Errorf("%s %s", plain.Schema, plain.Description)
	}
	var schema struct {
		Properties map[string]struct{ Type string }
	}
	if err := json.Unmarshal(with.Schema, &schema); err != nil || schema.Properties["run_in_background"].Type != "boolean" || len(schema.Properties) != 4 {
		t.Errorf("%s, %v", with.Schema, err)
	}
	if strings.Contains(with.Description, "ends after 120") || !strings.Contains(with.Description, "`run_in_background`") || strings.Count(with.Description, "\n") != strings.Count(plain.Description, "\n") {
		t.Errorf("%s", with.Description)
	}
	// One that has none runs what asks for it in the foreground.
	got, err := newBash(t).Call(t.Context(), bashCall(t, t.TempDir(), bashInput{Command: "echo a", RunInBackground: true}))
	if err != nil || got.Content.Text() != "a" {
		t.Errorf("%q, %v", got.Content.Text(), err)
	}
}

func TestBashTitle(t *testing.T) {
	for want, in := range map[string]bashInput{
		"go test ./... && echo ok":    {Command: "go test ./... \\\n\t&& echo ok"},
		"run the tests":               {Command: "go test", Description: "run the\ntests"},
		"red":                         {Command: "\x1b[31mred\x1b[0m"},
		strings.Repeat("é", 79) + "…": {Command: strings.Repeat("é", 100)},
	} {
		if got := in.title(); got != strings.ReplaceAll(want, "... && ", "... \\ && ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
