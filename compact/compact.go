// Package compact cuts a conversation short before it outgrows the window of
// its model: a summary that the model itself writes takes the place of the
// older messages, the latest stay as they are.
//
//	c := &compact.Compactor{Model: model, Window: window, NewID: newID}
//	config.BeforeTurn = c.BeforeTurn
//	config.Rescue = c.Rescue
//
// Nothing is cut before the summary is there. If it cannot be had the
// conversation stays as it is, and an event says so.
package compact

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/failpoint"
)

// DefaultWindow is the window, in tokens, of a model of which it is not known.
const DefaultWindow = 128_000

// What makes a conversation be cut short.
const (
	Auto   = "auto"   // it nears the window, or the provider has said that it is too long
	Manual = "manual" // somebody asked for it
)

// A Compactor does it for one agent. Its methods are for the goroutine of the
// agent's run, but for Ask.
type Compactor struct {
	Model  troupe.Model
	Window func(model string) int // in tokens; 0 is not known
	// TooLong reports whether a request has failed because it was too long.
	TooLong func(error) bool
	// Introduce returns what stands in front of the summary: what the first
	// message told of the place. It may be nil.
	Introduce func(context.Context, troupe.Place) string
	// Before may forbid it: why says so. It may be nil.
	Before func(ctx context.Context, s *troupe.State, trigger, instructions string) (why string, err error)
	Now    func() time.Time

	request chan string // asked for by a person; holds one
	after   int         // turns of the state at the last time
	failed  int         // size of the conversation when it failed last
}

// New returns c ready for use.
func New(c Compactor) *Compactor {
	c.request = make(chan string, 1)
	c.after = -spacing
	return &c
}

// Ask asks for a compaction before the next request, with instructions for the
// summary, which may be empty. Of two that wait the first counts. It is safe for
// concurrent use.
func (c *Compactor) Ask(instructions string) {
	select {
	case c.request <- instructions:
	default:
	}
}

// spacing is how many turns there are between two compactions at least: a
// conversation that fills the window again at once is not made better by more.
const spacing = 2

// Threshold is the size from which on a conversation is cut short: four fifths
// of the window, or what leaves 40,000 tokens, whichever is more.
func Threshold(window int) int {
	if window <= 0 {
		window = DefaultWindow
	}
	return max(window*4/5, window-40_000)
}

func (c *Compactor) window(s *troupe.State) int {
	if w := c.Window(s.Request.Model); w > 0 {
		return w
	}
	return DefaultWindow
}

// due reports whether s should be cut short now.
func (c *Compactor) due(s *troupe.State) bool {
	size := s.Size()
	return size >= Threshold(c.window(s)) && s.Turns-c.after >= spacing && size >= c.failed+c.failed/10 && !s.Idle() &&
		c.old(s) != nil // else a prompt is too long by itself
}

// old are the messages that a summary would take the place of; nil if it would
// gain nothing.
func (c *Compactor) old(s *troupe.State) []troupe.Message {
	msgs := s.Request.Messages
	old := msgs[:len(msgs)-tail(msgs, c.window(s)/10)]
	if len(old) == 0 || len(old) == 1 && isSummary(old[0]) {
		return nil
	}
	return old
}

// BeforeTurn yields what is to happen before the next request; see
// [troupe.Config].
func (c *Compactor) BeforeTurn(ctx context.Context, s *troupe.State) iter.Seq2[troupe.Event, error] {
	return func(yield func(troupe.Event, error) bool) {
		select {
		case instructions := <-c.request:
			c.compact(ctx, s, Manual, instructions, yield)
		default:
			if c.due(s) {
				c.compact(ctx, s, Auto, "", yield)
			}
		}
	}
}

// Rescue cuts s short if err says that it was too long; see [troupe.Config].
func (c *Compactor) Rescue(ctx context.Context, s *troupe.State, err error) iter.Seq2[troupe.Event, error] {
	return func(yield func(troupe.Event, error) bool) {
		if c.TooLong == nil || !c.TooLong(err) {
			return
		}
		if done, on := c.compact(ctx, s, Auto, "", yield); on && !done {
			yield(nil, err)
		}
	}
}

