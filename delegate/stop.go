package delegate

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/fence"
	"github.com/troupe-sh/troupe/internal/schema"
	"github.com/troupe-sh/troupe/task"
)

// ErrForeign reports a task that is not below the agent that wants to stop it.
var ErrForeign = errors.New("the task is not yours")

var (
	//go:embed stop.md
	stopDoc string
	//go:embed output.md
	outputDoc string
)

type stopInput struct {
	Task  string `json:"task_id,omitempty" jsonschema:"ID of the task, or name of the agent, that is to end"`
	Shell string `json:"shell_id,omitempty" jsonschema:"the same, by its old name"`
}

// TaskStop is the tool by which an agent ends what it, or one below it, has
// started: it returns when nothing of the task is left.
type TaskStop struct{ scope Scope }

// NewTaskStop returns the tool of the agent with scope s.
func NewTaskStop(s Scope) TaskStop { return TaskStop{s} }

// Spec implements [troupe.Tool].
func (TaskStop) Spec() troupe.ToolSpec {
	return troupe.ToolSpec{Name: "TaskStop", Description: strings.TrimSpace(stopDoc), Schema: schema.Of[stopInput]()}
}

// Call implements [troupe.Tool].
func (t TaskStop) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	var in stopInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return troupe.Result{}, fmt.Errorf("the input of TaskStop: %w", err)
	}
	id := t.scope.taskID(pick(in.Task, in.Shell))
	if _, err := t.scope.Tasks.Get(id); err != nil {
		return troupe.Result{}, err
	}
	if !t.scope.owns(c.Agent, id) {
		return troupe.Result{}, fmt.Errorf("%w: %s; only who has started it, or one above, may stop it", ErrForeign, id)
	}
	end, stopped, err := t.scope.Tasks.Stop(ctx, id, "agent "+t.scope.label(c.Agent))
	if err != nil {
		return troupe.Result{}, err
	}
	text := Summary(end) + "."
	if !stopped {
		text = "It had ended before: " + text
	}
	res := troupe.Answer(text)
	res.Data, err = json.Marshal(map[string]any{"message": text, "task_id": end.ID, "task_type": end.Kind})
	return res, err
}

// taskID is the ID of the task that an ID, or the name of an agent, means.
func (s Scope) taskID(name string) string {
	if _, err := s.Tasks.Get(name); err == nil {
		return name
	}
	if start, err := s.seek(name); err == nil {
		return start.Agent
	}
	return name
}

// owns reports whether a task was started by an agent or by one below it.
func (s *Shared) owns(agent, id string) bool {
	if agent == s.Lead.Agent {
		return true
	}
	for range s.Depth + 2 {
		t, err := s.Tasks.Get(id)
		if err != nil {
			return false
		}
		if t.Owner == agent {
			return true
		}
		id = t.Owner
	}
	return false
}

type outputInput struct {
	Task    string `json:"task_id,omitempty" jsonschema:"ID of the task, or name of the agent; without it all that runs is listed"`
	Block   *bool  `json:"block,omitempty" jsonschema:"wait until the task has ended; true if absent"`
	Timeout int64  `json:"timeout,omitempty" jsonschema:"how long to wait at most, in milliseconds; 30000 if absent, at most 600000"`
}

// shownOutput is how many bytes of an output one call of TaskOutput returns.
const shownOutput = 24_000

// TaskOutput is the tool by which an agent looks at what runs in the background:
// what a task has written since it last looked, or what there is at all.
type TaskOutput struct {
	scope Scope

	mu   sync.Mutex
	read map[string]int64 // bytes of each file that were returned
}

// NewTaskOutput returns the tool of the agent with scope s.
func NewTaskOutput(s Scope) *TaskOutput { return &TaskOutput{scope: s, read: map[string]int64{}} }

// Spec implements [troupe.Tool].
func (*TaskOutput) Spec() troupe.ToolSpec {
	return troupe.ToolSpec{Name: "TaskOutput", Description: strings.TrimSpace(outputDoc), Schema: schema.Of[outputInput]()}
}

// Call implements [troupe.Tool].
func (t *TaskOutput) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	var in outputInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return troupe.Result{}, fmt.Errorf("the input of TaskOutput: %w", err)
	}
	if in.Task == "" {
		return troupe.Answer(t.scope.running(c.Agent)), nil
	}
	id := t.scope.taskID(in.Task)
	if _, err := t.scope.Tasks.Get(id); err != nil {
		return troupe.Result{}, err
	}
	if in.Block == nil || *in.Block {
		if err := t.wait(ctx, id, in.Timeout); err != nil {
			return troupe.Result{}, err
		}
	}
	now, err := t.scope.Tasks.Get(id)
	if err != nil {
		return troupe.Result{}, err
	}
	text, more, err := t.fresh(now)
	if err != nil {
		return troupe.Result{}, err
	}
	head := fmt.Sprintf("%s (%s, %s).", Summary(now), now.ID, now.Status)
	switch {
	case text == "":
		head += " Nothing new was written."
	case more:
		head += " There is more: call again for it."
	}
	return troupe.Answer(head + "\n" + fence.Escape(text)), nil
}

// wait waits for the end of a task, for so many milliseconds at most.
func (t *TaskOutput) wait(ctx context.Context, id string, ms int64) error {
	if ms <= 0 {
		ms = 30_000
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(min(ms, 600_000))*time.Millisecond)
	defer cancel()
	if err := t.scope.Tasks.Gone(limited, id); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// fresh returns what a task has written since the last look.
func (t *TaskOutput) fresh(now task.Task) (text string, more bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Output == "" {
		return "", false, nil
	}
	b, next, err := task.ReadOutput(now.Output, t.read[now.Output], shownOutput)
	if err != nil {
		return "", false, err
	}
	t.read[now.Output] = next
	return strings.ToValidUTF8(string(b), "\uFFFD"), len(b) == shownOutput, nil
}

// running lists what an agent has at work.
func (s Scope) running(agent string) string {
	var b strings.Builder
	for _, t := range s.Tasks.List() {
		if t.Status.Ended() || t.Held || !s.owns(agent, t.ID) {
			continue
		}
		state := string(t.Status)
		if t.Waiting {
			state += ", waiting for what it has started"
		}
		fmt.Fprintf(&b, "%s  %s  %s, for %s, %d calls of tools, %d tokens, last: %s\n", t.ID, Summary(t), state,
			t.Took(s.Now()).Round(time.Second), t.Calls, t.Usage.Total(), pick(t.Last, "-"))
	}
	if b.Len() == 0 {
		return "Nothing runs in the background."
	}
	return b.String()
}
