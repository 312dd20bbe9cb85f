package troupetest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// openaiWire is the Chat Completions API, as documented at
// https://platform.openai.com/docs/api-reference/chat, with the reasoning
// fields of compatible servers.
type openaiWire struct{}

// openaiReasoning names the fields in which compatible servers stream
// reasoning and take it back.
func openaiReasoning() []string {
	return []string{"reasoning_content", "reasoning", "reasoning_details"}
}

type openaiBody struct {
	Model     string
	MaxTokens int    `json:"max_tokens"`
	MaxOutput int    `json:"max_completion_tokens"`
	Effort    string `json:"reasoning_effort"`
	Tools     []struct {
		Function struct {
			Name, Description string
			Schema            json.RawMessage `json:"parameters"`
		}
	}
	Messages []json.RawMessage
}

type openaiMessage struct {
	Role    string
	Content json.RawMessage
	Calls   []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
}

func (openaiWire) parse(raw []byte) troupe.Request {
	var b openaiBody
	if json.Unmarshal(raw, &b) != nil {
		return troupe.Request{}
	}
	r := troupe.Request{Model: b.Model, Effort: b.Effort, MaxTokens: max(b.MaxTokens, b.MaxOutput)}
	for _, t := range b.Tools {
		r.Tools = append(r.Tools, troupe.ToolSpec(t.Function))
	}
	for _, one := range b.Messages {
		var m openaiMessage
		if json.Unmarshal(one, &m) != nil {
			continue
		}
		switch content := openaiParts(m.Content); m.Role {
		case "system", "developer":
			r.System += content.Text()
		case "tool":
			result := troupe.ToolResult{ID: m.CallID, Content: content}
			if last := len(r.Messages) - 1; last >= 0 && isResults(r.Messages[last]) {
				r.Messages[last].Content = append(r.Messages[last].Content, result)
				continue
			}
			r.Messages = append(r.Messages, troupe.Message{Role: troupe.User, Content: troupe.Blocks{result}})
		case "assistant":
			r.Messages = append(r.Messages, openaiAssistant(one, m, content))
		default:
			r.Messages = append(r.Messages, troupe.Message{Role: troupe.Role(m.Role), Content: content})
		}
	}
	return r
}

func isResults(m troupe.Message) bool {
	if len(m.Content) == 0 {
		return false
	}
	_, ok := m.Content[0].(troupe.ToolResult)
	return ok && m.Role == troupe.User
}

func openaiAssistant(raw json.RawMessage, m openaiMessage, content troupe.Blocks) troupe.Message {
	out := troupe.Message{Role: troupe.Assistant}
	for _, name := range openaiReasoning() {
		if said := reasoningText(decodeObject(raw)[name]); said != "" {
			out.Content = append(out.Content, troupe.Thinking{Text: said, Provider: string(OpenAI) + "/" + name})
		}
	}
	out.Content = append(out.Content, content...)
	for _, c := range m.Calls {
		out.Content = append(out.Content, troupe.ToolUse{ID: c.ID, Name: c.Function.Name, Input: []byte(c.Function.Arguments)})
	}
	return out
}

// reasoningText is what a reasoning field says: a string, or the texts of a
// list of parts.
func reasoningText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all strings.Builder
		for _, part := range objects(v) {
			all.WriteString(text(part, "text"))
		}
		return all.String()
	}
	return ""
}

