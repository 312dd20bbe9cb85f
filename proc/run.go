// Package proc runs other programs and leaves nothing of them behind.
//
// [Run] starts a program as the head of a group of its own and returns when
// the whole group is gone: the program, what it started, and what has tried to
// slip away by nohup, setsid or a double fork. It is the same whether the
// program ended by itself or the end of the context ended it.
//
// Two things make that possible. A process is known by more than its pid (see
// [Identity]), so that nobody is signalled who merely got an old number. And
// every group carries a random mark in its environment, in the variable
// [Mark], which descendants inherit and nobody else has.
//
// A program that is killed cannot clean up after itself. So Run can keep a
// ledger, a directory with a file for each running group, and [Sweep] ends at
// the next start what a dead owner has left.
//
// A program can be confined: see [Sandbox].
//
// It is the one package that starts processes. Its goroutines end before Run
// returns.
package proc

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-sh/troupe/internal/failpoint"
)

// Mark is the name of the environment variable that names the groups a
// process belongs to, separated by commas: a group started from inside another
// belongs to both.
const Mark = "TROUPE_RUN"

const (
	// settle is what a group has to end by itself after its first program
	// has: the end of a pipeline may still be writing what it was given.
	settle = 100 * time.Millisecond
	// grace lies between the request to end and the end by force.
	grace = 250 * time.Millisecond
	// stubborn is how long a killed process may take to disappear before it
	// is reported; one that has much memory to give back needs a while.
	stubborn = 3 * time.Second
	// unplug is how long output may still flow after all of the group are
	// gone: somebody who is not of the group may hold the other end.
	unplug = 2 * time.Second
)

// A Command says what to run and where.
type Command struct {
	Path string   // of the program, absolute or a name for [Look]
	Args []string // without the program's name
	Dir  string   // to start in; "" is the directory of this process

	// Env is the whole environment. Nothing is taken from that of this
	// process; Run adds the mark, and PWD where Dir is set.
	Env []string

	// Stdin is what the program reads; nil is nothing. A reader that is not
	// an *os.File should end by itself: Run cannot interrupt it.
	Stdin io.Reader

	// Stdout and Stderr receive the output; nil discards it. If they are the
	// same they get what a terminal would, in order. Their Write should not
	// fail: the program would find its output closed.
	Stdout, Stderr io.Writer

	// Ledger is the directory in which the running group is noted for [Sweep];
	// "" notes it nowhere.
	Ledger string

	// Sandbox confines the program to Limits; nil: it runs free.
	Sandbox *Sandbox
	Limits  Limits
}

// An Outcome says how a program ended.
type Outcome struct {
	Code  int    // exit code; -1 if it was ended by a signal or did not run
	State string // in words: "exit status 3", "signal: killed"
	Left  int    // processes that it left behind, which Run has ended
}

// A SurvivorsError names processes that could not be ended, because they
// belong to another user or hang in the kernel.
type SurvivorsError struct{ PIDs []int }

// Error implements error.
func (e *SurvivorsError) Error() string {
	return fmt.Sprintf("could not end the processes %s; end them by hand", strings.Trim(fmt.Sprint(e.PIDs), "[]"))
}