// compact yields the events of one compaction. done tells whether it came to
// one, on whether the consumer is still there.
func (c *Compactor) compact(ctx context.Context, s *troupe.State, trigger, instructions string, yield func(troupe.Event, error) bool) (done, on bool) {
	start, size := c.Now(), s.Size()
	if !yield(troupe.Compacting{Trigger: trigger, Tokens: size}, nil) {
		return false, false
	}
	event, err := c.summarise(ctx, s, trigger, instructions, yield)
	switch {
	case errors.Is(err, errLeft):
		return false, false
	case context.Cause(ctx) != nil: // the run ends, and says why itself
		return false, yield(troupe.NotCompacted{Trigger: trigger, Err: context.Cause(ctx).Error()}, nil)
	case err != nil:
		c.failed = size
		return false, yield(troupe.NotCompacted{Trigger: trigger, Err: err.Error()}, nil)
	}
	event.Took = c.Now().Sub(start)
	c.after, c.failed = s.Turns, 0
	return true, yield(event, nil)
}

var errLeft = errors.New("consumer left the range statement")

func (c *Compactor) summarise(ctx context.Context, s *troupe.State, trigger, instructions string, yield func(troupe.Event, error) bool) (troupe.Compacted, error) {
	old := c.old(s)
	if old == nil {
		return troupe.Compacted{}, errors.New("there is nothing to put together yet")
	}
	if c.Before != nil {
		why, err := c.Before(ctx, s, trigger, instructions)
		if err == nil && why != "" {
			err = errors.New(why)
		}
		if err != nil {
			return troupe.Compacted{}, err
		}
	}
	var reply troupe.Reply
	var err error
	for _, msgs := range shorter(s.Request.Messages) {
		req := s.Request
		req.Messages = append(msgs, troupe.Say(troupe.User, question(instructions)))
		if reply, err = c.ask(ctx, &req, yield); err == nil || c.TooLong == nil || !c.TooLong(err) {
			break
		}
	}
	if err != nil {
		return troupe.Compacted{}, fmt.Errorf("the summary failed: %w", err)
	}
	text := strings.TrimSpace(reply.Message.Content.Text())
	if text == "" {
		if !yield(troupe.Billed{Usage: reply.Usage}, nil) { // it has cost what it has
			return troupe.Compacted{}, errLeft
		}
		return troupe.Compacted{}, errors.New("the model wrote no summary")
	}
	var before string
	if c.Introduce != nil {
		before = c.Introduce(ctx, s.Place)
	}
	return troupe.Compacted{Trigger: trigger, Summary: summary(before, text, carried(s.Request.Messages)), Keep: len(s.Request.Messages) - len(old),
		Usage: reply.Usage, Model: reply.Model}, nil
}

// ask sends req and passes on what belongs in the log.
func (c *Compactor) ask(ctx context.Context, req *troupe.Request, yield func(troupe.Event, error) bool) (troupe.Reply, error) {
	for chunk, err := range c.Model.Stream(ctx, req) {
		if err != nil {
			return troupe.Reply{}, err
		}
		on := true
		switch chunk := chunk.(type) {
		case troupe.Sending:
			on = yield(troupe.Sent(chunk), nil)
		case troupe.Retrying:
			on = yield(chunk, nil)
		case troupe.Waiting:
			on = yield(chunk, nil)
		case troupe.Switched:
			on = yield(chunk, nil)
		case troupe.Billed:
			on = yield(chunk, nil)
		case troupe.Reply:
			failpoint.Here(failpoint.CompactAsked)
			return chunk, nil
		}
		if !on {
			return troupe.Reply{}, errLeft
		}
	}
	return troupe.Reply{}, errors.New("model ended without a reply")
}
