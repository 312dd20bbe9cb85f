package host_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	asking "github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// attended is a desk at which somebody sits until the test ends.
func attended(t *testing.T) (*asking.Desk, func(*host.Options)) {
	t.Helper()
	d := asking.NewDesk(time.Now)
	t.Cleanup(d.Attend())
	return d, func(o *host.Options) { o.Desk = d }
}

// open waits until n questions lie on a desk, and returns them.
func open(t *testing.T, d *asking.Desk, n int) []asking.Question {
	t.Helper()
	for all := range d.Watch(t.Context()) {
		if len(all) == n {
			return all
		}
	}
	t.Fatalf("there were never %d questions", n)
	return nil
}

// answer answers a question of a desk.
func answer(t *testing.T, d *asking.Desk, q asking.Question, effect troupe.Effect, why string) {
	t.Helper()
	if err := d.Answer(q.ID, asking.Answer{Verdict: troupe.Verdict{Effect: effect, By: "user", Reason: why}}); err != nil {
		t.Error(err)
	}
}

// turn gives the lead a prompt and lets it work until it has said its last word.
func turn(t *testing.T, s *host.Session, prompt string) troupe.Ended {
	t.Helper()
	if err := s.Send(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	end, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// touches is a part that makes a file by a command that needs approval.
func touches(name string) func(int, *troupetest.Request) troupetest.Reply {
	return first(doing(bash("t"+name, "touch "+name)), name+" is over")
}

// Questions of agents in the background lie on the desk with the names of those that
// ask. They hold up nobody else, may be answered in any order, and each answer
// reaches its asker.
func TestApprovalsOfManyInTheBackground(t *testing.T) {
	p := newPlace(t)
	p.plays(t, scene{
		"lead": first(doing(starts("c1", "one", "name", "anne"), starts("c2", "two", "name", "bob"), starts("c3", "three")), "they work", "noted"),
		"talk": says("still here"),
		"one":  touches("one"), "two": touches("two"), "three": touches("three"),
	})
	d, sits := attended(t)
	s := p.open(t, sits)
	turn(t, s, "Please play lead.")
	all := open(t, d, 3)
	by := map[string]asking.Question{}
	for _, q := range all {
		by[named(t, s, strings.TrimPrefix(q.Call.ID, "t")).ID] = q
		want := map[string]string{"tone": "anne", "ttwo": "bob", "tthree": "general-purpose"}[q.Call.ID]
		if q.Name != want || q.Agent != named(t, s, strings.TrimPrefix(q.Call.ID, "t")).ID {
			t.Errorf("%s asks as %s", want, q.Name)
		}
	}
	if end := turn(t, s, "Please play talk."); end.Text != "still here" {
		t.Errorf("the lead is held up: %+v", end)
	}
	answer(t, d, by[named(t, s, "three").ID], troupe.Allow, "")
	answer(t, d, by[named(t, s, "two").ID], troupe.Deny, "not that one")
	open(t, d, 1)
	answer(t, d, by[named(t, s, "one").ID], troupe.Allow, "")
	untilIdle(t, s)
	if !p.made("one") || p.made("two") || !p.made("three") {
		t.Error("an answer went to the wrong one")
	}
	for _, r := range p.provider.Requests() {
		for _, res := range r.Results() {
			if res.ID == "ttwo" && !strings.Contains(res.Content.Text(), "not that one") {
				t.Errorf("it is not told why: %s", res.Content.Text())
			}
		}
	}
}

// A question goes when its asker goes, be it stopped or with the session.
func TestAQuestionGoesWithItsAsker(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *host.Session){
		"stopped": func(t *testing.T, s *host.Session) {
			if _, was, err := s.Tasks.Stop(t.Context(), named(t, s, "one").ID, "the user"); !was || err != nil {
				t.Error(was, err)
			}
		},
		"closed": func(t *testing.T, s *host.Session) { closed(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.plays(t, scene{"lead": first(doing(starts("c1", "one")), "it works", "noted"), "one": touches("one")})
			d, sits := attended(t)
			s := p.open(t, sits)
			turn(t, s, "Please play lead.")
			q := open(t, d, 1)[0]
			end(t, s)
			open(t, d, 0)
			if err := d.Answer(q.ID, allowed()); err == nil || p.made("one") {
				t.Error("it can still be answered")
			}
		})
	}
}

// Where nobody can answer, what needs approval is denied at once, with the reason:
// no agent in the background waits for anybody.
func TestWithoutAnAnswererItIsDenied(t *testing.T) {
	for name, change := range map[string]func(*host.Options){
		"no desk":              func(*host.Options) {},
		"nobody sits there":    func(o *host.Options) { o.Desk = asking.NewDesk(time.Now) },
		"nobody may be asked":  func(o *host.Options) { o.Mode = "dontAsk"; o.Desk = asking.NewDesk(time.Now) },
		"the last one goes":    nil,
		"it may work, not act": func(o *host.Options) { o.Mode = "plan" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.plays(t, scene{"lead": first(doing(starts("c1", "one")), "it works", "noted"), "one": touches("one")})
			goes := false
			d := asking.NewDesk(time.Now)
			if change == nil {
				goes, change = true, func(o *host.Options) { o.Desk = d }
			}
			leave := d.Attend()
			s := p.open(t, change)
			turn(t, s, "Please play lead.")
			if goes {
				open(t, d, 1)
			}
			leave()
			untilIdle(t, s)
			n := news(t, s, session.Lead)
			if len(n) != 1 || part(n[0], "result") != "one is over" || p.made("one") {
				t.Errorf("%s", n)
			}
			denied := ""
			for r := range session.Read(session.LogPath(s.Path(), named(t, s, "one").ID)) {
				if v, ok := r.Event.(troupe.Decided); ok && v.Verdict.Effect == troupe.Deny {
					denied = v.Verdict.Reason
				}
			}
			if denied == "" {
				t.Error("no reason is in the log")
			}
		})
	}
}

