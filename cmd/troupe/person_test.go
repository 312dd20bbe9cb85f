//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// A person sits at a terminal of its own, in which troupe runs.
type person struct {
	t    *testing.T
	b    *bench
	cmd  *exec.Cmd
	tty  *os.File
	done chan struct{} // closed when nothing comes from the terminal any more

	mu   sync.Mutex
	raw  []byte
	from int // of the text that was not looked at yet
}

// sit starts troupe at a terminal.
func (b *bench) sit(t *testing.T, args ...string) *person {
	t.Helper()
	path, err := exec.LookPath("troupe")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"--model", b.model}, args...)...)
	cmd.Dir, cmd.Env = b.dir, append(b.env, "TERM=xterm")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	tty = interruptible(t, tty)
	p := &person{t: t, b: b, cmd: cmd, tty: tty, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		var buf [4096]byte
		for {
			n, err := tty.Read(buf[:])
			p.mu.Lock()
			p.raw = append(p.raw, buf[:n]...)
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // as a rule it has ended
		_ = tty.Close()
		<-p.done
		if t.Failed() {
			t.Logf("the terminal showed:\n%s", p.screen(0))
		}
	})
	return p
}

// interruptible is a file of which a read ends when it is closed.
func interruptible(t *testing.T, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// escapes are what the line editor moves the cursor with.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// screen is what was shown, from a place on.
func (p *person) screen(from int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return escapes.ReplaceAllString(strings.ReplaceAll(string(p.raw[from:]), "\r", ""), "")
}

// sees waits until a text was shown after the last one that was seen.
func (p *person) sees(text string) {
	p.t.Helper()
	limit, limited := p.t.Deadline()
	waitFor(p.t, text, func() bool {
		if limited && time.Until(limit) < 10*time.Second { // in time to show what was there instead
			p.t.Fatalf("waited in vain for %q", text)
		}
		return p.saw(text)
	})
}

// saw reports whether a text was shown after the last one that was seen, and if
// so looks no more at what stands up to the end of its line.
func (p *person) saw(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := p.raw[p.from:]
	for end := 0; end < len(fresh); {
		next := bytes.IndexByte(fresh[end:], '\n') + 1
		if next == 0 {
			next = len(fresh) - end
		}
		end += next
		if strings.Contains(escapes.ReplaceAllString(strings.ReplaceAll(string(fresh[:end]), "\r", ""), ""), text) {
			p.from += end
			return true
		}
	}
	return false
}

func (p *person) keys(s string) {
	p.t.Helper()
	if _, err := p.tty.WriteString(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) types(line string) { p.t.Helper(); p.keys(line + "\r") }

// left waits for the end and checks the exit code.
func (p *person) left(code int) {
	p.t.Helper()
	<-p.done
	err := p.cmd.Wait()
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		p.t.Fatal(err)
	}
	if got != code {
		p.t.Errorf("exit code %d, want %d", got, code)
	}
}

func TestAPersonAsksAndLeaves(t *testing.T) {
	for dialect := range dialects {
		t.Run(dialects[dialect].name, func(t *testing.T) {
			b := newBench(t, dialect)
			p := b.sit(t)
			p.sees("/help")
			b.provider.Say("It is\x1b[2J the second answer.")
			p.types("which one?")
			p.sees("It is␛[2J the second answer.")
			p.sees("1 turn · ")
			p.types("/cost")
			p.sees("in all ")
			p.types("/quit")
			p.sees("troupe --resume ")
			p.left(0)
			if strings.Contains(string(p.raw), "\x1b[2J") {
				t.Error("the model has cleared the screen")
			}
		})
	}
}

func content(file, text string) string {
	return `{"file_path":"` + file + `","content":"` + text + `"}`
}

// is reports whether a file is there.
func (b *bench) is(name string) bool {
	_, err := os.Stat(filepath.Join(b.dir, name))
	return err == nil
}

// uses has the model call tools in one reply, and then say that it is done.
func (b *bench) uses(calls ...troupe.ToolUse) {
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(calls...)})
	b.provider.Say("That is done.")
}

