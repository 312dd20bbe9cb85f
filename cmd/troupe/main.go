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
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/model"
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
	_ = proc.Hide()                      // else it is seen as most programs are
	ignorePipe()
	signals := &signals{}
	ctx := signals.catch(context.Background())
	p := &program{in: os.Stdin, out: os.Stdout, notes: os.Stderr, env: os.Environ(), signals: signals}
	if p.lookup("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	code := p.main(ctx, os.Args[1:])
	if s := signals.caught(); s != 0 {
		code = 128 + int(s)
	}
	os.Exit(code)
}

// A program is one call of the command: its streams and its environment.
type program struct {
	in         *os.File
	out, notes io.Writer
	env        []string          // with the variables of the settings, once they are loaded
	before     []string          // what it was without them
	network    map[string]string // variables that settings say for troupe's own connections alone
	known      []model.Info      // what settings say of models
	signals    *signals
	patience   host.Patience // of the session that was opened last, for its background

	// offer puts a question to the person at the terminal; nil where nobody is.
	offer func(question string) (answer string, err error)
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
		fmt.Fprintln(p.notes, "troupe: "+strings.TrimSpace(p.hidden(text)))
	}
	return code
}

// lookup returns a variable of the environment, "" if it is not set.
func (p *program) lookup(name string) string {
	if v, ok := p.network[name]; ok {
		return v
	}
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
