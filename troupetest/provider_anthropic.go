package troupetest

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/troupe-sh/troupe"
)

// anthropicWire is the Messages API, as documented at
// https://docs.claude.com/en/api/messages and …/messages-streaming.
type anthropicWire struct{}

// anthropicBody is what is read of a request. Fields that may be a string or
// a list stay raw.
type anthropicBody struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	System    json.RawMessage `json:"system"`
	Mark      json.RawMessage `json:"cache_control"`
	Tools     []json.RawMessage
	Messages  []anthropicMessage
	Output    struct{ Effort string } `json:"output_config"`
}

type anthropicMessage struct {
	Role    string
	Content json.RawMessage
}

// anthropicBlock is the union of the blocks.
type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	Source    struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

func (anthropicWire) parse(raw []byte) troupe.Request {
	var b anthropicBody
	if json.Unmarshal(raw, &b) != nil {
		return troupe.Request{}
	}
	r := troupe.Request{
		Model: b.Model, MaxTokens: b.MaxTokens, Effort: b.Output.Effort,
		System: anthropicBlocks(b.System).Text(),
	}
	for _, t := range b.Tools {
		var tool struct {
			Name, Description string
			Schema            json.RawMessage `json:"input_schema"`
		}
		if json.Unmarshal(t, &tool) == nil {
			r.Tools = append(r.Tools, troupe.ToolSpec(tool))
		}
	}
	for _, m := range b.Messages {
		r.Messages = append(r.Messages, troupe.Message{Role: troupe.Role(m.Role), Content: anthropicBlocks(m.Content)})
	}
	return r
}

// anthropicBlocks reads content: a string, or a list of blocks.
func anthropicBlocks(raw json.RawMessage) troupe.Blocks {
	var s string
	if json.Unmarshal(raw, &s) == nil && s != "" {
		return troupe.Blocks{troupe.Text(s)}
	}
	var out troupe.Blocks
	all, _ := elements(raw)
	for _, one := range all {
		var b anthropicBlock
		if json.Unmarshal(one, &b) != nil {
			continue
		}
		switch b.Type {
		case "text":
			out = append(out, troupe.Text(b.Text))
		case "image":
			out = append(out, troupe.Image{Media: b.Source.MediaType, Data: b.Source.Data})
		case "thinking":
			out = append(out, troupe.Thinking{Text: b.Thinking, Signature: b.Signature, Provider: string(Anthropic)})
		case "tool_use":
			out = append(out, troupe.ToolUse{ID: b.ID, Name: b.Name, Input: b.Input})
		case "tool_result":
			out = append(out, troupe.ToolResult{ID: b.ToolUseID, Content: anthropicBlocks(b.Content), IsError: b.IsError})
		default:
			out = append(out, troupe.Opaque{Provider: string(Anthropic), JSON: string(one)})
		}
	}
	return out
}

// prompt is in the order in which the service reads it.
func (anthropicWire) prompt(raw []byte) []piece {
	var b anthropicBody
	if json.Unmarshal(raw, &b) != nil {
		return nil
	}
	var out []piece
	add := func(prefix string, content json.RawMessage) {
		blocks, ok := elements(content)
		if !ok && len(content) > 0 {
			blocks = []json.RawMessage{content}
		}
		for _, block := range blocks {
			var mark struct {
				Control json.RawMessage `json:"cache_control"`
			}
			marked := json.Unmarshal(block, &mark) == nil && isMark(mark.Control)
			out = append(out, piece{append([]byte(prefix), unmarked(block)...), marked})
		}
	}
	for _, tool := range b.Tools {
		add("", tool)
	}
	add("system", b.System)
	for _, m := range b.Messages {
		add(m.Role, m.Content)
	}
	if isMark(b.Mark) && len(out) > 0 {
		out[len(out)-1].marked = true
	}
	return out
}