// What needs approval is shown with the name of who asks; yes, no, for this
// session and always do what they say, and the next session knows of always.
func TestAPersonApproves(t *testing.T) {
	b := newBench(t, 0)
	b.trusts(t)
	p := b.sit(t)
	b.uses(call("c1", "Write", content("docs/a.txt", "some text")))
	p.types("go")
	p.sees("lead asks for leave:")
	p.sees("Write docs/a.txt (9 bytes)")
	p.sees("+ some text")
	p.types("what?") // no answer, and no prompt
	p.sees("that is no answer")
	p.types("n not in there")
	p.sees("denied: the user said no: not in there")
	p.sees("That is done.")
	if b.is("docs/a.txt") || !strings.Contains(string(b.provider.Last().Body), "not in there") {
		t.Error("no was not heard")
	}
	b.uses(call("c2", "Write", content("docs/a.txt", "x")))
	p.types("again")
	p.sees("a  yes, and always in this project all of Edit(")
	p.types("y")
	p.sees("✓ Write docs/a.txt")
	p.sees("2 turns")
	b.uses(call("c3", "Bash", `{"command":"touch one\ntouch two"}`), call("c4", "Bash", `{"command":"touch one"}`))
	p.types("commands")
	p.sees("s  yes, and in this session all of Bash(touch one), Bash(touch two)")
	p.types("s") // and the second call is not asked about
	p.sees("That is done.")
	if !b.is("docs/a.txt") || !b.is("two") {
		t.Error("yes was not heard")
	}
	b.uses(call("c5", "Write", content("docs/b.txt", "x")))
	p.types("and this")
	p.sees("a  yes, and always")
	p.types("a")
	p.sees("written to ")
	p.sees("✓ Write docs/b.txt")
	p.sees("2 turns")
	p.keys("\x04")
	p.left(0)

	next := b.sit(t)
	b.uses(call("c6", "Write", content("docs/c.txt", "x")), call("c7", "Bash", `{"command":"touch one"}`))
	next.types("go on")
	next.sees("lead asks for leave:") // of the command alone: that was for one session
	next.sees("Bash touch one")
	next.types("y")
	next.sees("That is done.")
	next.types("/quit")
	next.left(0)
	raw, err := os.ReadFile(filepath.Join(b.dir, ".troupe", "settings.local.json"))
	if err != nil || strings.Count(string(raw), "Edit(") != 1 || strings.Contains(string(raw), "touch") {
		t.Errorf("%s %v", raw, err)
	}
	if shown := next.screen(0); !strings.Contains(shown, "✓ Write docs/c.txt") || strings.Contains(shown, "Write docs/c.txt (") {
		t.Error("what is allowed always was asked about")
	}
}

