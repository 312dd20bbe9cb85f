package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
)

//go:embed enterplanmode.md
var enterPlanDoc string

//go:embed exitplanmode.md
var exitPlanDoc string

// planMode is the mode in which nothing but reading is allowed.
const planMode = "plan"

// A Planning is what [EnterPlanMode] and [ExitPlanMode] of one agent share: the
// mode to go back to. The zero value goes back to the default mode. It is safe
// for concurrent use.
type Planning struct {
	// Forbids reports that the agent may not go back to a mode; nil forbids none.
	Forbids func(mode string) error

	mu     sync.Mutex
	before string
}

// Forget has the agent go back to the default mode: somebody has set another mode
// since it began to plan.
func (p *Planning) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = ""
}

// Return has the agent go back to a mode that it had in an earlier run.
func (p *Planning) Return(mode string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = mode
}

// EnterPlanMode is the tool by which an agent takes itself into plan mode. What
// it is offered stays the same; the guard refuses what is more than reading.
type EnterPlanMode struct{ Planning *Planning }

type enterPlanInput struct{}

// Spec implements [troupe.Tool].
func (EnterPlanMode) Spec() troupe.ToolSpec {
	return define[enterPlanInput]("EnterPlanMode", enterPlanDoc)
}

// Lane implements [troupe.Ordered].
func (EnterPlanMode) Lane(*troupe.Call) string { return "mode" }

// Call implements [troupe.Tool].
func (t EnterPlanMode) Call(_ context.Context, c *troupe.Call) (troupe.Result, error) {
	if c.Mode == planMode {
		return troupe.Result{}, errors.New("you are in plan mode already")
	}
	t.Planning.mu.Lock()
	t.Planning.before = c.Mode
	t.Planning.mu.Unlock()
	res := troupe.Answer("You are in plan mode now: nothing but reading is allowed, for the agents that you start, too. " +
		"Look at all that matters, settle how to go about it, and hand the plan in with ExitPlanMode. Do not write the plan into a file.")
	res.Then = []troupe.Event{troupe.Switched{Mode: planMode, Before: c.Mode}}
	return res, nil
}

// ExitPlanMode is the tool by which an agent hands in its plan and, as the call
// was approved, leaves plan mode. The guard asks the person.
type ExitPlanMode struct{ Planning *Planning }

type exitPlanInput struct {
	Plan string `json:"plan" jsonschema:"the plan, in Markdown"`
}

type exitPlanData struct {
	Plan    string `json:"plan"`
	IsAgent bool   `json:"isAgent"`
}

// Spec implements [troupe.Tool].
func (ExitPlanMode) Spec() troupe.ToolSpec { return define[exitPlanInput]("ExitPlanMode", exitPlanDoc) }

// Lane implements [troupe.Ordered].
func (ExitPlanMode) Lane(*troupe.Call) string { return "mode" }

// Call implements [troupe.Tool].
func (t ExitPlanMode) Call(_ context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[exitPlanInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	if c.Mode != planMode {
		return troupe.Result{}, errors.New("you are not in plan mode; go on with the work")
	}
	if strings.TrimSpace(in.Plan) == "" {
		return troupe.Result{}, errors.New("the plan is empty")
	}
	t.Planning.mu.Lock()
	before := cmp.Or(t.Planning.before, "default")
	t.Planning.mu.Unlock()
	if t.Planning.Forbids != nil {
		if err := t.Planning.Forbids(before); err != nil {
			return troupe.Result{}, fmt.Errorf("the plan is approved, but you stay in plan mode: %w", err)
		}
	}
	t.Planning.Forget()
	res := troupe.Answer("The plan is approved. You are in mode " + before + " again; carry it out. The approved plan:\n\n" + in.Plan)
	res.Then = []troupe.Event{troupe.Switched{Mode: before}}
	res.Data, err = troupe.Encode(exitPlanData{Plan: in.Plan})
	return res, err
}
