package host_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	asking "github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/troupetest"
)

// desk gives a session a desk at which answer sits.
func desk(t *testing.T, answer func(asking.Question) asking.Answer) func(*host.Options) {
	t.Helper()
	d := asking.NewDesk(time.Now)
	leave := d.Attend()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for open := range d.Watch(ctx) {
			for _, q := range open {
				if err := d.Answer(q.ID, answer(q)); err != nil && !errors.Is(err, asking.ErrAnswered) {
					t.Error(err)
				}
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait(); leave() })
	return func(o *host.Options) { o.Desk = d }
}

func TestAPersonDecidesAtTheDesk(t *testing.T) {
	p := newPlace(t)
	yes := true
	var seen []asking.Question
	s := p.open(t, desk(t, func(q asking.Question) asking.Answer {
		seen = append(seen, q)
		if yes {
			return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}, Mode: "acceptEdits"}
		}
		return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user", Reason: "not today"}}
	}))
	if res := p.call(t, s, "Write", map[string]any{"file_path": "a.txt", "content": "x"}); res.IsError {
		t.Errorf("%v", res)
	}
	if len(seen) != 1 || seen[0].Kind != asking.Permission || seen[0].Call.Name != "Write" || seen[0].Agent != "lead" || seen[0].Why == "" {
		t.Fatalf("%+v", seen)
	}
	// The answer has set the mode, and the model was told.
	if res := p.call(t, s, "Write", map[string]any{"file_path": "b.txt", "content": "x"}); res.IsError || len(seen) != 1 {
		t.Errorf("%v, asked %d times", res, len(seen))
	}
	has(t, string(p.provider.Last().Body), "permission mode to acceptEdits")
	yes = false
	if res := p.call(t, s, "Bash", map[string]any{"command": "touch c.txt"}); !res.IsError || !strings.Contains(res.Content.Text(), "not today") {
		t.Errorf("%v", res)
	}
}

func TestInterruptEndsTheTurnAndNotTheSession(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, bypass)
	s.Interrupt() // nothing runs: nothing happens
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("c1", "Bash", map[string]any{"command": "echo begun > begun; sleep 1000"}))})
	if err := s.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var end troupe.Ended
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { end, err = s.Run(t.Context()) })
	for r := range s.Follow(t.Context()) {
		if ev, ok := r.Event.(troupe.Decided); ok && ev.Verdict.Effect == troupe.Allow {
			break
		}
	}
	s.Interrupt()
	wg.Wait()
	if !errors.Is(err, troupe.ErrInterrupted) || end.Reason != troupe.Interrupted {
		t.Errorf("%+v, %v", end, err)
	}
	p.provider.Say("here")
	if end := ask(t, s, "still there?"); end.Text != "here" {
		t.Errorf("%+v", end)
	}
}

func TestSwitchCountsFromTheNextRequestOn(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	if err := s.Switch(troupe.Switched{Model: "nobody/knows"}); err == nil {
		t.Error("a model that is not there was taken")
	}
	if err := s.Switch(troupe.Switched{Mode: "yolo"}); err == nil {
		t.Error("a mode that is not there was taken")
	}
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		if n := len(p.provider.Requests()); n > 1 {
			return troupetest.Reply{Message: troupetest.Say("done")}
		}
		if err := s.Switch(troupe.Switched{Model: "openai/gpt-5-mini", Mode: "bypassPermissions"}); err != nil {
			t.Error(err)
		}
		return troupetest.Reply{Message: troupetest.Use(use("c1", "TodoWrite", map[string]any{"todos": []any{}}))}
	})
	ask(t, s, "go")
	sent := p.provider.Requests()
	if len(sent) != 2 || sent[0].Model != "claude-haiku-4-5" || sent[1].Model != "gpt-5-mini" {
		t.Fatalf("%d requests, the last to %s", len(sent), sent[len(sent)-1].Model)
	}
	has(t, string(sent[1].Body), "permission mode to bypassPermissions")
	closed(t, s)
	again := p.open(t, resume(t, s))
	if b := again.Begun(); b.Request.Model != "openai/gpt-5-mini" || b.Mode != "default" {
		t.Errorf("resumed with %s in mode %s", b.Request.Model, b.Mode)
	}
}
