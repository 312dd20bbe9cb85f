package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/troupe-sh/troupe"
)

// An Input is what a hook is told; its JSON form is what programs get. Of the
// parts at its end it has the one of its event.
type Input struct {
	Session    string `json:"session_id"`
	Transcript string `json:"transcript_path"` // of the agent: the log
	Dir        string `json:"cwd"`
	Event      Event  `json:"hook_event_name"`
	Mode       string `json:"permission_mode,omitempty"`
	Agent      string `json:"agent_id,omitempty"`   // of a sub-agent
	AgentType  string `json:"agent_type,omitempty"` // of a sub-agent, or of a lead that follows a definition

	*Call
	*Prompt
	*Stopping
	*Compaction
}

// A Call is what events of tools are about.
type Call struct {
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Use      string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response,omitempty"` // of a call that succeeded
	Error    string          `json:"error,omitempty"`         // of one that failed
	Took     int64           `json:"duration_ms,omitempty"`
}

// A Prompt is what the user has said.
type Prompt struct {
	Text string `json:"prompt"`
}

// Stopping is what is said of an agent that wants to stop. Active says that it
// goes on only because a hook has kept it from stopping before.
type Stopping struct {
	Active     bool   `json:"stop_hook_active"`
	Last       string `json:"last_assistant_message,omitempty"`
	Transcript string `json:"agent_transcript_path,omitempty"` // of a sub-agent
	Background []any  `json:"background_tasks"`
	Crons      []any  `json:"session_crons"`
}

// A Compaction is about to be done. Trigger is manual or auto.
type Compaction struct {
	Trigger      string  `json:"trigger"`
	Instructions *string `json:"custom_instructions"`
}

// matchedBy reports whether what a matcher of the event looks at is selected.
func (in Input) matchedBy(selects func(string) bool) bool {
	switch in.Event {
	case PreToolUse, PostToolUse, PostToolUseFailure:
		return selects(in.Tool) || in.Tool == "Agent" && selects("Task") // its older name
	case SubagentStop:
		return selects(in.AgentType)
	case PreCompact:
		return selects(in.Trigger)
	}
	return true // the others know no matcher
}

// An Output is what a hook says; its JSON form is what programs print.
type Output struct {
	Continue      *bool    `json:"continue,omitempty"` // false stops the agents
	StopReason    string   `json:"stopReason,omitempty"`
	SystemMessage string   `json:"systemMessage,omitempty"`
	Decision      string   `json:"decision,omitempty"` // block; approve is the older word for allow
	Reason        string   `json:"reason,omitempty"`
	Specific      Specific `json:"hookSpecificOutput,omitzero"`
}

// Specific is the part of an Output that depends on the event.
type Specific struct {
	Event             Event           `json:"hookEventName"`
	Decision          string          `json:"permissionDecision,omitempty"` // allow, deny, ask or defer
	Reason            string          `json:"permissionDecisionReason,omitempty"`
	UpdatedInput      json.RawMessage `json:"updatedInput,omitempty"` // whole
	AdditionalContext string          `json:"additionalContext,omitempty"`
	UpdatedOutput     json.RawMessage `json:"updatedToolOutput,omitempty"`
}

// ParseOutput reads the JSON form of an output. Fields that are not known are
// passed over; nothing at all is an empty output.
func ParseOutput(data []byte) (Output, error) {
	var out Output
	if len(bytes.TrimSpace(data)) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("the output of the hook: %w", err)
	}
	return out, nil
}

// check reports what makes no sense at an event.
func (o Output) check(e Event) error {
	sp := o.Specific
	switch {
	case o.Decision != "" && o.Decision != "block" && o.Decision != "approve":
		return fmt.Errorf("decision %q: want block", o.Decision)
	case sp.Event != "" && sp.Event != e:
		return fmt.Errorf("hookEventName is %q at %s", sp.Event, e)
	case sp.Decision != "" && sp.Decision != "allow" && sp.Decision != "deny" && sp.Decision != "ask" && sp.Decision != "defer":
		return fmt.Errorf("permissionDecision %q: want allow, deny or ask", sp.Decision)
	case null(sp.UpdatedInput) || sp.UpdatedInput == nil:
		return nil
	}
	if b := bytes.TrimSpace(sp.UpdatedInput); b[0] != '{' {
		return errors.New("updatedInput is not a JSON object")
	}
	return nil
}

func null(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// decision is the effect that the hook wants. To defer a call is to have it
// decided later, in another run; nobody here would, so it does not run.
func (o Output) decision() (troupe.Effect, string) {
	switch sp := o.Specific; {
	case o.Decision == "block":
		return troupe.Deny, o.Reason
	case sp.Decision == "deny":
		return troupe.Deny, sp.Reason
	case sp.Decision == "defer":
		return troupe.Deny, "the hook defers the call, which is not possible here"
	case sp.Decision == "ask":
		return troupe.Ask, sp.Reason
	case sp.Decision == "allow":
		return troupe.Allow, sp.Reason
	case o.Decision == "approve":
		return troupe.Allow, o.Reason
	}
	return "", ""
}

// output is the text that takes the place of a result.
func (s Specific) output() (string, bool) {
	if s.UpdatedOutput == nil || null(s.UpdatedOutput) {
		return "", false
	}
	var text string
	if json.Unmarshal(s.UpdatedOutput, &text) != nil {
		text = string(s.UpdatedOutput)
	}
	return text, true
}
