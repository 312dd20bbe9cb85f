package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/tool"
)

// errAllowed ends a question that a new rule has answered.
var errAllowed = errors.New("a new rule allows it")

// asker brings what needs approval of an agent to the desk, or is nil if the
// session has none. policy is the agent's, in a mode.
func (s *Session) asker(name string, policy func(mode string) permission.Policy) func(context.Context, *troupe.Call, troupe.Verdict) (troupe.Verdict, error) {
	desk := s.opts.Desk
	if desk == nil {
		return nil
	}
	return func(ctx context.Context, c *troupe.Call, v troupe.Verdict) (troupe.Verdict, error) {
		q := ask.Question{Kind: kindOf(c), Agent: c.Agent, Name: s.nameOf(c.Agent, name), Call: *c, By: v.By, Why: v.Reason}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		look := func() {
			if policy(c.Mode).Decide(c).Effect == troupe.Allow {
				cancel(errAllowed)
			}
		}
		if v.By != "hook" { // what a hook asks about no rule answers
			q.Rules = policy(c.Mode).Suggest(c)
			defer s.granted.wait(look)()
			look() // a rule may have come since it was decided
		}
		a, err := desk.Ask(ctx, q)
		switch {
		case errors.Is(err, errAllowed):
			return policy(c.Mode).Decide(c), nil
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
		if a.Effect != troupe.Allow { // the agent is told why
			a.Reason = cmp.Or(a.Reason, a.Text, "the user declined")
		}
		return s.denials.heard(c.Agent, a.Verdict), nil
	}
}

// nameOf is the name of an agent for people: its own or, if it has none, that of its
// definition.
func (s *Session) nameOf(agent, definition string) string {
	if t, err := s.Tasks.Get(agent); err == nil && t.Name != "" {
		return t.Name
	}
	return definition
}

// mostDenials is how often a person denies something to an agent until it is
// stopped: who is told no and tries the next tool for the same end does not listen.
const mostDenials = 3

// denials are how often people have denied something to each agent below the lead
// since they last allowed it something, in all its turns: no word of another agent
// makes them fewer. The lead is not among them, as people tell it themselves what
// to do instead. It is safe for concurrent use.
type denials struct {
	mu sync.Mutex
	of map[string]int
}

// heard takes a person's verdict about a call of an agent in, and returns what is
// to be done about it.
func (d *denials) heard(agent string, v troupe.Verdict) troupe.Verdict {
	if agent == session.Lead {
		return v
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.Effect == troupe.Allow {
		delete(d.of, agent)
		return v
	}
	if d.of == nil {
		d.of = map[string]int{}
	}
	if d.of[agent]++; d.of[agent] >= mostDenials {
		v.Stop = true
		v.Reason = fmt.Sprintf("denied by the user %d times, the last time: %s", d.of[agent], v.Reason)
	}
	return v
}

// kindOf is what the approval of a call is about.
func kindOf(c *troupe.Call) ask.Kind {
	if c.Name == "ExitPlanMode" {
		return ask.Plan
	}
	return ask.Permission
}

// chooser brings the questions of an AskUserQuestion to the desk, or is nil if
// the session has none.
func (s *Session) chooser(name string) func(context.Context, *troupe.Call) (map[string]string, error) {
	desk := s.opts.Desk
	if desk == nil {
		return nil
	}
	return func(ctx context.Context, c *troupe.Call) (map[string]string, error) {
		a, err := desk.Ask(ctx, ask.Question{Kind: ask.Choice, Agent: c.Agent, Name: name, Call: *c})
		switch {
		case errors.Is(err, ask.ErrNobody):
			return nil, tool.ErrNobody
		case err != nil:
			return nil, err
		case a.Effect != troupe.Allow:
			return nil, fmt.Errorf("the user did not answer: %s", cmp.Or(a.Text, a.Reason, "no reason was given"))
		}
		var in struct{ Answers map[string]string }
		if err := json.Unmarshal(a.Input, &in); err != nil {
			return nil, fmt.Errorf("the answers cannot be read: %w", err)
		}
		return in.Answers, nil
	}
}
