package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const testMark = "PROC_TEST_MARK"

func hasTestMark(pid int) bool {
	return bytes.Contains(environment(pid), []byte(testMark+"="+strconv.Itoa(os.Getpid())))
}

// processesLeft finds processes with the environment of this test program.
func processesLeft() error {
	var left []int
	_, err := poll(nil, 5*time.Second, func() (bool, error) {
		table, err := processes()
		left = nil
		for _, p := range table {
			if p.pid != os.Getpid() && !p.zombie && hasTestMark(p.pid) {
				left = append(left, p.pid)
			}
		}
		return len(left) == 0, err
	})
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("processes are left: %v", left))
	}
	return err
}

// env is the environment of the commands of the tests.
func env() []string {
	return append(os.Environ(), fmt.Sprintf("%s=%d", testMark, os.Getpid()))
}

func shell(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: env()}
}

// screen is a sink that can be waited for.
type screen struct {
	mu   sync.Mutex
	text string
	news chan struct{}
}

func newScreen() *screen { return &screen{news: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.text += string(p)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// lines waits until n whole lines were written, and returns them.
func (s *screen) lines(t *testing.T, n int) []string {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		if text := s.String(); strings.Count(text, "\n") >= n {
			return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		}
		select {
		case <-s.news:
		case <-limit:
			t.Fatalf("waited for %d lines; the output is %q", n, s)
		}
	}
}

func running(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatalf("not a pid: %q", pid)
	}
	p, err := inspect(n)
	return err == nil && !p.zombie
}

func TestRun(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		script string
		stdin  string
		code   int
		state  string
		out    string
	}{
		"success":        {script: "echo hello", out: "hello\n", state: "exit status 0"},
		"exit code":      {script: "echo a; echo b >&2; exit 3", out: "a\nb\n", code: 3, state: "exit status 3"},
		"signal":         {script: "kill -9 $$", code: -1, state: "signal: killed"},
		"no input":       {script: "cat; echo end", out: "end\n", state: "exit status 0"},
		"input":          {script: "cat", stdin: "text", out: "text", state: "exit status 0"},
		"directory":      {script: "pwd; echo $PWD", out: dir + "\n" + dir + "\n", state: "exit status 0"},
		"own session":    {script: "test -t 0 || test -c /dev/tty && (: </dev/tty) 2>/dev/null || echo no terminal", out: "no terminal\n", state: "exit status 0"},
		"end of a pipe":  {script: "exec 3>&1; mkfifo p; { sleep 0.05; cat p >&3; } & echo late >p", out: "late\n", state: "exit status 0"},
		"much output":    {script: "head -c 300000 /dev/zero | tr '\\0' x", out: strings.Repeat("x", 300000), state: "exit status 0"},
		"ignored signal": {script: "trap '' TERM HUP INT; exit 4", code: 4, state: "exit status 4"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			c := shell(tt.script)
			c.Dir, c.Stdout, c.Stderr = dir, &got, &got
			if tt.stdin != "" {
				c.Stdin = strings.NewReader(tt.stdin)
			}
			out, err := Run(context.Background(), c)
			want := Outcome{Code: tt.code, State: tt.state}
			if err != nil || out != want || got.String() != tt.out {
				t.Errorf("Run = %+v, %v with output %.100q; want %+v with %.100q", out, err, &got, want, tt.out)
			}
		})
	}
}

func TestRunTakesNothingFromOwnEnvironment(t *testing.T) {
	t.Setenv("PROC_TEST_SECRET", "secret")
	var got bytes.Buffer
	_, err := Run(context.Background(), Command{Path: "/usr/bin/env", Env: []string{"A=1", Mark + "=OUTER"}, Stdout: &got})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(got.String()), "\n")
	if len(lines) != 2 || lines[0] != "A=1" || !strings.HasPrefix(lines[1], Mark+"=OUTER,") {
		t.Errorf("environment is %q", lines)
	}
}

func TestRunErrors(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	for name, c := range map[string]Command{
		"no program":   {Path: "/does/not/exist", Ledger: ledger},
		"not in PATH":  {Path: "no-such-program", Env: env(), Ledger: ledger},
		"no directory": {Path: "/bin/sh", Dir: "/does/not/exist", Ledger: ledger},
	} {
		if out, err := Run(context.Background(), c); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) || out.Code != -1 {
			t.Errorf("%s: Run = %+v, %v", name, out, err)
		}
	}
	if files, _ := os.ReadDir(ledger); len(files) != 0 {
		t.Errorf("the ledger still has %v", files)
	}
	gone, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	cancel(why)
	file := filepath.Join(t.TempDir(), "file")
	if _, err := Run(gone, shell("touch "+file)); !errors.Is(err, why) {
		t.Errorf("Run with a context that has ended: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it ran")
	}
}

// Each script prints the pids of what must be gone when Run returns.
var escapes = map[string]struct {
	script string
	pids   int
}{
	"child":            {"sleep 1000 & echo $!; wait", 1},
	"new session":      {"setsid sh -c 'echo $$; exec sleep 1000' & wait", 1},
	"nohup":            {"nohup sh -c 'echo $$; exec sleep 1000' & wait", 1},
	"double fork":      {"(sh -c 'echo $$; exec sleep 1000' &) ; sleep 1000", 1},
	"daemon":           {"(setsid sh -c '(sh -c \"echo \\$\\$; exec sleep 1000\" &)' &); sleep 1000", 1},
	"no environment":   {"env -i /bin/sh -c 'echo $$; exec sleep 1000' & wait", 1},
	"no mark, session": {"setsid env -i /bin/sh -c 'echo $$; exec sleep 1000' & wait", 1},
	"ignores the end":  {"trap '' TERM HUP INT; sh -c 'echo $$; sleep 1000; sleep 1000' & wait; wait", 1},
	"stopped":          {"sh -c 'echo $$; kill -STOP $$; sleep 1000' & wait", 1},
	"starts more": {
		`setsid sh -c 'trap "" TERM; echo $$; while :; do setsid sleep 1000 & sleep 0.01; done' & wait`, 1},
	"job control": {"set -m; sh -c 'echo $$; exec sleep 1000' & sh -c 'echo $$; exec sleep 1000' & wait; wait", 2},
}

