package model_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/model/anthropic"
	"github.com/troupe-sh/troupe/model/openai"
	"github.com/troupe-sh/troupe/troupetest"
)

const sixteen = 16

// siblingsOf has sixteen agents with one prompt and a task each make their first
// request at once. It returns how much of what they read came from the cache.
func siblingsOf(t *testing.T, p *troupetest.Provider, join func(string, troupe.Model) troupe.Model, m troupe.Model) float64 {
	t.Helper()
	var wg sync.WaitGroup
	for i := range sixteen {
		wg.Go(func() {
			req := &troupe.Request{Model: "m", MaxTokens: 100, System: strings.Repeat("You are one of many. ", 1000),
				Messages: []troupe.Message{troupe.Say(troupe.User, fmt.Sprintf("Part %d is yours.", i))}}
			for _, err := range join("worker", m).Stream(t.Context(), req) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	used := p.Bill()["m"]
	if n := len(p.Requests()); n != sixteen {
		t.Errorf("%d requests", n)
	}
	return float64(used.CacheRead) / float64(used.Input+used.CacheRead+used.CacheWrite)
}

// Sixteen siblings pay for their common prompt once if one goes ahead, and each for
// all of it if they start together.
func TestSixteenSiblingsReadFromTheCache(t *testing.T) {
	for name, open := range map[string]func(url string) troupe.Model{
		"anthropic": func(url string) troupe.Model { return anthropic.New(anthropic.Options{BaseURL: url, Key: "k"}) },
		"openai":    func(url string) troupe.Model { return openai.New(openai.Options{BaseURL: url + "/v1", Key: "k"}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := troupetest.NewProvider(t)
			p.Respond(func(*troupetest.Request) troupetest.Reply { return troupetest.Reply{Message: troupetest.Say("done")} })
			staggered := siblingsOf(t, p, model.NewStagger(time.Now).Join, open(p.URL()))

			p = troupetest.NewProvider(t)
			all := make(chan struct{})
			var came atomic.Int32
			p.Respond(func(*troupetest.Request) troupetest.Reply {
				if came.Add(1) == sixteen { // a provider takes longer to read a prompt than sixteen take to send theirs
					close(all)
				}
				return troupetest.Reply{Message: troupetest.Say("done"), Fault: troupetest.Fault{Stall: troupetest.BeforeHeaders, Until: all}}
			})
			at := siblingsOf(t, p, func(_ string, m troupe.Model) troupe.Model { return m }, open(p.URL()))
			if staggered < 0.9 || at > 0.1 {
				t.Errorf("from the cache: %.0f %% of the input staggered, %.0f %% together", 100*staggered, 100*at)
			}
			t.Logf("from the cache: %.1f %% of the input staggered, %.1f %% together", 100*staggered, 100*at)
		})
	}
}
