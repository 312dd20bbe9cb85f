//go:build unix

package main

import (
	"strings"
	"testing"
)

// A pipe into which nobody writes does not hold up a prompt that is there.
func TestStdinThatStaysOpen(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Say("done")
	cmd, out := b.command(t, "go", "--model", b.model)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "going on without it") {
		t.Errorf("%v: %s", err, out)
	}
}
