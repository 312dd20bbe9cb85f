package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// A saidError is an error that the provider put into its stream.
type saidError struct{ raw []byte }

func (e *saidError) Error() string { return "the provider reports an error" }

// event is what is read of an event of the stream. The fields of all types of
// events are in it; absent ones are zero.
type event struct {
	Type    string
	Index   int
	Message struct {
		Model string
		Usage usage
	}
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        struct {
		Type, Text, Thinking, Signature string
		PartialJSON                     string `json:"partial_json"`
		StopReason                      string `json:"stop_reason"`
	}
	Usage usage
	Error json.RawMessage
}

type usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

// A block is a content block in the making.
type block struct {
	index     int
	kind      string // as the provider names it
	raw       json.RawMessage
	id, name  string
	signature string
	text      strings.Builder // of text and thinking; JSON of a call's input
	touched   bool            // has got deltas
	closed    bool
}

// decoder makes a reply of the events of a stream.
type decoder struct {
	provider string
	blocks   []*block // in the order in which they began
	model    string
	stop     string
	usage    usage
	ended    bool // the provider has said that the message is complete
}

// event takes an event in and returns what is to be shown of it.
func (d *decoder) event(data []byte) (troupe.Delta, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || d.ended {
		return troupe.Delta{}, nil
	}
	var e event
	var mistyped *json.UnmarshalTypeError
	// A field of another type than expected is as good as absent.
	if err := json.Unmarshal(data, &e); err != nil && !errors.As(err, &mistyped) {
		return troupe.Delta{}, fmt.Errorf("read an event of the stream: %w", err)
	}
	switch e.Type {
	case "error":
		return troupe.Delta{}, &saidError{bytes.Clone(data)}
	case "message_start":
		d.model = e.Message.Model
		d.count(e.Message.Usage)
	case "content_block_start":
		return d.start(e)
	case "content_block_delta":
		return d.delta(e), nil
	case "content_block_stop":
		if b := d.find(e.Index); b != nil {
			b.closed = true
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			d.stop = e.Delta.StopReason
		}
		d.count(e.Usage)
	case "message_stop":
		d.ended = true
	}
	return troupe.Delta{}, nil
}

// count takes figures over: each is a total so far, and not all come each time.
func (d *decoder) count(u usage) {
	d.usage.Input = max(d.usage.Input, u.Input)
	d.usage.Output = max(d.usage.Output, u.Output)
	d.usage.CacheRead = max(d.usage.CacheRead, u.CacheRead)
	d.usage.CacheWrite = max(d.usage.CacheWrite, u.CacheWrite)
}

// find returns the last block with this index, nil if there is none.
func (d *decoder) find(index int) *block {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if d.blocks[i].index == index {
			return d.blocks[i]
		}
	}
	return nil
}

func (d *decoder) start(e event) (troupe.Delta, error) {
	var c struct {
		Type, ID, Name, Text, Thinking, Signature string
		Input                                     json.RawMessage
	}
	var mistyped *json.UnmarshalTypeError
	if err := json.Unmarshal(e.ContentBlock, &c); err != nil && !errors.As(err, &mistyped) {
		return troupe.Delta{}, fmt.Errorf("read a block of the stream: %w", err)
	}
	b := &block{index: e.Index, kind: c.Type, raw: e.ContentBlock, id: c.ID, name: c.Name, signature: c.Signature}
	d.blocks = append(d.blocks, b)
	shown := troupe.Delta{}
	switch c.Type {
	case "text":
		b.text.WriteString(c.Text)
		shown.Text = c.Text
	case "thinking":
		b.text.WriteString(c.Thinking)
		shown = troupe.Delta{Text: c.Thinking, Thinking: true}
	case "tool_use":
		b.raw = c.Input // some send the whole input here, and no deltas
	}
	return shown, nil
}

func (d *decoder) delta(e event) troupe.Delta {
	b := d.find(e.Index)
	if b == nil {
		return troupe.Delta{}
	}
	b.touched = true
	switch e.Delta.Type {
	case "text_delta":
		if b.kind == "text" {
			b.text.WriteString(e.Delta.Text)
			return troupe.Delta{Text: e.Delta.Text}
		}
	case "thinking_delta":
		if b.kind == "thinking" {
			b.text.WriteString(e.Delta.Thinking)
			return troupe.Delta{Text: e.Delta.Thinking, Thinking: true}
		}
	case "signature_delta":
		b.signature += e.Delta.Signature
	case "input_json_delta":
		if b.kind == "tool_use" {
			b.text.WriteString(e.Delta.PartialJSON)
		}
	}
	return troupe.Delta{}
}

// used is what the provider has counted so far.
func (d *decoder) used() troupe.Usage {
	return troupe.Usage{Input: d.usage.Input, Output: d.usage.Output, CacheRead: d.usage.CacheRead, CacheWrite: d.usage.CacheWrite}
}

// reply returns the finished message. A stream that ended before its end, or
// with a call whose end did not come, is an error.
func (d *decoder) reply() (troupe.Reply, error) {
	if !d.ended {
		return troupe.Reply{}, model.ErrCut
	}
	r := troupe.Reply{
		Message: troupe.Message{Role: troupe.Assistant},
		Usage:   d.used(), Stop: d.stop, Model: d.model,
	}
	for i, b := range d.blocks {
		if b.kind == "tool_use" && d.half(b, i == len(d.blocks)-1) {
			if !d.cutShort() {
				return troupe.Reply{}, model.ErrCut
			}
			continue // a call that was cut off is never run
		}
		if c := b.finish(d.provider); c != nil {
			r.Message.Content = append(r.Message.Content, c)
		}
	}
	return r, nil
}

// cutShort reports whether the provider itself ended the reply where it was.
func (d *decoder) cutShort() bool {
	switch d.stop {
	case "max_tokens", "model_context_window_exceeded", "refusal":
		return true
	}
	return false
}

// half reports whether a call may be less than the model meant: its end did not
// come, or the reply was cut short in it.
func (d *decoder) half(b *block, last bool) bool {
	if !b.closed {
		return true
	}
	if !d.cutShort() {
		return false
	}
	input := b.input()
	return !json.Valid(input) || last && len(input) <= len("{}")
}

// input is the input of a call as it came; nothing is an empty object.
func (b *block) input() json.RawMessage {
	switch {
	case b.text.Len() > 0:
		return json.RawMessage(b.text.String())
	case len(b.raw) > 0 && string(b.raw) != "null":
		return b.raw
	}
	return json.RawMessage(`{}`)
}

// finish returns the block of the conversation, nil if there is nothing in it.
func (b *block) finish(provider string) troupe.Block {
	switch b.kind {
	case "text":
		if b.text.Len() > 0 {
			return troupe.Text(b.text.String())
		}
	case "thinking":
		if b.text.Len() > 0 || b.signature != "" {
			return troupe.Thinking{Text: b.text.String(), Signature: b.signature, Provider: provider}
		}
	case "tool_use":
		return troupe.ToolUse{ID: b.id, Name: b.name, Input: b.input()}
	default:
		// What only the provider understands goes back as it came. If it came
		// in pieces it cannot, because only the provider could join them.
		if !b.touched && len(b.raw) > 0 {
			return troupe.Opaque{Provider: provider, JSON: string(b.raw)}
		}
	}
	return nil
}
