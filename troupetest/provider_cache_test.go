package troupetest

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
)

// cacheable is a request of about 2,000 tokens, 1,024 of them and more in front of
// a mark or without need of one.
func cacheable(d Dialect, tail string) probe {
	long := strings.Repeat("word ", 1600)
	if d == OpenAI {
		return with(`{"stream":true,"messages":[{"role":"user","content":"` + long + tail + `"}]}`)
	}
	return with(`{"stream":true,"messages":[` + userSays(`{"type":"text","text":"`+long+`","cache_control":{"type":"ephemeral"}},{"type":"text","text":"`+tail+`"}`) + `]}`)
}

// A prompt stays in the cache for its age after it was last used, by the
// provider's clock.
func TestCacheForgets(t *testing.T) {
	for _, d := range []Dialect{Anthropic, OpenAI} {
		now := time.Unix(1000, 0)
		p := NewProvider(t, Clock(func() time.Time { return now }))
		p.Respond(func(*Request) Reply { return Reply{Message: Say("yes")} })
		for i, step := range []struct {
			after time.Duration
			read  bool
		}{
			{0, false}, {0, true}, {4 * time.Minute, true}, {4 * time.Minute, true}, {5 * time.Minute, false}, {time.Minute, true},
		} {
			now = now.Add(step.after)
			post(t, p, d, cacheable(d, strings.Repeat("x", i+1)))
			if got := p.Last().Usage.CacheRead; (got > 1000) != step.read {
				t.Errorf("%s: request %d reads %d tokens", d, i+1, got)
			}
		}
	}
	p := NewProvider(t, CacheAge(0))
	p.Say("a", "b")
	post(t, p, Anthropic, cacheable(Anthropic, "x"))
	post(t, p, Anthropic, cacheable(Anthropic, "y"))
	if got := p.Last().Usage; got.CacheRead != 0 {
		t.Errorf("a cache that keeps nothing was read: %+v", got)
	}
}

// What was found by looking back from a mark was read, too, and stays.
func TestCacheKeepsWhatIsRead(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewProvider(t, Clock(func() time.Time { return now }))
	p.Say("a", "b", "c")
	long, mark := strings.Repeat("word ", 1600), `,"cache_control":{"type":"ephemeral"}`
	for i, body := range []string{
		`{"type":"text","text":"` + long + `"` + mark + `}`,
		`{"type":"text","text":"` + long + `"},{"type":"text","text":"x"` + mark + `}`,
		`{"type":"text","text":"` + long + `"` + mark + `}`,
	} {
		post(t, p, Anthropic, talk(userSays(body)))
		if got := p.Last().Usage.CacheRead; (got > 1000) != (i > 0) {
			t.Errorf("request %d reads %d tokens", i+1, got)
		}
		now = now.Add(4 * time.Minute)
	}
}

// A prompt is in the cache when the first byte of its answer goes out, and what a
// request can read is decided when it comes.
func TestCacheIsThereWithTheFirstByte(t *testing.T) {
	for _, d := range []Dialect{Anthropic, OpenAI} {
		for at, read := range map[Point]bool{BeforeHeaders: false, AfterHeaders: false, AfterStart: true} {
			p := NewProvider(t)
			goOn := make(chan struct{})
			p.Respond(func(r *Request) Reply {
				if r.Number == 1 {
					return Reply{Message: Say("first"), Fault: Fault{Stall: at, Until: goOn}}
				}
				return Reply{Message: Say("second")}
			})
			var wg sync.WaitGroup
			wg.Go(func() { post(t, p, d, cacheable(d, "x")) })
			if err := p.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if read {
				for p.cached() == 0 {
					runtime.Gosched()
				}
			}
			post(t, p, d, cacheable(d, "y"))
			close(goOn)
			wg.Wait()
			if got := p.Last().Usage; (got.CacheRead > 1000) != read || (got == troupe.Usage{}) {
				t.Errorf("%s, point %d: the second request used %+v", d, at, got)
			}
		}
	}
}

// cached is how many prompts the cache has.
func (p *Provider) cached() int {
	p.cache.mu.Lock()
	defer p.cache.mu.Unlock()
	return len(p.cache.entries) + len(p.cache.prompts["m"])
}