// trusts has the user trust the directory.
func (b *bench) trusts(t *testing.T) {
	t.Helper()
	cmd := exec.Command("troupe", "trust")
	cmd.Dir, cmd.Env = b.dir, b.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A protected file is asked about each time, and no rule is offered for it.
func TestAPersonIsOfferedNoRuleForProtectedFiles(t *testing.T) {
	b := newBench(t, 0)
	p := b.sit(t)
	b.uses(call("c1", "Write", content(".git/hooks/x", "x")))
	p.types("go")
	p.sees("y  yes, this once")
	p.types("a")
	p.sees("that is no answer")
	p.types("n")
	p.sees("That is done.")
	p.types("/quit")
	p.left(0)
	if strings.Contains(p.screen(0), "always in this project") || b.is(".git/hooks/x") {
		t.Error("it was offered")
	}
}

// A sub-agent's question has its name; a question of the model has answers to
// choose from, and an own one.
func TestAPersonIsAskedByAgents(t *testing.T) {
	b := newBench(t, 0)
	p := b.sit(t, "--agents", `{"scribe":{"description":"writes","prompt":"You write.","tools":"Write"}}`)
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Agent", `{"subagent_type":"scribe","description":"Write it","prompt":"write"}`))})
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c2", "Write", content("a.txt", "x")))})
	b.provider.Say("I wrote it.")
	b.provider.Say("It is written.")
	p.types("have it written")
	p.sees("→ Agent scribe: Write it")
	p.sees("scribe asks for leave:")
	p.types("y")
	p.sees("scribe ✓ Write a.txt")
	p.sees("✓ Agent scribe: Write it")
	p.sees("It is written.")
	option := func(label string) string { return `{"label":"` + label + `","description":"the ` + label + ` way"}` }
	question := func(text, multi string) string {
		return `{"question":"` + text + `","header":"h","multiSelect":` + multi + `,"options":[` + option("short") + `,` + option("long") + `]}`
	}
	b.uses(call("c3", "AskUserQuestion", `{"questions":[`+question("Which way?", "false")+`,`+question("Which of them?", "true")+`,`+question("Which name?", "false")+`]}`))
	p.types("ask me")
	p.sees("lead asks: Which way?")
	p.sees("2  long  the long way")
	p.types("2")
	p.sees("Which of them?")
	p.types("1, 2")
	p.sees("Which name?")
	p.types("call it Ada")
	p.sees("That is done.")
	for _, want := range []string{"Which way?\\n→ long", "Which of them?\\n→ short, long", "Which name?\\n→ call it Ada"} {
		if !strings.Contains(string(b.provider.Last().Body), want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	p.types("/quit")
	p.left(0)
}

// Commands of the session work between turns.
func TestAPersonGivesCommands(t *testing.T) {
	b := newBench(t, 0)
	b.provider.Say("One.")
	p := b.sit(t, "the first prompt") // as an argument
	p.sees("One.")
	p.sees("1 turn")
	p.types("/quit")
	p.sees("troupe --resume ")
	p.left(0)
	p = b.sit(t)
	for command, answer := range map[string]string{"/help": "/compact [WORDS]", "/model": "the model is " + b.model, "/mode": "the mode is default",
		"/mode yolo": "unknown permission mode", "/model nobody/knows": "nobody", "/frob": "/frob is not a command", "/resume": "the first prompt", "/resume 0000": "no such session"} {
		p.types(command)
		p.sees(answer)
	}
	p.types("/model anthropic/claude-haiku-4-5")
	p.sees("the model is anthropic/claude-haiku-4-5 from the next request on")
	p.types("/mode acceptEdits")
	p.sees("the mode is acceptEdits from the next request on")
	b.uses(call("c1", "Write", content("a.txt", "x")))
	p.types("go \\")
	p.types("on")
	p.sees("✓ Write a.txt")
	p.sees("2 turns")
	last := b.provider.Last()
	if last.Model != "claude-haiku-4-5" || !strings.Contains(string(last.Body), `go \non`) {
		t.Errorf("%s was asked: %s", last.Model, last.Body)
	}
	first := regexp.MustCompile(`([0-9a-f-]{36})  .*the first prompt`).FindStringSubmatch(p.screen(0))
	p.types("/resume " + first[1])
	p.sees("The last answer was:")
	p.sees("One.")
	b.provider.Say("Two.")
	p.types("more")
	p.sees("Two.")
	p.sees("1 turn")
	if body := string(b.provider.Last().Body); !strings.Contains(body, "the first prompt") || strings.Contains(body, `go \non`) {
		t.Errorf("it went on with %s", body)
	}
	p.types("/quit")
	p.sees(first[1])
	p.left(0)
}

// A folder whose settings ask for something is asked about once; yes is
// remembered, no is for this session.
func TestAPersonTrusts(t *testing.T) {
	b := newBench(t, 0)
	if err := os.MkdirAll(filepath.Join(b.dir, ".troupe"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, ".troupe", "settings.json"), []byte(`{"permissions":{"allow":["Bash(touch *)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer string
		free   bool
	}{{"y", false}, {"yes", true}, {"", true}} {
		p := b.sit(t)
		if c.answer != "" {
			p.sees("Do you trust what is written in ")
			p.sees("Bash(touch *)")
			p.sees("Type yes to let them")
			p.types(c.answer)
		}
		p.sees("/help")
		b.uses(call("c1", "Bash", `{"command":"touch it"}`))
		p.types("go")
		if !c.free {
			p.sees("asks for leave")
			p.sees("and in this session")
			p.types("n")
		}
		p.sees("That is done.")
		p.types("/quit")
		p.left(0)
		if shown := p.screen(0); strings.Contains(shown, "always in this project") {
			t.Error("what a folder that is not trusted would not count is offered")
		} else if strings.Contains(shown, "asks for leave") == c.free || c.answer == "" && strings.Contains(shown, "Do you trust") {
			t.Errorf("after %q: %s", c.answer, shown)
		}
	}
}

// A plan is shown and answered, with a note if it is not good.
func TestAPersonJudgesAPlan(t *testing.T) {
	b := newBench(t, 0)
	p := b.sit(t, "--permission-mode", "plan")
	p.sees("mode plan")
	b.uses(call("c1", "ExitPlanMode", `{"plan":"1. Write everything."}`))
	p.types("plan it")
	p.sees("lead has a plan:")
	p.sees("1. Write everything.")
	p.types("n in smaller steps")
	p.sees("That is done.")
	p.sees("2 turns")
	if !strings.Contains(string(b.provider.Last().Body), "in smaller steps") {
		t.Errorf("the note was not told: %s", b.provider.Last().Body)
	}
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c2", "ExitPlanMode", `{"plan":"1. Write a.txt."}`))})
	b.uses(call("c3", "Write", content("a.txt", "x")))
	p.types("again")
	p.sees("1. Write a.txt.")
	p.types("y")
	p.sees("Write a.txt (1 byte)")
	p.sees("y  yes")
	p.types("y")
	p.sees("That is done.")
	p.types("/quit")
	p.left(0)
	if !b.is("a.txt") {
		t.Error("the plan was not carried out")
	}
}
