package openai

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

// chunk is what is read of an event of the stream.
type chunk struct {
	Model   string
	Error   json.RawMessage
	Choices []struct {
		Index        int
		Delta        delta
		FinishReason string `json:"finish_reason"`
	}
	Usage *usage
}

type delta struct {
	Content          json.RawMessage // text, or a list of parts
	Refusal          string
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        string            `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []callDelta       `json:"tool_calls"`
}

type callDelta struct {
	Index    *int
	ID       string
	Function struct {
		Name      string
		Arguments json.RawMessage // text; some send an object
	}
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Hit int `json:"prompt_cache_hit_tokens"` // DeepSeek's word for cached
}

// A part is a piece of the reply in the making, in the order in which they began.
type part struct {
	name string // under which reasoning came, "" for text and calls
	text strings.Builder
	call *call
}

type call struct {
	index     *int
	id, name  string
	arguments strings.Builder
}

// decoder makes a reply of the events of a stream.
type decoder struct {
	provider string
	parts    []*part
	details  []json.RawMessage
	model    string
	stop     string
	usage    usage
	done     bool // the server has said that nothing more comes
}

// event takes an event in and returns what is to be shown of it.
func (d *decoder) event(data []byte) ([]troupe.Delta, error) {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		d.done = true
		return nil, nil
	}
	if len(data) == 0 {
		return nil, nil
	}
	var c chunk
	var mistyped *json.UnmarshalTypeError
	// A field of another type than expected is as good as absent.
	if err := json.Unmarshal(data, &c); err != nil && !errors.As(err, &mistyped) {
		return nil, fmt.Errorf("read an event of the stream: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return nil, &saidError{bytes.Clone(data)}
	}
	if c.Model != "" {
		d.model = c.Model
	}
	if c.Usage != nil {
		d.usage = *c.Usage
	}
	var shown []troupe.Delta
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		shown = append(shown, d.delta(choice.Delta)...)
		if choice.FinishReason != "" {
			d.stop = choice.FinishReason
		}
	}
	return shown, nil
}

func (d *decoder) delta(c delta) (shown []troupe.Delta) {
	// Servers that send both names send the same text twice.
	name, thought := reasoningContent, c.ReasoningContent
	if thought == "" {
		name, thought = reasoning, c.Reasoning
	}
	if thought != "" {
		d.reasoning(name).text.WriteString(thought)
		shown = append(shown, troupe.Delta{Text: thought, Thinking: true})
	}
	d.details = append(d.details, c.ReasoningDetails...)
	for _, text := range []string{contentText(c.Content), c.Refusal} {
		if text != "" {
			d.text().text.WriteString(text)
			shown = append(shown, troupe.Delta{Text: text})
		}
	}
	for _, t := range c.ToolCalls {
		d.call(t)
	}
	return shown
}

// contentText is the text of a content: itself, or its parts of text.
func contentText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// text returns the part that text goes to: the last one, unless a call has
// come since.
func (d *decoder) text() *part {
	for i := len(d.parts) - 1; i >= 0 && d.parts[i].call == nil; i-- {
		if d.parts[i].name == "" {
			return d.parts[i]
		}
	}
	d.parts = append(d.parts, &part{})
	return d.parts[len(d.parts)-1]
}

// reasoning returns the one part for the reasoning of this name: it goes back
// in one field.
func (d *decoder) reasoning(name string) *part {
	for _, p := range d.parts {
		if p.name == name {
			return p
		}
	}
	d.parts = append(d.parts, &part{name: name})
	return d.parts[len(d.parts)-1]
}

func (d *decoder) call(t callDelta) {
	c := d.find(t)
	if c == nil {
		c = &call{index: t.Index, id: t.ID}
		d.parts = append(d.parts, &part{call: c})
	}
	if c.id == "" {
		c.id = t.ID
	}
	if c.name == "" {
		c.name = t.Function.Name
	}
	var s string
	switch raw := t.Function.Arguments; {
	case len(raw) == 0 || string(raw) == "null":
	case json.Unmarshal(raw, &s) == nil:
		c.arguments.WriteString(s)
	default:
		c.arguments.Write(raw)
	}
}

// find returns the call that t belongs to, nil for a new one. Index and ID
// decide, each of which may be missing; some servers give each call index 0.
func (d *decoder) find(t callDelta) *call {
	var same *call
	for _, p := range d.parts {
		c := p.call
		switch {
		case c == nil:
		case t.Index != nil && c.index != nil:
			if *t.Index == *c.index {
				same = c
			}
		case t.ID != "":
			if t.ID == c.id {
				same = c
			}
		default:
			same = c // the last one
		}
	}
	if same == nil {
		return nil
	}
	another := t.ID != "" && same.id != "" && t.ID != same.id
	if t.ID == "" && same.id == "" && t.Function.Name != "" && same.name != "" {
		another = json.Valid([]byte(same.arguments.String()))
	}
	if another {
		return nil
	}
	return same
}

// used is what the provider has counted so far: with most, nothing before the end.
func (d *decoder) used() troupe.Usage { return d.usage.tokens() }

// reply returns the finished message. A stream without a reason to finish was
// cut off.
func (d *decoder) reply() (troupe.Reply, error) {
	if d.stop == "" {
		return troupe.Reply{}, model.ErrCut
	}
	r := troupe.Reply{Message: troupe.Message{Role: troupe.Assistant}, Usage: d.used(), Stop: d.stop, Model: d.model}
	if list := joinDetails(d.details); list != "" {
		r.Message.Content = append(r.Message.Content, troupe.Opaque{Provider: d.provider + "/" + reasoningDetails, JSON: list})
	}
	for _, p := range d.parts {
		switch {
		case p.call != nil:
			if d.half(p.call) {
				continue // a call that was cut off is never run
			}
			r.Message.Content = append(r.Message.Content, troupe.ToolUse{ID: p.call.id, Name: p.call.name, Input: p.call.input()})
		case p.name != "":
			r.Message.Content = append(r.Message.Content, troupe.Thinking{Text: p.text.String(), Provider: d.provider + "/" + p.name})
		default:
			r.Message.Content = append(r.Message.Content, troupe.Text(p.text.String()))
		}
	}
	return r, nil
}

// half reports whether a call may be less than the model meant: the reply was
// cut short, and its arguments are not whole.
func (d *decoder) half(c *call) bool {
	return (d.stop == "length" || d.stop == "content_filter") && !json.Valid([]byte(c.arguments.String()))
}

func (c *call) input() json.RawMessage {
	if strings.TrimSpace(c.arguments.String()) == "" {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(c.arguments.String())
}

// tokens counts as the rest of the project does: input without what the cache
// had. The protocol's figure includes it.
func (u usage) tokens() troupe.Usage {
	cached := max(u.Details.Cached, u.Hit, 0)
	cached = min(cached, u.Prompt)
	written := min(max(u.Details.Written, 0), u.Prompt-cached)
	return troupe.Usage{Input: u.Prompt - cached - written, Output: u.Completion, CacheRead: cached, CacheWrite: written}
}
