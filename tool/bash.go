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
// agent's directory, and what it leaves running when it ends is ended. With
// Background a command may outlast its call.
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
	// Background takes a command to where it runs on when the call has returned:
	// one that was started for that, and one that reaches its time limit. It
	// returns the ID of the task and the file that its output goes to. If it
	// returns an error, it must not call j.Run; the command is not started, or
	// ended at its limit. It may be called concurrently; nil offers no background.
	Background func(ctx context.Context, c *troupe.Call, j Job) (id, output string, err error)
	// MaxTimeout is the longest limit that a command can set; 0 is ten minutes.
	MaxTimeout time.Duration
}

// bashPlain is the input of a tool that has no background.
type bashPlain struct {
	Command     string `json:"command" jsonschema:"the command to run"`
	Timeout     int64  `json:"timeout,omitempty" jsonschema:"time limit in milliseconds"`
	Description string `json:"description,omitempty" jsonschema:"what the command does, in five to ten words, for the user"`
}

type bashInput struct {
	Command         string `json:"command" jsonschema:"the command to run"`
	Timeout         int64  `json:"timeout,omitempty" jsonschema:"time limit in milliseconds"`
	Description     string `json:"description,omitempty" jsonschema:"what the command does, in five to ten words, for the user"`
	RunInBackground bool   `json:"run_in_background,omitempty" jsonschema:"start it in the background and go on at once; you are told when it ends"`
}

// bashData is the form of a result for faces and callers.
type bashData struct {
	Stdout        string `json:"stdout"` // what the model sees of output and errors
	Stderr        string `json:"stderr"` // always empty: it is in Stdout
	Interrupted   bool   `json:"interrupted"`
	ExitCode      int    `json:"exitCode"` // -1 if it was ended or still runs
	RawOutputPath string `json:"rawOutputPath,omitempty"`
	RawOutputSize int64  `json:"rawOutputSize,omitempty"` // bytes printed
	TimedOutAfter int64  `json:"timedOutAfterMs,omitempty"`
	LeftProcesses int    `json:"leftProcesses,omitempty"` // that it left and that were ended

	// BackgroundTaskID is the task of a command that still runs; its output is
	// in RawOutputPath.
	BackgroundTaskID string `json:"backgroundTaskId,omitempty"`
}

// shownOutput is how many bytes of an output a model gets: less than the limit
// of [Cap], which would else name a file that has only what is left here.
const shownOutput = DefaultLimit - 4000

var (
	plainSpec = sync.OnceValue(func() troupe.ToolSpec { return define[bashPlain]("Bash", bashDoc) })
	bashSpec  = sync.OnceValue(func() troupe.ToolSpec { return define[bashInput]("Bash", withBackground(bashDoc)) })
)

// Spec implements [troupe.Tool].
func (b *Bash) Spec() troupe.ToolSpec {
	if b.Background == nil {
		return plainSpec()
	}
	return bashSpec()
}

// Lane implements [troupe.Ordered]: commands run one after another.
func (b *Bash) Lane(*troupe.Call) string { return "shell" }

// Call runs a command. A command that fails, is interrupted or is ended at its
// time limit gives a result with what it had printed, marked as an error. One
// that goes on in the background gives a result that says where.
func (b *Bash) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[bashInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	if err := checkCommand(in.Command, c.Place.Dir); err != nil {
		return troupe.Result{}, err
	}
	run, err := b.prepare(in.Command, c.Place)
	if err != nil {
		return troupe.Result{}, err
	}
	if in.RunInBackground && b.Background != nil {
		return b.callInBackground(ctx, c, in, run)
	}
	capture := &proc.Capture{Dir: b.Output, Memory: shownOutput, Limit: b.Limit}
	run.spool.capture = capture
	run.start(ctx)
	limit := b.limit(in.Timeout)
	moved, refused := b.follow(ctx, c, in, run, limit)
	if moved != nil {
		return *moved, nil
	}
	end, runErr := run.end()
	known := end.survivors != nil
	switch {
	case errors.Is(runErr, errTimeLimit):
		end.timedOut, end.refused, known = limit, refused, true
	case runErr != nil && ctx.Err() != nil && errors.Is(runErr, context.Cause(ctx)):
		end.interrupted, known = true, true
	}
	res, err := bashResult(capture, end)
	if err == nil && !known {
		err = runErr
	}
	if err != nil && end.State == "" {
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
