package troupetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/troupe-sh/troupe"
)

// ErrNoReply is the error of a request for which no reply was prepared.
var ErrNoReply = errors.New("no reply is left: the test prepared fewer than were asked for")

// ErrRefused is the error of a request that no provider would take.
var ErrRefused = errors.New("the conversation is not valid")

// Replies is a [troupe.Model] in memory: it gives its replies in order, keeps
// the requests and refuses a conversation that is not [troupe.Valid]. It is
// safe for concurrent use.
type Replies struct {
	mu   sync.Mutex
	left []troupe.Message
	sent []troupe.Request
}

// NewReplies returns a model that answers with the messages, in order.
func NewReplies(messages ...troupe.Message) *Replies {
	return &Replies{left: slices.Clone(messages)}
}

// Sent returns the requests so far, in the order in which they came.
func (r *Replies) Sent() []troupe.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

// Stream implements [troupe.Model]. The body it says it sends is the JSON of
// the request.
func (r *Replies) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		body, err := troupe.Encode(req)
		if err != nil {
			yield(nil, fmt.Errorf("encode the request: %w", err))
			return
		}
		if !yield(troupe.Sending{Body: body}, nil) {
			return
		}
		message, err := r.next(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(troupe.Opened{}, nil) {
			return
		}
		for _, b := range message.Content {
			if !yieldDelta(b, yield) {
				return
			}
		}
		yield(inMemoryReply(req, message, len(body)), nil)
	}
}

// next takes the next reply. The request is kept in any case, so that a test
// sees what was refused.
func (r *Replies) next(ctx context.Context, req *troupe.Request) (troupe.Message, error) {
	if ctx.Err() != nil {
		return troupe.Message{}, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := *req
	kept.Messages = slices.Clone(req.Messages)
	r.sent = append(r.sent, kept)
	if err := troupe.Valid(req.Messages); err != nil {
		return troupe.Message{}, fmt.Errorf("request %d: %w: %w", len(r.sent), ErrRefused, err)
	}
	if len(r.left) == 0 {
		return troupe.Message{}, fmt.Errorf("request %d: %w", len(r.sent), ErrNoReply)
	}
	message := r.left[0]
	r.left = r.left[1:]
	return message, nil
}

func yieldDelta(b troupe.Block, yield func(troupe.Chunk, error) bool) bool {
	switch b := b.(type) {
	case troupe.Text:
		return yield(troupe.Delta{Text: string(b)}, nil)
	case troupe.Thinking:
		return yield(troupe.Delta{Text: b.Text, Thinking: true}, nil)
	}
	return true
}

func inMemoryReply(req *troupe.Request, m troupe.Message, sent int) troupe.Reply {
	stop := "end_turn"
	if len(m.ToolUses()) > 0 {
		stop = "tool_use"
	}
	usage := troupe.Usage{Input: tokens(sent), Output: tokens(outputBytes(m))}
	return troupe.Reply{Message: m, Usage: usage, Stop: stop, Model: req.Model}
}

// Say is an assistant message of text.
func Say(text string) troupe.Message { return troupe.Say(troupe.Assistant, text) }

// Use is an assistant message that calls tools.
func Use(uses ...troupe.ToolUse) troupe.Message {
	m := troupe.Message{Role: troupe.Assistant}
	for _, u := range uses {
		m.Content = append(m.Content, u)
	}
	return m
}
