package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	asking "github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

func writing(id, name string) troupe.ToolUse {
	return use(id, "Write", map[string]any{"file_path": name, "content": "x"})
}

func enterPlan(id string) troupe.ToolUse { return use(id, "EnterPlanMode", map[string]any{}) }

func exitPlan(id string) troupe.ToolUse {
	return use(id, "ExitPlanMode", map[string]any{"plan": "1. write"})
}

// turns has the lead make calls in a reply each, and returns what became of them.
func turns(t *testing.T, p *place, s *host.Session, calls ...troupe.ToolUse) map[string]troupetest.Made {
	t.Helper()
	for _, c := range calls {
		p.provider.Queue(troupetest.Reply{Message: troupetest.Use(c)})
	}
	p.provider.Say("done")
	return asked(t, setting{p: p}, s)
}

// rest is the body of a request without its messages, which only grow.
func rest(t *testing.T, body []byte) map[string]json.RawMessage {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "messages")
	return fields
}

// Into plan mode and out of it no byte changes of what every request begins with,
// in either dialect.
func TestS100PlanModeKeepsThePrefix(t *testing.T) {
	for _, model := range names {
		p := newPlace(t)
		p.model = model
		s := p.open(t, inMode(permission.AcceptEdits), desk(t, func(asking.Question) asking.Answer { return allowed() }))
		got := turns(t, p, s, writing("w1", "one"), enterPlan("in"), writing("w2", "two"), exitPlan("out"), writing("w3", "three"))
		if !got["w2"].Denied() || p.made("two") || !p.made("one") || !p.made("three") {
			t.Errorf("%+v", got)
		}
		all := p.provider.Requests()
		if len(all) != 6 {
			t.Fatalf("%d requests", len(all))
		}
		for _, r := range all[1:] {
			if diff := cmp.Diff(rest(t, all[0].Body), rest(t, r.Body)); diff != "" {
				t.Errorf("%s: %s", model, diff)
			}
		}
	}
}

// The person approves the plan, or declines it with a word; the mode goes back to
// what it was, or becomes what the answer says.
func TestPlanModeIsEnteredAndLeftByApproval(t *testing.T) {
	var kinds []asking.Kind
	for _, c := range []struct {
		start, want permission.Mode
		enter       bool
		answer      asking.Answer
	}{
		{permission.AcceptEdits, permission.AcceptEdits, true, allowed()},
		{permission.Default, permission.Default, true, allowed()},
		{permission.Plan, permission.Default, false, allowed()},
		{permission.Plan, permission.AcceptEdits, false, asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}, Mode: "acceptEdits"}},
		{permission.Plan, permission.Plan, false, asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user"}, Text: "smaller steps"}},
		{permission.AcceptEdits, permission.Plan, true, asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user", Reason: "smaller steps"}}},
	} {
		p := newPlace(t)
		s := p.open(t, inMode(c.start), desk(t, func(q asking.Question) asking.Answer {
			kinds = append(kinds, q.Kind)
			if q.Kind == asking.Plan {
				return c.answer
			}
			return allowed()
		}))
		calls := []troupe.ToolUse{exitPlan("out"), use("after", "Glob", map[string]any{"pattern": "*"})}
		if c.enter {
			calls = append([]troupe.ToolUse{enterPlan("in")}, calls...)
		}
		got := turns(t, p, s, calls...)
		if got["after"].Mode != string(c.want) {
			t.Errorf("%+v: mode %s", c, got["after"].Mode)
		}
		if c.answer.Effect == troupe.Deny {
			has(t, got["out"].Result.Content.Text(), "Permission denied", "smaller steps")
		} else {
			has(t, got["out"].Result.Content.Text(), "1. write")
		}
		state, _, err := session.Load(session.LogPath(s.Path(), session.Lead))
		if err != nil || state.Mode != string(c.want) {
			t.Errorf("%+v: the log says %+v, %v", c, state, err)
		}
	}
	if !cmp.Equal(kinds, []asking.Kind{asking.Permission, asking.Plan, asking.Permission, asking.Plan, asking.Plan, asking.Plan, asking.Plan, asking.Permission, asking.Plan}) {
		t.Errorf("asked %v", kinds)
	}
}

