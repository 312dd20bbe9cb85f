// Troupe is a team of coding agents in one program. This is the command: it
// parses flags, turns them into the options of a session, prints what happens
// and answers with an exit code. What agents are and may do is decided in the
// packages below.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/proc"
)

// The exit codes; those of signals are 128 and the signal's number.
const (
	exitDone   = 0
	exitFailed = 1 // the run failed or hit a limit
	exitUse    = 2 // wrong use or configuration: nothing was sent
)

// garbage is how much may lie around before it is collected, in percent of what
// is in use. Each request is a new copy of the conversation, so there is much of
// it, and little in use: Go's own 100 would spend a quarter of a run on it.
const garbage = 200

func main() {
	proc.Confined(os.Args, os.Environ()) // the launcher of a sandbox is this program, too
	ignorePipe()
	ctx, caught := catch(context.Background())
	p := &program{in: os.Stdin, out: os.Stdout, notes: os.Stderr, env: os.Environ()}
	if p.lookup("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	code := p.main(ctx, os.Args[1:])
	if s := caught(); s != 0 {
		code = 128 + int(s)
	}
	os.Exit(code)
}

// catch returns a context that the first signal to end interrupts. The second
// ends the program at once.
func catch(parent context.Context) (ctx context.Context, caught func() syscall.Signal) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	// What was ignored before we came stays so: nohup means it.
	if ends := slices.DeleteFunc(endings(), signal.Ignored); len(ends) > 0 {
		signal.Notify(signals, ends...)
	}
	first := make(chan syscall.Signal, 1)
	go func() { // lives as long as the program
		s, _ := (<-signals).(syscall.Signal)
		first <- s
		cancel(troupe.ErrInterrupted)
		s, _ = (<-signals).(syscall.Signal)
		os.Exit(128 + int(s))
	}()
	return ctx, func() syscall.Signal {
		select {
		case s := <-first:
			return s
		default:
			return 0
		}
	}
}

// A program is one call of the command: its streams and its environment.
type program struct {
	in         *os.File
	out, notes io.Writer
	env        []string
}

// failure is an error with the exit code that it leads to.
type failure struct {
	code int
	err  error // nil: all has been said
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func (p *program) main(ctx context.Context, args []string) int {
	cmd := p.command(args)
	cmd.SetArgs(spread(args))
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := exitUse
	var f *failure
	if errors.As(err, &f) {
		code = f.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(p.notes, "troupe: "+strings.TrimSpace(text))
	}
	return code
}

// lookup returns a variable of the environment, "" if it is not set.
func (p *program) lookup(name string) string {
	for _, kv := range p.env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

// homes returns troupe's own directory and that of the user.
func (p *program) homes() (home, user string, err error) {
	user, err = os.UserHomeDir()
	home = p.lookup("TROUPE_HOME")
	switch {
	case home != "":
		home, err = filepath.Abs(home)
	case err == nil:
		home = filepath.Join(user, ".troupe")
	default:
		return "", "", fmt.Errorf("no home directory (%w); set TROUPE_HOME", err)
	}
	if err != nil {
		return "", "", fmt.Errorf("TROUPE_HOME: %w", err)
	}
	return home, user, nil
}

// terminal reports whether w is one.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// version is set by the linker; else it is what the module knows.
var version string

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
