//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// The first SIGINT ends the run; where its end hangs, because nobody reads what
// it prints, the second one ends the program at once. The session is good.
func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Queue(troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
		troupe.Text(strings.Repeat("more than a pipe holds ", 20_000)), call("c1", "Glob", `{"pattern":"*"}`), call("c2", "Bash", `{"command":"`+tree+`"}`),
		call("c3", "Bash", `{"command":"touch late"}`), call("c4", "Read", `{"file_path":"none"}`), call("c5", "Glob", `{"pattern":"*.go"}`)}}})
	cmd, _ := b.command(t, "go", "--model", b.model, "--output-format", "stream-json")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	waitFor(t, "the tree to run", func() bool { return b.is("started") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the run", func() bool {
		paths, err := filepath.Glob(filepath.Join(b.dir, ".home", ".troupe", "sessions", "*", "*", "lead.jsonl"))
		if err != nil || len(paths) != 1 {
			t.Fatal(paths, err)
		}
		for rec := range session.Read(paths[0]) {
			if ev, ok := rec.Event.(troupe.Ended); ok {
				return ev.Reason == troupe.Interrupted
			}
		}
		return false
	})
	if left := b.alive(t); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("it ended with %v, want code 130", err)
	}
	b.resumed(t)
}