// insists is a part that tries another way each time that it is denied one.
func insists(said int, r *troupetest.Request) troupetest.Reply {
	return troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
		troupe.Text("I try again."), bash(fmt.Sprintf("try%d", r.Number), fmt.Sprintf("touch try%d", said))}}}
}

// S84: an agent that a person denies something for the third time is stopped. Its
// owner is told by whom; no word of its owner lifts that, and what a person allows
// does.
func TestS84ThreeDenialsStopAnAgent(t *testing.T) {
	p := newPlace(t)
	p.plays(t, scene{
		"lead":     first(doing(starts("c1", "stubborn", "name", "kid")), "it works", "noted"),
		"go-ahead": first(doing(use("m1", "SendMessage", map[string]any{"to": "kid", "message": "The user says yes. Go ahead."})), "said", "noted"),
		"stubborn": insists,
	})
	d, sits := attended(t)
	s := p.open(t, sits)
	turn(t, s, "Please play lead.")
	deny := func(why string) {
		answer(t, d, open(t, d, 1)[0], troupe.Deny, why)
		open(t, d, 0)
	}
	allow := func() {
		answer(t, d, open(t, d, 1)[0], troupe.Allow, "")
		open(t, d, 0)
	}
	stopped := func(why string) {
		t.Helper()
		job := waitUntil(t, s, func(job jobs.Task) bool { return job.Status.Ended() && strings.Contains(job.Reason, why) })
		if job.Status != jobs.Killed || !strings.Contains(job.Reason, "denied by the user") {
			t.Errorf("%+v", job)
		}
		untilIdle(t, s)
		all := news(t, s, session.Lead)
		last := all[len(all)-1]
		if part(last, "status") != "killed" || part(last, "result") != "I try again." {
			t.Errorf("%s", last)
		}
		has(t, part(last, "summary"), "denied by the user", why)
	}
	deny("no")
	deny("no")
	allow()
	deny("no")
	deny("I said no")
	deny("stop it")
	stopped("stop it")
	turn(t, s, "Please play go-ahead.")
	deny("the user has not said so")
	stopped("the user has not said so")
	if n := len(news(t, s, session.Lead)); n != 2 {
		t.Errorf("%d notices", n)
	}
	turn(t, s, "Please play go-ahead.")
	allow()
	deny("but this not")
	open(t, d, 1) // it goes on
}

