package host_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// ended lets the lead have the task done and keeps how its run ended, well or not,
// the last one of those that came of it.
func ended(end *troupe.Ended) func(*testing.T, *host.Session) {
	return func(t *testing.T, s *host.Session) {
		if err := s.Send(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		*end = lingered(t.Context(), s)
	}
}

// lingered lets the lead work until nothing is left for it, or ctx ends.
func lingered(ctx context.Context, s *host.Session) (end troupe.Ended) {
	for {
		var err error
		if end, err = s.Run(ctx); err != nil {
			return end
		}
		more, _, err := s.Linger(ctx, host.Usual())
		if err != nil {
			end.Reason, end.Err = troupe.Interrupted, err.Error()
		}
		if !more {
			return end
		}
	}
}

// unfinished is what is told of an agent that has failed.
func unfinished(way troupetest.Way) string {
	if way.Apart && !strings.HasPrefix(way.Name, "sub-agent of") {
		return "<status>failed</status>"
	}
	return "did not finish (failed)"
}

// told is what others than those that act were sent by the provider's door, to see
// what is told of an agent, by whatever way.
func told(p *place, actors map[int]bool) string {
	var all strings.Builder
	for _, r := range p.provider.Requests() {
		if !actors[r.Number] {
			for _, m := range r.Messages {
				for _, b := range m.Content {
					switch b := b.(type) {
					case troupe.Text:
						all.WriteString(string(b))
					case troupe.ToolResult:
						all.WriteString(b.Content.Text())
					}
				}
			}
		}
	}
	return all.String()
}

// S103: whoever is refused for the limit of the account comes back, not before the
// time that it is told, and finishes; nothing is asked twice.
func TestS103WhoIsRefusedComesBack(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		t.Parallel() // most of it is waiting
		const after = 300 * time.Millisecond
		set := with(t)
		var mu sync.Mutex
		var refused []time.Time // those of all that act
		set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
			mu.Lock()
			defer mu.Unlock()
			switch turn {
			case 0:
				refused = append(refused, r.Arrived)
				return troupetest.Reply{Fault: troupetest.Fault{Status: http.StatusTooManyRequests, RetryAfter: fmt.Sprint(after.Seconds())}}
			case 1:
				if since := r.Arrived.Sub(refused[0]); since < after {
					t.Errorf("it comes back after %v, and was asked to after %v", since, after)
				}
				return troupetest.Reply{Message: troupetest.Use(use(fmt.Sprint("glob", r.Number), "Glob", map[string]any{"pattern": "*"}))}
			case 2:
				return troupetest.Reply{Message: troupetest.Say("REPORT")}
			}
			t.Errorf("it is asked a %dth time", turn+1)
			return troupetest.Reply{}
		}
		var end troupe.Ended
		var s *host.Session
		set.run = func(t *testing.T, opened *host.Session) { s = opened; ended(&end)(t, s) }
		for id, m := range call(t, set) {
			if m.Result.IsError {
				t.Errorf("%s: %+v", id, m)
			}
		}
		if end.Reason != troupe.Done || len(refused) == 0 {
			t.Errorf("%d were refused; %+v", len(refused), end)
		}
		if text := logged(t, s); !strings.Contains(text, "429") {
			t.Errorf("no log says what it waits for: %s", text)
		}
	})
}

// logged is what the logs say of waits and changes of model.
func logged(t *testing.T, s *host.Session) string {
	t.Helper()
	var out strings.Builder
	for _, path := range logs(t, s) {
		for r := range session.Read(path) {
			switch ev := r.Event.(type) {
			case troupe.Waiting:
				fmt.Fprintln(&out, "waits:", ev.Cause)
			case troupe.Retrying:
				fmt.Fprintln(&out, "asks again:", ev.Cause)
			case troupe.Switched:
				fmt.Fprintln(&out, "goes on with", ev.Model, ev.Cause)
			}
		}
	}
	return out.String()
}

