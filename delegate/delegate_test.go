package delegate

import (
	"errors"
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

// family is a scope of which children can be made.
func family() Scope {
	return Scope{Agent: "lead", Chain: []troupe.Definition{{Name: "lead"}}, Shared: &Shared{
		Definitions: []troupe.Definition{{Name: "a", Tools: []string{"Agent(b)"}}, {Name: "b"}}, Tools: []string{"Agent"}, Depth: 2,
		NewID: func() string { return "a1" }, Now: time.Now,
		Resolve:   func(_, parent string) (string, error) { return parent, nil },
		Introduce: func(troupe.Definition, troupe.Place) string { return "" },
	}}
}

func TestAChildIsNarrower(t *testing.T) {
	s := family()
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
