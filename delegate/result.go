package delegate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/fence"
	"github.com/troupe-sh/troupe/task"
)

// report is the structured form of a result, for faces and callers. The field
// names are those that scripts of this field know.
type report struct {
	Status     string         `json:"status"` // completed, or the troupe.Reason why not
	AgentID    string         `json:"agentId"`
	AgentType  string         `json:"agentType"`
	Content    []reportText   `json:"content"`
	Model      string         `json:"resolvedModel"`
	ToolCalls  int            `json:"totalToolUseCount"`
	DurationMS int64          `json:"totalDurationMs"`
	Tokens     int            `json:"totalTokens"` // of the last request and its reply
	Usage      reportUsage    `json:"usage"`       // of all
	Tools      map[string]int `json:"toolsUsed,omitempty"`
	Prompt     string         `json:"prompt"`
	Error      string         `json:"error,omitempty"`
}

type reportText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type reportUsage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

// result makes of a child that has ended what its parent is told. Whatever did not
// end by itself is a failure, with the text there is.
func (k *child) result(job task.Task) (troupe.Result, error) {
	t := k.tally
	if !t.hasEnded { // the log could not be written, or it crashed
		return troupe.Result{}, fmt.Errorf("agent %s: %w", k.scope.Agent, cmp.Or(k.failed, errors.New(job.Reason)))
	}
	end := t.end
	end.Usage, end.Turns = t.usage, t.turns
	text := fence.Escape(end.Text)
	res := troupe.Result{IsError: end.Reason != troupe.Done}
	if res.IsError {
		text = fmt.Sprintf("The agent did not finish (%s): %s.", end.Reason, end.Err)
		if end.Text != "" {
			text += " What it said last:\n\n" + fence.Escape(end.Text)
		}
	} else if strings.TrimSpace(text) == "" {
		text = "(The agent ended without a word.)"
	}
	text = k.unproven() + text
	if k.lacks != "" {
		text += "\n\n" + k.lacks
	}
	notes := fmt.Sprintf("agent %s (%s, %s); turns: %d, tool calls: %d, tokens: %d", k.scope.Agent, k.started.Definition, k.model,
		end.Turns, t.calls, end.Usage.Total())
	notes += k.remarks()
	res.Content = troupe.Blocks{troupe.Text(text), troupe.Text("\n\n[" + notes + "]")}
	var err error
	res.Data, err = json.Marshal(report{
		Status: string(end.Reason), AgentID: k.scope.Agent, AgentType: k.started.Definition,
		Content: []reportText{{"text", end.Text}}, Model: pick(t.model, k.model), ToolCalls: t.calls, DurationMS: int64(t.took / time.Millisecond),
		Tokens: t.last.Total(), Usage: reportUsage{end.Usage.Input, end.Usage.Output, end.Usage.CacheRead, end.Usage.CacheWrite},
		Tools: t.byTool, Prompt: k.input.Prompt, Error: end.Err,
	})
	if err == nil && end.Reason == troupe.Done { // it is there, but something may be left of it
		err = k.failed
	}
	return res, err
}

// remarks say what is not as it was asked for: another model, another mode.
func (k *child) remarks() (notes string) {
	for _, step := range k.tally.fallback {
		notes += "; " + step
	}
	return notes + k.scope.otherMode(k.scope.Chain[len(k.scope.Chain)-1])
}

// launched tells the parent of a child that works in the background.
func (k *child) launched(t task.Task) (troupe.Result, error) {
	state := "It works in the background"
	if t.Status == task.Pending {
		state = "It works in the background as soon as there is a place for it"
	}
	res := troupe.Answer(fmt.Sprintf("Agent %s was started. %s; you get a notification with its report when it has ended. Its output so far: %s", t.ID, state, t.Output))
	if k.lacks != "" {
		res.Content = append(res.Content, troupe.Text("\n\n"+k.lacks))
	}
	var err error
	res.Data, err = json.Marshal(launch{"async_launched", t.ID, k.input.Description, k.input.Prompt, t.Output, true, k.model})
	return res, err
}

// launch is the structured form of the result of a child in the background.
type launch struct {
	Status      string `json:"status"`
	AgentID     string `json:"agentId"`
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Output      string `json:"outputFile"`
	Readable    bool   `json:"canReadOutputFile"`
	Model       string `json:"resolvedModel"`
}
