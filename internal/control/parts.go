package control

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

// parts are the fragments of the lead's replies on their way to the client. They
// are in no log, so they come by another way than the records, and both must be
// printed in the order in which they happened: a fragment waits for the records
// before it, and the record of a reply for its fragments. A nil parts does nothing;
// it is safe for concurrent use.
type parts struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	queue   []part
	events  int // that were watched and are in the log
	records int // of the same that were printed
	ends    int // of replies that were printed
	replies int // that were followed
	err     error
}

// A part is a fragment, the end of a reply, or, if it is neither, the end of
// one that came to nothing.
type part struct {
	after int // records that stand before it
	delta *troupe.Delta
	reply *troupe.Replied
}

func newParts() *parts { return &parts{changed: make(chan struct{})} }

// counts reports whether an event is counted: it is in the log, and only a run
// makes it.
func counts(e troupe.Event) bool {
	switch e.(type) {
	case troupe.Received, troupe.Replied, troupe.ToolEnded:
		return true
	}
	return false
}

// watch takes the events of the lead in. It never waits: what a slow client has
// not read is joined.
func (p *parts) watch(e troupe.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := part{after: p.events}
	switch e := e.(type) {
	case troupe.Streaming:
		if n := len(p.queue); n > 0 && p.queue[n-1].delta != nil && p.queue[n-1].delta.Thinking == e.Thinking {
			p.queue[n-1].delta.Text += e.Text
			return
		}
		next.delta = &e.Delta
	case troupe.Replied:
		next.reply = &e
	case troupe.Retrying, troupe.Ended:
	default:
		if counts(e) {
			p.events++
		}
		return
	}
	if counts(e) {
		p.events++
	}
	p.queue = append(p.queue, next)
	p.wake()
}

// wake tells those who wait. The caller holds the lock.
func (p *parts) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until ready, which is called under the lock, or ctx ends.
func (p *parts) await(ctx context.Context, ready func() bool) error {
	for {
		p.mu.Lock()
		ok, changed := ready(), p.changed
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next returns the oldest part, when it may be printed.
func (p *parts) next(ctx context.Context) (next part, err error) {
	err = p.await(ctx, func() bool {
		if len(p.queue) == 0 || p.queue[0].after > p.records {
			return false
		}
		next, p.queue = p.queue[0], p.queue[1:]
		return true
	})
	return next, err
}

// settle waits until the fragments of a reply of the lead were printed.
func (p *parts) settle(ctx context.Context, r session.Record) error {
	if _, replied := r.Event.(troupe.Replied); p == nil || !replied || r.Agent != session.Lead {
		return nil
	}
	p.mu.Lock()
	p.replies++
	n := p.replies
	p.mu.Unlock()
	err := p.await(ctx, func() bool { return p.ends >= n || p.err != nil })
	return errors.Join(err, p.err)
}

// recorded notes that a record was printed.
func (p *parts) recorded(r session.Record) {
	if p == nil || r.Agent != session.Lead || !counts(r.Event) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records++
	p.wake()
}

// printed notes that the end of a reply was printed, or that it cannot be.
func (p *parts) printed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends++
	p.err = err
	p.wake()
}

// fragments prints parts as they come.
func (s *server) fragments(ctx context.Context) {
	if s.parts == nil {
		return
	}
	ctx, leave := s.untilQuit(ctx)
	defer leave()
	w := fragmentWriter{stream: s.stream, session: s.session.Next}
	for {
		p, err := s.parts.next(ctx)
		if err != nil {
			return
		}
		switch {
		case p.delta != nil:
			w.delta(*p.delta)
		case p.reply != nil:
			w.reply(*p.reply)
			s.parts.printed(w.err)
		default:
			w.open, w.block = false, ""
		}
	}
}

// A fragmentWriter writes replies as the Messages API streams them.
type fragmentWriter struct {
	stream  *cli.Stream
	session func() (model, mode string)
	open    bool   // a message was begun
	block   string // kind of the block that was begun; "" is none
	index   int    // of the next block
	replies int
	err     error
}

func (w *fragmentWriter) event(o object) {
	if w.err == nil {
		w.err = w.stream.Print(object{"type": "stream_event", "parent_tool_use_id": nil, "event": o})
	}
}

func (w *fragmentWriter) begin() {
	if w.open {
		return
	}
	model, _ := w.session()
	w.open, w.index = true, 0
	w.event(object{"type": "message_start", "message": object{"id": fmt.Sprintf("msg_%s_%d", session.Lead, w.replies+1), "type": "message",
		"role": "assistant", "model": model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 0, "output_tokens": 0}}})
}

// start begins a block unless one of its kind is open.
func (w *fragmentWriter) start(kind string, block object) {
	if w.block == kind && kind != "tool_use" {
		return
	}
	w.stop()
	w.block = kind
	w.event(object{"type": "content_block_start", "index": w.index, "content_block": block})
}

// stop ends the block that is open.
func (w *fragmentWriter) stop() {
	if w.block != "" {
		w.event(object{"type": "content_block_stop", "index": w.index})
		w.index++
		w.block = ""
	}
}

func (w *fragmentWriter) delta(d troupe.Delta) {
	w.begin()
	if d.Thinking {
		w.start("thinking", object{"type": "thinking", "thinking": "", "signature": ""})
		w.event(object{"type": "content_block_delta", "index": w.index, "delta": object{"type": "thinking_delta", "thinking": d.Text}})
		return
	}
	w.start("text", object{"type": "text", "text": ""})
	w.event(object{"type": "content_block_delta", "index": w.index, "delta": object{"type": "text_delta", "text": d.Text}})
}

// reply ends a message. Of its blocks the calls were not streamed.
func (w *fragmentWriter) reply(r troupe.Replied) {
	streamed := w.open
	w.begin()
	for _, b := range r.Message.Content {
		switch b := b.(type) {
		case troupe.Text:
			if !streamed {
				w.delta(troupe.Delta{Text: string(b)})
			}
		case troupe.ToolUse:
			w.start("tool_use", object{"type": "tool_use", "id": b.ID, "name": b.Name, "input": object{}})
			w.event(object{"type": "content_block_delta", "index": w.index, "delta": object{"type": "input_json_delta", "partial_json": string(b.Input)}})
		}
	}
	w.stop()
	w.event(object{"type": "message_delta", "delta": object{"stop_reason": cli.StopReason(r.Stop), "stop_sequence": nil}, "usage": object{"output_tokens": r.Usage.Output}})
	w.event(object{"type": "message_stop"})
	w.open = false
	w.replies++
}
