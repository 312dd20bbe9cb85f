package troupetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
)

// checkBroken: a stream that ends too early, in whatever way and place, is an
// error and never a reply of what there was.
func checkBroken(ctx context.Context, m troupe.Model, p *Provider) error {
	type broken struct {
		name  string
		fault Fault
	}
	cases := []broken{{"cut before the headers", Fault{Cut: BeforeHeaders}}}
	for _, at := range []Point{AfterHeaders, AfterStart, Midway, InCall, BeforeEnd} {
		cases = append(cases,
			broken{fmt.Sprintf("cut at point %d", at), Fault{Cut: at}},
			broken{fmt.Sprintf("ended at point %d", at), Fault{Truncate: at}},
			broken{fmt.Sprintf("overloaded at point %d", at), Fault{Overload: at}},
			broken{fmt.Sprintf("malformed at point %d", at), Fault{Malformed: at}},
		)
	}
	for _, c := range cases {
		p.Queue(Reply{Message: calling(), Fault: c.fault})
		if err := failed(ctx, m, hello()); err != nil {
			return fmt.Errorf("a stream %s: %w", c.name, err)
		}
	}
	return nil
}

// checkBilled: what a reply that broke off has used is told as far as the
// provider told it, once and before the error; of one that never began nothing is.
func checkBilled(ctx context.Context, m troupe.Model, p *Provider) error {
	usage := troupe.Usage{Input: 70, Output: 20, CacheRead: 50, CacheWrite: 9}
	for at, want := range map[Point]int{BeforeHeaders: 0, AfterHeaders: 0, AfterStart: 1, Midway: 1, BeforeEnd: 1} {
		p.Queue(Reply{Message: calling(), Usage: usage, Fault: Fault{Cut: at}})
		o, err := ask(ctx, m, hello())
		if err != nil {
			return err
		}
		n, last := 0, troupe.Billed{}
		for _, c := range o.chunks {
			if b, ok := c.(troupe.Billed); ok {
				n, last = n+1, b
			}
		}
		if n != want {
			return fmt.Errorf("cut at point %d: told %d times what it costs, want %d", at, n, want)
		}
		told := last.Usage
		told.Output = usage.Output // of which nobody knows before the end
		if n > 0 && p.Last().Dialect == Anthropic && told != usage {
			return fmt.Errorf("cut at point %d: told %+v of %+v", at, last.Usage, usage)
		}
	}
	return nil
}

func checkRefusals(ctx context.Context, m troupe.Model, p *Provider) error {
	date := time.Unix(1893456000, 0).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	faults := []Fault{
		{Status: 400}, {Status: 401}, {Status: 403}, {Status: 404}, {Status: 413}, {Status: 429, RetryAfter: "2"},
		{Status: 429, RetryAfter: date}, {Status: 500}, {Status: 502, HTML: true}, {Status: 503}, {Status: overloaded},
		{HTML: true}, {Empty: true},
	}
	for _, f := range faults {
		p.Queue(Reply{Message: calling(), Fault: f})
		if err := failed(ctx, m, hello()); err != nil {
			return fmt.Errorf("an answer of status %d, HTML %t, empty %t: %w", f.Status, f.HTML, f.Empty, err)
		}
	}
	return nil
}

// checkOdd: what is unusual but can be understood is a reply.
func checkOdd(ctx context.Context, m troupe.Model, p *Provider) error {
	noInput := Use(troupe.ToolUse{ID: "call_1", Name: "Read", Input: []byte(`{}`)})
	cases := []struct {
		name  string
		reply Reply
	}{
		{"without usage", Reply{Message: calling(), Fault: Fault{NoUsage: true}}},
		{"without index of its calls", Reply{Message: calling(), Fault: Fault{NoIndex: true}}},
		{"with a call without input", Reply{Message: noInput}},
		{"of one character", Reply{Message: Say("x")}},
		{"slow", Reply{Message: calling(), Fault: Fault{Delay: time.Millisecond, Pace: time.Millisecond}}},
	}
	for _, c := range cases {
		p.Queue(c.reply)
		o, err := answered(ctx, m, hello())
		if err == nil {
			err = sameContent(o.reply.Message, c.reply.Message)
		}
		if err != nil {
			return fmt.Errorf("a reply %s: %w", c.name, err)
		}
	}
	p.Queue(Reply{}) // without content: a reply of nothing or an error, as the model likes
	if o, err := ask(ctx, m, hello()); err != nil || o.reply != nil && len(o.reply.Message.Content) > 0 {
		return fmt.Errorf("a reply without content: %+v, %w", o.reply, err)
	}
	return nil
}

