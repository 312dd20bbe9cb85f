package main

import (
	"strings"
	"testing"
)

// What troupe was started with, and what it has in memory, is not to be read by a
// command that it runs, which is seen itself as ever.
func TestCommandsCannotLookIntoTroupe(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Queue(use("c1", "Bash", `{"command":"for f in environ mem maps; do head -c 1 /proc/$PPID/$f >/dev/null && echo SEEN $f; done; head -c 1 /proc/self/environ >/dev/null && echo own"}`))
	b.provider.Say("done")
	cmd, _ := b.command(t, "go", "--model", b.model)
	if !modesCount(cmd) {
		t.Log("the user is root here, and sees all")
		return
	}
	code, out, notes := finish(t, cmd)
	if code != exitDone {
		t.Fatalf("%s%s", out, notes)
	}
	result := b.provider.Last().Results()[0].Content.Text()
	if strings.Contains(result, "SEEN") || strings.Count(result, "ermission denied") != 3 || !strings.Contains(result, "own") {
		t.Errorf("%s", result)
	}
}
