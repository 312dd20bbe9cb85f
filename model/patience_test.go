package model

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
)

// busy asks to come back later, and counts how often it was asked.
type busy struct {
	after time.Duration
	asked int
}

func (b *busy) Stream(context.Context, *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		b.asked++
		yield(nil, &APIError{Provider: "p", Status: 429, Transient: true, After: b.after})
	}
}

// A provider that wants us back in an hour is not waited for.
func TestRetryWaitsOnlySoLong(t *testing.T) {
	for after, asked := range map[time.Duration]int{9 * time.Minute: 2, time.Hour: 1} {
		synctest.Test(t, func(t *testing.T) {
			b := &busy{after: after}
			var last error
			for _, err := range Retry(b, Policy{Attempts: 2, Rand: func() float64 { return 0 }}).Stream(t.Context(), &troupe.Request{}) {
				last = err
			}
			if b.asked != asked {
				t.Errorf("%s: asked %d times, want %d", after, b.asked, asked)
			}
			if said := last != nil && strings.Contains(last.Error(), "come back in 1h0m0s"); said != (asked == 1) {
				t.Errorf("%s: %v", after, last)
			}
		})
	}
}
