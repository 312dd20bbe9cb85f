package script

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/troupe-sh/troupe"
)

// provider marks the reasoning of this package in a conversation.
const provider = "script"

// A reply is what a rule answers.
type reply struct {
	content []part
	stop    string        // "" follows from the content
	usage   *troupe.Usage // nil is derived from the number of bytes
	wait    time.Duration // before the provider begins to answer
	pace    time.Duration // between two fragments
	fail    *failure      // instead of an answer
	broken  *breakage     // in the middle of the answer
}

// A part is a block of a reply: exactly one of its fields is set.
type part struct {
	text, thinking template
	call           *call
}

// A call is a tool call of a reply. The strings in input are templates.
type call struct {
	label, tool string
	input       map[string]any
}

// A failure is an [Error] whose message is a template.
type failure struct {
	status  int
	after   time.Duration
	message template
}

func (f *failure) with(found facts) *Error {
	return &Error{Status: f.status, After: f.after, Message: f.message.fill(found)}
}

// A breakage ends a stream after a number of fragments: with an error, or, if
// it stalls, not before the context ends.
type breakage struct {
	after  int
	stalls bool
}

func (b *breakage) happen(ctx context.Context) error {
	if !b.stalls {
		return &Error{Message: fmt.Sprintf("the stream was cut after %d fragments", b.after)}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// build makes the finished message. The request had so many bytes.
func (r *reply) build(v *view, found facts, bytes int) (troupe.Reply, error) {
	msg := troupe.Message{Role: troupe.Assistant}
	for _, p := range r.content {
		b, err := p.block(v, found, len(msg.Content))
		if err != nil {
			return troupe.Reply{}, err
		}
		if b != nil {
			msg.Content = append(msg.Content, b)
		}
	}
	if len(msg.Content) == 0 && r.broken == nil {
		return troupe.Reply{}, errors.New("nothing is left of the reply: what it quotes is empty")
	}
	out := troupe.Reply{Message: msg, Stop: r.stop}
	if out.Stop == "" {
		out.Stop = "end_turn"
		if len(msg.ToolUses()) > 0 {
			out.Stop = "tool_use"
		}
	}
	if r.usage != nil {
		out.Usage = *r.usage
		return out, nil
	}
	written, err := troupe.Encode(msg)
	if err != nil {
		return troupe.Reply{}, fmt.Errorf("encode the reply: %w", err)
	}
	out.Usage = troupe.Usage{Input: tokens(bytes), Output: tokens(len(written))}
	return out, nil
}

// tokens is the usual rough estimate.
func tokens(bytes int) int { return (bytes + 3) / 4 }

// block makes the block at an index of a message. A text without anything to
// read has no block, because no provider accepts one.
func (p *part) block(v *view, found facts, index int) (troupe.Block, error) {
	switch {
	case p.call != nil:
		input, err := troupe.Encode(fillTree(p.call.input, found))
		if err != nil {
			return nil, fmt.Errorf("encode the input of %s: %w", p.call.tool, err)
		}
		return troupe.ToolUse{ID: p.call.id(v, index), Name: p.call.tool, Input: json.RawMessage(input)}, nil
	case p.thinking != nil:
		if s := p.thinking.fill(found); strings.TrimSpace(s) != "" {
			return troupe.Thinking{Text: s, Provider: provider}, nil
		}
	default:
		if s := p.text.fill(found); strings.TrimSpace(s) != "" {
			return troupe.Text(s), nil
		}
	}
	return nil, nil
}

// id names the call: its label and a number that follows from the turn, the
// block and what the conversation began with. So agents that play the same
// script have different ids as long as their first prompts differ, as they
// would have with a real provider.
func (c *call) id(v *view, index int) string {
	for again := 0; ; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %s", v.turn, index, again, v.first))
		id := c.label + "_" + hex.EncodeToString(sum[:6])
		// A summary in the place of old turns makes the numbers of turns
		// begin anew.
		if !v.ids[id] {
			return id
		}
	}
}

// callName is the label in the id of a call.
func callName(id string) string {
	label, _, _ := strings.Cut(id, "_")
	return label
}

// stream sends the reply in fragments, and then as a whole. It returns nil as
// soon as send reports that nobody listens any more.
func (r *reply) stream(ctx context.Context, whole troupe.Reply, send func(troupe.Chunk) bool) error {
	sent := 0
	for _, b := range whole.Message.Content {
		for _, d := range deltas(b) {
			if r.broken != nil && sent >= r.broken.after {
				return r.broken.happen(ctx)
			}
			if sent > 0 {
				if err := pause(ctx, r.pace); err != nil {
					return err
				}
			}
			if !send(d) {
				return nil
			}
			sent++
		}
	}
	if r.broken != nil {
		return r.broken.happen(ctx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	send(whole)
	return nil
}

// deltas cuts what a block shows into the fragments that it streams as.
func deltas(b troupe.Block) []troupe.Delta {
	var whole string
	var thinking bool
	switch b := b.(type) {
	case troupe.Text:
		whole = string(b)
	case troupe.Thinking:
		whole, thinking = b.Text, true
	}
	var out []troupe.Delta
	for _, s := range fragments(whole) {
		out = append(out, troupe.Delta{Text: s, Thinking: thinking})
	}
	return out
}

// fragments cuts s after spaces, into pieces of a few words each.
func fragments(s string) []string {
	const least = 12 // bytes
	var out []string
	begin := 0
	for i, r := range s {
		if i-begin >= least && unicode.IsSpace(r) {
			out = append(out, s[begin:i])
			begin = i
		}
	}
	if begin < len(s) {
		out = append(out, s[begin:])
	}
	return out
}
