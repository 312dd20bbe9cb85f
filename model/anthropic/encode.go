package anthropic

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// fallbackMaxTokens is sent if nothing is known of the model: the protocol
// wants a limit.
const fallbackMaxTokens = 8192

// leastBudget is the smallest budget of thinking that the protocol knows.
const leastBudget = 1024

// mark asks the provider to keep what it has read up to here. It stands at the
// end of its block, so that a request without it differs by these bytes alone.
const mark = `,"cache_control":{"type":"ephemeral"}`

// Encode returns the body of req. It is a pure function, and the bytes of the
// messages of a conversation stay at its beginning when messages are appended,
// but for the cache marks, which move: at most three are set, after the system
// prompt (or, for want of one, the tools) and after the last two messages of
// the user.
//
// Messages of one role that follow each other become one. Reasoning goes back to
// the provider it came from and to no other, and is left out at the end of a
// message, where the protocol does not take it. It is an error if the schema of
// a tool is not JSON; a conversation is never refused.
func Encode(req *troupe.Request, o Options) ([]byte, error) {
	d, err := o.encode(req, nil)
	if err != nil {
		return nil, err
	}
	return d.Body(), nil
}

// encode is [Encode] for the model of. Of a conversation that goes on, only what
// is new is encoded again, and what a mark may still come to or leave: all from
// the second but last message of the user on.
func (o Options) encode(req *troupe.Request, of *messages) (*model.Draft, error) {
	d := model.NewDraft(req, of)
	final, done := d.Final()
	b := &body{*bytes.NewBuffer(final)}
	if len(final) == 0 {
		if err := b.head(req, cmp.Or(max(0, req.MaxTokens), max(0, o.MaxTokens), fallbackMaxTokens)); err != nil {
			return nil, err
		}
	}
	size, rest := b.Len(), done
	turns := o.turns(req.Messages[done:])
	first, last := marks(turns)
	for i, t := range turns {
		if i == first && last > first { // the turns before it are closed, and have no mark
			size, rest = b.Len(), done+t.from
		}
		b.turn(t, i == first || i == last)
	}
	b.raw(`]}`)
	d.Set(b.Bytes(), size, rest)
	return d, nil
}

// head writes what stands before the messages.
func (b *body) head(req *troupe.Request, maxTokens int) error {
	b.raw(`{"model":`)
	b.text(req.Model)
	b.raw(`,"max_tokens":` + strconv.Itoa(maxTokens) + `,"stream":true`)
	b.effort(req.Effort, maxTokens)
	if err := b.tools(req.Tools, req.System == ""); err != nil {
		return err
	}
	if req.System != "" {
		b.raw(`,"system":[{"type":"text","text":`)
		b.text(req.System)
		b.raw(mark + `}]`)
	}
	b.raw(`,"messages":[`)
	return nil
}

// body is a JSON text in the making.
type body struct{ bytes.Buffer }

func (b *body) raw(s string) { b.WriteString(s) }

// text writes s as a JSON string.
func (b *body) text(s string) {
	b.Grow(len(s) + len(s)/16 + 2)
	b.Write(troupe.AppendText(b.AvailableBuffer(), s))
}

// effort writes what the request asks for, if it asks: a level, or a number of
// tokens for thinking.
func (b *body) effort(effort string, maxTokens int) {
	budget, err := strconv.Atoi(effort)
	switch {
	case effort == "":
	case err != nil:
		b.raw(`,"output_config":{"effort":`)
		b.text(effort)
		b.raw(`}`)
	default:
		budget = min(max(budget, leastBudget), maxTokens-1)
		if budget >= leastBudget {
			b.raw(`,"thinking":{"type":"enabled","budget_tokens":` + strconv.Itoa(budget) + `}`)
		}
	}
}

func (b *body) tools(specs []troupe.ToolSpec, marked bool) error {
	if len(specs) == 0 {
		return nil
	}
	b.raw(`,"tools":[`)
	for i, t := range specs {
		if i > 0 {
			b.raw(`,`)
		}
		b.raw(`{"name":`)
		b.text(t.Name)
		b.raw(`,"description":`)
		b.text(t.Description)
		b.raw(`,"input_schema":`)
		if err := json.Compact(&b.Buffer, t.Schema); err != nil {
			return fmt.Errorf("encode the schema of tool %s: %w", t.Name, err)
		}
		if marked && i == len(specs)-1 {
			b.raw(mark)
		}
		b.raw(`}`)
	}
	b.raw(`]`)
	return nil
}

// A turn is a message as the protocol has it. The first of those that it is made
// of is the one with index from.
type turn struct {
	troupe.Message
	from int
}

// turns returns the messages as the protocol has them: user and assistant in
// turn, none of them empty, results of tools at the beginning of theirs.
func (o Options) turns(msgs []troupe.Message) []turn {
	var out []turn
	for i, m := range msgs {
		kept := o.keep(m)
		if len(kept) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = append(out[n-1].Content, kept...)
			continue
		}
		out = append(out, turn{troupe.Message{Role: m.Role, Content: kept}, i})
	}
	for i, m := range out {
		if m.Role == troupe.User {
			out[i].Content = resultsFirst(m.Content)
		}
	}
	return out
}

