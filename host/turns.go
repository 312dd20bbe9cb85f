package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/compact"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/internal/fence"
	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
)

// Interrupt stops the turn that is running, if one is: the request to the model
// and all tools, those of sub-agents, too. Run then returns; the session is as
// good as before.
func (s *Session) Interrupt() {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	if stop != nil {
		stop(troupe.ErrInterrupted)
	}
}

// running gives one Run a context that Interrupt can end.
func (s *Session) running(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.stop = stop
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		s.stop = nil
		s.mu.Unlock()
		stop(nil)
	}
}

// Switch gives the lead another model, effort or mode from its next request on,
// also in the middle of a turn. Agents that it has started keep theirs, but a
// narrower mode holds for all of them at once.
func (s *Session) Switch(to troupe.Switched) error {
	if to.Model != "" {
		present, _ := s.Next()
		full, err := s.opts.Models.Resolve(to.Model, present)
		if err != nil {
			return err
		}
		if err := s.account.Check(full, s.opts.Models.Price); err != nil {
			return err
		}
		if err := s.fits(s.begun.Request, full); err != nil {
			return err
		}
		if set := s.opts.Config.Model; s.opts.Config.IsManaged(set) && full != s.begun.Request.Model {
			return fmt.Errorf("%w: %s sets the model %s", ErrUse, set.Source, set.Text)
		}
		to.Model = full
	}
	if to.Mode != "" {
		mode, err := permission.ParseMode(to.Mode)
		if err != nil {
			return err
		}
		if err := s.forbids(mode); err != nil {
			return err
		}
		to.Mode = string(mode)
	}
	if to.Mode != "" {
		s.scope.Standing.Shrink(permission.Mode(to.Mode))
		s.planning.Forget()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.switches = append(s.switches, to)
	return nil
}

// forbids reports that settings do not let a session work in a mode, by whatever
// way it would come to it: [permission.Bypass] where it is switched off, and what
// allows more than the mode that the machine's owner has set.
func (s *Session) forbids(mode permission.Mode) error {
	c := s.opts.Config
	if c.NoBypass.Text != "" && mode == permission.Bypass {
		return fmt.Errorf("%w: %s forbids the mode %s", ErrUse, c.NoBypass.Source, mode)
	}
	if most, err := permission.ParseMode(c.Mode.Text); c.IsManaged(c.Mode) && err == nil && mode.Wider(most) {
		return fmt.Errorf("%w: the mode %s allows more than %s, which %s sets", ErrUse, mode, most, c.Mode.Source)
	}
	return nil
}

// nextSwitch is the oldest that is not in the log yet.
func (s *Session) nextSwitch() (troupe.Switched, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.switches) == 0 {
		return troupe.Switched{}, false
	}
	return s.switches[0], true
}

// Compact has the conversation of the lead cut short before its next request, or
// by the next Run if nothing runs. Instructions for the summary may be empty.
func (s *Session) Compact(instructions string) { s.compactor.Ask(instructions) }

// compacts returns what cuts the conversation of an agent short in time.
func (s *Session) compacts(scope delegate.Scope, d troupe.Definition, w *watched) *compact.Compactor {
	return compact.New(compact.Compactor{Model: scope.Model, Window: s.opts.Models.Window, Now: s.opts.Now,
		Before:  w.beforeCompact,
		TooLong: func(err error) bool { return errors.Is(err, model.ErrTooLong) },
		Introduce: func(ctx context.Context, p troupe.Place) string {
			return strings.TrimSpace(s.introduce(ctx, d, p) + "\n" + d.First)
		}})
}

// beforeTurn is what the runtime does before each request of an agent.
func (s *Session) beforeTurn(scope delegate.Scope, c *compact.Compactor) func(context.Context, *troupe.State) iter.Seq2[troupe.Event, error] {
	near := nearing(scope.Account)
	return func(ctx context.Context, state *troupe.State) iter.Seq2[troupe.Event, error] {
		return func(yield func(troupe.Event, error) bool) {
			if scope.Agent == session.Lead && (!s.switchOver(state, yield) || !s.moveOn(state, yield)) {
				return
			}
			for ev, err := range c.BeforeTurn(ctx, state) {
				if !yield(ev, err) {
					return
				}
			}
			if state.Idle() { // it is not woken for it
				return
			}
			if words := near(); words != "" && !yield(s.notice(words), nil) {
				return
			}
			s.asked.note(scope.Agent)
		}
	}
}

// switchOver logs the switches that were asked for, each with a word to the
// model where it must know.
func (s *Session) switchOver(state *troupe.State, yield func(troupe.Event, error) bool) (on bool) {
	for to, ok := s.nextSwitch(); ok; to, ok = s.nextSwitch() {
		before := state.Mode
		if !yield(to, nil) {
			return false
		}
		s.mu.Lock()
		s.switches = slices.Delete(s.switches, 0, 1)
		s.mu.Unlock()
		// Without a conversation there is nobody to tell, and an idle one is not woken for it.
		if to.Mode == "" || to.Mode == before || state.Idle() {
			continue
		}
		if !yield(s.notice(fmt.Sprintf("The user has set the permission mode to %s.", to.Mode)), nil) {
			return false
		}
	}
	return true
}

// moveOn logs where the lead is to work from now on.
func (s *Session) moveOn(state *troupe.State, yield func(troupe.Event, error) bool) (on bool) {
	to, moves := s.movedTo(state.Place)
	if moves == 0 {
		return true
	}
	if !yield(troupe.Moved{Place: to}, nil) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = slices.Delete(s.moves, 0, moves)
	return true
}

// switched notes the model and the mode that the lead has now.
func (s *Session) switched(to troupe.Switched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Model, s.now.Mode = cmp.Or(to.Model, s.now.Model), cmp.Or(to.Mode, s.now.Mode)
}

// Next returns the model and the mode of the lead's next request.
func (s *Session) Next() (model, mode string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.now
	for _, to := range s.switches {
		next.Model, next.Mode = cmp.Or(to.Model, next.Model), cmp.Or(to.Mode, next.Mode)
	}
	return cmp.Or(next.Model, s.begun.Request.Model), cmp.Or(next.Mode, s.begun.Mode)
}

// notice is a word of the runtime to the model. It stands in a frame of its own,
// so that nobody takes it for the user's.
func (s *Session) notice(text string) troupe.Received {
	return troupe.Received{ID: s.opts.NewID(), From: "runtime", Message: troupe.Say(troupe.User, fence.Frame("notice", text))}
}
