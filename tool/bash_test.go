//go:build !windows

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/proc"
)

var _ troupe.Ordered = (*Bash)(nil)

// newBash is a tool that runs commands with the PATH of the test.
func newBash(t *testing.T) *Bash {
	t.Helper()
	return &Bash{Env: []string{"PATH=" + os.Getenv("PATH")}, Output: t.TempDir(), Ledger: t.TempDir()}
}

func bashCall(t *testing.T, dir string, in bashInput) *troupe.Call {
	t.Helper()
	raw, err := troupe.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	return &troupe.Call{ToolUse: troupe.ToolUse{ID: "1", Name: "Bash", Input: raw}, Place: troupe.Place{Dir: dir}}
}

func dataOf(t *testing.T, r troupe.Result) (d bashData) {
	t.Helper()
	if err := json.Unmarshal(r.Data, &d); err != nil {
		t.Fatalf("data %q: %v", r.Data, err)
	}
	return d
}

func TestBash(t *testing.T) {
	for name, tt := range map[string]struct {
		command string
		want    string
		isError bool
		data    bashData
	}{
		"output":          {command: "echo a; echo b >&2", want: "a\nb", data: bashData{Stdout: "a\nb\n"}},
		"no output":       {command: "true", want: "(no output)"},
		"exit code":       {command: "echo a; exit 3", want: "a\n(exit code 3)", isError: true, data: bashData{Stdout: "a\n", ExitCode: 3}},
		"no last newline": {command: "printf a; false", want: "a\n(exit code 1)", isError: true, data: bashData{Stdout: "a", ExitCode: 1}},
		"killed":          {command: "kill -9 $$", want: "(no output)\n(the command did not end by itself: signal: killed)", isError: true, data: bashData{ExitCode: -1}},
		"no input":        {command: "cat", want: "(no output)"},
		"left":            {command: "sleep 1000 & echo a", want: "a\n(1 process that the command left running was ended)", data: bashData{Stdout: "a\n", LeftProcesses: 1}},
		"two left":        {command: "sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 & echo a", want: "a\n(2 processes that the command left running were ended)", data: bashData{Stdout: "a\n", LeftProcesses: 2}},
		"colours":         {command: `printf '\033[31mred\033[0m\r\n'`, want: "red", data: bashData{Stdout: "red\n"}},
		"invalid":         {command: `printf 'caf\351 au lait'`, want: "caf\ufffd au lait", data: bashData{Stdout: "caf\ufffd au lait"}},
		"bash itself":     {command: "[[ a == a ]] && echo ${BASH_VERSION:+bash}", want: "bash", data: bashData{Stdout: "bash\n"}},
		"environment":     {command: "echo $TROUPE $GIT_TERMINAL_PROMPT $TERM ${HOME-unset}", want: "1 0 dumb unset", data: bashData{Stdout: "1 0 dumb unset\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBash(t)
			got, err := b.Call(context.Background(), bashCall(t, t.TempDir(), bashInput{Command: tt.command}))
			if err != nil {
				t.Fatal(err)
			}
			if text := got.Content.Text(); text != tt.want || got.IsError != tt.isError {
				t.Errorf("result %q, error %v; want %q, %v", text, got.IsError, tt.want, tt.isError)
			}
			if d := dataOf(t, got); d != tt.data {
				t.Errorf("data %+v, want %+v", d, tt.data)
			}
			for _, dir := range []string{b.Output, b.Ledger} {
				if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
					t.Errorf("left in %s: %v, %v", dir, files, err)
				}
			}
		})
	}
}

func TestBashStartsInItsPlace(t *testing.T) {
	b, dir := newBash(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sub", filepath.Base(dir)} {
		command := "basename $PWD"
		if want == "sub" {
			command = "cd sub && basename $PWD"
		}
		got, err := b.Call(context.Background(), bashCall(t, dir, bashInput{Command: command}))
		if err != nil || got.Content.Text() != want {
			t.Errorf("%s: %q, %v", command, got.Content.Text(), err)
		}
	}
}

func TestBashRefuses(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		bash    Bash
		dir     string
		command string
		want    string
	}{
		"no command":         {dir: dir, command: " \n", want: "empty"},
		"NUL":                {dir: dir, command: "echo \x00", want: "NUL"},
		"too long":           {dir: dir, command: "echo " + strings.Repeat("x", maxCommand), want: "write it to a file"},
		"directory gone":     {dir: gone, command: "true", want: gone + " does not exist any more"},
		"no directory":       {dir: file, command: "true", want: file + " does not exist any more"},
		"no shell in PATH":   {bash: Bash{Env: []string{"PATH=" + dir}}, dir: dir, command: "true", want: "install bash"},
		"shell is not there": {bash: Bash{Shell: gone}, dir: dir, command: "true", want: "no such file"},
	} {
		b := tt.bash
		if b.Env == nil {
			b.Env = newBash(t).Env
		}
		res, err := b.Call(context.Background(), bashCall(t, tt.dir, bashInput{Command: tt.command}))
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(res.Content) > 0 {
			t.Errorf("%s: %q, %v; want an error with %q", name, res.Content.Text(), err, tt.want)
		}
	}
	c := bashCall(t, dir, bashInput{})
	c.Input = json.RawMessage(`{"timeout":1}`)
	if _, err := newBash(t).Call(context.Background(), c); err == nil || !strings.Contains(err.Error(), `"command"`) {
		t.Errorf("call without a command: %v", err)
	}
}

func TestBashTimeLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		bash Bash
		ms   int64
		want time.Duration
	}{
		"usual":           {want: 2 * time.Minute},
		"asked":           {ms: 5000, want: 5 * time.Second},
		"too much":        {ms: 3_600_000, want: 10 * time.Minute},
		"overflowing":     {ms: 1 << 62, want: 10 * time.Minute},
		"negative":        {ms: -1, want: 2 * time.Minute},
		"usual of host":   {bash: Bash{Timeout: time.Second}, want: time.Second},
		"most of host":    {bash: Bash{MaxTimeout: time.Hour}, ms: 3_000_000, want: 50 * time.Minute},
		"too much of his": {bash: Bash{MaxTimeout: time.Hour}, ms: 9_000_000, want: time.Hour},
	} {
		if got := tt.bash.limit(tt.ms); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}

	got, err := newBash(t).Call(context.Background(), bashCall(t, t.TempDir(), bashInput{Command: "trap 'exit 0' TERM; echo started; sleep 1000 & wait", Timeout: 300}))
	if err != nil {
		t.Fatal(err)
	}
	d := dataOf(t, got)
	if !got.IsError || d.TimedOutAfter != 300 || d.Interrupted || !strings.Contains(got.Content.Text(), "time limit of 300ms") {
		t.Errorf("result %q, data %+v", got.Content.Text(), d)
	}
}

func TestBashInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	pidFile := filepath.Join(dir, "pid")
	command := `echo partial; setsid sh -c 'echo $$ >new; mv new pid; exec sleep 1000' & sleep 1000`
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Stat(pidFile); err == nil {
				cancel(errors.New("enough"))
				return
			}
		}
	}()
	got, err := newBash(t).Call(ctx, bashCall(t, dir, bashInput{Command: command}))
	if err != nil {
		t.Fatal(err)
	}
	d := dataOf(t, got)
	if !got.IsError || !d.Interrupted || d.Stdout != "partial\n" || !strings.HasPrefix(got.Content.Text(), "partial\n(interrupted") {
		t.Errorf("result %q, data %+v", got.Content.Text(), d)
	}
	<-watched
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := proc.Of(pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process of the command runs: %+v, %v", id, err)
	}
}

func TestBashLongOutput(t *testing.T) {
	b := newBash(t)
	got, err := b.Call(context.Background(), bashCall(t, t.TempDir(), bashInput{Command: "echo first; head -c 400000 /dev/zero | tr '\\0' x; echo; echo last"}))
	if err != nil {
		t.Fatal(err)
	}
	text, d := got.Content.Text(), dataOf(t, got)
	if len(text) > 110<<10 || !strings.HasPrefix(text, "first\n") || !strings.Contains(text, "\nlast\n") {
		t.Errorf("result of %d bytes: %.40q … %q", len(text), text, text[len(text)-200:])
	}
	if !strings.Contains(text, "bytes left out here]") || !strings.HasSuffix(text, fmt.Sprintf("(the whole output, 400012 bytes, is in %s)", d.RawOutputPath)) {
		t.Errorf("result ends with %q", text[len(text)-200:])
	}
	if st, err := os.Stat(d.RawOutputPath); err != nil || st.Size() != 400012 || st.Mode().Perm() != 0o600 || d.RawOutputSize != 400012 {
		t.Errorf("raw output: %v, %v, data %d", st, err, d.RawOutputSize)
	}
}

func TestBashBinaryOutput(t *testing.T) {
	for name, command := range map[string]string{
		"NUL":     `printf 'a\0b'`,
		"invalid": `printf '\377\376\375abc'`,
	} {
		b := newBash(t)
		got, err := b.Call(context.Background(), bashCall(t, t.TempDir(), bashInput{Command: command}))
		if err != nil {
			t.Fatal(err)
		}
		d := dataOf(t, got)
		raw, err := os.ReadFile(d.RawOutputPath)
		if err != nil || !strings.Contains(string(raw), "a") {
			t.Errorf("%s: raw output %q, %v", name, raw, err)
		}
		want := fmt.Sprintf("(binary output, %d bytes, not shown)\n(the whole output, %d bytes, is in %s)", len(raw), len(raw), d.RawOutputPath)
		if text := got.Content.Text(); text != want {
			t.Errorf("%s: %q, want %q", name, text, want)
		}
	}
}

func TestBashOutputThatCannotBeKept(t *testing.T) {
	b := newBash(t)
	b.Output = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(b.Output, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := b.Call(context.Background(), bashCall(t, t.TempDir(), bashInput{Command: "echo first; head -c 400000 /dev/zero | tr '\\0' x"}))
	if err != nil || got.IsError || !strings.HasPrefix(got.Content.Text(), "first\n") || !strings.Contains(got.Content.Text(), "(could not keep the output") {
		t.Errorf("%v, %v", err, got.IsError)
	}
}

func TestBashRunsNoFilesFirst(t *testing.T) {
	dir := t.TempDir()
	rc := filepath.Join(dir, "rc")
	if err := os.WriteFile(rc, []byte("echo from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".bashrc"), []byte("echo from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBash(t)
	b.Env = append(b.Env, "BASH_ENV="+rc, "ENV="+rc, "HOME="+dir, "PAGER=less")
	got, err := b.Call(context.Background(), bashCall(t, dir, bashInput{Command: "echo $PAGER"}))
	if err != nil || got.Content.Text() != "less" {
		t.Errorf("%q, %v", got.Content.Text(), err)
	}
}