// keep returns a new list of the blocks of m that this provider takes. Images
// in the result of a failed call, which the protocol does not take there,
// follow the results.
func (o Options) keep(m troupe.Message) troupe.Blocks {
	var out, moved troupe.Blocks
	for _, c := range m.Content {
		switch c := c.(type) {
		case troupe.Text:
			if strings.TrimSpace(string(c)) != "" {
				out = append(out, c)
			}
		case troupe.Thinking:
			// Anthropic's own reasoning is worthless without its signature.
			if c.Provider == o.provider() && (c.Signature != "" || c.Provider != "anthropic") {
				out = append(out, c)
			}
		case troupe.Opaque:
			if c.Provider == o.provider() && json.Valid([]byte(c.JSON)) {
				out = append(out, c)
			}
		case troupe.ToolResult:
			var images troupe.Blocks
			c.Content, images = content(c)
			out, moved = append(out, c), append(moved, images...)
		default:
			out = append(out, c)
		}
	}
	if m.Role == troupe.Assistant {
		return withoutTail(out)
	}
	return append(out, moved...)
}

// content returns what a result can hold, and the images that it cannot.
func content(r troupe.ToolResult) (kept, images troupe.Blocks) {
	for _, c := range r.Content {
		switch c := c.(type) {
		case troupe.Text:
			if strings.TrimSpace(string(c)) != "" {
				kept = append(kept, c)
			}
		case troupe.Image:
			if r.IsError {
				images = append(images, c)
			} else {
				kept = append(kept, c)
			}
		}
	}
	return kept, images
}

// withoutTail drops the reasoning at the end of a message of the assistant.
func withoutTail(b troupe.Blocks) troupe.Blocks {
	for len(b) > 0 {
		switch b[len(b)-1].(type) {
		case troupe.Thinking, troupe.Opaque:
			b = b[:len(b)-1]
		default:
			return b
		}
	}
	return b
}

func resultsFirst(b troupe.Blocks) troupe.Blocks {
	var results, rest troupe.Blocks
	for _, c := range b {
		if _, ok := c.(troupe.ToolResult); ok {
			results = append(results, c)
		} else {
			rest = append(rest, c)
		}
	}
	return append(results, rest...)
}

// marks returns which of the turns get a mark: the last two of the user. If there
// is only one it is both, and -1 if there is none.
func marks(turns []turn) (first, last int) {
	first, last = -1, -1
	for i, t := range slices.Backward(turns) {
		switch {
		case t.Role != troupe.User:
		case last < 0:
			first, last = i, i
		default:
			return i, last
		}
	}
	return first, last
}

func (b *body) turn(t turn, marked bool) {
	if !bytes.HasSuffix(b.Bytes(), []byte("[")) {
		b.raw(`,`)
	}
	b.raw(`{"role":`)
	b.text(string(t.Role))
	b.raw(`,"content":`)
	b.blocks(t.Content, marked)
	b.raw(`}`)
}

// blocks writes a list of blocks; if it is marked the last one gets the mark.
func (b *body) blocks(list troupe.Blocks, marked bool) {
	b.raw(`[`)
	for i, c := range list {
		if i > 0 {
			b.raw(`,`)
		}
		if o, ok := c.(troupe.Opaque); ok {
			b.raw(o.JSON) // byte for byte
			continue
		}
		b.block(c)
		if marked && i == len(list)-1 {
			b.raw(mark)
		}
		b.raw(`}`)
	}
	b.raw(`]`)
}

// block writes a block without the brace that closes it.
func (b *body) block(c troupe.Block) {
	switch c := c.(type) {
	case troupe.Text:
		b.raw(`{"type":"text","text":`)
		b.text(string(c))
	case troupe.Image:
		b.raw(`{"type":"image","source":{"type":"base64","media_type":`)
		b.text(c.Media)
		b.raw(`,"data":`)
		b.text(c.Data)
		b.raw(`}`)
	case troupe.Thinking:
		b.raw(`{"type":"thinking","thinking":`)
		b.text(c.Text)
		b.raw(`,"signature":`)
		b.text(c.Signature)
	case troupe.ToolUse:
		b.raw(`{"type":"tool_use","id":`)
		b.text(callID(c.ID))
		b.raw(`,"name":`)
		b.text(c.Name)
		b.raw(`,"input":`)
		b.input(c.Input)
	case troupe.ToolResult:
		b.raw(`{"type":"tool_result","tool_use_id":`)
		b.text(callID(c.ID))
		if c.IsError {
			b.raw(`,"is_error":true`)
		}
		if len(c.Content) > 0 {
			b.raw(`,"content":`)
			b.blocks(c.Content, false)
		}
	}
}

// input writes the input of a call as it is stored. A conversation holds
// objects only; for anything else the request still has to be valid.
func (b *body) input(raw json.RawMessage) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(raw) {
		b.raw(`{}`)
		return
	}
	b.Write(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
}

// callID returns id if the protocol takes it (letters, digits, _ and -), and
// else one made of it, always the same.
func callID(id string) string {
	ok := func(r rune) bool {
		return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	if id != "" && len(id) <= 64 && strings.IndexFunc(id, func(r rune) bool { return !ok(r) }) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "toolu_" + hex.EncodeToString(sum[:12])
}
