package host_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// A scene is a play for many agents at once: each says what the part that it was
// told last to play makes it say. said is how often it has spoken since then.
type scene map[string]func(said int, r *troupetest.Request) troupetest.Reply

var partOf = regexp.MustCompile(`\bplay ([a-z0-9-]+)`)

// plays has the models of a place act in a scene.
func (p *place) plays(t *testing.T, s scene) {
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		name, said := "", 0
		for _, m := range r.Messages {
			if m.Role == troupe.Assistant {
				said++
				continue
			}
			if found := partOf.FindAllStringSubmatch(onlyText(m), -1); found != nil {
				name, said = found[len(found)-1][1], 0
			}
		}
		if s[name] == nil {
			t.Errorf("nobody plays %q: %s", name, r.LastUser())
			return troupetest.Reply{Message: troupetest.Say("?")}
		}
		return s[name](said, r)
	})
}

// onlyText is the text of a message without that of results.
func onlyText(m troupe.Message) (text string) {
	for _, b := range m.Content {
		if t, ok := b.(troupe.Text); ok {
			text += string(t)
		}
	}
	return text
}

// saying is the reply of text, and doing that of calls.
func saying(text string) troupetest.Reply { return troupetest.Reply{Message: troupetest.Say(text)} }
func doing(uses ...troupe.ToolUse) troupetest.Reply {
	return troupetest.Reply{Message: troupetest.Use(uses...)}
}

// starts is a call that starts an agent in the background to play a part; what
// more its input has comes in pairs of names and values.
func starts(id, part string, more ...any) troupe.ToolUse {
	in := map[string]any{"description": "the part " + part, "prompt": "Please play " + part + ".", "run_in_background": true}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	return use(id, "Agent", in)
}

// first does what it is given once, and says the texts of the turns after it, the
// last of them again and again.
func first(reply troupetest.Reply, then ...string) func(int, *troupetest.Request) troupetest.Reply {
	return func(said int, _ *troupetest.Request) troupetest.Reply {
		if said == 0 {
			return reply
		}
		return saying(then[min(said, len(then))-1])
	}
}

// says is a part of one text.
func says(text string) func(int, *troupetest.Request) troupetest.Reply {
	return func(int, *troupetest.Request) troupetest.Reply { return saying(text) }
}

// holds is a part that does not answer before a channel is closed.
func holds(until <-chan struct{}, text string) func(int, *troupetest.Request) troupetest.Reply {
	return func(int, *troupetest.Request) troupetest.Reply {
		return troupetest.Reply{Message: troupetest.Say(text), Fault: troupetest.Fault{Stall: troupetest.BeforeHeaders, Until: until}}
	}
}

// noticed are the notifications in a conversation, whole.
var noticed = regexp.MustCompile(`(?s)<task-notification>.*?</task-notification>`)

// news are the notices that an agent has been given, in their order: from its log,
// so each that is there was in a request.
func news(t *testing.T, s *host.Session, agent string) (all []string) {
	t.Helper()
	path := session.LogPath(s.Path(), agent)
	for r, err := range session.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := r.Event.(troupe.Received); ok && got.From == "task" {
			all = append(all, noticed.FindAllString(got.Message.Content.Text(), -1)...)
		}
	}
	return all
}

// part is the text of an element of a notice.
func part(notice, name string) string {
	_, rest, _ := strings.Cut(notice, "<"+name+">")
	text, _, _ := strings.Cut(rest, "</"+name+">")
	return text
}

// named is the task whose title ends in the name of a part.
func named(t *testing.T, s *host.Session, name string) jobs.Task {
	t.Helper()
	for _, job := range s.Tasks.List() {
		if job.Title == "the part "+name {
			return job
		}
	}
	t.Fatalf("nobody plays %s: %+v", name, s.Tasks.List())
	return jobs.Task{}
}

// S11, S17: of each of many agents that end while the lead is busy, and while it is
// idle, it gets one notice, and that says what still runs.
func TestS11S17EachEndIsToldOnce(t *testing.T) {
	p := newPlace(t)
	var busy, idle []troupe.ToolUse
	sc := scene{"nothing": says("nothing to add")}
	gate := make(chan struct{})
	for i := range 10 {
		b, d := fmt.Sprintf("busy-%d", i), fmt.Sprintf("idle-%d", i)
		sc[b], sc[d] = says("report of "+b), holds(gate, "report of "+d)
		busy, idle = append(busy, starts(b, b)), append(idle, starts(d, d))
	}
	var s *host.Session
	sc["lead"] = func(said int, r *troupetest.Request) troupetest.Reply {
		switch said {
		case 0:
			return doing(append(busy, idle...)...)
		case 1: // a call that takes as long as ten agents do
			return doing(use("look", "TaskOutput", map[string]any{"task_id": named(t, s, "busy-9").ID}))
		}
		return saying("seen")
	}
	p.plays(t, sc)
	s = p.open(t, func(o *host.Options) { o.Crew.Most = 20 })
	turn(t, s, "Please play lead.")
	if got := len(s.Tasks.Background(session.Lead)); got < 10 {
		t.Errorf("%d agents run, and 10 cannot have ended", got)
	}
	close(gate)
	untilIdle(t, s)
	all := news(t, s, session.Lead)
	if len(all) != 20 {
		t.Fatalf("%d notices: %s", len(all), all)
	}
	times := map[string]int{}
	for _, n := range all {
		times[part(n, "task-id")]++
		if part(n, "status") != "completed" || !strings.HasPrefix(part(n, "result"), "report of ") {
			t.Error(n)
		}
	}
	for _, job := range s.Tasks.List() {
		if times[job.ID] != 1 {
			t.Errorf("%s was told of %d times", job.ID, times[job.ID])
		}
	}
	if left := part(all[len(all)-1], "still-running"); left != "0" {
		t.Errorf("the last notice says that there run %s", left)
	}
}

