package host_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/session"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// small is a model whose window is narrower than the tools of troupe are wide.
const small = "anthropic/small"

// withSmall has a session know that model.
func (p *place) withSmall(o *host.Options) {
	o.Models = host.NewModels(lookupIn(p.env), nil, p.dir, o.Now, func() float64 { return 0 },
		model.Info{Provider: "anthropic", Name: "small", Window: 3000})
}

// S98: an agent whose tools alone are too much for its model fails before any
// request, in each way in which it could begin, and so does a session. What is too
// large is named.
func TestS98WhatDoesNotFitTheWindowDoesNotBegin(t *testing.T) {
	p := newPlace(t)
	p.src.Agents = `{"few": {"description": "d", "prompt": "You work.", "tools": ["Glob"], "model": "` + small + `"},
		"many": {"description": "d", "prompt": "You work.", "model": "` + small + `"}}`
	p.plays(t, scene{
		"lead": first(doing(
			starts("many", "child", "subagent_type", "many"), starts("held", "child", "subagent_type", "many", "run_in_background", false),
			starts("asked", "child", "model", small), starts("few", "child", "subagent_type", "few"),
			use("long", "Agent", map[string]any{"description": "d", "prompt": strings.Repeat("much to do ", 2000), "subagent_type": "few"})), "noted"),
		"child": says("fits"),
	})
	s := p.open(t, p.withSmall)
	ask(t, s, "Please play lead.")
	for _, id := range []string{"many", "held", "asked", "long"} {
		res := resultOf(t, s, id)
		if !res.IsError {
			t.Errorf("%s: it began: %+v", id, res)
		}
		has(t, res.Content.Text(), delegate.ErrWindow.Error(), small+" takes 3000 tokens", "the first request would be about")
	}
	has(t, resultOf(t, s, "many").Content.Text(), "tool Bash ", "type many")
	has(t, resultOf(t, s, "long").Content.Text(), "the largest parts: the task 7", "the 1 tools")
	if n := news(t, s, session.Lead); len(n) != 1 || part(n[0], "result") != "fits" {
		t.Errorf("%s", n)
	}
	if err := s.Switch(troupe.Switched{Model: small}); !errors.Is(err, delegate.ErrWindow) {
		t.Errorf("the lead goes over to it: %v", err)
	}
	asked := len(p.provider.Requests())
	o := p.options(t)
	p.withSmall(&o)
	o.Model = small
	if _, err := host.Open(t.Context(), o); !errors.Is(err, delegate.ErrWindow) {
		t.Errorf("a session begins: %v", err)
	}
	if n := len(p.provider.Requests()); n != asked {
		t.Errorf("%d requests went out", n-asked)
	}
	if all := s.Tasks.List(); len(all) != 1 {
		t.Errorf("%d agents were started", len(all))
	}
}

// Who nears a limit, its own or that of those above it, is told so once for each
// limit, before its next request, by the runtime.
func TestMostOfALimitIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		session, each host.Limits
		lead, child   []string // what each is told
	}{
		"tokens of the agent":   {host.Limits{}, tokens(1_000_000), nil, []string{"may spend 1,000,000 tokens and has spent 800,000"}},
		"money of the agent":    {host.Limits{}, dollars(1), nil, []string{"may spend $1.0000 and has spent $0.8000"}},
		"tokens of the session": {tokens(1_125_000), host.Limits{}, []string{"the session may spend 1,125,000 tokens"}, []string{"the session may spend 1,125,000 tokens and has spent 900,000"}},
		"no limit is near":      {tokens(10_000_000), dollars(10), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.plays(t, scene{
				"lead": func(said int, r *troupetest.Request) troupetest.Reply {
					if said == 0 {
						reply := doing(starts("c1", "child", "run_in_background", false))
						reply.Usage = each
						return reply
					}
					return troupetest.Reply{Message: troupetest.Say("all done"), Usage: troupe.Usage{Input: 1}}
				},
				"child": func(said int, r *troupetest.Request) troupetest.Reply {
					if said == 9 {
						return troupetest.Reply{Message: troupetest.Say("that was it"), Usage: troupe.Usage{Input: 1}}
					}
					used := each
					if said > 7 { // so that the limit is not reached
						used = troupe.Usage{Input: 1}
					}
					return troupetest.Reply{Message: troupetest.Use(use(fmt.Sprintf("g%d", said), "Glob", map[string]any{"pattern": "*"})), Usage: used}
				},
			})
			s := p.open(t, func(o *host.Options) { o.Limits, o.Each = tt.session, tt.each })
			if end := ask(t, s, "Please play lead."); end.Text != "all done" {
				t.Fatalf("%+v", end)
			}
			for agent, want := range map[string][]string{session.Lead: tt.lead, named(t, s, "child").ID: tt.child} {
				var got []string
				for r := range session.Read(session.LogPath(s.Path(), agent)) {
					if ev, ok := r.Event.(troupe.Received); ok && ev.From == "runtime" {
						got = append(got, ev.Message.Content.Text())
					}
				}
				if len(got) != len(want) {
					t.Errorf("%s is told %q, want %q", agent, got, want)
					continue
				}
				for i := range want {
					has(t, got[i], want[i], "<notice>", "come to an end")
				}
			}
		})
	}
}