func TestEndOfContextEndsAll(t *testing.T) {
	for name, tt := range escapes {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			why := errors.New("why")
			out := newScreen()
			c := shell(tt.script)
			c.Stdout = out
			c.Env = append(c.Env, "PROC_TEST_NAME="+name)
			var pids []string
			err := during(func() error { _, err := Run(ctx, c); return err }, func() {
				pids = out.lines(t, tt.pids)
				cancel(why)
			})
			if !errors.Is(err, why) {
				t.Errorf("Run: %v", err)
			}
			for _, pid := range pids {
				if running(t, pid) {
					t.Errorf("process %s runs", pid)
				}
			}
			if err := processesLeft(); err != nil {
				t.Error(err)
			}
		})
	}
}

// during runs f, meanwhile do, and returns the error of f.
func during(f func() error, do func()) error {
	end := make(chan error, 1)
	go func() { end <- f() }()
	do()
	return <-end
}

func TestWhatIsLeftIsEndedAndCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		left   int
	}{
		"nothing":         {"sleep 0.01 & wait", 0},
		"holds the pipe":  {"sleep 1000 & echo $!", 1},
		"two":             {"sleep 1000 & echo $!; sleep 1000 >/dev/null 2>&1 & echo $!", 2},
		"new session":     {"setsid sleep 1000 >/dev/null 2>&1 & echo $!", 1},
		"nohup":           {"nohup sleep 1000 >/dev/null 2>&1 & echo $!", 1},
		"ignores the end": {"trap '' TERM; sleep 1000 & echo $!", 1},
		"soon over":       {"sleep 0.03 & echo $!", 0},
		"no environment":  {"env -i sleep 1000 & echo $!", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c := shell(tt.script)
			c.Stdout = &out
			got, err := Run(context.Background(), c)
			if err != nil || got.Code != 0 || got.Left != tt.left {
				t.Errorf("Run = %+v, %v; want %d left", got, err, tt.left)
			}
			for _, pid := range strings.Fields(out.String()) {
				if running(t, pid) {
					t.Errorf("process %s runs", pid)
				}
			}
		})
	}
}

// The mother of a daemon may vanish in the same moment as the shell.
func TestDaemonThatIsJustBeingBorn(t *testing.T) {
	for i := range 30 {
		c := shell("(setsid sh -c '(exec setsid sleep 1000 >/dev/null 2>&1 &)' &)")
		got, err := Run(context.Background(), c)
		if err != nil || got.Left < 1 {
			t.Fatalf("%d: Run = %+v, %v; want something left", i, got, err)
		}
	}
}

func TestOthersAreLeftAlone(t *testing.T) {
	foreign := exec.Command("sleep", "1000")
	foreign.Env = env()
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Process.Kill(); _ = foreign.Wait() }()
	ctx, cancel := context.WithCancel(context.Background())
	first, second := newScreen(), newScreen()
	var survived bool
	err := during(func() error {
		c := shell("echo $$; sleep 1000")
		c.Stdout = first
		_, err := Run(ctx, c)
		return err
	}, func() {
		first.lines(t, 1)
		inner, stop := context.WithCancel(context.Background())
		_ = during(func() error {
			c := shell("echo; sleep 1000")
			c.Stdout = second
			_, err := Run(inner, c)
			return err
		}, func() { second.lines(t, 1); stop() })
		survived = running(t, first.lines(t, 1)[0])
		cancel()
	})
	if !errors.Is(err, context.Canceled) || !survived || !running(t, strconv.Itoa(foreign.Process.Pid)) {
		t.Errorf("Run: %v; the other command survived: %v", err, survived)
	}
}

// adoptOrphans runs as a process that is given all orphans, as the first one
// of a container is, and fails if it is left with dead children.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	got, err := Run(context.Background(), shell("(setsid sleep 1000 &); sleep 1000 &"))
	if err != nil || got.Left != 2 {
		return fmt.Errorf("Run = %+v, %w", got, err)
	}
	table, err := processes()
	for _, p := range table {
		if p.ppid == os.Getpid() {
			err = errors.Join(err, fmt.Errorf("left with %+v", p))
		}
	}
	return err
}

func TestOrphansAreNotKeptAsZombies(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(env(), roleVar+"=parent of orphans")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, tt := range map[string]struct{ name, path, want string }{
		"found":         {"tool", "/nowhere:" + dir, tool},
		"absolute":      {tool, "", tool},
		"not a program": {"data", dir, ""},
		"no PATH":       {"tool", "", ""},
		"here":          {"tool", ".:", ""},
		"a path":        {"../" + filepath.Base(dir) + "/tool", dir, ""},
	} {
		got, err := Look(tt.name, []string{"PATH=/other", "PATH=" + tt.path})
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: Look = %q, %v; want %q", name, got, err, tt.want)
		}
	}
}
