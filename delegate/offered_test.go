package delegate

import (
	"slices"
	"testing"

	"github.com/troupe-sh/troupe"
)

// Only the lead can speak with the user, whatever a definition names.
func TestOffered(t *testing.T) {
	all := []string{"Agent", "AskUserQuestion", "Read"}
	s := Scope{Shared: &Shared{Tools: all}, Chain: []troupe.Definition{{Name: "lead"}}}
	if got := s.Offered(); !slices.Equal(got, all) {
		t.Errorf("the lead is offered %v", got)
	}
	s.Chain = append(s.Chain, troupe.Definition{Name: "a", Tools: []string{"AskUserQuestion", "Read"}})
	if got, want := s.Offered(), []string{"Agent", "Read"}; !slices.Equal(got, want) {
		t.Errorf("a sub-agent is offered %v, want %v", got, want)
	}
	if !slices.Equal(s.Shared.Tools, all) {
		t.Errorf("the session's tools became %v", s.Shared.Tools)
	}
}
