package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/secret"
	"github.com/troupe-sh/troupe/proc"
)

//go:embed bash.md
var bashDoc string

// maxCommand is what a command may have in bytes; more does not fit into an
// argument of a program.
const maxCommand = 120 << 10

// errTimeLimit is the cause of a context that ended by the time limit of a
// command.
var errTimeLimit = errors.New("time limit")

// Bash runs commands in a shell. Each runs on its own: it starts in the
// agent's directory, and what it leaves running is ended.
type Bash struct {
	// Shell is the path of the shell; "" is bash from the PATH of Env, or sh
	// if there is none.
	Shell string
	// Env is the whole environment of the commands. The tool adds what keeps
	// programs from waiting for a user, where Env does not say otherwise.
	Env []string
	// Output is the directory for output that is too long to be kept in
	// memory; "" keeps none of it.
	Output string
	// Limit is how many bytes of a command's output are kept in its file; 0 is 64 MiB.
	Limit int64
	// Mask takes keys out of what commands print, before any of it is kept;
	// nil takes out nothing.
	Mask *secret.Mask
	// Ledger is the directory for [proc.Command.Ledger].
	Ledger string
	// Timeout ends a command that sets no limit; 0 is two minutes.
	Timeout time.Duration
	// Confine says how a command is confined that an agent in a place gives; an
	// error says why it must not run, no sandbox that it runs free. It may be
	// called concurrently; nil confines none.
	Confine func(command string, place troupe.Place) (*proc.Sandbox, proc.Limits, error)
	// MaxTimeout is the longest limit that a command can set; 0 is ten minutes.
	MaxTimeout time.Duration
}

type bashInput struct {
	Command     string `json:"command" jsonschema:"the command to run"`
	Timeout     int64  `json:"timeout,omitempty" jsonschema:"time limit in milliseconds"`
	Description string `json:"description,omitempty" jsonschema:"what the command does, in five to ten words, for the user"`
}

// bashData is the form of a result for faces and callers.
type bashData struct {
	Stdout        string `json:"stdout"` // what the model sees of output and errors
	Stderr        string `json:"stderr"` // always empty: it is in Stdout
	Interrupted   bool   `json:"interrupted"`
	ExitCode      int    `json:"exitCode"` // -1 if it was ended
	RawOutputPath string `json:"rawOutputPath,omitempty"`
	RawOutputSize int64  `json:"rawOutputSize,omitempty"` // bytes printed
	TimedOutAfter int64  `json:"timedOutAfterMs,omitempty"`
	LeftProcesses int    `json:"leftProcesses,omitempty"` // that it left and that were ended
}

// shownOutput is how many bytes of an output a model gets: less than the limit
// of [Cap], which would else name a file that has only what is left here.
const shownOutput = DefaultLimit - 4000

var bashSpec = sync.OnceValue(func() troupe.ToolSpec { return define[bashInput]("Bash", bashDoc) })

// Spec implements [troupe.Tool].
func (b *Bash) Spec() troupe.ToolSpec { return bashSpec() }

// Lane implements [troupe.Ordered]: commands run one after another.
func (b *Bash) Lane(*troupe.Call) string { return "shell" }

// Call runs a command. A command that fails, is interrupted or reaches its
// time limit gives a result with what it had printed, marked as an error.
func (b *Bash) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[bashInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	if err := checkCommand(in.Command, c.Place.Dir); err != nil {
		return troupe.Result{}, err
	}
	shell, args, err := b.shell()
	if err != nil {
		return troupe.Result{}, err
	}
	var sandbox *proc.Sandbox
	var limits proc.Limits
	if b.Confine != nil {
		if sandbox, limits, err = b.Confine(in.Command, c.Place); err != nil {
			return troupe.Result{}, err
		}
	}
	limit := b.limit(in.Timeout)
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeLimit)
	defer cancel()
	capture := &proc.Capture{Dir: b.Output, Memory: shownOutput, Limit: b.Limit}
	printed := b.Mask.Writer(capture)
	out, runErr := proc.Run(limited, proc.Command{
		Path:   shell,
		Args:   append(args, in.Command),
		Dir:    c.Place.Dir,
		Env:    b.environment(),
		Stdout: printed,
		Stderr: printed,
		Ledger: b.Ledger,

		Sandbox: sandbox,
		Limits:  limits,
	})
	_ = printed.Flush() // a capture takes all
	end := bashEnd{Outcome: out, dir: c.Place.Dir, sandbox: sandbox, limits: limits}
	known := errors.As(runErr, &end.survivors)
	switch {
	case errors.Is(runErr, errTimeLimit):
		end.timedOut, known = limit, true
	case runErr != nil && ctx.Err() != nil && errors.Is(runErr, context.Cause(ctx)):
		end.interrupted, known = true, true
	}
	res, err := bashResult(capture, end)
	if err == nil && !known {
		err = runErr
	}
	if err != nil && out.State == "" {
		res = troupe.Result{} // it did not run
	}
	return res, err
}

// checkCommand says what cannot be run before something obscure does.
func checkCommand(command, dir string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return errors.New("the command is empty")
	case strings.ContainsRune(command, 0):
		return errors.New("the command has a NUL byte, which no shell takes")
	case len(command) > maxCommand:
		return fmt.Errorf("the command has %d bytes, more than the %d that can be passed to a shell; write it to a file and run that", len(command), maxCommand)
	}
	if st, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) || err == nil && !st.IsDir() {
		return fmt.Errorf("the working directory %s does not exist any more, so no command can run in it", dir)
	}
	return nil
}

// limit is the time that a command gets which asks for ms milliseconds.
func (b *Bash) limit(ms int64) time.Duration {
	usual, most := b.Timeout, b.MaxTimeout
	if usual <= 0 {
		usual = 2 * time.Minute
	}
	if most <= 0 {
		most = 10 * time.Minute
	}
	switch {
	case ms <= 0:
		return usual
	case ms > most.Milliseconds():
		return most
	}
	return time.Duration(ms) * time.Millisecond
}

// environment is that of the commands: without the variables that name files
// for a shell to run first, and with those that keep programs from waiting for
// a user.
func (b *Bash) environment() []string {
	env := slices.DeleteFunc(slices.Clone(b.Env), func(entry string) bool {
		return strings.HasPrefix(entry, "BASH_ENV=") || strings.HasPrefix(entry, "ENV=")
	})
	for _, quiet := range []string{"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_PAGER=cat", "PAGER=cat", "TERM=dumb", "TROUPE=1"} {
		name, _, _ := strings.Cut(quiet, "=")
		if !slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			env = append(env, quiet)
		}
	}
	return env
}
