package compact

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// A bumpy model yields its chunks for each request, and then the error if there is one.
type bumpy struct {
	chunks []troupe.Chunk
	err    error
}

func (b bumpy) Stream(context.Context, *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		for _, c := range b.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if b.err != nil {
			yield(nil, b.err)
		}
	}
}

// What a summary has cost is in the log, whatever came of it, and so is what it
// had to wait for.
func TestWhatASummaryCostsIsLogged(t *testing.T) {
	u := troupe.Usage{Input: 70}
	for name, tt := range map[string]struct {
		model bumpy
		want  string
	}{
		"one that is cut off first": {bumpy{chunks: []troupe.Chunk{troupe.Waiting{}, troupe.Billed{Usage: u}, troupe.Switched{Model: "b", Cause: "c"},
			troupe.Reply{Message: troupetest.Say("short"), Usage: u}}}, "Compacting Waiting Billed Switched Compacted"},
		"one without a word": {bumpy{chunks: []troupe.Chunk{troupe.Reply{Usage: u}}}, "Compacting Billed NotCompacted"},
		"one that fails":     {bumpy{chunks: []troupe.Chunk{troupe.Billed{Usage: u}}, err: errors.New("x")}, "Compacting Billed NotCompacted"},
	} {
		s := long(900)
		before := s.Usage.Input
		evs, err := events(compactor(tt.model).BeforeTurn(t.Context(), s), s)
		var order []string
		for _, ev := range evs {
			order = append(order, strings.TrimPrefix(fmt.Sprintf("%T", ev), "troupe."))
		}
		if got := strings.Join(order, " "); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
		}
		if got, want := s.Usage.Input-before, 70*strings.Count(tt.want, "Billed")+70*strings.Count(" "+tt.want, " Compacted"); got != want {
			t.Errorf("%s: %d tokens are known of, want %d", name, got, want)
		}
	}
}
