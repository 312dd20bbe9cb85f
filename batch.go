package troupe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// A batch is the calls of one reply while they run.
type batch struct {
	ctx    context.Context // of these calls; ends with the batch
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	events chan Event
	over   chan struct{} // closed when nobody receives any more
	lanes  map[string]<-chan struct{}
}

func newBatch(ctx context.Context) *batch {
	b := &batch{events: make(chan Event), over: make(chan struct{}), lanes: map[string]<-chan struct{}{}}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	return b
}

// end waits until nothing of the batch is left.
func (b *batch) end() {
	close(b.over)
	b.cancel(errLeft)
	b.wg.Wait()
}

func (b *batch) send(e Event) {
	select {
	case b.events <- e:
	case <-b.over:
	}
}

// start runs one call; its end is a [ToolEnded] in b.events.
func (b *batch) start(t Tool, c Config, call *Call) {
	before, after := b.queue(t, call)
	b.wg.Go(func() {
		defer after()
		<-before // what is before ends with ctx too
		start := time.Now()
		res := b.call(t, c.Guard, call)
		b.send(ToolEnded{call.ID, res, time.Since(start)})
	})
}

// queue returns what a call must wait for, and what it must call when done.
func (b *batch) queue(t Tool, c *Call) (before <-chan struct{}, after func()) {
	free := make(chan struct{})
	close(free)
	o, ok := t.(Ordered)
	if !ok {
		return free, func() {}
	}
	lane := o.Lane(c)
	if lane == "" {
		return free, func() {}
	}
	before, ok = b.lanes[lane]
	if !ok {
		before = free
	}
	done := make(chan struct{})
	b.lanes[lane] = done
	return before, func() { close(done) }
}

func (b *batch) call(t Tool, g Guard, c *Call) (res Result) {
	defer func() {
		if p := recover(); p != nil { // one tool's fault is not the end of all agents
			res = Failure(fmt.Sprintf("%s crashed: %v\n%s", c.Name, p, firstLines(debug.Stack(), 12)))
		}
		res.Content = cleanResult(res.Content)
		if !json.Valid(res.Data) { // nor of its log
			res.Data = nil
		}
		res.Then = slices.DeleteFunc(res.Then, func(e Event) bool { // nor may it say what it did not do
			switch e.(type) {
			case Switched, Moved:
				return false
			}
			return true
		})
	}()
	if err := context.Cause(b.ctx); err != nil {
		return Failure("Not run: " + why(err) + ".")
	}
	if bytes.HasPrefix(c.Input, []byte(`{"`+unreadable+`":`)) {
		return Failure("Not run: the input of the call was not a JSON object.")
	}
	if _, ok := t.(missing); !ok {
		v, err := check(b.ctx, g, c)
		b.send(Decided{c.ID, v})
		if err != nil {
			return Failure("Not run: the permission check failed: " + err.Error())
		}
		if v.Effect != Allow {
			return Failure("Permission denied: " + v.Reason)
		}
		if v.Input != nil {
			changed := *c
			changed.Input = v.Input
			c = &changed
		}
	}
	res, err := t.Call(b.ctx, c)
	if err != nil {
		if context.Cause(b.ctx) != nil && errors.Is(err, b.ctx.Err()) {
			err = errors.New(why(context.Cause(b.ctx)))
		}
		res.Content = append(res.Content, Text(err.Error()))
		res.IsError = true
	}
	return res
}

func check(ctx context.Context, g Guard, c *Call) (Verdict, error) {
	if g == nil {
		return Verdict{Effect: Deny, By: "runtime", Reason: "this agent has no guard that could allow it"}, nil
	}
	v, err := g.Check(ctx, c)
	if err != nil {
		return Verdict{Effect: Deny, By: "runtime", Reason: err.Error()}, err
	}
	return v, nil
}

// why says in words why a context ended.
func why(err error) string {
	switch {
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		return "out of time"
	}
	return err.Error()
}

func firstLines(b []byte, n int) string {
	lines := strings.SplitAfterN(string(b), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "")
}

// missing stands for a tool that does not exist.
type missing struct{ have []Tool }

func (missing) Spec() ToolSpec { return ToolSpec{} }

func (m missing) Call(_ context.Context, c *Call) (Result, error) {
	var names []string
	for _, t := range m.have {
		names = append(names, t.Spec().Name)
	}
	return Failure(fmt.Sprintf("There is no tool %q. The tools are: %s.", c.Name, strings.Join(names, ", "))), nil
}