// Without a person neither runs, unless a rule allows it; where they have nothing
// to do they say so; and only the lead has them.
func TestPlanModeWithoutAPerson(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	got := turns(t, p, s, enterPlan("in"), exitPlan("out"))
	if !got["in"].Denied() || got["out"].Denied() || !got["out"].Result.IsError {
		t.Errorf("%+v", got)
	}
	p = newPlace(t)
	s = p.open(t, rule(troupe.Allow, "EnterPlanMode"))
	got = turns(t, p, s, enterPlan("in"), enterPlan("again"), writing("w", "x"), exitPlan("out"), writing("w2", "x"))
	if got["in"].Result.IsError || !got["again"].Result.IsError || got["again"].Denied() || !got["out"].Denied() || !got["w"].Denied() || !got["w2"].Denied() {
		t.Errorf("%+v", got)
	}
	sub := by(func(t *testing.T, s setting) *host.Session { return s.p.open(t, s.change...) }, "")(t, with(t, bypass), enterPlan("in"))
	has(t, sub["in"].Result.Content.Text(), `There is no tool "EnterPlanMode"`)
}

// A lead that is put into plan mode while its sub-agents work binds them, too,
// from their next call on, however deep they are.
func TestS77PlanModeReachesThoseWhoWork(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, bypass)
	n := 0
	p.provider.Respond(func(*troupetest.Request) troupetest.Reply {
		n++
		switch n {
		case 1, 2:
			return troupetest.Reply{Message: troupetest.Use(use(string(rune('a'+n)), "Agent", startInput("")))}
		case 3:
			return troupetest.Reply{Message: troupetest.Use(writing("before", "one"))}
		case 4:
			if err := s.Switch(troupe.Switched{Mode: "plan"}); err != nil {
				t.Error(err)
			}
			return troupetest.Reply{Message: troupetest.Use(writing("after", "two"))}
		}
		return troupetest.Reply{Message: troupetest.Say("done")}
	})
	got := asked(t, setting{p: p}, s)
	if got["before"].Verdict.Effect != troupe.Allow || !got["after"].Denied() || !p.made("one") || p.made("two") || got["after"].Agent == session.Lead {
		t.Errorf("%+v, %+v", got["before"], got["after"])
	}
}

// After a plan the agent does not go back to a mode that the user has left since.
func TestAPlanGoesBackToNoModeThatWasLeft(t *testing.T) {
	p := newPlace(t)
	yes := desk(t, func(asking.Question) asking.Answer {
		return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}}
	})
	s := p.open(t, yes, inMode(permission.AcceptEdits))
	turns(t, p, s, enterPlan("in"))
	if err := s.Switch(troupe.Switched{Mode: "plan", Chosen: true}); err != nil {
		t.Fatal(err)
	}
	turns(t, p, s, use("out", "ExitPlanMode", map[string]any{"plan": "write it"}))
	if _, mode := s.Next(); mode != "default" {
		t.Errorf("the agent goes on in mode %s", mode)
	}
}

// The mode before a plan outlives the process, if the user named it, and is never
// one that a resumed session does not begin with.
func TestAPlanGoesBackAfterAResume(t *testing.T) {
	yes := func(asking.Question) asking.Answer {
		return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}}
	}
	for before, want := range map[permission.Mode]string{permission.AcceptEdits: "acceptEdits", permission.Bypass: "default", permission.Default: "default"} {
		p := newPlace(t)
		s := p.open(t, desk(t, yes), inMode(before))
		turns(t, p, s, enterPlan("in"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = p.open(t, desk(t, yes), resume(t, s), inMode(permission.Plan))
		if got := turns(t, p, s, exitPlan("out")); got["out"].Denied() {
			t.Errorf("%s: %+v", before, got)
		}
		if _, mode := s.Next(); mode != want {
			t.Errorf("%s: the agent goes on in mode %s", before, mode)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = p.open(t, desk(t, yes), resume(t, s)) // the user's word holds as before the plan
		if _, mode := s.Next(); mode != want {
			t.Errorf("%s: once more resumed it goes on in mode %s", before, mode)
		}
	}
}

// A classifier that the session is given has its say in mode auto, for every agent.
func TestAClassifierIsAsked(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		asked := 0
		set := with(t, inMode(permission.Auto), func(o *host.Options) {
			o.Classify = func(_ context.Context, c *troupe.Call, _ troupe.Verdict) (bool, error) {
				asked++
				return strings.Contains(string(c.Input), "good"), nil
			}
		})
		got := call(t, set, bash("c1", "touch good"), bash("c2", "touch bad"))
		if asked != 2 || !set.p.made("good") || set.p.made("bad") || !got["c2"].Denied() {
			t.Errorf("asked %d times: %+v", asked, got)
		}
	})
}
