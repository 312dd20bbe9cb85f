package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/task"
)

// About is what the first line of a stream tells of the session.
type About struct {
	Session, Dir, Model, Mode, Key, Version string
	Tools, Agents                           []string
	Capabilities                            []string // of the control protocol, if it is spoken
}

// Stream is the face for programs: one JSON object a line for all that
// happens, in the form known as stream-json, and the result as the last.
type Stream struct {
	Out   io.Writer
	Tally *Tally
	About About

	tasks taskFeed
}

// object is a message of the stream; encoding sorts its keys.
type object map[string]any

func (s *Stream) print(o object) error {
	o["uuid"] = uuid.NewString()
	o["session_id"] = s.About.Session
	return printJSON(s.Out, o)
}

// Print prints a message of another kind. It gets the ids that all have.
func (s *Stream) Print(fields map[string]any) error { return s.print(fields) }

// PrintAs is Print of a message that has an ID already.
func (s *Stream) PrintAs(id string, fields map[string]any) error {
	fields["uuid"], fields["session_id"] = id, s.About.Session
	return printJSON(s.Out, fields)
}

func printJSON(w io.Writer, o object) error {
	b, err := troupe.Encode(o)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	if _, err := io.WriteString(w, escape(string(b))+"\n"); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return nil
}

// escape writes what a terminal would act on as JSON can write it, too. In JSON
// that our encoder made such characters stand in strings only.
func escape(s string) string {
	if !strings.ContainsFunc(s, harmful) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if harmful(r) {
			fmt.Fprintf(&b, "\\u%04x", r) // none of them is beyond U+FFFF
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Begin prints the first line.
func (s *Stream) Begin() error {
	a := s.About
	o := object{
		"type": "system", "subtype": "init", "cwd": a.Dir, "tools": list(a.Tools), "agents": list(a.Agents), "model": a.Model,
		"permissionMode": a.Mode, "apiKeySource": a.Key, "troupe_version": a.Version,
		"mcp_servers": []any{}, "slash_commands": []any{}, "skills": []any{}, "plugins": []any{}, "output_style": "default",
	}
	if a.Capabilities != nil {
		o["capabilities"] = a.Capabilities
	}
	return s.print(o)
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// Record implements [Face]. Of agents below the lead only calls and results
// are printed, with the call of the lead or agent that started them.
func (s *Stream) Record(r session.Record) error {
	if err := s.record(r); err != nil {
		return err
	}
	return s.recorded(r)
}

func (s *Stream) record(r session.Record) error {
	a := s.Tally.agents[r.Agent]
	switch ev := r.Event.(type) {
	case troupe.Replied:
		content := ev.Message.Content
		if a.call != "" {
			content = callsOnly(content)
		}
		if len(content) == 0 {
			return nil
		}
		return s.print(object{"type": "assistant", "parent_tool_use_id": parent(a), "timestamp": r.Time, "message": object{
			"id": fmt.Sprintf("msg_%s_%d", a.id, a.replies), "type": "message", "role": "assistant", "model": ev.Model,
			"content": blocks(content), "stop_reason": StopReason(ev.Stop), "stop_sequence": nil, "usage": usage(ev.Usage)}})
	case troupe.ToolEnded:
		o := object{"type": "user", "parent_tool_use_id": parent(a), "timestamp": r.Time, "message": object{"role": "user",
			"content": []any{block(troupe.ToolResult{ID: ev.Use, Content: ev.Result.Content, IsError: ev.Result.IsError})}}}
		if ev.Result.Data != nil {
			o["tool_use_result"] = ev.Result.Data
		}
		return s.print(o)
	case troupe.Decided:
		if ev.Verdict.Effect == troupe.Allow {
			return nil
		}
		o := object{"type": "system", "subtype": "permission_denied", "tool_name": a.uses[ev.Use].Name, "tool_use_id": ev.Use,
			"decision_reason_type": ev.Verdict.By, "decision_reason": ev.Verdict.Reason, "message": ev.Verdict.Reason}
		return s.print(of(a, o))
	case troupe.Compacting, troupe.Compacted, troupe.NotCompacted:
		return s.compaction(a, ev)
	case troupe.Retrying:
		return s.print(of(a, object{"type": "system", "subtype": "api_retry", "attempt": ev.Attempt, "max_retries": ev.Of,
			"retry_delay_ms": ev.After.Milliseconds(), "error_status": status(ev.Status), "error": ev.Cause}))
	case troupe.Waiting:
		info := object{"status": "rejected", "message": ev.Cause}
		if ev.For > 0 {
			info["resetsAt"] = r.Time.Add(ev.For).Unix()
		}
		return s.print(of(a, object{"type": "rate_limit_event", "rate_limit_info": info}))
	case troupe.Switched:
		if ev.Mode != "" && a.call == "" {
			return s.print(object{"type": "system", "subtype": "status", "status": nil, "permissionMode": ev.Mode})
		}
		if ev.Cause == "" || ev.Model == "" {
			return nil
		}
		return s.print(of(a, object{"type": "system", "subtype": "informational", "level": "warning", "content": switched(ev, 400), "model": ev.Model}))
	}
	return nil
}

// compaction prints what happens to the lead's conversation; those of other
// agents are their own affair.
func (s *Stream) compaction(a *agent, ev troupe.Event) error {
	if a.call != "" {
		return nil
	}
	switch ev := ev.(type) {
	case troupe.Compacting:
		a.size = ev.Tokens
		return s.print(object{"type": "system", "subtype": "status", "status": "compacting"})
	case troupe.NotCompacted:
		return s.print(object{"type": "system", "subtype": "status", "status": nil, "compact_result": "failed", "compact_error": ev.Err})
	case troupe.Compacted:
		if err := s.print(object{"type": "system", "subtype": "status", "status": nil, "compact_result": "success"}); err != nil {
			return err
		}
		return s.print(object{"type": "system", "subtype": "compact_boundary", "compact_metadata": object{
			"trigger": ev.Trigger, "pre_tokens": a.size, "duration_ms": ev.Took.Milliseconds()}})
	}
	return nil
}

// of names the agent in a message, if it is not the lead.
func of(a *agent, o object) object {
	if a.call != "" {
		o["agent_id"] = a.id
	}
	return o
}

// Finish implements [Face].
func (s *Stream) Finish(o Outcome) error {
	if _, err := s.Pull(); err != nil {
		return err
	}
	return s.print(result(o))
}

// JSON is the face that prints the result alone, as one JSON object.
type JSON struct {
	Out     io.Writer
	Session string
}

// Record implements [Face].
func (JSON) Record(session.Record) error { return nil }

// Finish implements [Face].
func (j JSON) Finish(o Outcome) error {
	res := result(o)
	res["uuid"], res["session_id"] = uuid.NewString(), j.Session
	return printJSON(j.Out, res)
}

// result is the last message of a run.
func result(o Outcome) object {
	subtypes := map[troupe.Reason]string{troupe.Done: "success", troupe.OutOfTurns: "error_max_turns"}
	res := object{
		"type": "result", "subtype": "error_during_execution", "is_error": o.Ended.Reason != troupe.Done,
		"duration_ms": o.Took.Milliseconds(), "duration_api_ms": o.Tally.Waited.Milliseconds(), "num_turns": o.Ended.Turns,
		"usage": usage(o.Ended.Usage), "modelUsage": modelUsage(o.Tally), "total_cost_usd": nil,
		"permission_denials": denials(o.Tally.Denials), "terminal_reason": terminal(o), "stop_reason": nil,
	}
	if s, ok := subtypes[o.Ended.Reason]; ok {
		res["subtype"] = s
	}
	if len(o.Tally.Failed) > 0 {
		res["compact_errors"] = o.Tally.Failed
	}
	if len(o.Tally.Fallbacks) > 0 {
		res["fallbacks"] = fallbacks(o.Tally.Fallbacks)
	}
	if o.News {
		res["origin"] = object{"kind": "task-notification"}
	}
	if len(o.Stopped) > 0 {
		res["stopped_tasks"] = stopped(o.Stopped)
	}
	if o.Ended.Reason == troupe.OverBudget && o.Ended.Code == "max_budget_usd" {
		res["subtype"] = "error_max_budget_usd"
	}
	if cost, known := o.Tally.Cost(); known {
		res["total_cost_usd"] = cost
	}
	if o.Ended.Reason == troupe.Done {
		res["result"], res["stop_reason"] = o.Ended.Text, StopReason(o.Ended.Stop)
	} else {
		res["errors"] = []string{o.Ended.Err}
		res["partial_result"] = o.Ended.Text
	}
	return res
}

// terminal is the word for what ended the run. A fault that is none of the
// model's, such as a log that cannot be written, has none.
func terminal(o Outcome) any {
	switch o.Ended.Reason {
	case troupe.OverBudget, troupe.OutOfTime:
		return "budget_exhausted"
	case troupe.Interrupted:
		if o.Ended.Code != "" {
			return o.Ended.Code
		}
		if o.Tally.inTools {
			return "aborted_tools"
		}
		return "aborted_streaming"
	case troupe.Failed:
		if o.Ended.Code == "" {
			return nil
		}
		return o.Ended.Code
	}
	return string(o.Ended.Reason)
}

// StopReason is why the model stopped, in the words of Anthropic's protocol
// whichever was spoken.
func StopReason(stop string) string {
	switch stop {
	case "stop", "":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "tool_calls", "function_call":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return stop
}

func modelUsage(t *Tally) object {
	out := object{}
	for _, m := range t.Models {
		o := object{"inputTokens": m.Usage.Input, "outputTokens": m.Usage.Output, "cacheReadInputTokens": m.Usage.CacheRead,
			"cacheCreationInputTokens": m.Usage.CacheWrite, "webSearchRequests": 0, "costUSD": nil}
		if d, known := t.CostOf(m); known {
			o["costUSD"] = d
		}
		out[m.Model] = o
	}
	return out
}

func fallbacks(fs []Fallback) []object {
	out := []object{}
	for _, f := range fs {
		o := object{"from": f.From, "model": f.Model, "reason": f.Cause}
		if f.Agent != session.Lead {
			o["agent_id"] = f.Agent
		}
		out = append(out, o)
	}
	return out
}

func stopped(ts []task.Task) []object {
	out := []object{}
	for _, t := range ts {
		o := ofTask(t)
		o["status"], o["summary"] = wordOf(t.Status), delegate.Summary(t)
		out = append(out, o)
	}
	return out
}

func denials(ds []Denial) []object {
	out := []object{}
	for _, d := range ds {
		out = append(out, object{"tool_name": d.Tool, "tool_use_id": d.Use.ID, "tool_input": d.Use.Input})
	}
	return out
}

func parent(a *agent) any {
	if a.call == "" {
		return nil
	}
	return a.call
}

func status(code int) any {
	if code == 0 {
		return nil
	}
	return code
}

func callsOnly(b troupe.Blocks) (out troupe.Blocks) {
	for _, c := range b {
		if _, ok := c.(troupe.ToolUse); ok {
			out = append(out, c)
		}
	}
	return out
}

func usage(u troupe.Usage) object {
	return object{"input_tokens": u.Input, "output_tokens": u.Output, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite}
}

func blocks(b troupe.Blocks) []any {
	out := []any{}
	for _, c := range b {
		if v := block(c); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// block is the form of a block that the Messages API of Anthropic documents.
func block(b troupe.Block) any {
	switch b := b.(type) {
	case troupe.Text:
		return object{"type": "text", "text": string(b)}
	case troupe.Image:
		return object{"type": "image", "source": object{"type": "base64", "media_type": b.Media, "data": b.Data}}
	case troupe.Thinking:
		return object{"type": "thinking", "thinking": b.Text, "signature": b.Signature}
	case troupe.Opaque:
		if json.Valid([]byte(b.JSON)) {
			return json.RawMessage(b.JSON)
		}
	case troupe.ToolUse:
		return object{"type": "tool_use", "id": b.ID, "name": b.Name, "input": b.Input}
	case troupe.ToolResult:
		return object{"type": "tool_result", "tool_use_id": b.ID, "content": blocks(b.Content), "is_error": b.IsError}
	}
	return nil
}
