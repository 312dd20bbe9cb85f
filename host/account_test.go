package host_test

import (
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

// An office is a provider's account that takes a few requests in a second and
// asks the others to come back in two.
type office struct {
	t     *testing.T
	rate  int
	after time.Duration

	mu      sync.Mutex
	came    []time.Time // of requests that were taken
	refused []time.Time
	served  map[string]int // by the task of the agent
}

func (o *office) answer(r *troupetest.Request) troupetest.Reply {
	o.mu.Lock()
	defer o.mu.Unlock()
	recent := 0
	for _, t := range o.came {
		if r.Arrived.Sub(t) < time.Second {
			recent++
		}
	}
	if recent >= o.rate {
		o.refused = append(o.refused, r.Arrived)
		wait := fmt.Sprint(o.after.Seconds())
		if len(o.refused)%2 == 0 { // the other form; a date has whole seconds
			wait = time.Now().Add(o.after + time.Second).UTC().Format(http.TimeFormat)
		}
		status := []int{429, 529}[len(o.refused)%3/2]
		return troupetest.Reply{Fault: troupetest.Fault{Status: status, RetryAfter: wait}}
	}
	o.came = append(o.came, r.Arrived)
	task := r.FirstUser()[strings.LastIndex(r.FirstUser(), "\n")+1:]
	o.served[task]++
	switch n := len(r.Results()); {
	case strings.Contains(task, "lead") && n == 0:
		m := troupe.Message{Role: troupe.Assistant}
		for i := range 12 {
			m.Content = append(m.Content, use(fmt.Sprintf("a%d", i), "Agent", map[string]any{"description": "d", "prompt": fmt.Sprintf("part %d", i)}))
		}
		return troupetest.Reply{Message: m}
	case n == 0:
		return troupetest.Reply{Message: troupetest.Use(use("g", "Glob", map[string]any{"pattern": "*"}))}
	}
	return troupetest.Reply{Message: troupetest.Say("report of " + task)}
}

// S103: twelve agents of one process, an account that takes five requests in a
// second. All finish, nothing is lost and nothing is asked twice; nobody comes
// earlier than the account has asked for, whatever the others were told.
func TestS103TwelveAgentsOfOneAccount(t *testing.T) {
	p := newPlace(t)
	o := &office{t: t, rate: 5, after: 2 * time.Second, served: map[string]int{}}
	p.provider.Respond(o.answer)
	s := p.open(t)
	end := ask(t, s, "the lead's task")
	if end.Reason != troupe.Done {
		t.Fatalf("ended with %+v", end)
	}
	results := p.provider.Last().Results()
	if len(results) != 12 {
		t.Fatalf("%d results of 12", len(results))
	}
	for i, res := range results {
		if res.IsError || !strings.Contains(res.Content.Text(), fmt.Sprintf("report of part %d\n", i)) {
			t.Errorf("result %d: %s", i, res.Content.Text())
		}
	}
	for task, n := range o.served {
		if n != 2 {
			t.Errorf("%q was served %d times, want 2", task, n)
		}
	}
	all := len(p.provider.Requests())
	if len(o.served) != 13 || all != 26+len(o.refused) {
		t.Errorf("%d agents, %d requests, %d refused", len(o.served), all, len(o.refused))
	}
	if n := len(o.refused); n < 1 || n > 20 { // some of the first burst; without a governor there are many more
		t.Errorf("%d requests were refused", n)
	}
	for _, r := range p.provider.Requests() {
		for _, hit := range o.refused {
			// Until a second after the refusal, what was under way may come in.
			if since := r.Arrived.Sub(hit); since > time.Second && since < o.after {
				t.Errorf("a request %v after a refusal that asked for %v", since, o.after)
			}
		}
	}
	waits := 0
	for _, path := range logs(t, s) {
		for r := range session.Read(path) {
			if w, ok := r.Event.(troupe.Waiting); ok {
				waits++
				if !strings.Contains(w.Cause, "429") && !strings.Contains(w.Cause, "529") {
					t.Errorf("it waits because of %q", w.Cause)
				}
			}
		}
	}
	if waits == 0 {
		t.Error("nobody says that it waits for the account")
	}
}

// The lead that has gone over to another model stays with it, in this session
// and when it is resumed, until the user names one.
func TestAFallbackStays(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "TROUPE_MAX_RETRIES=0")
	busy := true
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		if busy && r.Model == "claude-haiku-4-5" {
			return troupetest.Reply{Fault: troupetest.Fault{Status: 503}}
		}
		return troupetest.Reply{Message: troupetest.Say("I am " + r.Model)}
	})
	fallback := func(o *host.Options) { o.Fallback = []string{"openai/gpt-5-mini", "anthropic/claude-sonnet-4-6"} }
	s := p.open(t, fallback)
	if end := ask(t, s, "who are you?"); end.Text != "I am gpt-5-mini" {
		t.Fatalf("%+v", end)
	}
	busy = false
	if end := ask(t, s, "and now?"); end.Text != "I am gpt-5-mini" {
		t.Errorf("%+v", end)
	}
	closed(t, s)
	s = p.open(t, resume(t, s))
	if end := ask(t, s, "and now?"); end.Text != "I am gpt-5-mini" {
		t.Errorf("resumed: %+v", end)
	}
	closed(t, s)
	s = p.open(t, resume(t, s), func(o *host.Options) { o.Model = p.model })
	if end := ask(t, s, "and now?"); end.Text != "I am claude-haiku-4-5" {
		t.Errorf("by the user's word: %+v", end)
	}
}