// toldOfFailure is how others are told that an agent has failed: by the result of the
// call that has started it, or by a notice.
func toldOfFailure(way troupetest.Way) string {
	if way.Apart && !strings.HasPrefix(way.Name, "sub-agent of") {
		return "<status>failed</status>"
	}
	return "did not finish (failed)"
}

// S103: who is refused to the end fails alone, and what it has said is not lost.
func TestS103WhoIsRefusedToTheEndFailsAlone(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		t.Parallel()
		set := with(t)
		set.p.env = append(set.p.env, "TROUPE_MAX_RETRIES=0")
		var mu sync.Mutex
		actors := map[int]bool{}
		set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
			mu.Lock()
			defer mu.Unlock()
			actors[r.Number] = true
			if turn > 0 {
				return troupetest.Reply{Fault: troupetest.Fault{Status: 529}}
			}
			return troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text("I LOOK"), use(fmt.Sprint("look", r.Number), "Glob", map[string]any{"pattern": "*"})}}}
		}
		var end troupe.Ended
		set.run = ended(&end)
		call(t, set)
		if way.Lead() {
			if end.Reason != troupe.Failed || end.Text != "I LOOK" {
				t.Errorf("the lead ended with %+v", end)
			}
			return
		}
		if end.Reason != troupe.Done {
			t.Errorf("the lead ended with %+v", end)
		}
		has(t, told(set.p, actors), unfinished(way), "I LOOK")
	})
}

// S104: a model whose streams break is asked again and, only where another is
// named, replaced; then the log, the result and the parent's result name it. Half
// a call never runs.
func TestS104AnotherModelOnlyByName(t *testing.T) {
	for _, fallback := range [][]string{nil, {"anthropic/claude-sonnet-4-6"}} {
		callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
			t.Parallel()
			set := with(t, bypass, func(o *host.Options) { o.Fallback = fallback })
			set.p.env = append(set.p.env, "TROUPE_MAX_RETRIES=1")
			var mu sync.Mutex
			actors := map[int]bool{}
			set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
				mu.Lock()
				defer mu.Unlock()
				actors[r.Number] = true
				want := []string{"claude-haiku-4-5", "claude-haiku-4-5", "claude-sonnet-4-6"}
				if turn >= 2+len(fallback) || r.Model != want[turn] {
					t.Errorf("request %d goes to %s", turn+1, r.Model)
				}
				if turn == 2 {
					return troupetest.Reply{Message: troupetest.Say("REPORT")}
				}
				return troupetest.Reply{Message: troupetest.Use(writing(fmt.Sprint("half", r.Number), "half.txt")), Fault: troupetest.Fault{Cut: troupetest.InCall}}
			}
			var end troupe.Ended
			var s *host.Session
			set.run = func(t *testing.T, opened *host.Session) { s = opened; ended(&end)(t, s) }
			call(t, set)
			if set.p.made("half.txt") {
				t.Error("half a call was run")
			}
			named := "goes on with anthropic/claude-sonnet-4-6 anthropic/claude-haiku-4-5 is not available"
			if strings.Contains(logged(t, s), named) != (fallback != nil) {
				t.Errorf("the logs say %s", logged(t, s))
			}
			for _, r := range set.p.provider.Requests() {
				if !actors[r.Number] && r.Model != "claude-haiku-4-5" {
					t.Errorf("somebody else goes over to %s", r.Model)
				}
			}
			others := told(set.p, actors)
			switch {
			case way.Lead():
				if (end.Reason == troupe.Done) != (fallback != nil) {
					t.Errorf("the lead ended with %+v", end)
				}
			case fallback == nil:
				has(t, others, unfinished(way))
				hasNot(t, others, "sonnet")
			default:
				has(t, others, "REPORT", "anthropic/claude-sonnet-4-6 answered, as anthropic/claude-haiku-4-5 is not available")
			}
		})
	}
}
