package permission

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-sh/troupe"
)

// A Gate is the [troupe.Guard] of an agent whose user cannot be asked: what
// needs approval is denied, with the way to have it run another time.
type Gate struct {
	// Policy returns the policy in force for an agent in a mode. It is called
	// for every call, so a change of rules counts from the next call on.
	Policy func(mode string) Policy
}

// Check implements [troupe.Guard]. It returns Allow or Deny.
func (g *Gate) Check(ctx context.Context, c *troupe.Call) (troupe.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return troupe.Verdict{}, fmt.Errorf("check %s: %w", c.Name, err)
	}
	if g.Policy == nil {
		return troupe.Verdict{}, errors.New("check " + c.Name + ": the gate has no policy")
	}
	v := g.Policy(c.Mode).Decide(c)
	if v.Effect == troupe.Ask {
		v.Effect = troupe.Deny
		v.Reason = "it needs approval and nobody can be asked here: " + v.Reason
	}
	return v, nil
}
