package delegate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
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

// result makes of a run what its parent is told. Whatever did not end by
// itself is a failure, with the text there is.
func (k *child) result(t *tally, failed error) (troupe.Result, error) {
	if !t.hasEnded { // the log could not be written
		return troupe.Result{}, fmt.Errorf("agent %s: %w", k.scope.Agent, failed)
	}
	end := t.end
	text := end.Text
	res := troupe.Result{IsError: end.Reason != troupe.Done}
	if res.IsError {
		text = fmt.Sprintf("The agent did not finish (%s): %s.", end.Reason, end.Err)
		if end.Text != "" {
			text += " What it said last:\n\n" + end.Text
		}
	} else if strings.TrimSpace(text) == "" {
		text = "(The agent ended without a word.)"
	}
	notes := fmt.Sprintf("agent %s (%s, %s); turns: %d, tool calls: %d, tokens: %d", k.scope.Agent, k.started.Definition, k.model,
		end.Turns, t.calls, end.Usage.Total())
	for _, step := range t.fallback {
		notes += "; " + step
	}
	notes += k.scope.otherMode(k.scope.Chain[len(k.scope.Chain)-1])
	res.Content = troupe.Blocks{troupe.Text(text), troupe.Text("\n\n[" + notes + "]")}
	var err error
	res.Data, err = json.Marshal(report{
		Status: string(end.Reason), AgentID: k.scope.Agent, AgentType: k.started.Definition,
		Content: []reportText{{"text", end.Text}}, Model: pick(t.model, k.model), ToolCalls: t.calls, DurationMS: int64(t.took / time.Millisecond),
		Tokens: t.last.Total(), Usage: reportUsage{end.Usage.Input, end.Usage.Output, end.Usage.CacheRead, end.Usage.CacheWrite},
		Tools: t.byTool, Prompt: k.input.Prompt, Error: end.Err,
	})
	return res, err
}
