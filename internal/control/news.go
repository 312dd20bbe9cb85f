package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/task"
)

// A watch is the wait for news of the background while nothing else is at work. It
// is the loop's.
type watch struct {
	come chan struct{} // closed when there is news; nil: nobody waits
	stop context.CancelFunc
	gone chan struct{} // closed when the wait has ended
}

// end ends the wait, if there is one.
func (w *watch) end() {
	if w.come != nil {
		w.stop()
		<-w.gone
	}
	*w = watch{}
}

// listen begins to wait for news: it makes a turn of its own.
func (s *server) listen(ctx context.Context) {
	if s.news.come != nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	come, gone := make(chan struct{}), make(chan struct{})
	s.news = watch{come, stop, gone}
	s.wg.Go(func() {
		defer close(gone)
		switch err := s.session.News(ctx); {
		case err == nil:
			close(come)
		case ctx.Err() == nil:
			s.tell("news of the background cannot be seen until the next turn: " + err.Error())
		}
	})
}

// lingered is what has come of the wait for what is left in the background.
type lingered struct {
	more    bool
	stopped []task.Task
	err     error
}

// nothingLeft reports, when the client has closed its side, that the session is
// over. While something is at work in the background it waits for that.
func (s *server) nothingLeft(ctx context.Context) bool {
	s.news.end()
	if !s.following { // what earlier runs have left is for a session that goes on
		return true
	}
	if s.lingered == nil && !s.finished {
		s.session.Recall(s.session.Queued()) // those that are left are no reason for a turn
		done := make(chan lingered, 1)
		s.lingered = done
		s.wg.Go(func() {
			more, stopped, err := s.session.Linger(ctx, s.wait)
			done <- lingered{more, stopped, err}
		})
	}
	return s.finished
}

// left goes on after the wait.
func (s *server) left(ctx context.Context, l lingered) error {
	s.lingered = nil
	for _, t := range l.stopped {
		s.tell(cli.StoppedLine(t))
	}
	switch {
	case l.err != nil && ctx.Err() == nil:
		return l.err
	case l.more && ctx.Err() == nil:
		s.work(ctx, true)
	default:
		s.finished = true
	}
	return nil
}

// tasks prints what becomes of the work in the background.
func (s *server) tasks(ctx context.Context) {
	ctx, leave := s.untilQuit(ctx)
	defer leave()
	if err := s.stream.FollowTasks(ctx); err != nil {
		s.stop(troupe.ErrInterrupted)
	}
}

// longestOutput is how many bytes of a task's output a client is sent.
const longestOutput = 64 << 10

// ofTasks answers a request about the background. It may take its time: a task
// that is stopped may have hooks of the client to wait for.
func (s *server) ofTasks(ctx context.Context, r request) (any, error) {
	switch r.Subtype {
	case "stop_task":
		t, was, err := s.session.Tasks.Stop(ctx, r.Task, "the user")
		if err == nil && !was {
			err = fmt.Errorf("task %s has ended before: it is %s", t.ID, t.Status)
		}
		return object{"task_id": t.ID, "status": t.Status}, err
	case "background_tasks":
		return s.detach(ctx, r.Use)
	}
	t, err := s.session.Tasks.Get(r.Task)
	if err != nil {
		return nil, err
	}
	text, total, err := task.Tail(t.Output, longestOutput)
	return object{"output": strings.ToValidUTF8(string(text), "\uFFFD"), "total_bytes": total, "truncated": int64(len(text)) < total}, err
}

// detach moves what is waited for to the background: what a call has started, or
// all of it if none is named.
func (s *server) detach(ctx context.Context, use string) (any, error) {
	moved := []string{}
	var errs []error
	for _, t := range s.session.Tasks.List() {
		if !t.Held || t.Status.Ended() || use != "" && t.Call != use || use == "" && t.Owner != session.Lead {
			continue
		}
		switch err := s.session.Tasks.Detach(ctx, t.ID); {
		case err == nil:
			moved = append(moved, t.ID)
		case !errors.Is(err, task.ErrUnknown): // it has ended at this moment
			errs = append(errs, err)
		}
	}
	if use != "" && len(moved) == 0 {
		errs = append(errs, fmt.Errorf("nothing that the call %s has started is in the foreground", use))
	}
	return object{"task_ids": moved}, errors.Join(errs...)
}
