package delegate

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/schema"
	"github.com/troupe-sh/troupe/permission"
)

//go:embed agent.md
var agentDoc string

// Input is the input of the Agent tool.
type Input struct {
	Description string `json:"description" jsonschema:"what the agent is to do, in 3 to 5 words"`
	Prompt      string `json:"prompt" jsonschema:"the whole task: the agent sees nothing of this conversation"`
	Type        string `json:"subagent_type,omitempty" jsonschema:"type of agent; general-purpose if absent"`
	Model       string `json:"model,omitempty" jsonschema:"model for this agent, instead of its definition's or this one's"`
	Effort      string `json:"effort,omitempty" jsonschema:"how much it is to think: low, medium, high, xhigh or max"`
}

// Agent is the tool Agent of one agent: it starts another, waits for it and
// returns its last words.
type Agent struct {
	scope Scope
	spec  troupe.ToolSpec
}

// NewAgent returns the Agent tool of the agent with scope s.
func NewAgent(s Scope) (*Agent, error) {
	var doc strings.Builder
	doc.WriteString(strings.TrimSpace(agentDoc))
	for _, d := range s.Startable() {
		fmt.Fprintf(&doc, "\n- %s: %s%s", d.Name, strings.Join(strings.Fields(d.Description), " "), toolsOf(d))
	}
	return &Agent{s, troupe.ToolSpec{Name: agentTool, Description: doc.String(), Schema: schema.Of[Input]()}}, nil
}

func toolsOf(d troupe.Definition) string {
	switch {
	case d.Tools == nil && len(d.Disallowed) > 0:
		return " (all tools but " + strings.Join(d.Disallowed, ", ") + ")"
	case d.Tools == nil:
		return ""
	}
	return " (tools: " + strings.Join(d.Tools, ", ") + ")"
}

// Spec implements [troupe.Tool].
func (a *Agent) Spec() troupe.ToolSpec { return a.spec }

// Call implements [troupe.Tool].
func (a *Agent) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	var in Input
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return troupe.Result{}, fmt.Errorf("the input of %s: %w", agentTool, err)
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return troupe.Result{}, errors.New("an agent needs a prompt: say what it is to do, and all that it must know")
	}
	child, err := a.prepare(ctx, c, in)
	if err != nil {
		return troupe.Result{}, err
	}
	return child.work(ctx)
}

// A child is an agent that is ready to work.
type child struct {
	scope   Scope
	input   Input
	model   string
	started troupe.Started
	first   troupe.Received
	config  troupe.Config
	close   func() error
}

// prepare makes a child ready, so that what cannot start fails at once.
func (a *Agent) prepare(ctx context.Context, c *troupe.Call, in Input) (*child, error) {
	d, err := a.scope.find(in.Type)
	if err != nil {
		return nil, err
	}
	if in.Effort != "" && !ValidEffort(in.Effort) {
		return nil, fmt.Errorf("effort %q: want low, medium, high, xhigh, max or a number of tokens", in.Effort)
	}
	model, err := a.scope.Resolve(pick(in.Model, d.Model), c.Request.Model)
	if err != nil {
		return nil, fmt.Errorf("model of %s: %w", d.Name, err)
	}
	parent := a.scope
	parent.Policy.Mode = permission.Mode(c.Mode) // of this moment, not of when the tool was made
	scope, err := parent.child(a.scope.NewID(), d)
	if err != nil {
		return nil, err
	}
	kit, err := scope.Equip(ctx, scope, d)
	if err != nil {
		return nil, fmt.Errorf("equip %s: %w", d.Name, err)
	}
	req := troupe.Request{Model: model, Effort: pick(in.Effort, d.Effort, c.Request.Effort), System: d.Prompt}
	for _, t := range kit.Tools {
		req.Tools = append(req.Tools, t.Spec())
	}
	place := troupe.Place{Dir: c.Place.Dir, Also: c.Place.Also}
	first := troupe.Message{Role: troupe.User}
	if facts := scope.Introduce(d, place); facts != "" {
		first.Content = append(first.Content, troupe.Text(facts))
	}
	first.Content = append(first.Content, troupe.Text(in.Prompt))
	return &child{
		scope: scope, input: in, model: model,
		started: troupe.Started{Agent: scope.Agent, Definition: d.Name, Parent: c.Agent, Call: c.ID, Depth: scope.depth(),
			Request: req, Mode: string(scope.Policy.Mode), Place: place},
		first:  troupe.Received{ID: c.ID, From: c.Agent, Message: first},
		config: kit.Config(troupe.Config{ID: scope.Agent, State: new(troupe.State), Model: scope.Model, MaxTurns: cmp.Or(d.MaxTurns, DefaultTurns)}),
		close:  kit.Close,
	}, nil
}

// pick returns the first that says something.
func pick(vs ...string) string {
	for _, v := range vs {
		if v != "" && !strings.EqualFold(v, "inherit") {
			return v
		}
	}
	return ""
}

// ValidEffort reports whether s is a level or a number of tokens.
func ValidEffort(s string) bool {
	switch s {
	case "low", "medium", "high", "xhigh", "max":
		return true
	}
	return s != "" && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

// work is the child's life: it runs until it has said its last word.
func (k *child) work(ctx context.Context) (res troupe.Result, err error) {
	defer func() { // also after a panic
		if cerr := k.close(); cerr != nil {
			err = errors.Join(err, fmt.Errorf("release agent %s: %w", k.scope.Agent, cerr))
		}
	}()
	if limit := k.scope.Limits.Time; limit > 0 {
		over := fmt.Errorf("%w: agent %s may work for %s", troupe.ErrOutOfTime, k.scope.Agent, limit)
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, limit, over)
		defer cancel()
	}
	tally := newTally()
	start := k.scope.Now()
	var failed error
	for ev, err := range k.scope.Record(ctx, k.started, k.first, k.config) {
		if err != nil {
			failed = err
			continue
		}
		tally.add(ev)
		if to, ok := ev.(troupe.Switched); ok && to.Mode != "" {
			k.scope.Standing.Set(permission.Mode(to.Mode))
		}
	}
	tally.took = k.scope.Now().Sub(start)
	return k.result(tally, failed)
}

// A tally is what a run did, for its result.
type tally struct {
	end      troupe.Ended
	last     troupe.Usage // of the last request and its reply
	model    string       // that it went on with instead of its own
	fallback []string     // all of these, each with the reason
	calls    int
	took     time.Duration
	byTool   map[string]int
	hasEnded bool
}

func newTally() *tally { return &tally{byTool: map[string]int{}} }

func (t *tally) add(ev troupe.Event) {
	switch ev := ev.(type) {
	case troupe.Replied:
		t.last = ev.Usage
	case troupe.Switched:
		if ev.Model != "" && ev.Cause != "" {
			t.model = ev.Model
			t.fallback = append(t.fallback, fmt.Sprintf("from then on %s answered, as %s", ev.Model, ev.Cause))
		}
	case troupe.ToolStarted:
		t.calls++
		t.byTool[ev.Name]++
	case troupe.Ended:
		t.end, t.hasEnded = ev, true
	}
}