// untilIdle lets the lead work until nothing is left for it.
func untilIdle(t *testing.T, s *host.Session) (end troupe.Ended) {
	t.Helper()
	for {
		more, stopped, err := s.Linger(t.Context(), host.Usual())
		if err != nil || len(stopped) > 0 {
			t.Fatal(stopped, err)
		}
		if !more {
			return end
		}
		if end, err = s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// S17: the first of three ends, and its notice names the two that still run, as
// TaskOutput does; the last one's says that there are none.
func TestS17ANoticeSaysWhatStillRuns(t *testing.T) {
	p := newPlace(t)
	gate := make(chan struct{})
	var s *host.Session
	p.plays(t, scene{
		"lead": func(said int, r *troupetest.Request) troupetest.Reply {
			switch said {
			case 0:
				return doing(starts("c1", "one"), starts("c2", "two"), starts("c3", "three"))
			case 2:
				return doing(use("list", "TaskOutput", map[string]any{}))
			case 3:
				close(gate)
			}
			return saying("so far so good")
		},
		"one": says("1"), "two": holds(gate, "2"), "three": holds(gate, "3"),
	})
	s = p.open(t)
	ask(t, s, "Please play lead.")
	all := news(t, s, session.Lead)
	if len(all) != 3 {
		t.Fatalf("%d notices: %s", len(all), all)
	}
	two, three := named(t, s, "two").ID, named(t, s, "three").ID
	has(t, part(all[0], "still-running"), "2: ", two, three)
	if left := part(all[2], "still-running"); left != "0" {
		t.Errorf("at the end there run %s", left)
	}
	for _, r := range p.provider.Requests() {
		for _, res := range r.Results() {
			if res.ID == "list" {
				has(t, res.Content.Text(), two, three)
				hasNot(t, res.Content.Text(), named(t, s, "one").ID)
			}
		}
	}
}

// S13: what an agent comes to is the last text that it said, also if its last
// message has none, in the foreground and in the background; if it did not end by
// itself, that is said.
func TestS13TheLastWordsAreTheLastThatWereSaid(t *testing.T) {
	glob := func(n int) troupe.ToolUse { return use(fmt.Sprintf("g%d", n), "Glob", map[string]any{"pattern": "*"}) }
	found := func(n int) troupetest.Reply {
		return troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text("FOUND: x"), glob(n)}}}
	}
	for name, tt := range map[string]struct {
		last    troupetest.Reply
		partial string
	}{
		"blank and text": {troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text(" \n"), troupe.Text("FOUND: x")}}}, ""},
		"blank":          {saying(" "), ""},
		"nothing":        {troupetest.Reply{}, ""},
		"only thoughts":  {troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Thinking{Text: "hm", Provider: "anthropic"}}}}, ""},
		"only calls":     {doing(glob(2)), "max_turns"},
	} {
		for _, background := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " background ", background), func(t *testing.T) {
				p := newPlace(t)
				p.src.Agents = `{"short": {"description": "d", "prompt": "You work.", "maxTurns": 2}}`
				p.plays(t, scene{
					"lead": first(doing(starts("c1", "child", "run_in_background", background, "subagent_type", "short")), "waiting", "thanks"),
					"child": func(said int, _ *troupetest.Request) troupetest.Reply {
						if said == 0 {
							return found(1)
						}
						return tt.last
					},
				})
				s := p.open(t)
				ask(t, s, "Please play lead.")
				if background {
					n := news(t, s, session.Lead)
					if len(n) != 1 || part(n[0], "result") != "FOUND: x" || (part(n[0], "status") == "completed") != (tt.partial == "") {
						t.Errorf("%s", n)
					}
					has(t, part(n[0], "summary"), tt.partial)
					return
				}
				res := resultOf(t, s, "c1")
				has(t, res.Content.Text(), "FOUND: x", tt.partial)
				if res.IsError != (tt.partial != "") {
					t.Errorf("%+v", res)
				}
			})
		}
	}
}

