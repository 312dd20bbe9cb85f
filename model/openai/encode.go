package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// The names under which servers give reasoning, and want it back.
const (
	reasoningContent = "reasoning_content"
	reasoning        = "reasoning"
	reasoningDetails = "reasoning_details"
)

// Texts of results for which the protocol has no form of its own.
const (
	failed   = "Error: "
	noOutput = "(no output)"
	pictured = "(see the image that follows)"
)

// Encode returns the body of req. It is a pure function, and the bytes of the
// messages of a conversation stay at its beginning when messages are appended.
//
// Each result of a tool becomes a message of its own; pictures in results follow
// all of them in a message of the user. Reasoning goes back under the name it
// came with, to the provider it came from and to no other. A message with
// nothing left in it is left out. It is an error if the schema of a tool is not
// JSON; a conversation is never refused.
func Encode(req *troupe.Request, o Options) ([]byte, error) {
	d, err := encode(req, o, optional(req, o.provider(), nil), nil)
	if err != nil {
		return nil, err
	}
	return d.Body(), nil
}

// A kind is what the encoding depends on besides the request.
type kind struct {
	of     *completions
	fields string
}

// encode is [Encode] with these of the optional fields, for the model of. Of a
// conversation that goes on, only what is new is encoded: a message is not
// changed by those that follow it.
func encode(req *troupe.Request, o Options, fields []string, of *completions) (*model.Draft, error) {
	d := model.NewDraft(req, kind{of, strings.Join(fields, " ")})
	final, done := d.Final()
	b := &body{Buffer: *bytes.NewBuffer(final), begun: bytes.HasSuffix(final, []byte("}"))}
	if len(final) == 0 {
		if err := b.head(req, fields); err != nil {
			return nil, err
		}
	}
	for _, m := range req.Messages[done:] {
		if m.Role == troupe.Assistant {
			b.assistant(m.Content, o.provider())
		} else {
			b.user(m.Content)
		}
	}
	size := b.Len()
	b.raw(`]}`)
	d.Set(b.Bytes(), size, len(req.Messages))
	return d, nil
}

// head writes what stands before the messages of the conversation.
func (b *body) head(req *troupe.Request, fields []string) error {
	b.raw(`{"model":`)
	b.text(req.Model)
	b.raw(`,"stream":true`)
	for _, field := range fields {
		b.raw(`,"` + field + `":`)
		switch field {
		case streamOptions:
			b.raw(`{"include_usage":true}`)
		case newLimit, oldLimit:
			b.raw(strconv.Itoa(req.MaxTokens))
		case effort:
			b.text(level(req.Effort))
		}
	}
	if err := b.tools(req.Tools); err != nil {
		return err
	}
	b.raw(`,"messages":[`)
	if req.System != "" {
		b.message("system")
		b.raw(`,"content":`)
		b.text(req.System)
		b.raw(`}`)
	}
	return nil
}

// level is the effort as a word: the protocol has no budgets in tokens.
func level(effort string) string {
	n, err := strconv.Atoi(effort)
	switch {
	case err != nil:
		return effort
	case n <= 4096:
		return "low"
	case n <= 16384:
		return "medium"
	}
	return "high"
}

// body is a JSON text in the making.
type body struct {
	bytes.Buffer
	begun bool // the list of messages has one
}

func (b *body) raw(s string) { b.WriteString(s) }

// text writes s as a JSON string.
func (b *body) text(s string) {
	b.Grow(len(s) + len(s)/16 + 2)
	b.Write(troupe.AppendText(b.AvailableBuffer(), s))
}

// message begins a message; its writer ends it.
func (b *body) message(role string) {
	if b.begun {
		b.raw(`,`)
	}
	b.begun = true
	b.raw(`{"role":"` + role + `"`)
}

func (b *body) tools(specs []troupe.ToolSpec) error {
	if len(specs) == 0 {
		return nil
	}
	b.raw(`,"tools":[`)
	for i, t := range specs {
		if i > 0 {
			b.raw(`,`)
		}
		b.raw(`{"type":"function","function":{"name":`)
		b.text(t.Name)
		b.raw(`,"description":`)
		b.text(t.Description)
		b.raw(`,"parameters":`)
		if err := json.Compact(&b.Buffer, t.Schema); err != nil {
			return fmt.Errorf("encode the schema of tool %s: %w", t.Name, err)
		}
		b.raw(`}}`)
	}
	b.raw(`]`)
	return nil
}