func openaiParts(raw json.RawMessage) troupe.Blocks {
	var s string
	if json.Unmarshal(raw, &s) == nil && s != "" {
		return troupe.Blocks{troupe.Text(s)}
	}
	var parts []struct {
		Type, Text string
		Image      struct{ URL string } `json:"image_url"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	var out troupe.Blocks
	for _, p := range parts {
		if p.Type == "text" {
			out = append(out, troupe.Text(p.Text))
			continue
		}
		media, data, _ := strings.Cut(strings.TrimPrefix(p.Image.URL, "data:"), ";base64,")
		out = append(out, troupe.Image{Media: media, Data: data})
	}
	return out
}

func (openaiWire) prompt(raw []byte) []piece {
	var b struct{ Tools, Messages []json.RawMessage }
	if json.Unmarshal(raw, &b) != nil {
		return nil
	}
	var out []piece
	for _, part := range slices.Concat(b.Tools, b.Messages) {
		out = append(out, piece{data: part})
	}
	return out
}

func (openaiWire) stopReason(a *answer) string {
	switch a.Stop {
	case "":
		if len(a.Message.ToolUses()) > 0 {
			return "tool_calls"
		}
		return "stop"
	case "end_turn", "stop_sequence":
		return "stop"
	case "max_tokens":
		return "length"
	case "tool_use":
		return "tool_calls"
	case "refusal":
		return "content_filter"
	}
	return a.Stop
}

func openaiUsage(u troupe.Usage) object {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"prompt_tokens": prompt, "completion_tokens": u.Output, "total_tokens": prompt + u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead},
	}
}

func openaiChunk(a *answer, choices ...any) object {
	out := object{
		"id": "chatcmpl-" + a.id, "object": "chat.completion.chunk", "created": a.created, "model": a.Model,
		"system_fingerprint": "fp_test", "choices": append([]any{}, choices...),
	}
	if a.includeUsage {
		out["usage"] = nil
	}
	return out
}

func (openaiWire) frames(a *answer) []frame {
	var out []frame
	add := func(delta object, finish any, output int) {
		choice := object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}
		out = append(out, frame{data: encode(openaiChunk(a, choice)), output: output})
	}
	add(object{"role": "assistant", "content": ""}, nil, 0)
	var midway, inCall, call int
	for i, b := range a.Message.Content {
		switch b := b.(type) {
		case troupe.Text:
			for _, part := range split(string(b)) {
				add(object{"content": part}, nil, len(part))
			}
		case troupe.Thinking:
			for _, part := range split(b.Text) {
				add(openaiReasoningDelta(b.Provider, part), nil, len(part))
			}
		case troupe.ToolUse:
			start := len(out)
			for j, part := range append([]string{""}, split(string(b.Input))...) {
				add(openaiCallDelta(a, call, j, b, part), nil, len(part))
			}
			if call++; inCall == 0 {
				inCall = start + 2
			}
		}
		if i == 0 {
			midway = 2
		}
	}
	end := len(out)
	add(object{}, openaiWire{}.stopReason(a), 0)
	if a.includeUsage && !a.Fault.NoUsage {
		last := openaiChunk(a)
		last["usage"] = openaiUsage(a.Usage)
		out = append(out, frame{data: encode(last)})
	}
	out = append(out, frame{data: []byte("[DONE]")})
	mark := func(i int, at Point) { out[i].before = append(out[i].before, at) }
	mark(1, AfterStart)
	if midway > 0 {
		mark(midway, Midway)
	}
	if inCall > 0 {
		mark(inCall, InCall)
	}
	mark(end, BeforeEnd)
	return out
}

func openaiReasoningDelta(provider, part string) object {
	_, name, _ := strings.Cut(provider, "/")
	switch name {
	case "reasoning":
		return object{name: part}
	case "reasoning_details":
		return object{name: []any{object{"type": "reasoning.text", "text": part, "index": 0}}}
	}
	return object{"reasoning_content": part}
}

// openaiCallDelta is the j-th fragment of a tool call: the first names it.
func openaiCallDelta(a *answer, index, j int, u troupe.ToolUse, part string) object {
	function := object{"arguments": part}
	call := object{"function": function}
	if !a.Fault.NoIndex {
		call["index"] = index
	}
	if j == 0 {
		function["name"] = u.Name
		call["id"], call["type"] = u.ID, "function"
	}
	return object{"tool_calls": []any{call}}
}

func (openaiWire) whole(a *answer) []byte {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	if said := a.Message.Content.Text(); said != "" {
		message["content"] = said
	}
	var calls []any
	for _, u := range a.Message.ToolUses() {
		calls = append(calls, object{
			"id": u.ID, "type": "function", "function": object{"name": u.Name, "arguments": string(u.Input)},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	for _, b := range a.Message.Content {
		if t, ok := b.(troupe.Thinking); ok {
			for name, said := range openaiReasoningDelta(t.Provider, t.Text) {
				message[name] = said
			}
		}
	}
	choice := object{"index": 0, "message": message, "logprobs": nil, "finish_reason": openaiWire{}.stopReason(a)}
	out := openaiChunk(a, choice)
	out["object"] = "chat.completion"
	delete(out, "usage")
	if !a.Fault.NoUsage {
		out["usage"] = openaiUsage(a.Usage)
	}
	return encode(out)
}

func (openaiWire) problem(status int, _, message string) []byte {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case status == http.StatusUnauthorized:
		code = "invalid_api_key"
	case status == http.StatusNotFound:
		code = "model_not_found"
	case status == http.StatusTooManyRequests:
		kind, code = "requests", "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return encode(object{"error": object{"message": message, "type": kind, "param": nil, "code": code}})
}

func (w openaiWire) overload() frame {
	return frame{data: w.problem(http.StatusServiceUnavailable, "", "The server is overloaded")}
}
