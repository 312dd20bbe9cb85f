package hook

import (
	"context"
	"fmt"

	"github.com/troupe-sh/troupe"
)

// MostBlocks is how often in a row hooks can keep an agent from stopping.
const MostBlocks = 8

// A Guard asks hooks whether an agent may stop, and lets it go when they have
// said no too often: an agent that can never stop costs without end. It is for
// one agent and one goroutine; the zero value begins to count.
type Guard struct{ blocks int }

// Ask runs the hooks for in, which is of Stop or SubagentStop. The outcome is
// Deny if the agent is to go on, with the reason that it is to be told.
func (g *Guard) Ask(ctx context.Context, s *Set, in Input) (Outcome, error) {
	stopping := *in.Stopping
	stopping.Active = g.blocks > 0
	in.Stopping = &stopping
	o, err := s.Run(ctx, in)
	if err != nil {
		return o, err
	}
	if len(o.Add) > 0 && o.Effect != troupe.Deny { // it is told something, so it has to be heard
		o.Effect, o.Reason = troupe.Deny, ""
	}
	if o.Halt || o.Effect != troupe.Deny {
		o.Effect, g.blocks = "", 0
		return o, nil
	}
	if g.blocks++; g.blocks > MostBlocks {
		g.blocks = 0
		o.Tell = append(o.Tell, fmt.Sprintf("hooks at %s have kept the agent from stopping %d times in a row; now it stops", in.Event, MostBlocks))
		o.Effect = ""
	}
	return o, nil
}