func (b *body) assistant(content troupe.Blocks, provider string) {
	text := joined(content)
	uses := troupe.Message{Content: content}.ToolUses()
	if text == "" && len(uses) == 0 {
		return // reasoning alone is no message
	}
	b.message("assistant")
	b.raw(`,"content":`)
	if text == "" {
		b.raw(`null`)
	} else {
		b.text(text)
	}
	b.reasoning(content, provider)
	for i, u := range uses {
		if i == 0 {
			b.raw(`,"tool_calls":[`)
		} else {
			b.raw(`,`)
		}
		b.raw(`{"id":`)
		b.text(callID(u.ID))
		b.raw(`,"type":"function","function":{"name":`)
		b.text(u.Name)
		b.raw(`,"arguments":`)
		arguments := string(u.Input)
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}"
		}
		b.text(arguments)
		b.raw(`}}`)
	}
	if len(uses) > 0 {
		b.raw(`]`)
	}
	b.raw(`}`)
}

// reasoning gives back what came from provider. Details hold all that the bare
// text holds, so the text is not sent beside them.
func (b *body) reasoning(content troupe.Blocks, provider string) {
	for _, c := range content {
		if o, ok := c.(troupe.Opaque); ok && o.Provider == provider+"/"+reasoningDetails && json.Valid([]byte(o.JSON)) {
			b.raw(`,"` + reasoningDetails + `":`)
			b.raw(o.JSON) // byte for byte
			return
		}
	}
	for _, name := range []string{reasoningContent, reasoning} {
		var s strings.Builder
		for _, c := range content {
			if t, ok := c.(troupe.Thinking); ok && t.Provider == provider+"/"+name {
				s.WriteString(t.Text)
			}
		}
		if s.Len() > 0 {
			b.raw(`,"` + name + `":`)
			b.text(s.String())
		}
	}
}

// user writes a message of the user: results first, one message each, then what
// is left in one message.
func (b *body) user(content troupe.Blocks) {
	var pictures, rest troupe.Blocks
	for _, c := range content {
		switch c := c.(type) {
		case troupe.ToolResult:
			pictures = append(pictures, b.result(c)...)
		case troupe.Text, troupe.Image:
			rest = append(rest, c)
		}
	}
	rest = append(pictures, rest...)
	text, images := joined(rest), hasImage(rest)
	if text == "" && !images {
		return
	}
	b.message("user")
	b.raw(`,"content":`)
	if images {
		b.parts(rest)
	} else {
		b.text(text)
	}
	b.raw(`}`)
}

// result writes a message for r and returns the pictures in it, which go
// elsewhere, each result's with a word on where they are from.
func (b *body) result(r troupe.ToolResult) troupe.Blocks {
	var pictures troupe.Blocks
	for _, c := range r.Content {
		if i, ok := c.(troupe.Image); ok {
			if pictures == nil {
				pictures = troupe.Blocks{troupe.Text("Image in the result of call " + callID(r.ID) + ":")}
			}
			pictures = append(pictures, i)
		}
	}
	text := joined(r.Content)
	if text == "" && pictures != nil {
		text = pictured
	} else if text == "" {
		text = noOutput
	}
	if r.IsError {
		text = failed + text
	}
	b.message("tool")
	b.raw(`,"tool_call_id":`)
	b.text(callID(r.ID))
	b.raw(`,"content":`)
	b.text(text)
	b.raw(`}`)
	return pictures
}

func (b *body) parts(list troupe.Blocks) {
	b.raw(`[`)
	first := true
	for _, c := range list {
		if t, ok := c.(troupe.Text); ok && strings.TrimSpace(string(t)) == "" {
			continue
		}
		if !first {
			b.raw(`,`)
		}
		first = false
		switch c := c.(type) {
		case troupe.Text:
			b.raw(`{"type":"text","text":`)
			b.text(string(c))
			b.raw(`}`)
		case troupe.Image:
			b.raw(`{"type":"image_url","image_url":{"url":`)
			b.text("data:" + c.Media + ";base64," + c.Data)
			b.raw(`}}`)
		}
	}
	b.raw(`]`)
}

func hasImage(list troupe.Blocks) bool {
	for _, c := range list {
		if _, ok := c.(troupe.Image); ok {
			return true
		}
	}
	return false
}

// joined is the texts of list with an empty line between them, without blank ones.
func joined(list troupe.Blocks) string {
	var texts []string
	for _, c := range list {
		if t, ok := c.(troupe.Text); ok && strings.TrimSpace(string(t)) != "" {
			texts = append(texts, string(t))
		}
	}
	return strings.Join(texts, "\n\n")
}

// callID returns id if the protocol takes it, and else one made of it, always
// the same. OpenAI takes at most 40 characters. Their kind is left alone,
// because some models want back the very form that they gave.
func callID(id string) string {
	odd := strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0
	if id != "" && len(id) <= 40 && !odd {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}
