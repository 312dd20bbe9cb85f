package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
)

// asker brings what needs approval of an agent to the desk, or is nil if the
// session has none.
func (s *Session) asker(name string) func(context.Context, *troupe.Call, troupe.Verdict) (troupe.Verdict, error) {
	desk := s.opts.Desk
	if desk == nil {
		return nil
	}
	return func(ctx context.Context, c *troupe.Call, v troupe.Verdict) (troupe.Verdict, error) {
		a, err := desk.Ask(ctx, ask.Question{Kind: ask.Permission, Agent: c.Agent, Name: name, Call: *c, By: v.By, Why: v.Reason})
		switch {
		case errors.Is(err, ask.ErrNobody):
			return troupe.Verdict{Effect: troupe.Deny, By: v.By, Reason: "it needs approval and nobody is there to ask: " + v.Reason}, nil
		case err != nil:
			return troupe.Verdict{}, err
		}
		if a.Mode != "" {
			if err := s.Switch(troupe.Switched{Mode: a.Mode, Chosen: true}); err != nil {
				return troupe.Verdict{}, fmt.Errorf("the mode of the answer: %w", err)
			}
		}
		return a.Verdict, nil
	}
}
