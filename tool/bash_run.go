package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/secret"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/proc"
)

// A shellRun is a command, from before its start until nothing of it is left.
type shellRun struct {
	command proc.Command
	mask    *secret.Mask
	spool   *spool

	cancel context.CancelCauseFunc
	done   chan struct{} // closed when nothing of it is left; then out and err are set
	out    proc.Outcome
	err    error
}

// prepare makes ready what cannot be left to the start, where nobody may be
// waiting any more to hear of an error.
func (b *Bash) prepare(command string, place troupe.Place) (*shellRun, error) {
	shell, args, err := b.shell()
	if err != nil {
		return nil, err
	}
	var sandbox *proc.Sandbox
	var limits proc.Limits
	if b.Confine != nil {
		if sandbox, limits, err = b.Confine(command, place); err != nil {
			return nil, err
		}
	}
	return &shellRun{
		command: proc.Command{
			Path: shell, Args: append(args, command), Dir: place.Dir, Env: b.environment(),
			Ledger: b.Ledger, Sandbox: sandbox, Limits: limits,
		},
		mask:  b.Mask,
		spool: &spool{last: &proc.Capture{Memory: lastOutput}},
		done:  make(chan struct{}),
	}, nil
}

// start starts the command. It runs until it ends or cancel is called; of ctx
// counts only whether it has ended already.
func (r *shellRun) start(ctx context.Context) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r.cancel = cancel
	if ctx.Err() != nil {
		cancel(context.Cause(ctx))
	}
	printed := r.mask.Writer(r.spool)
	r.command.Stdout, r.command.Stderr = printed, printed
	go func() {
		defer close(r.done)
		defer cancel(nil)
		r.out, r.err = proc.Run(own, r.command)
		_ = printed.Flush() // a spool takes all
	}()
}

// wait returns when nothing of the command is left. The end of ctx ends it.
func (r *shellRun) wait(ctx context.Context) {
	select {
	case <-r.done:
	case <-ctx.Done():
		r.cancel(context.Cause(ctx))
		<-r.done
	}
}

// end says how the command ended, after wait.
func (r *shellRun) end() (bashEnd, error) {
	end := bashEnd{Outcome: r.out, dir: r.command.Dir, sandbox: r.command.Sandbox, limits: r.command.Limits}
	errors.As(r.err, &end.survivors)
	return end, r.err
}

// A spool takes what a command prints. First it goes into capture; after join,
// to where it is joined to, with what came before in front.
type spool struct {
	mu      sync.Mutex
	capture *proc.Capture // nil if it is joined before anything is printed
	last    *proc.Capture // the end of all
	to      io.Writer     // nil until it is joined
	err     error         // of to; the first one
	closed  bool
}

// Write takes p. It never fails: the program would find its output closed.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return len(p), nil
	}
	_, _ = s.last.Write(p) // never fails
	if s.to == nil {
		return s.capture.Write(p)
	}
	if s.err == nil {
		_, s.err = s.to.Write(p)
	}
	return len(p), nil
}

// join has all output go to w, from the first byte on. The program waits
// meanwhile, if it prints.
func (s *spool) join(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = w
	if s.capture != nil {
		s.err = replay(w, s.capture)
	}
}

// close has the spool drop what may still come, and returns why not all could
// be passed on.
func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.err
}

// replay writes to w what a capture has taken, closes it and removes its file.
// Of what is in no file, or beyond the size of one, the middle is missing, and
// that is said there.
func replay(w io.Writer, c *proc.Capture) error {
	closeErr := c.Close()
	out := c.Output()
	var err error
	if out.Path == "" || closeErr != nil { // its file has not what it should have
		err = replayMemory(w, out)
	} else {
		err = replayFile(w, out.Path)
	}
	if err != nil || out.Path == "" {
		return err // what there is in a file stays there
	}
	return statefile.Remove(out.Path)
}

func replayFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}

func replayMemory(w io.Writer, out proc.Output) error {
	parts := [][]byte{out.Head, out.Tail}
	if out.Missing > 0 {
		parts = [][]byte{out.Head, fmt.Appendf(nil, "\n[%d bytes left out here]\n", out.Missing), out.Tail}
	}
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}
