package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/troupe-sh/troupe"
)

// A Gate is the [troupe.Guard] of an agent: the one place where it is decided
// whether a call runs. It asks, in this order: the deny rules, the hook, the
// other rules and the mode, the classifier, the person. Nobody later can allow what one before
// has denied, and a changed input goes through the rules again.
type Gate struct {
	// Policy returns the policy in force for an agent in a mode. It is called
	// for every call, so a change of rules counts from the next call on.
	Policy func(mode string) Policy
	// Hook has its say on calls that no rule denies. Its zero verdict is no
	// opinion; Allow lifts an ask that no rule demands. It may be nil.
	Hook func(ctx context.Context, c *troupe.Call) (troupe.Verdict, error)
	// Ask asks a person about a call; v says why. It returns Allow or Deny. If
	// it is nil nobody can be asked, and what needs approval is denied.
	Ask func(ctx context.Context, c *troupe.Call, v troupe.Verdict) (troupe.Verdict, error)
	// Classify has its say in mode [Auto] before a person is asked; it may be nil.
	Classify Classify
}

// Check implements [troupe.Guard]. It returns Allow or Deny.
func (g *Gate) Check(ctx context.Context, c *troupe.Call) (troupe.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return troupe.Verdict{}, fmt.Errorf("check %s: %w", c.Name, err)
	}
	if g.Policy == nil {
		return troupe.Verdict{}, errors.New("check " + c.Name + ": the gate has no policy")
	}
	p := g.Policy(c.Mode)
	v, firm := p.decide(c)
	if g.Hook != nil && v.Effect != troupe.Deny {
		var err error
		if c, v, err = g.hooked(ctx, p, c, v, firm); err != nil {
			return troupe.Verdict{}, err
		}
	}
	if v = p.classify(ctx, g.Classify, c, v); v.Effect != troupe.Ask {
		return v, nil
	}
	return g.ask(ctx, p, c, v)
}

// hooked returns the call as the hook wants it, and what is now said about it.
func (g *Gate) hooked(ctx context.Context, p Policy, c *troupe.Call, v troupe.Verdict, firm bool) (*troupe.Call, troupe.Verdict, error) {
	h, err := g.Hook(ctx, c)
	if err != nil {
		return c, v, fmt.Errorf("hook before %s: %w", c.Name, err)
	}
	if h.Effect == troupe.Deny {
		return c, h, nil
	}
	if h.Input != nil {
		c = withInput(c, h.Input)
		if v, firm = p.decide(c); v.Effect == troupe.Deny {
			return c, v, nil
		}
	}
	switch {
	case h.Effect == troupe.Ask:
		v = h
	case h.Effect == troupe.Allow && v.Effect == troupe.Ask && !firm:
		v = h
	}
	v.Input = h.Input
	return c, v, nil
}

// ask asks the person. Who changes the input cannot change it to what rules deny.
func (g *Gate) ask(ctx context.Context, p Policy, c *troupe.Call, v troupe.Verdict) (troupe.Verdict, error) {
	if g.Ask == nil {
		v.Effect = troupe.Deny
		v.Reason = "it needs approval and nobody can be asked here: " + v.Reason
		return v, nil
	}
	a, err := g.Ask(ctx, c, v)
	if err != nil {
		return troupe.Verdict{}, fmt.Errorf("ask about %s: %w", c.Name, err)
	}
	if a.Effect != troupe.Allow {
		a.Effect = troupe.Deny
		return a, nil
	}
	if a.Input == nil {
		a.Input = v.Input
		return a, nil
	}
	if again, _ := p.decide(withInput(c, a.Input)); again.Effect == troupe.Deny {
		return again, nil
	}
	return a, nil
}

// withInput is c with another input.
func withInput(c *troupe.Call, input json.RawMessage) *troupe.Call {
	changed := *c
	changed.Input = input
	return &changed
}
