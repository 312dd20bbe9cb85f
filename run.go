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
	// ErrBudget is what a [Model] returns that may not spend more.
	ErrBudget = errors.New("budget exhausted")
	// ErrOutOfTime is the cause of the end of a run's context when its time is up.
	ErrOutOfTime = errors.New("time limit reached")
	// ErrInterrupted is the cause of the end of a run's context when a
	// person stopped the turn.
	ErrInterrupted = errors.New("interrupted")
)

// A Config is the input of [Run]. Without a Guard no tool runs; all that is a
// func, and Inbox, may be nil.
//
// The funcs are called from the caller's goroutine. What they yield is applied
// and yielded by Run, in its turn, like any other event; an error ends the run.
type Config struct {
	ID       string
	State    *State // Run carries it on; nobody else touches it meanwhile
	Model    Model
	Tools    []Tool
	Guard    Guard
	Inbox    Inbox
	MaxTurns int // requests of this run; 0 is no limit

	// BeforeTurn yields what is to happen before the next request: a
	// compaction, a switch of model or mode.
	BeforeTurn func(ctx context.Context, s *State) iter.Seq2[Event, error]
	// BeforeEnd is called when the model has stopped and the inbox is empty. If
	// it yields a [Received], the run goes on.
	BeforeEnd func(ctx context.Context, s *State) iter.Seq2[Event, error]
	// Rescue is called when a request has failed with err. If it yields an
	// event, the request is made once more, of the state as it is then.
	Rescue func(ctx context.Context, s *State, err error) iter.Seq2[Event, error]
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
			end.Err, end.Code = err.Error(), r.code(err)
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
	case errors.Is(err, ErrBudget):
		return OverBudget
	case errors.Is(err, ErrOutOfTime):
		return OutOfTime
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Interrupted
	}
	return Failed
}

// code is the word for programs that err has.
func (r *run) code(err error) string {
	var coded interface {
		error
		Code() string
	}
	switch {
	case errors.As(err, &coded):
		return coded.Code()
	case r.refused && reason(err) == Failed:
		return "model_error"
	}
	return ""
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

	scratch Scratch
	refused bool // the last request came to no reply
}

// emit applies an event and yields it.
func (r *run) emit(e Event) error {
	r.s.Apply(e)
	switch e := e.(type) {
	case Compacted: // it asked the model, too
		r.usage = r.usage.Add(e.Usage)
	case Billed:
		r.usage = r.usage.Add(e.Usage)
	}
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
		if err := r.beforeTurn(ctx); err != nil {
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
			reply, err = r.rescue(ctx, err)
		}
		if err != nil {
			return err
		}
		if len(reply.Message.ToolUses()) > 0 {
			if err := r.callAll(ctx, &reply); err != nil {
				return err
			}
			continue
		}
		// What came in during the last reply must not be left lying.
		more, err := r.receive(ctx)
		if err == nil && !more {
			more, err = r.beforeEnd(ctx)
		}
		if err != nil || !more {
			return err
		}
	}
}

// take emits what one of the config's funcs yields. heard tells whether there
// was a message among it.
func (r *run) take(events iter.Seq2[Event, error]) (some, heard bool, err error) {
	for ev, err := range events {
		if err != nil {
			return some, heard, err
		}
		some = true
		if m, ok := ev.(Received); ok {
			heard = true
			m.Message = cleanUser(m.Message)
			ev = m
		}
		if err := r.emit(ev); err != nil {
			return some, heard, err
		}
	}
	return some, heard, nil
}

func (r *run) beforeTurn(ctx context.Context) error {
	if r.c.BeforeTurn == nil {
		return nil
	}
	_, _, err := r.take(r.c.BeforeTurn(ctx, r.s))
	return err
}

func (r *run) beforeEnd(ctx context.Context) (more bool, err error) {
	if r.c.BeforeEnd == nil {
		return false, nil
	}
	_, more, err = r.take(r.c.BeforeEnd(ctx, r.s))
	return more, err
}

// rescue makes a request that failed with cause once more, if something was
// done about the cause.
func (r *run) rescue(ctx context.Context, cause error) (Reply, error) {
	if r.c.Rescue == nil || errors.Is(cause, errLeft) || context.Cause(ctx) != nil {
		return Reply{}, cause
	}
	some, _, err := r.take(r.c.Rescue(ctx, r.s, cause))
	if err != nil {
		return Reply{}, err
	}
	if !some {
		return Reply{}, cause
	}
	return r.ask(ctx)
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
	req.Scratch = &r.scratch
	r.sent, r.refused = &req, false
	partial, sent := "", false
	for chunk, err := range r.c.Model.Stream(ctx, &req) {
		if err != nil {
			r.refused = true
			if errors.Is(err, ErrBudget) && !sent {
				r.turns-- // there was none
			}
			return Reply{}, r.cutOff(ctx, partial, err)
		}
		switch chunk := chunk.(type) {
		case Sending:
			sent = true
			err = r.emit(Sent(chunk))
		case Delta:
			if !chunk.Thinking {
				partial += chunk.Text
			}
			err = r.emit(Streaming{chunk})
		case Retrying:
			partial = ""
			err = r.emit(chunk)
		case Waiting:
			err = r.emit(chunk)
		case Switched:
			partial = ""
			other := *r.sent
			set(&other.Model, chunk.Model)
			r.sent = &other
			err = r.emit(chunk)
		case Billed:
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
	r.refused = true
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
func (r *run) callAll(ctx context.Context, reply *Reply) error {
	uses := reply.Message.ToolUses()
	b := newBatch(ctx)
	defer b.end()
	for _, use := range uses {
		if err := r.emit(ToolStarted{Use: use.ID, Name: use.Name}); err != nil {
			return err
		}
		b.start(r.tool(use.Name), r.c, &Call{ToolUse: use, Agent: r.c.ID, Mode: r.s.Mode, Place: r.s.Place, Request: r.sent, Reply: reply})
	}
	var then []Event
	var stop error
	for left := len(uses); left > 0; {
		e := <-b.events
		if err := r.emit(e); err != nil {
			return err
		}
		switch e := e.(type) {
		case Decided:
			if e.Verdict.Stop && e.Verdict.Effect != Allow {
				stop = fmt.Errorf("%w: %s", ErrInterrupted, e.Verdict.Reason)
				b.cancel(stop)
			}
		case ToolEnded:
			left--
			then = append(then, e.Result.Then...)
		}
	}
	for _, e := range then {
		if err := r.emit(e); err != nil {
			return err
		}
	}
	return errors.Join(context.Cause(ctx), stop)
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
