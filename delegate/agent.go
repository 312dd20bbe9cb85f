package delegate

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/schema"
	"github.com/troupe-sh/troupe/task"
)

var (
	//go:embed agent.md
	agentDoc string
	//go:embed background.md
	backgroundDoc string
)

// Input is the input of the Agent tool.
type Input struct {
	Description string `json:"description" jsonschema:"what the agent is to do, in 3 to 5 words"`
	Prompt      string `json:"prompt" jsonschema:"the whole task: the agent sees nothing of this conversation, unless it is a fork"`
	Type        string `json:"subagent_type,omitempty" jsonschema:"type of agent; general-purpose if absent"`
	Model       string `json:"model,omitempty" jsonschema:"model for this agent, instead of its definition's or this one's"`
	Effort      string `json:"effort,omitempty" jsonschema:"how much it is to think: low, medium, high, xhigh or max"`
	Name        string `json:"name,omitempty" jsonschema:"a name for the agent, to speak to it by with SendMessage"`
	Background  bool   `json:"run_in_background,omitempty" jsonschema:"true: go on at once, and get its report as a notification when it has ended"`
}

// foreground is the input where nothing runs in the background, or everything
// does: the schema shows what a session can do.
type foreground struct {
	Description string `json:"description" jsonschema:"what the agent is to do, in 3 to 5 words"`
	Prompt      string `json:"prompt" jsonschema:"the whole task: the agent sees nothing of this conversation, unless it is a fork"`
	Type        string `json:"subagent_type,omitempty" jsonschema:"type of agent; general-purpose if absent"`
	Model       string `json:"model,omitempty" jsonschema:"model for this agent, instead of its definition's or this one's"`
	Effort      string `json:"effort,omitempty" jsonschema:"how much it is to think: low, medium, high, xhigh or max"`
	Name        string `json:"name,omitempty" jsonschema:"a name for the agent, to speak to it by with SendMessage"`
}

// Agent is the tool Agent of one agent: it starts another, and waits for its last
// words or leaves it to work in the background.
type Agent struct {
	scope Scope
	spec  troupe.ToolSpec
}

// NewAgent returns the Agent tool of the agent with scope s and kit k.
func NewAgent(s Scope, k Kit) *Agent {
	s.fork = k.Fork
	var doc strings.Builder
	doc.WriteString(strings.TrimSpace(agentDoc))
	in := schema.Of[foreground]()
	if s.Background {
		doc.WriteString("\n\n" + strings.TrimSpace(backgroundDoc))
		if !s.Forking {
			in = schema.Of[Input]()
		}
	}
	doc.WriteString("\n\nTypes of agents:")
	for _, d := range s.Startable() {
		fmt.Fprintf(&doc, "\n- %s: %s%s", d.Name, strings.Join(strings.Fields(d.Description), " "), toolsOf(d))
	}
	return &Agent{s, troupe.ToolSpec{Name: agentTool, Description: doc.String(), Schema: in}}
}

func toolsOf(d troupe.Definition) string {
	switch {
	case d.Name == Fork && d.Source == builtIn:
		return ""
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
	if err := a.scope.named(in.Name); err != nil {
		return troupe.Result{}, err
	}
	d, err := a.scope.find(a.scope.kind(in))
	if err != nil {
		return troupe.Result{}, err
	}
	lacks, err := a.scope.lacks(in.Prompt)
	if err != nil {
		return troupe.Result{}, err
	}
	child, err := a.prepare(ctx, c, in, d)
	if err != nil {
		return troupe.Result{}, err
	}
	child.lacks = lacks
	if a.scope.Background && (in.Background || d.Background || a.scope.Forking || child.forked()) {
		return child.launch(ctx, c)
	}
	return child.join(ctx, c)
}

// lacks says what the prompt of a coordinator leaves out; the level of the check
// makes that a remark or an error.
func (s Scope) lacks(prompt string) (remark string, err error) {
	if s.Check == Off || s.Check == "" || s.depth() > 0 {
		return "", nil
	}
	missing := Check(prompt)
	if missing == nil {
		return "", nil
	}
	var lines []string
	for _, m := range missing {
		lines = append(lines, "- "+m.String())
	}
	remark = "The prompt hands over too little:\n" + strings.Join(lines, "\n")
	if s.Check == Require {
		return "", fmt.Errorf("no agent was started. %s\nSay it and call again", remark)
	}
	return remark, nil
}

// kind is the type of agent that a call asks for.
func (s Scope) kind(in Input) string {
	switch {
	case in.Type != "":
		return in.Type
	case s.Forking && s.Background:
		return Fork
	}
	return Default
}

// task is how the child stands in the registry.
func (k *child) task(c *troupe.Call) task.Task {
	s := k.started
	return task.Task{ID: s.Agent, Kind: task.Agent, Title: cmp.Or(s.Title, oneLine(k.input.Prompt, 60)), Name: s.Name, Type: s.Definition,
		Owner: c.Agent, Call: c.ID, Depth: s.Depth}
}

// launch starts the child in the background.
func (k *child) launch(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	t, err := k.start(ctx, k.task(c))
	if err != nil {
		return troupe.Result{}, err
	}
	k.parent.contacts.met(t.Name, t.ID)
	return k.launched(t)
}

// join starts the child and waits for it, unless somebody moves it to the
// background meanwhile.
func (k *child) join(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	t := k.task(c)
	t.Held = true
	t, err := k.start(ctx, t)
	if err != nil {
		return troupe.Result{}, err
	}
	k.parent.contacts.met(t.Name, t.ID)
	defer k.parent.Tasks.Yield(c.Agent)()
	t, err = k.parent.Tasks.Wait(ctx, t.ID)
	if errors.Is(err, task.ErrDetached) {
		return k.launched(t)
	}
	if err != nil {
		return troupe.Result{}, err
	}
	return k.result(t)
}

// start hands the child over to the registry. What was made for it is released
// if it does not start.
func (k *child) start(ctx context.Context, t task.Task) (task.Task, error) {
	err := k.fits()
	if err == nil {
		t, err = k.scope.Tasks.Start(ctx, t, k.live)
	}
	if err != nil {
		err = errors.Join(err, k.close())
	}
	return t, err
}
