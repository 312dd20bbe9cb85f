package control

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

// ran is how a run ended, before that is printed.
type ran struct {
	end  troupe.Ended
	took time.Duration
	news bool // no prompt was its reason
}

// begin prints what stands in front of a turn.
func (s *server) begin() error {
	if _, err := s.stream.Pull(); err != nil { // the ends that the turn is about come before it
		return err
	}
	s.paper.Lock()
	defer s.paper.Unlock()
	s.stream.About.Model, s.stream.About.Mode = s.session.Next()
	s.stream.Tally.Turn()
	if err := s.stream.Begin(); err != nil {
		return err
	}
	return s.state("running")
}

func (s *server) state(state string) error {
	return s.stream.Print(object{"type": "system", "subtype": "session_state_changed", "state": state})
}

// finish prints the result of a turn.
func (s *server) finish(r ran) error {
	s.paper.Lock()
	defer s.paper.Unlock()
	if err := s.stream.Finish(cli.Outcome{Ended: r.end, Tally: s.stream.Tally, Took: r.took, News: r.news}); err != nil {
		return err
	}
	return s.state("idle")
}

// untilQuit returns a context that ends with the loop: what ctx stops is still
// to be printed.
func (s *server) untilQuit(ctx context.Context) (context.Context, func()) {
	ctx, leave := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.quit:
			leave()
		case <-ctx.Done():
		}
	})
	return ctx, func() { leave(); wg.Wait() }
}

// follow prints what the agents do. When the client cannot be written to any
// more, the turn is stopped.
func (s *server) follow(ctx context.Context) {
	ctx, leave := s.untilQuit(ctx)
	defer leave()
	var broken error
	for r, err := range s.session.Follow(ctx) {
		if err != nil {
			continue // damage of old records was told when the session was opened
		}
		if broken = s.add(ctx, r, broken); broken != nil {
			s.stop(troupe.ErrInterrupted)
		}
		s.parts.recorded(r)
		s.shown.record(r)
		if _, ended := r.Event.(troupe.Ended); !ended || r.Agent != session.Lead {
			continue
		}
		select {
		case run := <-s.ran:
			if broken == nil {
				broken = s.finish(run)
			}
			s.end(turnEnd{run.end, broken})
		case <-s.quit:
			return
		}
	}
}

// add counts a record, and prints it unless the client is gone.
func (s *server) add(ctx context.Context, r session.Record, broken error) error {
	s.paper.Lock()
	defer s.paper.Unlock()
	s.stream.Tally.Add(r)
	if broken != nil {
		return broken
	}
	return s.record(ctx, r)
}

func (s *server) record(ctx context.Context, r session.Record) error {
	if ev, ok := r.Event.(troupe.Received); ok && s.Replay && r.Agent == session.Lead {
		if content, ok := s.replay.take(ev.ID); ok {
			o := object{"type": "user", "message": object{"role": "user", "content": content}, "parent_tool_use_id": nil, "isReplay": true}
			if err := s.stream.PrintAs(ev.ID, o); err != nil {
				return err
			}
		}
	}
	if err := s.parts.settle(ctx, r); err != nil {
		return err
	}
	return s.stream.Record(r)
}

// shown knows which calls the client has been shown. It is safe for concurrent use.
type shown struct {
	mu   sync.Mutex
	uses map[call]chan struct{}
}

// A call is named by who makes it, too: providers name calls as they like.
type call struct{ agent, use string }

func newShown() *shown { return &shown{uses: map[call]chan struct{}{}} }

func (s *shown) record(r session.Record) {
	switch ev := r.Event.(type) {
	case troupe.Replied:
		for _, u := range ev.Message.ToolUses() {
			c := s.of(call{r.Agent, u.ID})
			select {
			case <-c: // a log can say anything
			default:
				close(c)
			}
		}
	case troupe.ToolEnded:
		s.mu.Lock()
		delete(s.uses, call{r.Agent, ev.Use})
		s.mu.Unlock()
	}
}

func (s *shown) of(use call) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.uses[use]
	if c == nil {
		c = make(chan struct{})
		s.uses[use] = c
	}
	return c
}

// wait waits until a call was shown, or ctx ends.
func (s *shown) wait(ctx context.Context, use call) {
	select {
	case <-s.of(use):
	case <-ctx.Done():
	}
}

// A replay keeps what the client has said, as it said it, until it enters. It is
// safe for concurrent use.
type replay struct {
	mu   sync.Mutex
	said map[string]json.RawMessage
}

func newReplay() *replay { return &replay{said: map[string]json.RawMessage{}} }

func (r *replay) keep(id string, content json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[id] = content
}

func (r *replay) take(id string) (json.RawMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	content, ok := r.said[id]
	delete(r.said, id)
	return content, ok
}