// Run runs c and returns when it and all that it started are gone. That a
// program ended with another code than 0 is no error.
//
// When ctx ends before the program does, the group is asked to end, given a
// quarter of a second, and killed; the error then wraps the cause of ctx. What
// a program leaves running when it ends by itself is ended too and counted in
// Outcome.Left. If the error wraps a [SurvivorsError], not all could be ended.
func Run(ctx context.Context, c Command) (Outcome, error) {
	out := Outcome{Code: -1}
	name := filepath.Base(c.Path)
	if ctx.Err() != nil {
		return out, fmt.Errorf("run %s: %w", name, context.Cause(ctx))
	}
	path, err := Look(c.Path, c.Env)
	if err != nil {
		return out, fmt.Errorf("run %s: %w", name, err)
	}
	c.Path = path
	mark := rand.Text()
	note, err := newNote(c.Ledger, mark)
	if err != nil {
		return out, fmt.Errorf("run %s: %w", name, err)
	}
	failpoint.Here(failpoint.ProcNoted)
	cmd := c.prepare(mark)
	if c.Sandbox != nil {
		err = c.confine(cmd)
	}
	var g *group
	if err == nil {
		g, err = start(cmd, mark)
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // the program has its own
	}
	if err != nil {
		note.remove()
		return out, fmt.Errorf("run %s: %w", name, err)
	}
	defer g.close()
	failpoint.Here(failpoint.ProcStarted)
	note.add(g.leader)
	failpoint.Here(failpoint.ProcRunning)

	out.Left, err = g.follow(ctx)
	if c.Sandbox != nil {
		out.Left -= min(out.Left, c.Sandbox.helpers())
	}
	var alive *SurvivorsError
	if errors.As(err, &alive) {
		// The note stays: a later sweep may have more luck. A program that
		// hangs in the kernel is waited for as long as it does.
		note.close()
		go func() { _ = cmd.Wait() }()
		return out, fmt.Errorf("run %s: %w", name, err)
	}
	failpoint.Here(failpoint.ProcEnded)
	note.remove()
	<-g.exited
	waitErr := cmd.Wait()
	if cmd.ProcessState != nil {
		out.Code, out.State = cmd.ProcessState.ExitCode(), cmd.ProcessState.String()
	}
	var exit *exec.ExitError
	switch {
	case err != nil:
		return out, fmt.Errorf("run %s: %w", name, err)
	case waitErr != nil && !errors.As(waitErr, &exit) && !errors.Is(waitErr, exec.ErrWaitDelay):
		return out, fmt.Errorf("run %s: %w", name, waitErr)
	}
	return out, nil
}

// prepare makes the exec.Cmd of c, whose group will have the given mark.
func (c Command) prepare(mark string) *exec.Cmd {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = unplug
	if outer, ok := lookup(c.Env, Mark); ok && outer != "" {
		mark = outer + "," + mark
	}
	cmd.Env = append(cmd.Env, c.Env...)
	if c.Dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+c.Dir)
	}
	cmd.Env = append(cmd.Env, Mark+"="+mark)
	return cmd
}

// follow waits for the first program of g or the end of ctx, and then ends
// what there is of g. It returns the number of processes which a program that
// ended by itself has left.
func (g *group) follow(ctx context.Context) (left int, err error) {
	select {
	case <-g.exited:
	case <-ctx.Done():
		select {
		case <-g.exited: // it was first, even if select did not see it so
		default:
			if _, err := g.end(); err != nil {
				return 0, fmt.Errorf("%w; %w", context.Cause(ctx), err)
			}
			return 0, context.Cause(ctx)
		}
	}
	if empty, err := g.settled(ctx); empty || err != nil {
		return 0, err
	}
	return g.end()
}

// poll calls empty, at growing intervals, until it says yes or fails, the
// limit has passed or done is closed.
func poll(done <-chan struct{}, limit time.Duration, empty func() (bool, error)) (bool, error) {
	end := time.NewTimer(limit)
	defer end.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 25*time.Millisecond) {
		if yes, err := empty(); yes || err != nil {
			return yes, err
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-end.C:
			next.Stop()
			return empty()
		case <-done:
			next.Stop()
			return empty()
		}
	}
}

// Look finds the program with the given name in the PATH of env. Entries of
// PATH that are not absolute are passed over: what lies in the present
// directory is not a tool. The error wraps [exec.ErrNotFound].
func Look(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return exec.LookPath(name)
	}
	path, _ := lookup(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || name != filepath.Base(name) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("find %s in PATH: %w", name, exec.ErrNotFound)
}

// lookup returns the value of a variable in env, of which the last entry
// counts.
func lookup(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(env[i], "="); ok && sameVariable(key, name) {
			return value, true
		}
	}
	return "", false
}

// hasMark reports whether an environment, its entries ended by NUL, has the
// mark.
func hasMark(environ []byte, mark string) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if list, ok := bytes.CutPrefix(entry, []byte(Mark+"=")); ok {
			for m := range bytes.SplitSeq(list, []byte(",")) {
				if string(m) == mark {
					return true
				}
			}
		}
	}
	return false
}

// PrivateDir makes dir, with its parents, if it is not there, and makes sure
// that nobody but the user can look or write into it. It refuses a directory
// of another user and a link.
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a private directory: %w", err)
	}
	if err := makePrivate(dir); err != nil {
		return fmt.Errorf("make %s private: %w", dir, err)
	}
	return nil
}
