//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// works has the model call the tree, and waits until it runs.
func (p *person) works() {
	p.t.Helper()
	p.b.provider.Queue(troupetest.Reply{Message: troupetest.Use(
		call("c1", "Glob", `{"pattern":"*"}`), call("c2", "Bash", `{"command":"`+tree+`"}`), call("c3", "Bash", `{"command":"touch late"}`),
		call("c4", "Read", `{"file_path":"none"}`), call("c5", "Glob", `{"pattern":"*.go"}`))})
	p.types("go")
	waitFor(p.t, "the tree to run", func() bool { return p.b.is("started") })
}

func (p *person) leavesNothing() {
	p.t.Helper()
	if left := p.b.alive(p.t); len(left) > 0 {
		p.t.Errorf("processes %v are left", left)
	}
}

// Ctrl-C ends the turn and not the session; at an empty prompt it leaves.
func TestAPersonInterrupts(t *testing.T) {
	for name, stop := range map[string]func(p *person){
		"key":    func(p *person) { p.keys("\x03") },
		"signal": func(p *person) { _ = p.cmd.Process.Signal(syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 0)
			p := b.sit(t, "--dangerously-skip-permissions")
			p.works()
			stop(p)
			p.sees("interrupted; Ctrl-C again leaves")
			p.sees("1 turn")
			p.leavesNothing()
			b.provider.Say("Here I am.")
			p.types("still there?")
			p.sees("Here I am.")
			p.sees("1 turn")
			p.keys("half a line\x03") // takes the line back
			b.provider.Say("A whole one.")
			p.types("whole")
			p.sees("A whole one.")
			p.sees("1 turn")
			if body := string(b.provider.Last().Body); strings.Contains(body, "half a line") {
				t.Error(body)
			}
			stop(p)
			p.left(130)
			b.resumed(t)
		})
	}
}

// Where a turn does not end, the second Ctrl-C leaves it behind.
func TestAPersonInterruptsTwice(t *testing.T) {
	b := newBench(t, 0)
	p := b.sit(t, "--dangerously-skip-permissions")
	p.works()
	p.keys("\x03\x03")
	p.left(130)
	b.resumed(t)
	p.leavesNothing()
}

// A terminal that is closed, a signal, Ctrl-D in the middle of a turn: nothing
// is left, and the session goes on.
func TestAPersonIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(p *person)
		code  int
	}{
		"Ctrl-D":  {func(p *person) { p.keys("\x04") }, 0},
		"SIGTERM": {func(p *person) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 143},
		"closed":  {func(p *person) { _ = p.tty.Close() }, 129},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 0)
			p := b.sit(t, "--dangerously-skip-permissions")
			p.works()
			c.leave(p)
			p.left(c.code)
			p.leavesNothing()
			b.resumed(t)
		})
	}
}

// What is typed while the agents work is the lead's at its next request, a paste
// of several lines is one prompt, and what is typed is not touched by what is
// shown above it.
func TestAPersonTypesAhead(t *testing.T) {
	b := newBench(t, 0)
	p := b.sit(t, "--dangerously-skip-permissions")
	p.sees("/help")
	asked := make(chan bool)
	n := 0
	b.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		n++
		if n > 1 {
			return troupetest.Reply{Message: troupetest.Say("I have read it.")}
		}
		<-asked
		return troupetest.Reply{Message: troupetest.Use(call("c1", "Glob", `{"pattern":"*"}`))}
	})
	p.types("go")
	p.keys("and th")
	p.sees("and th")
	p.types("is, too")
	p.keys("\x1b[200~first line\r\nsecond\tline\x03\x1b[2J\n\x1b[201~")
	p.sees("[paste 1: 2 lines]")
	p.types(" what is it?")
	p.keys("a half-typed line")
	p.sees("a half-typed line")
	close(asked)
	p.sees("I have read it.")
	p.sees("a half-typed line") // again, below what was shown
	body := string(b.provider.Last().Body)
	for _, want := range []string{"and this, too", `first line\nsecond\tline[2J\n what is it?`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	b.provider.Respond(nil)
	b.provider.Say("And that.")
	p.types(" is whole")
	p.sees("And that.")
	if body := string(b.provider.Last().Body); !strings.Contains(body, "a half-typed line is whole") {
		t.Error(body)
	}
	p.types("/quit")
	p.left(0)
}

// At a terminal, too, -p asks nobody, and its answer is all that is shown.
func TestPrintAtATerminalAsksNobody(t *testing.T) {
	b := newBench(t, 0)
	b.uses(call("c1", "Write", content("a.txt", "x")))
	p := b.sit(t, "-p", "go")
	p.sees("That is done.")
	p.sees("1 call denied: Write (it needs approval and nobody can be asked here")
	p.left(0)
	if b.is("a.txt") {
		t.Error("it was written")
	}
}

// S45: what works in the background is not ended by an interrupt of the turn, wakes
// the lead when it ends, whatever is being typed, and is ended by the command for it.
func TestAPersonAndTheBackground(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		last := r.Messages[len(r.Messages)-1].Content.Text()
		first := r.FirstUser()
		switch {
		case strings.Contains(first, "stay there") && len(r.Messages) == 1:
			return troupetest.Reply{Message: troupetest.Use(call("c2", "Bash", `{"command":"`+tree+`"}`))}
		case strings.Contains(last, "begin"):
			return troupetest.Reply{Message: troupetest.Use(call("c1", "Agent", `{"description":"the child","prompt":"stay there","name":"kid","run_in_background":true}`))}
		case strings.Contains(last, "hang"):
			return troupetest.Reply{Message: troupetest.Use(call("c3", "Bash", `{"command":"touch hangs; sleep 1000"}`))}
		case strings.Contains(last, "<task-notification>"):
			return troupetest.Reply{Message: troupetest.Say("I have heard of it.")}
		}
		return troupetest.Reply{Message: troupetest.Say("It works.")}
	})
	p := b.sit(t, "--dangerously-skip-permissions")
	p.types("begin")
	p.sees("It works.")
	waitFor(t, "the tree to run", func() bool { return b.is("started") })
	p.types("hang")
	waitFor(t, "the turn to hang", func() bool { return b.is("hangs") })
	p.keys("\x03")
	p.sees("interrupted")
	p.types("/tasks")
	p.sees(`"the child" (kid) runs`)
	if len(b.alive(t)) == 0 {
		t.Error("the interrupt has ended what works in the background")
	}
	p.types("/stop kid")
	p.sees("killed")
	p.sees("I have heard of it.")
	p.leavesNothing()
	p.types("/tasks")
	p.sees("nothing runs in the background")
	p.keys("\x04")
	p.left(0)
}
