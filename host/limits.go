package host

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/budget"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/model"
)

// Limits are what a session or an agent may use. Zero is no limit.
type Limits = delegate.Limits

// charge makes what requests go through: the fallbacks if there are some, and
// around them the account of the session.
func (s *Session) charge() error {
	s.models = s.opts.Models
	s.account = budget.New("the session", s.opts.Limits.Limits)
	var names []string
	for _, name := range s.opts.Fallback {
		full, err := s.opts.Models.Resolve(name, "")
		if err == nil {
			err = s.account.Check(full, s.opts.Models.Price)
		}
		if set := s.opts.Config.Model; err == nil && s.opts.Config.IsManaged(set) {
			if only, rerr := s.opts.Models.Resolve(set.Text, ""); rerr != nil || only != full {
				err = fmt.Errorf("%w: %s sets the model %s", ErrUse, set.Source, set.Text)
			}
		}
		if err != nil {
			return fmt.Errorf("the fallback %s: %w", name, err)
		}
		names = append(names, full)
	}
	if names != nil {
		s.models = model.Fallback(s.opts.Models, names)
	}
	return nil
}

// priced reports that the session is to keep to a limit of money, and that what
// its lead is to ask has no price.
func (s *Session) priced() error {
	return s.account.Check(cmp.Or(s.opts.Model, s.lead.State.Request.Model), s.opts.Models.Price)
}

// timed returns ctx with the limit of time of one Run.
func (s *Session) timed(ctx context.Context) (context.Context, func()) {
	limit := s.opts.Limits.Time
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: the session may work for %s", troupe.ErrOutOfTime, limit))
}

// Spent is what the agents of the session have used since Open, as far as it is
// charged: what is under way is not in it.
func (s *Session) Spent() budget.Spent { return s.account.Spent() }

// wrapUp is of how many per cent of a limit an agent is told that they are used.
const wrapUp = 80

// nearing returns a func that says once of each limit for an account that most of
// it is used, so that its agent comes to an end by itself; "" is nothing new.
func nearing(account *budget.Account) func() string {
	told := map[budget.Near]bool{}
	return func() string {
		var words []string
		for _, n := range account.Near(wrapUp) {
			limit := n
			if limit.Words = ""; !told[limit] {
				told[limit] = true
				words = append(words, n.Words)
			}
		}
		if words == nil {
			return ""
		}
		return fmt.Sprintf("%s. At the limit the next request is refused: come to an end before, and say what is done and what is not.", strings.Join(words, "; "))
	}
}
