package host_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// S16: of five agents that are waited for two hear nothing from the provider: they
// end when it has been silent for too long, and the lead has all five results.
func TestS16ASilentProviderHoldsUpNobodyElse(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "TROUPE_IDLE_TIMEOUT=300ms", "TROUPE_MAX_RETRIES=1")
	var asked atomic.Int32
	silent := func(int, *troupetest.Request) troupetest.Reply {
		asked.Add(1)
		return troupetest.Reply{Message: troupetest.Say("never"), Fault: troupetest.Fault{Stall: troupetest.AfterHeaders}}
	}
	var calls []troupe.ToolUse
	sc := scene{}
	for i := range 5 {
		name := fmt.Sprintf("child-%d", i)
		if sc[name] = says("report"); i%2 == 1 {
			sc[name] = silent
		}
		calls = append(calls, starts(name, name, "run_in_background", false))
	}
	sc["lead"] = first(doing(calls...), "all there")
	p.plays(t, sc)
	s := p.open(t)
	if end := ask(t, s, "Please play lead."); end.Text != "all there" || end.Turns != 2 {
		t.Errorf("%+v", end)
	}
	for i, c := range calls {
		res := resultOf(t, s, c.ID)
		if res.IsError != (i%2 == 1) {
			t.Errorf("%s: %+v", c.ID, res)
		}
		if res.IsError {
			has(t, res.Content.Text(), "no sign of life from the server")
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("the silent provider was asked %d times", n)
	}
}

// S18: two others speak at once to an agent that works, waits for what it has
// started, or has ended. One loop has it at any moment, and each text is there once.
func TestS18OneLoopOwnsAnAgent(t *testing.T) {
	for _, state := range []string{"running", "waiting", "ended"} {
		t.Run(state, func(t *testing.T) {
			p := newPlace(t)
			gate := make(chan struct{})
			var s *host.Session
			var spoken sync.WaitGroup
			spoken.Add(2)
			speaks := func(by string, to func() string) func(int, *troupetest.Request) troupetest.Reply {
				return func(said int, r *troupetest.Request) troupetest.Reply {
					switch said {
					case 0:
						return doing(use("s"+by, "SendMessage", map[string]any{"to": to(), "message": "word of " + by}))
					case 1:
						if res := r.Results(); len(res) != 1 || res[0].IsError {
							t.Errorf("%+v", res)
						}
						spoken.Done()
					}
					return saying("said")
				}
			}
			p.src.Agents = `{"boss": {"description": "d", "prompt": "You work.", "tools": ["*", "Agent"]}}`
			p.plays(t, scene{
				"lead":      first(doing(starts("c1", "child", "name", "kid", "subagent_type", "boss")), "noted"),
				"speakers":  first(doing(starts("a", "speaker-a"), starts("b", "speaker-b")), "they speak", "noted"),
				"speaker-a": speaks("a", func() string { return "kid" }), "speaker-b": speaks("b", func() string { return named(t, s, "child").ID }),
				"child": func(said int, r *troupetest.Request) troupetest.Reply {
					reply := saying(fmt.Sprintf("answer %d", said))
					switch {
					case state == "running" && said == 0:
						reply.Fault = troupetest.Fault{Stall: troupetest.BeforeHeaders, Until: gate}
					case state == "waiting" && said == 0:
						return doing(starts("g1", "grandchild"))
					}
					return reply
				},
				"grandchild": holds(gate, "late"),
			})
			s = p.open(t)
			turn(t, s, "Please play lead.")
			switch state {
			case "ended":
				untilIdle(t, s)
			case "waiting":
				waitUntil(t, s, func(job jobs.Task) bool { return job.Waiting })
			}
			turn(t, s, "Please play speakers.")
			spoken.Wait()
			close(gate)
			untilIdle(t, s)
			heardBoth(t, s, named(t, s, "child").ID)
			ownedByOne(t, p)
			turns := map[string]int{}
			for _, n := range news(t, s, session.Lead) {
				turns[part(n, "task-id")+part(n, "result")]++
			}
			for what, times := range turns {
				if times != 1 {
					t.Errorf("%s was told %d times", what, times)
				}
			}
		})
	}
}

// heardBoth fails if an agent has not heard the words of a and b once each.
func heardBoth(t *testing.T, s *host.Session, agent string) {
	t.Helper()
	heard, runs := map[string]int{}, 0
	for r, err := range session.Read(session.LogPath(s.Path(), agent)) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := r.Event.(type) {
		case troupe.Received:
			for _, by := range []string{"a", "b"} {
				heard[by] += strings.Count(ev.Message.Content.Text(), "word of "+by)
			}
		case troupe.Ended:
			runs++
		}
	}
	if heard["a"] != 1 || heard["b"] != 1 || runs > 4 {
		t.Errorf("it heard %v in %d runs", heard, runs)
	}
}

// ownedByOne fails if a request of the child does not go on from the one before it,
// as it would if two loops had it.
func ownedByOne(t *testing.T, p *place) {
	t.Helper()
	seen := 0
	for _, r := range p.provider.Requests() {
		if !strings.Contains(r.FirstUser(), "play child") {
			continue
		}
		if len(r.Messages) <= seen {
			t.Errorf("request %d does not go on from the one before it: %d messages after %d", r.Number, len(r.Messages), seen)
		}
		seen = len(r.Messages)
	}
}

// waitUntil waits for a task of a session that is as it should be.
func waitUntil(t *testing.T, s *host.Session, is func(jobs.Task) bool) jobs.Task {
	t.Helper()
	for job := range s.Tasks.Watch(t.Context()) {
		if is(job) {
			return job
		}
	}
	t.Fatal("it did not come to it")
	return jobs.Task{}
}