// S105: what agents in the background use adds up to what the provider bills, also
// of one that was killed when a reply had been cut off, and of one that failed; the
// task of each has what its log has, and so has its notice.
func TestS105UsageOfTheBackgroundAddsUp(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "TROUPE_MAX_RETRIES=1")
	u := func(n int) troupe.Usage {
		return troupe.Usage{Input: n, Output: 3, CacheRead: 2 * n, CacheWrite: n / 2}
	}
	p.src.Agents = `{"boss": {"description": "d", "prompt": "You work.", "tools": ["*", "Agent"]}}`
	var cut atomic.Bool
	p.plays(t, scene{
		"lead": func(said int, r *troupetest.Request) troupetest.Reply {
			reply := saying("noted")
			if said == 0 {
				reply = doing(starts("c1", "good", "subagent_type", "boss"), starts("c2", "bad"), starts("c3", "killed"))
			}
			reply.Usage = u(1000 + said)
			return reply
		},
		"good": func(said int, r *troupetest.Request) troupetest.Reply {
			reply := saying("good report")
			if said == 0 {
				reply = doing(starts("d1", "below"), starts("d2", "below-too", "run_in_background", false))
			}
			reply.Usage = u(100 + said)
			return reply
		},
		"below": func(int, *troupetest.Request) troupetest.Reply {
			return troupetest.Reply{Message: troupetest.Say("b"), Usage: u(50)}
		},
		"below-too": func(int, *troupetest.Request) troupetest.Reply {
			return troupetest.Reply{Message: troupetest.Say("b"), Usage: u(60)}
		},
		"bad": func(said int, r *troupetest.Request) troupetest.Reply {
			if said == 0 {
				return troupetest.Reply{Message: troupetest.Use(use("g1", "Glob", map[string]any{"pattern": "*"})), Usage: u(70)}
			}
			return troupetest.Reply{Message: troupetest.Say("half"), Usage: atStart(u(80)), Fault: troupetest.Fault{Cut: troupetest.Midway}}
		},
		"killed": func(said int, r *troupetest.Request) troupetest.Reply {
			if said == 0 {
				return troupetest.Reply{Message: troupetest.Use(use("g2", "Glob", map[string]any{"pattern": "*"})), Usage: u(90)}
			}
			if cut.CompareAndSwap(false, true) {
				return troupetest.Reply{Message: troupetest.Say("never said to the end"), Usage: atStart(u(95)), Fault: troupetest.Fault{Cut: troupetest.Midway}}
			}
			return troupetest.Reply{Fault: troupetest.Fault{Stall: troupetest.BeforeHeaders}}
		},
	})
	s := p.open(t)
	turn(t, s, "Please play lead.")
	killed := waitUntil(t, s, func(job jobs.Task) bool { return job.Title == "the part killed" && job.Calls == 1 }).ID
	for len(requestsOf(p, "killed")) < 3 { // it asks again for what was cut off
		if err := p.provider.Wait(t.Context(), len(p.provider.Requests())+1); err != nil {
			t.Fatal(err)
		}
	}
	waitUntil(t, s, func(job jobs.Task) bool { return job.Title == "the part bad" && job.Status.Ended() })
	if _, _, err := s.Tasks.Stop(t.Context(), killed, "the user"); err != nil {
		t.Fatal(err)
	}
	untilIdle(t, s)
	if err := p.provider.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	sumsUp(t, p, s)
}

// sumsUp fails unless the logs, the accounts, the tasks and the notices of a session
// say what the provider has billed.
func sumsUp(t *testing.T, p *place, s *host.Session) {
	t.Helper()
	var bill, logged troupe.Usage
	for _, r := range p.provider.Requests() {
		bill = bill.Add(r.Usage)
	}
	notices := map[string]string{}
	for _, n := range news(t, s, session.Lead) {
		notices[part(n, "task-id")] = n
	}
	for _, path := range logs(t, s) {
		used, last, agent := usedIn(t, path)
		logged = logged.Add(used)
		if agent == session.Lead {
			continue
		}
		job, err := s.Tasks.Get(agent)
		if err != nil || job.Usage != used || job.Size != last {
			t.Errorf("%s (%s) has used %+v, its task says %+v; last %d and %d; %v", job.Title, agent, used, job.Usage, last, job.Size, err)
		}
		if n := notices[agent]; job.Owner == session.Lead && part(n, "total_tokens") != fmt.Sprint(last) {
			t.Errorf("%s: last it used %d: %s", job.Title, last, n)
		}
	}
	spent := s.Spent()
	cost := (float64(bill.Input) + 5*float64(bill.Output) + 0.1*float64(bill.CacheRead) + 1.25*float64(bill.CacheWrite)) / 1e6
	if spent.Usage != bill || logged != bill || math.Abs(spent.Dollars-cost) > 1e-9 {
		t.Errorf("the session has used %+v, its logs have %+v, billed are %+v", spent.Usage, logged, bill)
	}
}

// atStart is of a usage what a provider tells before the reply.
func atStart(u troupe.Usage) troupe.Usage {
	u.Output = 1
	return u
}

// requestsOf are the requests of the agent that plays a part.
func requestsOf(p *place, name string) (all []*troupetest.Request) {
	for _, r := range p.provider.Requests() {
		if strings.Contains(r.FirstUser(), "play "+name+".") {
			all = append(all, r)
		}
	}
	return all
}

// usedIn is what the log of an agent says that it has used, in all and by its last
// whole reply.
func usedIn(t *testing.T, path string) (all troupe.Usage, last int, agent string) {
	t.Helper()
	for r, err := range session.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := r.Event.(type) {
		case troupe.Started:
			agent = ev.Agent
		case troupe.Replied:
			if all = all.Add(ev.Usage); ev.Usage.Total() > 0 {
				last = ev.Usage.Total()
			}
		case troupe.Billed:
			all = all.Add(ev.Usage)
		}
	}
	return all, last, agent
}
