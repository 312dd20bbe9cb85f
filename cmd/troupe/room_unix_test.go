//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// chatter answers: to "tool" with a long command, to "agent" with an agent that
// runs one, else with a word. It checks what is told of the agent.
func chatter(t *testing.T) func(*troupetest.Request) troupetest.Reply {
	return func(r *troupetest.Request) troupetest.Reply {
		for _, res := range r.Results() {
			text := res.Content.Text()
			if strings.HasPrefix(res.ID, "agent") && !strings.HasPrefix(text, "child done") && !strings.Contains(text, "no room left") {
				t.Errorf("of the agent is told: %s", text)
			}
		}
		id := strconv.Itoa(r.Number) // of a call: none may come twice
		switch {
		case len(r.Results()) > 0 && r.FirstUser() != r.LastUser():
			return troupetest.Reply{Message: troupetest.Say("done")}
		case len(r.Results()) > 0 && strings.Contains(r.FirstUser(), "be a child"):
			return troupetest.Reply{Message: troupetest.Say("child done")}
		case len(r.Results()) > 0:
			return troupetest.Reply{Message: troupetest.Say("done")}
		case strings.HasSuffix(r.LastUser(), "agent"):
			return troupetest.Reply{Message: troupetest.Use(call("agent"+id, "Agent", `{"description":"d","prompt":"be a child"}`))}
		case strings.HasSuffix(r.LastUser(), "be a child"), strings.HasSuffix(r.LastUser(), "tool"):
			return troupetest.Reply{Message: troupetest.Use(call("tool"+id, "Bash", `{"command":"seq 30000"}`))}
		}
		return troupetest.Reply{Message: troupetest.Say("done")}
	}
}

// A script that runs troupe twice: with little room, then with enough. It says
// after each run how it ended.
const littleRoom = `
{ "$1" -p --dangerously-skip-permissions "$2" --model "$3" </dev/null 2>&1; echo "first: $?"; } | cat
%s
"$1" -p --dangerously-skip-permissions "go on" --continue </dev/null 2>&1; echo "then: $?"
"$1" -p --dangerously-skip-permissions "again" --model "$3" </dev/null 2>&1; echo "last: $?"
`

// A disk that is full at any point of a run: the run ends with code 1 and one
// line that names the file and the remedy, or does without what it could not
// keep; with room again the session goes on and nothing in it is broken.
func TestNoRoom(t *testing.T) {
	for _, way := range []struct {
		name   string
		shell  func(*exec.Cmd) bool // prepares the shell; false if this system forbids it
		before string               // what leaves N KB
		after  string               // what makes room
	}{
		{"a limit of file sizes", func(*exec.Cmd) bool { return true }, "ulimit -S -f $((%d*2));", "ulimit -S -f unlimited"},
		{"a full disk", ownMounts, "mkdir -p \"$HOME/.troupe\"; mount -t tmpfs -o size=%dk none \"$HOME/.troupe\" || exit 99;", "mount -o remount,size=8m \"$HOME/.troupe\""},
	} {
		t.Run(way.name, func(t *testing.T) {
			if !way.shell(exec.Command("sh")) {
				t.Log("this system lets nobody mount anything: the limit of file sizes has to do")
				return
			}
			codes := map[string]int{}
			for _, prompt := range []string{"hi", "tool", "agent"} {
				for _, kb := range []int{4, 16, 28, 64, 300} {
					b := newBench(t, 0)
					b.provider.Respond(chatter(t))
					script := fmt.Sprintf(way.before, kb) + fmt.Sprintf(littleRoom, way.after)
					troupe, _ := b.command(t)
					cmd := exec.Command(troupetest.Need(t, "sh"), "-c", script, "sh", troupe.Path, prompt, b.model)
					cmd.Dir, cmd.Env = b.dir, b.env
					way.shell(cmd)
					text, err := cmd.CombinedOutput()
					if err != nil {
						t.Fatalf("%v: %s", err, text)
					}
					codes[b.checkRoom(t, fmt.Sprintf("%s with %d KB", prompt, kb), string(text))]++
				}
			}
			if codes["0"] == 0 || codes["1 at once"] == 0 || codes["1 later"] == 0 {
				t.Errorf("the runs ended %v: not every kind of end was seen", codes)
			}
		})
	}
}