// speakTo, in a process of its own, is the directory of a place whose newest session
// it is to open.
const speakTo = "TROUPE_TEST_SPEAK_TO"

// S18: while a session is at work no other process takes up one of its agents.
func TestS18NoOtherProcessHasTheAgents(t *testing.T) {
	if root := os.Getenv(speakTo); root != "" {
		p := placeIn(t, root)
		info, err := host.Latest(p.home, p.dir)
		if err != nil {
			t.Fatal(err)
		}
		o := p.options(t)
		o.Resume, o.Model = &info, ""
		if _, err = host.Open(t.Context(), o); !errors.Is(err, session.ErrInUse) {
			t.Fatalf("a second process has the session: %v", err)
		}
		fmt.Println("refused:", err)
		return
	}
	p := newPlace(t)
	gate := make(chan struct{})
	p.plays(t, scene{"lead": first(doing(starts("c1", "child")), "it works", "done"), "child": holds(gate, "late")})
	s := p.open(t)
	if err := s.Send(t.Context(), "Please play lead."); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), speakTo+"="+filepath.Dir(p.dir))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprint(os.Getpid())) {
		t.Errorf("%v: %s", err, out)
	}
	close(gate)
	untilIdle(t, s)
	if n := news(t, s, session.Lead); len(n) != 1 {
		t.Errorf("%s", n)
	}
}

// S101: every agent asks for five more. As many are started as may be, as many work
// at once as may, and each call beyond that is told the limit. Who is not to start
// others has no tool for it.
func TestS101AgentsDoNotMultiply(t *testing.T) {
	const depth, total, most = host.Depth, 20, 6
	p := newPlace(t)
	more := func(said int, r *troupetest.Request) troupetest.Reply {
		if said > 0 {
			return saying("done")
		}
		var calls []troupe.ToolUse
		for i := range 5 {
			calls = append(calls, starts(fmt.Sprintf("n%d-%d", r.Number, i), "more"))
		}
		return doing(calls...)
	}
	p.plays(t, scene{"more": more})
	s := p.open(t, func(o *host.Options) { o.Crew.Total, o.Crew.Most = total, most })
	stop := make(chan int)
	go func() { // the most that are at work at one moment
		peak := 0
		for range s.Tasks.Watch(t.Context()) {
			n := 0
			for _, job := range s.Tasks.List() {
				if job.Status == jobs.Running && !job.Waiting {
					n++
				}
			}
			peak = max(peak, n)
			if len(s.Tasks.List()) == total && n == 0 {
				break
			}
		}
		stop <- peak
	}()
	ask(t, s, "Please play more.")
	if got := <-stop; got > most {
		t.Errorf("%d agents were at work at once", got)
	}
	all := s.Tasks.List()
	if len(all) != total {
		t.Errorf("%d agents were started", len(all))
	}
	for _, job := range all {
		if !job.Status.Ended() || job.Depth > depth {
			t.Errorf("%+v", job)
		}
	}
	refused := 0
	for _, path := range logs(t, s) {
		depth := 0
		for r := range session.Read(path) {
			if start, ok := r.Event.(troupe.Started); ok {
				depth = start.Depth
			}
			end, ok := r.Event.(troupe.ToolEnded)
			switch {
			case !ok || !end.Result.IsError:
			case depth == host.Depth:
				has(t, end.Result.Content.Text(), `There is no tool "Agent"`)
			default:
				refused++
				has(t, end.Result.Content.Text(), jobs.ErrTotal.Error(), fmt.Sprint(total))
			}
		}
	}
	if refused == 0 {
		t.Error("nobody was refused")
	}
	started, err := session.Starts(s.Path())
	if err != nil || len(started) != total {
		t.Errorf("%d logs, %v", len(started), err)
	}
}

// S102: an agent that may start agents starts none of its own type, by whatever way,
// also after it was taken up again in another run of the session, and after its
// conversation was cut short. The error names the type.
func TestS102NoTypeStartsItself(t *testing.T) {
	p := newPlace(t)
	p.src.Agents = `{"one": {"description": "d", "prompt": "You work.", "tools": ["*", "Agent"]}, "two": {"description": "d", "prompt": "You work.", "tools": ["*", "Agent"]}}`
	tries := func(next troupe.ToolUse) func(int, *troupetest.Request) troupetest.Reply {
		return func(said int, r *troupetest.Request) troupetest.Reply {
			switch said {
			case 0:
				return doing(starts(fmt.Sprintf("self%d", r.Number), "nobody", "subagent_type", "one"))
			case 1:
				res := r.Results()
				if len(res) != 1 || !res[0].IsError {
					t.Errorf("it started itself: %+v", res)
				} else {
					has(t, res[0].Content.Text(), delegate.ErrNested.Error(), "one")
				}
				if next.ID != "" {
					return doing(next)
				}
			}
			return saying("done")
		}
	}
	p.plays(t, scene{
		"lead":  first(doing(starts("c1", "self", "subagent_type", "one", "name", "kid")), "noted"),
		"self":  tries(starts("c2", "other", "subagent_type", "two")),
		"other": tries(troupe.ToolUse{}),
		"again": first(doing(use("m1", "SendMessage", map[string]any{"to": "kid", "message": "Please play self."})), "noted"),
	})
	s := p.open(t)
	ask(t, s, "Please play lead.")
	ask(t, s, "Please play again.")
	closed(t, s)
	next := p.open(t, resume(t, s))
	ask(t, next, "Please play again.")
	if got := len(next.Tasks.List()); got != 4 {
		t.Errorf("%d agents: %+v", got, next.Tasks.List())
	}
}