func isMark(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// stopReason is the reason of a in the words of this dialect.
func (anthropicWire) stopReason(a *answer) string {
	switch a.Stop {
	case "":
		if len(a.Message.ToolUses()) > 0 {
			return "tool_use"
		}
		return "end_turn"
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return a.Stop
}

type anthropicUsage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

func (anthropicWire) frames(a *answer) []frame {
	add := func(out []frame, name string, fields object) []frame {
		fields["type"] = name
		return append(out, frame{event: name, data: encode(fields)})
	}
	start := anthropicEnvelope(a)
	usage := anthropicUsage{a.Usage.Input, a.Usage.CacheWrite, a.Usage.CacheRead, min(1, a.Usage.Output)}
	if !a.Fault.NoUsage {
		start["usage"] = usage
	}
	out := add(nil, "message_start", object{"message": start})
	for i, b := range a.Message.Content {
		first := len(out)
		out = append(out, anthropicBlockFrames(i, b)...)
		if i == 0 {
			out = slices.Insert(out, first+1, frame{event: "ping", data: []byte(`{"type": "ping"}`)})
			if len(out) > first+3 { // start, ping, a fragment and what comes next
				out[first+3].before = append(out[first+3].before, Midway)
			}
		}
	}
	end := len(out)
	final := object{"delta": object{"stop_reason": anthropicWire{}.stopReason(a), "stop_sequence": nil}}
	if usage.Output = a.Usage.Output; !a.Fault.NoUsage {
		final["usage"] = usage
	}
	out = add(out, "message_delta", final)
	out = add(out, "message_stop", object{})
	out[1].before = append([]Point{AfterStart}, out[1].before...)
	out[end].before = append(out[end].before, BeforeEnd)
	if i := slices.IndexFunc(out, frame.isInput); i >= 0 {
		out[i+1].before = append(out[i+1].before, InCall)
	}
	return out
}

// isInput reports whether f is the first fragment of a tool call's input. An
// empty fragment comes before it, as from the service.
func (f frame) isInput() bool {
	var delta struct {
		Delta struct {
			Type    string
			Partial string `json:"partial_json"`
		}
	}
	return json.Unmarshal(f.data, &delta) == nil && delta.Delta.Type == "input_json_delta" && delta.Delta.Partial != ""
}

func anthropicEnvelope(a *answer) object {
	return object{
		"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
	}
}

// anthropicBlockFrames is one block: its start, at least one delta unless the
// service sends it whole, its stop.
func anthropicBlockFrames(index int, b troupe.Block) []frame {
	var out []frame
	add := func(name, key string, value any, output int) {
		data := encode(object{"type": name, "index": index, key: value})
		out = append(out, frame{event: name, data: data, output: output})
	}
	start := func(block any) { add("content_block_start", "content_block", block, 0) }
	deltas := func(kind, key string, parts []string) {
		for _, part := range parts {
			add("content_block_delta", "delta", object{"type": kind, key: part}, len(part))
		}
	}
	switch b := b.(type) {
	case troupe.Text:
		start(object{"type": "text", "text": ""})
		deltas("text_delta", "text", split(string(b)))
	case troupe.Thinking:
		start(object{"type": "thinking", "thinking": "", "signature": ""})
		deltas("thinking_delta", "thinking", split(b.Text))
		deltas("signature_delta", "signature", []string{b.Signature})
	case troupe.ToolUse:
		start(object{"type": "tool_use", "id": b.ID, "name": b.Name, "input": object{}})
		deltas("input_json_delta", "partial_json", append([]string{""}, inputParts(b.Input)...))
	case troupe.Opaque:
		start(json.RawMessage(b.JSON))
	}
	stop := encode(object{"type": "content_block_stop", "index": index})
	return append(out, frame{event: "content_block_stop", data: stop})
}

// inputParts cuts a tool call's input. Of an empty one the service sends
// nothing.
func inputParts(input json.RawMessage) []string {
	if string(input) == "{}" {
		return nil
	}
	return split(string(input))
}

func (anthropicWire) whole(a *answer) []byte {
	content := []any{}
	for _, b := range a.Message.Content {
		switch b := b.(type) {
		case troupe.Text:
			content = append(content, object{"type": "text", "text": string(b)})
		case troupe.Thinking:
			content = append(content, object{"type": "thinking", "thinking": b.Text, "signature": b.Signature})
		case troupe.ToolUse:
			input := any(string(b.Input)) // what is not JSON can only be told as text
			if json.Valid(b.Input) {
				input = b.Input
			}
			content = append(content, object{"type": "tool_use", "id": b.ID, "name": b.Name, "input": input})
		case troupe.Opaque:
			content = append(content, json.RawMessage(b.JSON))
		}
	}
	out := anthropicEnvelope(a)
	out["content"] = content
	out["stop_reason"] = anthropicWire{}.stopReason(a)
	if !a.Fault.NoUsage {
		out["usage"] = anthropicUsage{a.Usage.Input, a.Usage.CacheWrite, a.Usage.CacheRead, a.Usage.Output}
	}
	return encode(out)
}

func (anthropicWire) problem(status int, id, message string) []byte {
	out := anthropicError(anthropicErrorType(status), message)
	out["request_id"] = id
	return encode(out)
}

func anthropicError(kind, message string) object {
	return object{"type": "error", "error": object{"type": kind, "message": message}}
}

func anthropicErrorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case overloaded:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

func (anthropicWire) overload() frame {
	return frame{event: "error", data: encode(anthropicError("overloaded_error", "Overloaded"))}
}
