package troupetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/troupe-sh/troupe"
)

// flaw is a way in which a reference model breaks its contract.
type flaw string

// reference is a small model for the Anthropic dialect, with which the suite
// itself is tested: without a flaw it must pass, with each it must be found.
type reference struct {
	url    string
	client *http.Client
	flaw   flaw
	calls  atomic.Int32
	held   []io.Closer // what the flaw left open, for the end of the test
}

func (m *reference) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		if err := m.stream(ctx, req, yield); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("stream: %w", context.Cause(ctx))
			}
			if ctx.Err() != nil && m.flaw == "own error" {
				err = errors.New("stopped")
			}
			yield(nil, err)
		}
	}
}

func (m *reference) stream(ctx context.Context, req *troupe.Request, yield func(troupe.Chunk, error) bool) error {
	if ctx.Err() != nil && m.flaw != "sends in any case" {
		return context.Cause(ctx)
	}
	body := m.encode(req)
	sending := troupe.Sending{Body: body}
	if m.flaw == "other bytes" {
		sending.Body = append(bytes.Clone(body), ' ')
	}
	if m.flaw != "sends first" && !yield(sending, nil) {
		return nil
	}
	if m.flaw == "sends in any case" || m.flaw == "deaf" || m.flaw == "holds the connection" {
		ctx = context.WithoutCancel(ctx)
	}
	hr, err := http.NewRequestWithContext(ctx, "POST", m.url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return err
	}
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set("Anthropic-Version", "2023-06-01")
	hr.Header.Set("X-Api-Key", "any")
	res, err := m.client.Do(hr)
	if err != nil {
		return err
	}
	if m.flaw == "holds the connection" {
		m.held = append(m.held, res.Body)
	} else {
		defer res.Body.Close()
	}
	if m.flaw == "sends first" && !yield(sending, nil) {
		return nil
	}
	if res.StatusCode != http.StatusOK && m.flaw == "takes any status" {
		if yield(troupe.Opened{}, nil) {
			yield(troupe.Reply{}, nil)
		}
		return nil
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	r := reader{flaw: m.flaw, yield: yield, reply: troupe.Reply{Message: troupe.Message{Role: troupe.Assistant}}}
	err = r.read(bufio.NewScanner(res.Body))
	if err != nil && r.reply.Model != "" && m.flaw != "hides what it costs" {
		r.give(troupe.Billed{Usage: r.reply.Usage})
	}
	return err
}

// encode is simpler than a real encoder may be: it drops reasoning of others,
// merges turns and makes ids, all in the plainest way.
func (m *reference) encode(req *troupe.Request) []byte {
	call := m.calls.Add(1)
	top := object{"model": req.Model, "max_tokens": max(1, req.MaxTokens), "stream": true}
	if req.System != "" {
		top["system"] = req.System
	}
	var tools []any
	for _, t := range req.Tools {
		tools = append(tools, object{"name": t.Name, "description": t.Description, "input_schema": t.Schema})
	}
	if tools != nil {
		top["tools"] = tools
	}
	if m.flaw == "volatile" {
		top["metadata"] = object{"user_id": fmt.Sprint(call)}
	}
	messages := []any{}
	for _, msg := range req.Messages {
		if content := m.blocks(msg.Content); len(content) > 0 {
			messages = append(messages, object{"role": msg.Role, "content": content})
		}
	}
	if m.flaw == "one for all" {
		messages = []any{object{"role": "user", "content": "the same"}}
	}
	if m.flaw == "rewrites history" {
		note := troupe.Text(fmt.Sprintf("There are %d messages.", len(messages)))
		messages[0] = object{"role": "user", "content": append(m.blocks(troupe.Blocks{note}), m.blocks(req.Messages[0].Content)...)}
	}
	top["messages"] = messages
	return encode(top)
}

func (m *reference) blocks(all troupe.Blocks) []any {
	id := func(s string) string {
		return strings.NewReplacer(".", "-p", ":", "-c", " ", "-s", "/", "-l").Replace(s)
	}
	if m.flaw == "raw ids" {
		id = func(s string) string { return s }
	}
	var out []any
	for _, b := range all {
		switch b := b.(type) {
		case troupe.Text:
			out = append(out, object{"type": "text", "text": string(b)})
		case troupe.Image:
			source := object{"type": "base64", "media_type": b.Media, "data": b.Data}
			out = append(out, object{"type": "image", "source": source})
		case troupe.Thinking:
			if b.Provider == "anthropic" && m.flaw != "drops reasoning" {
				out = append(out, object{"type": "thinking", "thinking": b.Text, "signature": b.Signature})
			}
		case troupe.ToolUse:
			out = append(out, object{"type": "tool_use", "id": id(b.ID), "name": b.Name, "input": b.Input})
		case troupe.ToolResult:
			out = append(out, object{"type": "tool_result", "tool_use_id": id(b.ID), "content": append([]any{}, m.blocks(b.Content)...), "is_error": b.IsError})
		}
	}
	return out
}

// reader makes chunks of a stream.
type reader struct {
	flaw  flaw
	yield func(troupe.Chunk, error) bool
	reply troupe.Reply
	block anthropicBlock // in progress
	said  strings.Builder
	left  bool
	done  bool
}

type streamEvent struct {
	Type    string
	Message struct {
		Model string
		Usage anthropicUsage
	}
	Block anthropicBlock `json:"content_block"`
	Delta struct {
		Text, Thinking, Signature string
		Partial                   string `json:"partial_json"`
		Stop                      string `json:"stop_reason"`
	}
	Usage *anthropicUsage
	Error struct{ Message string }
}

func (r *reader) read(lines *bufio.Scanner) error {
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && !r.left && !r.done {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e streamEvent
		if err := json.Unmarshal([]byte(data), &e); err != nil && r.flaw != "skips what it cannot read" {
			return err
		}
		if err := r.event(e); err != nil {
			return err
		}
	}
	switch {
	case r.left:
		return nil
	case lines.Err() != nil && r.flaw != "takes what there was":
		return lines.Err()
	case !r.done && r.flaw != "takes what there was" && r.flaw != "takes a stream without end":
		return errors.New("the stream has no end")
	}
	if r.yield(r.reply, nil) && r.flaw == "goes on" {
		r.yield(troupe.Delta{Text: "more"}, nil)
	}
	return nil
}

func (r *reader) event(e streamEvent) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		r.reply.Model = e.Message.Model
		r.reply.Usage = troupe.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
		if r.flaw != "never opened" {
			r.give(troupe.Opened{})
		}
	case "content_block_start":
		r.block = e.Block
		r.said.Reset()
	case "content_block_delta":
		d := e.Delta
		r.said.WriteString(d.Text + d.Thinking + d.Partial)
		r.block.Signature += d.Signature
		if d.Text+d.Thinking != "" && r.flaw != "no fragments" {
			r.give(troupe.Delta{Text: d.Text + d.Thinking, Thinking: d.Thinking != ""})
		}
	case "content_block_stop":
		r.reply.Message.Content = append(r.reply.Message.Content, r.finished())
	case "message_delta":
		r.reply.Stop = e.Delta.Stop
		if e.Usage != nil {
			r.reply.Usage.Output = e.Usage.Output
		}
	case "message_stop":
		r.done = true
	case "error":
		if r.flaw != "ignores errors" {
			return errors.New(e.Error.Message)
		}
		r.done = true
	}
	return nil
}

func (r *reader) give(c troupe.Chunk) { r.left = r.left || !r.yield(c, nil) }

func (r *reader) finished() troupe.Block {
	said := r.said.String()
	switch r.block.Type {
	case "thinking":
		return troupe.Thinking{Text: said, Signature: r.block.Signature, Provider: "anthropic"}
	case "tool_use":
		if said == "" && r.flaw != "no input" {
			said = "{}"
		}
		return troupe.ToolUse{ID: r.block.ID, Name: r.block.Name, Input: []byte(said)}
	}
	return troupe.Text(said)
}
