package delegate

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
)

func TestFilter(t *testing.T) {
	all := []string{"Agent", "Bash", "Read"}
	for name, tc := range map[string]struct {
		d    troupe.Definition
		may  bool
		want []string
	}{
		"all":                 {troupe.Definition{}, true, []string{"Bash", "Read"}},
		"agent named":         {troupe.Definition{Tools: []string{"*", "Agent"}}, true, all},
		"agent by a pattern":  {troupe.Definition{Tools: []string{"*"}}, true, []string{"Bash", "Read"}},
		"agent, but too deep": {troupe.Definition{Tools: []string{"Agent(x)", "Read"}}, false, []string{"Read"}},
		"none":                {troupe.Definition{Tools: []string{}}, true, nil},
		"disallowed":          {troupe.Definition{Disallowed: []string{"Bash"}}, true, []string{"Read"}},
		"disallowed in part":  {troupe.Definition{Disallowed: []string{"Bash(rm *)"}}, true, []string{"Read"}},
	} {
		if got, err := Filter(tc.d, all, tc.may); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

// family is a scope whose children are recorded by record.
func family(record func(context.Context, troupe.Started, troupe.Received, troupe.Config) iter.Seq2[troupe.Event, error], closed *int) Scope {
	return Scope{Agent: "lead", Chain: []troupe.Definition{{Name: "lead"}}, Shared: &Shared{
		Definitions: []troupe.Definition{{Name: "a", Tools: []string{"Agent(b)"}}, {Name: "b"}}, Tools: []string{"Agent"}, Depth: 2,
		NewID: func() string { return "a1" }, Now: time.Now, Record: record,
		Resolve:   func(_, parent string) (string, error) { return parent, nil },
		Introduce: func(troupe.Definition, troupe.Place) string { return "" },
		Equip: func(context.Context, Scope, troupe.Definition) (Kit, error) {
			return Kit{Close: func() error { *closed++; return nil }}, nil
		},
	}}
}

func TestAChildIsNarrower(t *testing.T) {
	s := family(nil, new(int))
	for range 2 {
		c, err := s.child("x", troupe.Definition{Name: "t" + s.Agent, Tools: []string{"Agent(b)"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Startable(); len(got) != 1 || got[0].Name != "b" {
			t.Errorf("it may start %v, want b alone", got)
		}
		s = c
	}
	if _, err := s.child("x", troupe.Definition{Name: "deep"}); !errors.Is(err, ErrDepth) {
		t.Errorf("got %v, want ErrDepth", err)
	}
}

func TestAChildHasItsParentsPlaceAndEffortAndIsClosedAfterAPanic(t *testing.T) {
	closed := 0
	var got troupe.Started
	a, err := NewAgent(family(func(_ context.Context, s troupe.Started, _ troupe.Received, _ troupe.Config) iter.Seq2[troupe.Event, error] {
		got = s
		panic("boom")
	}, &closed))
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = a.Call(t.Context(), &troupe.Call{ToolUse: troupe.ToolUse{ID: "c", Input: []byte(`{"prompt":"go","subagent_type":"b"}`)},
			Place: troupe.Place{Dir: "/w", Also: []string{"/also"}}, Request: &troupe.Request{Model: "p/m", Effort: "high"}})
	}()
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}
	if got.Depth != 1 || got.Request.Effort != "high" || !slices.Equal(got.Place.Also, []string{"/also"}) {
		t.Errorf("started %+v", got)
	}
}