// checkRoom checks what littleRoom printed and returns how the first run ended.
func (b *bench) checkRoom(t *testing.T, what, text string) string {
	t.Helper()
	first, rest, ok := strings.Cut(text, "first: ")
	code, rest, ok2 := strings.Cut(rest, "\n")
	then, last, ok3 := strings.Cut(rest, "then: ")
	if !ok || !ok2 || !ok3 || strings.Contains(text, "skipped") {
		t.Errorf("%s: %s", what, text)
		return "?"
	}
	begun := !strings.HasPrefix(first, "troupe: ")
	switch {
	case code == "0" && strings.HasPrefix(first, "done\n"):
	case code == "1" && strings.Count(first, "\n") == 1 && strings.Contains(first, "no room left") && strings.Contains(first, filepath.Join(b.dir, ".home")) && strings.Contains(first, "and try again"):
	default:
		t.Errorf("%s: code %s: %s", what, code, first)
	}
	if begun && (!strings.HasPrefix(then, "done\n") || !strings.HasPrefix(last, "0\n")) || !begun && !strings.Contains(then, "no such session") {
		t.Errorf("%s: going on: %s%s", what, then, last)
	}
	if !strings.HasSuffix(last, "last: 0\n") {
		t.Errorf("%s: a new session: %s", what, last)
	}
	if code == "1" && begun {
		return "1 later"
	} else if code == "1" {
		return "1 at once"
	}
	return code
}

// S129: the directory of the session becomes read-only while a run is at work: an
// agent that cannot be recorded is not begun, and is told as a failure, not as
// a success; what was open goes on.
func TestStateThatBecomesReadOnly(t *testing.T) {
	for dialect, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, dialect)
			b.provider.Queue(
				use("c1", "Bash", `{"command":"chmod 500 .home/.troupe/sessions/*/*/agents"}`),
				use("c2", "Agent", `{"description":"d","prompt":"be a child"}`))
			b.provider.Say("done")
			cmd, _ := b.command(t, "go", "--model", b.model, "--output-format", "stream-json")
			if !modesCount(cmd) {
				t.Log("this system lets the user in everywhere: nothing can be read-only")
				return
			}
			code, out, notes := finish(t, cmd)
			if code != exitDone || len(b.provider.Requests()) != 3 {
				t.Fatalf("code %d, %d requests: %s%s", code, len(b.provider.Requests()), out, notes)
			}
			res := b.provider.Last().Results()
			if len(res) != 1 || !strings.Contains(res[0].Content.Text(), "cannot write the log") || d.name == "anthropic" && !res[0].IsError {
				t.Errorf("of the agent is told %+v", res)
			}
			if strings.Contains(out, `"status":"completed"`) {
				t.Errorf("the agent is a success: %s", out)
			}
		})
	}
}

// S128: a home without the rights that are needed: said in one line, with the remedy.
func TestHomeWithoutRights(t *testing.T) {
	for _, tt := range []struct {
		name, make string
		args       []string
		says       []string
	}{
		{"not to be written", "mkdir -p h/sessions; chmod 500 h/sessions", []string{"go"}, []string{"h/sessions", "permission denied", "set TROUPE_HOME to a directory you can write"}},
		{"not to be entered", "mkdir -p h/sessions; chmod 0 h", []string{"go"}, []string{"h/settings.json", "permission denied", "mend or remove the file"}},
		{"not to be read", "mkdir -p h/sessions; chmod 300 h/sessions", []string{"go", "--resume", "abc"}, []string{"list sessions", "permission denied", "make it readable"}},
		{"nothing in it to be read", "mkdir -p h/sessions; chmod 0 h", []string{"go", "--continue"}, []string{"permission denied"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 0)
			if text, err := exec.Command("sh", "-c", "cd "+b.dir+" && "+tt.make).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			t.Cleanup(func() { _ = exec.Command("chmod", "-R", "700", b.dir).Run() }) // so that it can be removed
			b.set("TROUPE_HOME=h")
			cmd, _ := b.command(t, append(tt.args, "--model", b.model)...)
			if !modesCount(cmd) {
				t.Log("this system lets the user in everywhere: TestWhatCannotBegin has files in the way instead")
				return
			}
			code, out, notes := finish(t, cmd)
			checkFailure(t, code, exitUse, out+notes, tt.says)
			if n := len(b.provider.Requests()); n > 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

// The directory of the session is taken away while a run is at work: an agent
// that cannot be recorded is told as a failure, what was open goes on.
func TestStateThatVanishes(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Queue(
		use("c1", "Bash", `{"command":"rm -rf .home/.troupe/sessions"}`),
		troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
			call("c2", "Agent", `{"description":"d","prompt":"be a child"}`), call("c3", "Bash", `{"command":"seq 200000"}`)}}})
	b.provider.Say("done")
	cmd, _ := b.command(t, "go", "--model", b.model)
	if code, out, notes := finish(t, cmd); code != exitDone || out != "done\n" || strings.Count(notes, "\n") != 1 {
		t.Errorf("code %d: %s%s", code, out, notes)
	}
	res := b.provider.Last().Results()
	if len(res) != 2 || !res[0].IsError || !strings.Contains(res[0].Content.Text(), "cannot write the log") || res[1].IsError {
		t.Errorf("the model is told %.2000v", res)
	}
}