// resultOf is what a call of a session's lead came to.
func resultOf(t *testing.T, s *host.Session, use string) troupe.Result {
	t.Helper()
	for r, err := range session.Read(session.LogPath(s.Path(), session.Lead)) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := r.Event.(troupe.ToolEnded); ok && end.Use == use {
			return end.Result
		}
	}
	t.Fatalf("%s has no result", use)
	return troupe.Result{}
}

// S14: an agent that never has enough is stopped after as many requests as it may
// make, and that is a failure with what it has said.
func TestS14ALimitOfTurnsIsNoSuccess(t *testing.T) {
	for _, background := range []bool{true, false} {
		p := newPlace(t)
		p.src.Agents = `{"short": {"description": "d", "prompt": "You work.", "maxTurns": 3}}`
		p.plays(t, scene{
			"lead": first(doing(starts("c1", "child", "run_in_background", background, "subagent_type", "short")), "waiting", "thanks"),
			"child": func(said int, _ *troupetest.Request) troupetest.Reply {
				return troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
					troupe.Text(fmt.Sprintf("step %d", said)), use(fmt.Sprintf("g%d", said), "Glob", map[string]any{"pattern": "*"})}}}
			},
		})
		s := p.open(t)
		ask(t, s, "Please play lead.")
		asked := 0
		for _, r := range p.provider.Requests() {
			if strings.Contains(r.FirstUser(), "play child") {
				asked++
			}
		}
		if asked != 3 {
			t.Errorf("it asked %d times", asked)
		}
		if job := named(t, s, "child"); job.Status != jobs.Failed {
			t.Errorf("%+v", job)
		}
		if !background {
			res := resultOf(t, s, "c1")
			if has(t, res.Content.Text(), "did not finish (max_turns)", "step 2"); !res.IsError {
				t.Error("it counts as a success")
			}
			continue
		}
		n := news(t, s, session.Lead)
		if len(n) != 1 || part(n[0], "status") != "failed" || part(n[0], "result") != "step 2" {
			t.Errorf("%s", n)
		}
		has(t, part(n[0], "summary"), "max_turns")
	}
}

// S15: a lead that has given its answer is woken by the end of what it has started,
// also if the first request in which it would hear of it fails; it hears it once.
func TestS15AnIdleLeadIsWoken(t *testing.T) {
	for name, fault := range map[string]troupetest.Fault{
		"an error of the server": {Status: 500}, "overloaded": {Status: 529, RetryAfter: "0"}, "cut off": {Cut: troupetest.AfterStart},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			gate := make(chan struct{})
			var failed sync.Once
			p.plays(t, scene{
				"lead": func(said int, r *troupetest.Request) troupetest.Reply {
					switch said {
					case 0:
						return doing(starts("c1", "child"))
					case 1:
						return saying("it works")
					}
					reply := saying("I heard")
					failed.Do(func() { reply.Fault = fault })
					return reply
				},
				"child": holds(gate, "late report"),
			})
			s := p.open(t)
			if err := s.Send(t.Context(), "Please play lead."); err != nil {
				t.Fatal(err)
			}
			if end, err := s.Run(t.Context()); err != nil || end.Text != "it works" {
				t.Fatal(end, err)
			}
			close(gate)
			if end := untilIdle(t, s); end.Text != "I heard" {
				t.Errorf("%+v", end)
			}
			if n := news(t, s, session.Lead); len(n) != 1 || part(n[0], "result") != "late report" {
				t.Errorf("%s", n)
			}
			body := string(p.provider.Last().Body)
			if times := strings.Count(body, "late report"); times != 1 {
				t.Errorf("it is in the conversation %d times: %s", times, body)
			}
		})
	}
}

// S15: a run that fails for good with a notice in its request leaves it in the
// conversation, and the next one goes on with it.
func TestS15ANoticeOutlivesAFailedRun(t *testing.T) {
	p := newPlace(t)
	broken := true
	p.plays(t, scene{
		"lead": func(said int, r *troupetest.Request) troupetest.Reply {
			switch {
			case said == 0:
				return doing(starts("c1", "child"))
			case said > 1 && broken:
				broken = false
				return troupetest.Reply{Fault: troupetest.Fault{Status: 400}}
			}
			return saying("said")
		},
		"child": says("late report"),
	})
	s := p.open(t)
	if err := s.Send(t.Context(), "Please play lead."); err != nil {
		t.Fatal(err)
	}
	for { // until the run that fails
		if _, err := s.Run(t.Context()); err != nil {
			break
		}
		if more, _, err := s.Linger(t.Context(), host.Usual()); !more || err != nil {
			t.Fatal(more, err)
		}
	}
	ask(t, s, "go on")
	if n := news(t, s, session.Lead); len(n) != 1 {
		t.Errorf("%s", n)
	}
	if times := strings.Count(string(p.provider.Last().Body), "late report"); times != 1 {
		t.Errorf("it is in the conversation %d times", times)
	}
}
