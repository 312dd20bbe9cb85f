package troupe

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

var (
	// ErrMaxTurns reports that a run reached its limit of turns.
	ErrMaxTurns = errors.New("turn limit reached")
	// ErrInterrupted is the cause of the end of a run's context when a
	// person stopped the turn.
	ErrInterrupted = errors.New("interrupted")
)

// A Config is the input of [Run]. Inbox may be nil. Without a Guard no tool runs.
type Config struct {
	ID       string
	State    *State // Run carries it on; nobody else touches it meanwhile
	Model    Model
	Tools    []Tool
	Guard    Guard
	Inbox    Inbox
	MaxTurns int // requests of this run; 0 is no limit
}

// Run carries the conversation in c on until the model stops calling tools
// and nothing is left in the inbox.
//
// It yields each event in order from the caller's goroutine. When the body of
// the range statement returns, the event counts as recorded. The last event is
// [Ended]; if the run did not complete, an error follows it. When the range
// statement ends, for whatever reason, no goroutine started by Run is left.
func Run(ctx context.Context, c Config) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r := &run{c: c, s: c.State, yield: yield, tools: byName(c.Tools)}
		err := r.loop(ctx)
		if errors.Is(err, errLeft) {
			return
		}
		end := Ended{Reason: reason(err), Text: r.text, Stop: r.stop, Turns: r.turns, Usage: r.usage}
		if err != nil {
			end.Err = err.Error()
		}
		if yield(end, nil) && err != nil {
			yield(nil, err)
		}
	}
}

func reason(err error) Reason {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrMaxTurns):
		return OutOfTurns
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Interrupted
	}
	return Failed
}

var errLeft = errors.New("consumer left the range statement")

type run struct {
	c     Config
	s     *State
	yield func(Event, error) bool
	tools map[string]Tool
	usage Usage
	turns int
	text  string
	stop  string
	sent  *Request // the last one
}

// emit applies an event and yields it.
func (r *run) emit(e Event) error {
	r.s.Apply(e)
	if !r.yield(e, nil) {
		return errLeft
	}
	return nil
}

func (r *run) loop(ctx context.Context) error {
	for _, e := range r.s.Repair() {
		if err := r.emit(e); err != nil {
			return err
		}
	}
	for {
		if _, err := r.receive(ctx); err != nil {
			return err
		}
		if r.s.Idle() {
			return nil // woken for nothing: there is nothing to send
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if r.c.MaxTurns > 0 && r.turns >= r.c.MaxTurns {
			return fmt.Errorf("%w: %d", ErrMaxTurns, r.c.MaxTurns)
		}
		r.turns++
		reply, err := r.ask(ctx)
		if err != nil {
			return err
		}
		if uses := reply.Message.ToolUses(); len(uses) > 0 {
			if err := r.callAll(ctx, uses); err != nil {
				return err
			}
			continue
		}
		// What came in during the last reply must not be left lying.
		if more, err := r.receive(ctx); err != nil || !more {
			return err
		}
	}
}

// receive takes the inbox in and reports whether there was something new.
func (r *run) receive(ctx context.Context) (fresh bool, err error) {
	if r.c.Inbox == nil {
		return false, nil
	}
	got, err := r.c.Inbox.Take(ctx)
	if err != nil {
		return false, fmt.Errorf("read inbox: %w", err)
	}
	var ids []string
	for _, m := range got {
		ids = append(ids, m.ID)
		if r.s.Seen(m.ID) {
			continue // it was logged, but not acknowledged
		}
		fresh = true
		m.Message = cleanUser(m.Message)
		if err := r.emit(m); err != nil {
			return fresh, err
		}
	}
	if ids == nil {
		return false, nil
	}
	if err := r.c.Inbox.Ack(context.WithoutCancel(ctx), ids); err != nil {
		return fresh, fmt.Errorf("acknowledge messages: %w", err)
	}
	return fresh, nil
}

// ask sends the conversation as it is now and returns the reply, cleaned.
func (r *run) ask(ctx context.Context) (Reply, error) {
	req := r.s.Request
	r.sent = &req
	partial := ""
	for chunk, err := range r.c.Model.Stream(ctx, &req) {
		if err != nil {
			return Reply{}, r.cutOff(ctx, partial, err)
		}
		switch chunk := chunk.(type) {
		case Sending:
			err = r.emit(Sent(chunk))
		case Delta:
			if !chunk.Thinking {
				partial += chunk.Text
			}
			err = r.emit(Streaming{chunk})
		case Retrying:
			partial = ""
			err = r.emit(chunk)
		case Reply:
			chunk.Message = r.s.Clean(chunk.Message)
			r.usage, r.stop = r.usage.Add(chunk.Usage), chunk.Stop
			if t := chunk.Message.Content.Text(); t != "" {
				r.text = t
			}
			return chunk, r.emit(Replied{chunk})
		}
		if err != nil {
			return Reply{}, err
		}
	}
	return Reply{}, errors.New("model ended without a reply")
}

// cutOff keeps the text that was streamed before err. Half a tool call is
// never kept.
func (r *run) cutOff(ctx context.Context, partial string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if blank(partial) {
		return err
	}
	r.text = partial
	if left := r.emit(Replied{Reply{Message: r.s.Clean(Say(Assistant, partial)), Stop: "cut off", Model: r.sent.Model}}); left != nil {
		return left
	}
	return err
}

// callAll runs the calls side by side, those of one lane in order, and emits
// as they finish. Each call gets a result, also when ctx ends.
func (r *run) callAll(ctx context.Context, uses []ToolUse) error {
	b := newBatch(ctx)
	defer b.end()
	for _, use := range uses {
		if err := r.emit(ToolStarted{Use: use.ID, Name: use.Name}); err != nil {
			return err
		}
		b.start(r.tool(use.Name), r.c, &Call{ToolUse: use, Agent: r.c.ID, Mode: r.s.Mode, Place: r.s.Place, Request: r.sent})
	}
	for left := len(uses); left > 0; {
		e := <-b.events
		if err := r.emit(e); err != nil {
			return err
		}
		if _, ok := e.(ToolEnded); ok {
			left--
		}
	}
	return context.Cause(ctx)
}

func (r *run) tool(name string) Tool {
	if t := r.tools[name]; t != nil {
		return t
	}
	return missing{r.c.Tools}
}

// byName returns the tools by their names; of two with one name the first
// counts.
func byName(tools []Tool) map[string]Tool {
	m := make(map[string]Tool, len(tools))
	for _, t := range tools {
		if name := t.Spec().Name; m[name] == nil {
			m[name] = t
		}
	}
	return m
}