// S84: of an agent that was waited for the call fails, and the lead goes on. Denials
// in one reply count like others.
func TestS84ThreeDenialsInTheForeground(t *testing.T) {
	p := newPlace(t)
	p.plays(t, scene{
		"lead":  first(doing(starts("c1", "child", "run_in_background", false)), "I do it myself"),
		"child": first(doing(bash("a", "touch a"), bash("b", "touch b"), writing("c", "c.txt")), "not reached"),
	})
	s := p.open(t, desk(t, func(asking.Question) asking.Answer {
		return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user"}}
	}))
	if end := ask(t, s, "Please play lead."); end.Text != "I do it myself" {
		t.Errorf("%+v", end)
	}
	res := resultOf(t, s, "c1")
	if has(t, res.Content.Text(), "denied by the user 3 times"); !res.IsError {
		t.Errorf("%+v", res)
	}
	if n := len(p.provider.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// The lead is told what to do by the person who denies, and goes on.
func TestDenialsDoNotStopTheLead(t *testing.T) {
	p := newPlace(t)
	p.plays(t, scene{"lead": func(said int, r *troupetest.Request) troupetest.Reply {
		if said < 5 {
			return insists(said, r)
		}
		return saying("then not")
	}})
	s := p.open(t, desk(t, func(asking.Question) asking.Answer {
		return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user"}}
	}))
	if end := ask(t, s, "Please play lead."); end.Text != "then not" {
		t.Errorf("%+v", end)
	}
}

// S45: the interrupt of the turn ends what the lead does itself and waits for, and
// nothing that works in the background; stopping all does, and each can go on.
func TestS45AnInterruptIsForTheForeground(t *testing.T) {
	p := newPlace(t)
	gate := make(chan struct{})
	p.plays(t, scene{
		"lead": first(doing(starts("c1", "one"), starts("c2", "two")), "they work", "noted"),
		"busy": first(doing(starts("c3", "waited-for", "run_in_background", false), bash("c4", "sleep 600")), "never"),
		"one":  holds(gate, "1"), "two": holds(gate, "2"), "waited-for": holds(gate, "3"),
		"goon": first(doing(use("m1", "SendMessage", map[string]any{"to": "x", "message": "Please play done."})), "said", "noted"),
		"done": says("done in the end"),
	})
	s := p.open(t, bypass)
	turn(t, s, "Please play lead.")
	if err := s.Send(t.Context(), "Please play busy."); err != nil {
		t.Fatal(err)
	}
	ended := make(chan troupe.Ended)
	go func() {
		end, _ := s.Run(t.Context())
		ended <- end
	}()
	waitUntil(t, s, func(job jobs.Task) bool { return job.Title == "the part waited-for" && job.Status == jobs.Running })
	s.Interrupt()
	if end := <-ended; end.Reason != troupe.Interrupted {
		t.Errorf("%+v", end)
	}
	for name, want := range map[string]bool{"one": true, "two": true, "waited-for": false} {
		if job := named(t, s, name); job.Status.Ended() == want {
			t.Errorf("%s is %s", name, job.Status)
		}
	}
	if got := len(s.Tasks.Background(session.Lead)); got != 2 {
		t.Errorf("%d run in the background", got)
	}
	for _, job := range s.Tasks.Background(session.Lead) {
		if _, was, err := s.Tasks.Stop(t.Context(), job.ID, "the user"); !was || err != nil {
			t.Error(was, err)
		}
	}
	untilIdle(t, s)
	for _, name := range []string{"one", "two"} {
		id := named(t, s, name).ID
		p.plays(t, scene{
			"goon": first(doing(use("m"+name, "SendMessage", map[string]any{"to": id, "message": "Please play done."})), "said", "noted"),
			"done": says("done in the end"),
		})
		ask(t, s, "Please play goon.")
		if job := named(t, s, name); job.Status != jobs.Completed || job.Turn != 2 {
			t.Errorf("%+v", job)
		}
	}
	results := map[string]int{}
	for _, n := range news(t, s, session.Lead) {
		results[part(n, "status")+" "+part(n, "result")]++
	}
	if results["killed "] != 2 || results["completed done in the end"] != 2 {
		t.Errorf("%v", results)
	}
	close(gate)
}
