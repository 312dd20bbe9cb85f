package host_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	registry "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// leaves has the lead start agents in the background and answer "left" while they
// are at work: they say their word when it has. Of news it says "news".
func leaves(t *testing.T, p *place, agents int) {
	answered := make(chan struct{})
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		said, last := 0, ""
		for _, m := range r.Messages {
			if m.Role == troupe.Assistant {
				said++
			}
			last = m.Content.Text()
		}
		switch {
		case strings.Contains(r.Messages[0].Content.Text(), "wait for it"):
			select {
			case <-answered:
			case <-t.Context().Done():
			}
			return troupetest.Reply{Message: troupetest.Say("done")}
		case said == 0:
			m := troupe.Message{Role: troupe.Assistant}
			for i := range agents {
				m.Content = append(m.Content, use(fmt.Sprintf("c%d", i), "Agent", map[string]any{"description": "d", "prompt": "wait for it", "run_in_background": true}))
			}
			return troupetest.Reply{Message: m}
		case strings.Contains(last, "<task-notification>"):
			return troupetest.Reply{Message: troupetest.Say("news")}
		}
		defer close(answered)
		return troupetest.Reply{Message: troupetest.Say("left")}
	})
}

// The limit of requests is one of the answer and of what the news make, together.
func TestAnAnswerWithNewsKeepsToItsTurns(t *testing.T) {
	for _, test := range []struct {
		most, turns int
		text        string
		reason      troupe.Reason
	}{{0, 3, "news", troupe.Done}, {3, 3, "news", troupe.Done}, {2, 2, "left", troupe.OutOfTurns}} {
		p := newPlace(t)
		leaves(t, p, 1)
		s := p.open(t, func(o *host.Options) { o.Turns = test.most })
		if err := s.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		end, stopped, err := s.Answer(t.Context(), host.Usual())
		if end.Reason != test.reason || end.Turns != test.turns || end.Text != test.text || (err == nil) != (test.reason == troupe.Done) || len(stopped) != 0 {
			t.Errorf("at most %d: %+v, %v, %v", test.most, end, stopped, err)
		}
	}
}

// So is the limit of time, which also ends the wait; who is stopped by it is named.
func TestAnAnswerThatWaitsKeepsToItsTime(t *testing.T) {
	p := newPlace(t)
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		switch {
		case strings.Contains(r.Messages[0].Content.Text(), "wait for it"):
			<-t.Context().Done() // for ever
		case len(r.Messages) == 1:
			return troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
				use("c", "Agent", map[string]any{"description": "d", "prompt": "wait for it", "run_in_background": true})}}}
		}
		return troupetest.Reply{Message: troupetest.Say("left")}
	})
	s := p.open(t, func(o *host.Options) { o.Limits.Time = 3 * time.Second })
	if err := s.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	end, stopped, err := s.Answer(t.Context(), host.Usual())
	if end.Reason != troupe.OutOfTime || err == nil {
		t.Errorf("%+v, %v", end, err)
	}
	for _, k := range stopped { // on a busy machine the time may be over before there is one
		if k.Status != registry.Killed || k.Title != "d" {
			t.Errorf("%+v", k)
		}
	}
}
