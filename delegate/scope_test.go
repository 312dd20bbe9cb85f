package delegate_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/troupetest"
)

func startable(s delegate.Scope) (names []string) {
	for _, d := range s.Startable() {
		names = append(names, d.Name)
	}
	return names
}

func denyRule(t *testing.T, text string) permission.Rule {
	t.Helper()
	r, err := permission.ParseRule(troupe.Deny, text, permission.Origin{Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStartable(t *testing.T) {
	s := newStage(t, nil)
	lead := s.lead(permission.Default)
	limited := lead
	limited.Types = []string{"writer", "finder", "nobody"}
	none := lead
	none.Types = []string{""}
	denied := limited
	denied.Policy.Rules = []permission.Rule{denyRule(t, "Agent(writer)")}
	all := lead
	all.Policy.Rules = []permission.Rule{denyRule(t, "Agent")}
	for _, c := range []struct {
		scope delegate.Scope
		want  []string
	}{
		{lead, []string{"finder", "general-purpose", "planner", "writer"}},
		{limited, []string{"finder", "writer"}},
		{none, nil},
		{denied, []string{"finder"}},
		{all, nil},
	} {
		if diff := cmp.Diff(c.want, startable(c.scope)); diff != "" {
			t.Errorf("%v %v: %s", c.scope.Types, c.scope.Policy.Rules, diff)
		}
		if got := c.scope.May(); got != (c.want != nil) {
			t.Errorf("%v %v: May %v", c.scope.Types, c.scope.Policy.Rules, got)
		}
	}
	if _, err := s.call(t.Context(), t, denied, delegate.Input{Prompt: "x", Type: "writer"}); !errors.Is(err, delegate.ErrType) {
		t.Errorf("a denied type: %v", err)
	}
	if _, err := s.call(t.Context(), t, limited, delegate.Input{Prompt: "x"}); !errors.Is(err, delegate.ErrType) {
		t.Errorf("the default, which is not among the types: %v", err)
	}
	if s.ids != 0 || len(s.logs) > 0 {
		t.Error("an agent was made that may not be")
	}
}

// The model is offered what Startable says, in the same bytes each time.
func TestDescription(t *testing.T) {
	s := newStage(t, nil)
	scope := s.lead(permission.Default)
	var first []byte
	for range 10 {
		a := delegate.NewAgent(scope, delegate.Kit{})
		spec, err := troupe.Encode(a.Spec())
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = spec
			has(t, a.Spec().Description, "Types of agents:\n- finder: finds things (tools: Agent, Read)\n- general-purpose: anything (tools: *, Agent)\n"+
				"- planner: plans (all tools but Bash)\n- writer: writes")
		}
		if !bytes.Equal(spec, first) {
			t.Fatalf("another description:\n%s\n%s", spec, first)
		}
	}
}

func TestDepthLimit(t *testing.T) {
	s := newStage(t, nil)
	deep := s.lead(permission.Default)
	for range s.shared.Depth {
		deep.Chain = append(deep.Chain, troupe.Definition{Name: "general-purpose", Source: "built-in"})
	}
	if deep.May() {
		t.Error("may start others")
	}
	if _, err := s.call(t.Context(), t, deep, delegate.Input{Prompt: "x"}); !errors.Is(err, delegate.ErrDepth) {
		t.Errorf("error %v", err)
	}
	deep.Chain = deep.Chain[:s.shared.Depth]
	if !deep.May() {
		t.Error("one above may not")
	}
}

// Types of our own nest, those of users do not meet themselves again, whoever
// is between.
func TestAncestors(t *testing.T) {
	for _, c := range []struct {
		chain []string
		start string
		err   error
	}{
		{[]string{"general-purpose"}, "general-purpose", nil},
		{[]string{"finder"}, "general-purpose", nil},
		{[]string{"finder"}, "writer", nil},
		{[]string{"finder"}, "finder", delegate.ErrNested},
		{[]string{"finder", "general-purpose"}, "finder", delegate.ErrNested},
	} {
		s := newStage(t, troupetest.NewReplies(troupetest.Say("done")))
		scope := s.lead(permission.Default)
		for _, name := range c.chain {
			for _, d := range s.shared.Definitions {
				if d.Name == name {
					scope.Chain = append(scope.Chain, d)
				}
			}
		}
		_, err := s.call(t.Context(), t, scope, delegate.Input{Prompt: "x", Type: c.start})
		if !errors.Is(err, c.err) {
			t.Errorf("%s below %v: %v", c.start, c.chain, err)
		}
	}
}

// What a child is: its own definition, its parent's place, at most its rights.
func TestWhatAChildBeginsWith(t *testing.T) {
	s := newStage(t, troupetest.NewReplies(troupetest.Say("done"), troupetest.Say("done"), troupetest.Say("done")))
	if _, err := s.call(t.Context(), t, s.lead(permission.Default), delegate.Input{Prompt: "write it", Type: "writer"}); err != nil {
		t.Fatal(err)
	}
	want := []troupe.Event{
		troupe.Started{Agent: "a1", Definition: "writer", Parent: "lead", Call: "c1", Depth: 1, Mode: "default",
			Request: troupe.Request{Model: "p/own", Effort: "high"}, Place: troupe.Place{Dir: "/here", Also: []string{"/there"}}},
		troupe.Received{ID: "c1", From: "lead", Message: troupe.Message{Role: troupe.User, Content: troupe.Blocks{troupe.Text("at /here"), troupe.Text("write it")}}},
	}
	if diff := cmp.Diff(want, s.logs["a1"][:2]); diff != "" {
		t.Error(diff)
	}
	// The call's word beats the definition's, which beats the parent's.
	if _, err := s.call(t.Context(), t, s.lead(permission.Default), delegate.Input{Prompt: "x", Type: "writer", Model: "p/told", Effort: "5000"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.call(t.Context(), t, s.lead(permission.Default), delegate.Input{Prompt: "x", Model: "Inherit"}); err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string][2]string{"a2": {"p/told", "5000"}, "a3": {"p/parent", "low"}} {
		r := s.logs[agent][0].(troupe.Started).Request
		if got := [2]string{r.Model, r.Effort}; got != want {
			t.Errorf("%s: %v, want %v", agent, got, want)
		}
	}
}

// A child's mode is within the mode that its parent has at the time of the
// call, which may not be the one that its scope was made with; a result says so
// if that is not what the definition asked for.
func TestModeOfAChild(t *testing.T) {
	for _, c := range []struct {
		scope, now permission.Mode
		start      string
		want       permission.Mode
		note       string
	}{
		{permission.Default, permission.Default, "writer", permission.Default, "it ran in mode default, as its own (bypassPermissions) is not within its caller's"},
		{permission.Default, permission.Default, "planner", permission.Plan, ""},
		{permission.Bypass, permission.Bypass, "writer", permission.Bypass, ""},
		{permission.Default, permission.Default, "finder", permission.Default, ""},
		{permission.Bypass, permission.Default, "finder", permission.Default, ""},
		{permission.Bypass, permission.Plan, "writer", permission.Plan, "it ran in mode plan"},
		{permission.Default, permission.AcceptEdits, "finder", permission.AcceptEdits, ""},
		// A mode that the user chose for everything is not narrowed either.
		{permission.AcceptEdits, permission.AcceptEdits, "planner", permission.AcceptEdits, "it ran in mode acceptEdits, its caller's, instead of its own (plan)"},
	} {
		s := newStage(t, troupetest.NewReplies(troupetest.Say("done")))
		scope := s.lead(c.scope)
		a := delegate.NewAgent(scope, delegate.Kit{})
		call := callOf(t, scope, delegate.Input{Prompt: "x", Type: c.start})
		call.Mode = string(c.now)
		res, err := a.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.logs["a1"][0].(troupe.Started).Mode; got != string(c.want) {
			t.Errorf("%+v: mode %s", c, got)
		}
		text := res.Content.Text()
		if c.note == "" && bytes.Contains([]byte(text), []byte("it ran in mode")) {
			t.Errorf("%+v: %s", c, text)
		}
		has(t, text, c.note)
	}
}

// A child hands down no more types than its definition names.
func TestTypesOfAChild(t *testing.T) {
	tools := make(chan []troupe.ToolSpec, 1)
	s := newStage(t, modelFunc(func(_ context.Context, r *troupe.Request) iter.Seq2[troupe.Chunk, error] {
		tools <- r.Tools
		return says(troupe.Reply{Message: troupetest.Say("done")})
	}))
	s.shared.Definitions[0].Tools = []string{"Agent(writer)"}
	if _, err := s.call(t.Context(), t, s.lead(permission.Default), delegate.Input{Prompt: "x", Type: "finder"}); err != nil {
		t.Fatal(err)
	}
	spec := (<-tools)[0]
	has(t, spec.Description, "\n- writer: ")
	if bytes.Contains([]byte(spec.Description), []byte("- planner: ")) {
		t.Error(spec.Description)
	}
}