// checkLeave breaks out at each chunk of a stream that does not end by
// itself. The provider is idle only when the client has hung up.
func checkLeave(ctx context.Context, m troupe.Model, p *Provider) error {
	for n := 1; ; n++ {
		requests := len(p.Requests())
		p.Queue(Reply{Message: calling(), Fault: Fault{Stall: BeforeEnd}})
		var last troupe.Chunk
		seen := 0
		for c, err := range m.Stream(ctx, hello()) {
			if err != nil {
				return err
			}
			last = c
			if seen++; seen == n || isLastDelta(c) {
				break
			}
		}
		if _, ok := last.(troupe.Sending); ok {
			if len(p.Requests()) != requests {
				return errors.New("a request went out although its Sending was refused")
			}
			p.Forget()
			continue
		}
		if err := p.Idle(ctx); err != nil {
			return fmt.Errorf("the connection was not released after %T: %w", last, err)
		}
		if isLastDelta(last) {
			return nil
		}
	}
}

// isLastDelta reports whether c ends the text of [calling].
func isLastDelta(c troupe.Chunk) bool {
	d, ok := c.(troupe.Delta)
	text := calling().Content.Text()
	return ok && !d.Thinking && d.Text != "" && text[len(text)-1] == d.Text[len(d.Text)-1]
}

// checkCtx ends the context while the provider is silent.
func checkCtx(ctx context.Context, m troupe.Model, p *Provider) error {
	for _, at := range []Point{BeforeHeaders, AfterHeaders, AfterStart, Midway, InCall, BeforeEnd} {
		cause := fmt.Errorf("ended at point %d", at)
		ended, end := context.WithCancelCause(ctx)
		n := len(p.Requests())
		p.Queue(Reply{Message: calling(), Fault: Fault{Stall: at}})
		var ending sync.WaitGroup
		var waited error
		ending.Go(func() {
			waited = p.Wait(ctx, n+1)
			end(cause)
		})
		o, err := ask(ended, m, hello())
		end(nil)
		ending.Wait()
		switch {
		case err != nil || waited != nil:
			return errors.Join(err, waited)
		case o.reply != nil:
			return fmt.Errorf("point %d: a reply from a provider that said nothing more", at)
		case !errors.Is(o.err, cause):
			return fmt.Errorf("point %d: the error %q is not the cause of the context's end", at, o.err)
		}
		if err := p.Idle(ctx); err != nil {
			return fmt.Errorf("point %d: the connection was not released: %w", at, err)
		}
	}
	return nil
}

// checkCtxOver: with a context that has ended nothing is sent.
func checkCtxOver(ctx context.Context, m troupe.Model, p *Provider) error {
	cause := errors.New("over before it began")
	ended, end := context.WithCancelCause(ctx)
	end(cause)
	p.Say("nobody should hear this")
	o, err := ask(ended, m, hello())
	switch {
	case err != nil:
		return err
	case o.reply != nil || !errors.Is(o.err, cause):
		return fmt.Errorf("got %v and the error %v, want %q", o.reply, o.err, cause)
	case len(p.Requests()) > 0:
		return errors.New("a request went out")
	}
	return nil
}

// checkConcurrent: requests at the same time do not mix.
func checkConcurrent(ctx context.Context, m troupe.Model, p *Provider) error {
	const n = 8
	p.Respond(func(r *Request) Reply { return Reply{Message: Say("to " + r.LastUser())} })
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			asked := fmt.Sprintf("question %d of some length, so that there are fragments", i)
			o, err := answered(ctx, m, asking(troupe.Say(troupe.User, asked)))
			if err == nil {
				err = sameContent(o.reply.Message, Say("to "+asked))
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
