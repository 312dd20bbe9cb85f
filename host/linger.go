package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/task"
)

// Patience is how long a lead that has given its answer waits for what it has left
// at work: agents, and what only runs beside them, as commands do.
type Patience struct{ Agents, Others time.Duration }

// Usual is the patience of a session that nobody sits before.
func Usual() Patience { return Patience{Agents: 10 * time.Minute, Others: 5 * time.Second} }

// settle is how long news that comes while others are at work waits for more of
// it: news that comes close together costs one turn.
const settle = 50 * time.Millisecond

// errImpatient ends a wait that has taken long enough.
var errImpatient = errors.New("waited long enough")

// Wait returns when the lead has something to work on: a prompt, mail, news of
// what it has left in the background. It is called between two calls of Run.
func (s *Session) Wait(ctx context.Context) error {
	if err := s.inbox.wait(ctx); err != nil {
		return err
	}
	s.settle(ctx)
	return nil
}

// settle lets news that are close together come together.
func (s *Session) settle(ctx context.Context) {
	if len(s.Tasks.Background(session.Lead)) == 0 {
		return
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// News returns when there is mail for the lead: news of what it has left in the
// background, or an agent's word. Prompts are left aside. Like Wait it is called
// between two calls of Run.
func (s *Session) News(ctx context.Context) error {
	if err := s.inbox.box.Wait(ctx); err != nil {
		return err
	}
	s.settle(ctx)
	return nil
}

// Answer is Run, and Run again as long as something comes of what the lead has
// left in the background, for which it waits as [Session.Linger] does. Limits of
// one Run are limits of all together. What is left in the end is stopped and
// returned; then the session is finished.
func (s *Session) Answer(ctx context.Context, p Patience) (end troupe.Ended, stopped []task.Task, err error) {
	ctx, cancel := s.timed(ctx)
	defer cancel()
	limit := s.lead.MaxTurns
	end, err = s.Run(ctx)
	for end.Reason == troupe.Done {
		more, late, lerr := s.Linger(ctx, p)
		stopped = append(stopped, late...)
		if lerr != nil {
			end.Reason, end.Err = reasonOf(lerr), lerr.Error()
			err = errors.Join(err, lerr)
		}
		if !more {
			break
		}
		if limit > 0 {
			if s.lead.MaxTurns = limit - end.Turns; s.lead.MaxTurns <= 0 {
				err = fmt.Errorf("%w: %d, and there is news of what worked in the background", troupe.ErrMaxTurns, limit)
				end.Reason, end.Err = troupe.OutOfTurns, err.Error()
				break
			}
		}
		var next troupe.Ended
		next, err = s.Run(ctx)
		next.Turns, next.Usage, next.Text = next.Turns+end.Turns, next.Usage.Add(end.Usage), cmp.Or(next.Text, end.Text)
		end = next
	}
	left := s.Tasks.Background(session.Lead)
	s.Finish()
	for _, t := range left {
		if now, gerr := s.Tasks.Get(t.ID); gerr == nil && now.Status == task.Killed {
			stopped = append(stopped, now)
		}
	}
	return end, stopped, err
}

// reasonOf is how a wait ended that came to no good end.
func reasonOf(err error) troupe.Reason {
	switch {
	case errors.Is(err, troupe.ErrInterrupted):
		return troupe.Interrupted
	case errors.Is(err, troupe.ErrOutOfTime):
		return troupe.OutOfTime
	}
	return troupe.Failed
}

// Linger waits for what the lead has left at work when it gave its answer. It
// returns true when there is something new for the lead, so that Run is to be
// called again, and false when nothing will come. What takes longer than p is
// stopped and returned; the lead is told of that when the session goes on.
func (s *Session) Linger(ctx context.Context, p Patience) (more bool, stopped []task.Task, err error) {
	for {
		left := s.Tasks.Background(session.Lead) // before the inbox: who is not in it any more has sent its news
		news, err := s.inbox.Take(ctx)
		if err != nil {
			return false, nil, err
		}
		if len(news) > 0 {
			s.settle(ctx)
			return true, nil, nil
		}
		if len(left) == 0 {
			return false, nil, nil
		}
		limit := p.Others
		if slices.ContainsFunc(left, func(t task.Task) bool { return t.Kind == task.Agent }) {
			limit = p.Agents
		}
		why, err := s.await(ctx, limit)
		switch {
		case err == nil, errors.Is(why, task.ErrQuiet):
		case ctx.Err() != nil:
			return false, nil, context.Cause(ctx)
		case !errors.Is(why, errImpatient):
			return false, nil, err
		default:
			stopped, err := s.stopAll(ctx)
			return false, stopped, err
		}
	}
}

// await waits for something in the lead's inbox, as long as something is at work that
// could put it there, but no longer than limit. why says what else has ended it.
func (s *Session) await(ctx context.Context, limit time.Duration) (why, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errImpatient)
	defer cancel()
	while, release := s.Tasks.While(ctx, session.Lead)
	defer release()
	err = s.inbox.wait(while)
	return context.Cause(while), err
}

// stopAll stops all that is left.
func (s *Session) stopAll(ctx context.Context) (stopped []task.Task, err error) {
	var errs []error
	for _, t := range s.Tasks.Background(session.Lead) {
		end, was, err := s.Tasks.Stop(ctx, t.ID, "troupe, which does not wait longer once the answer is given")
		if errs = append(errs, err); was && err == nil {
			stopped = append(stopped, end)
		}
	}
	return stopped, errors.Join(errs...)
}

// Finish stops what is still at work; who follows the session gets what is left to
// see, and the end. Nothing may be called after it but Close.
func (s *Session) Finish() {
	s.finished.Do(func() {
		s.Tasks.Close()
		close(s.over)
	})
}
