package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sixteen is how many agents are started by one reply.
const sixteen = 16

// thinking is how long the provider reads a prompt before it begins to answer.
const thinking = time.Second

// siblings measures how much of the first requests of agents of one kind, started
// together, can be read from a prompt cache.
func (b *bench) siblings(ctx context.Context, dir string) ([]figure, error) {
	figures := []figure{{what: fmt.Sprintf("%d siblings: share of their prompts read from the cache", sixteen), unit: "%"}}
	return b.repeat(ctx, max(1, b.runs/3), figures, func() ([]float64, error) {
		f := &family{}
		b.provider.other = f
		defer func() { b.provider.other = nil }()
		if _, err := b.start(ctx, dir, b.home(), b.troupe, "-p", "Go on."); err != nil {
			return nil, err
		}
		if f.asked != sixteen {
			return nil, fmt.Errorf("%d agents asked, want %d", f.asked, sixteen)
		}
		return []float64{100 * float64(f.cached) / float64(f.bytes)}, nil
	})
}

// A family is a model that starts sixteen agents, which have nothing to do, and the
// cache of its provider: what an earlier prompt begins with can be read from the moment
// on at which that one begins to be answered.
type family struct {
	mu                   sync.Mutex
	prompts              []string // that are in the cache
	asked, bytes, cached int      // of the agents' prompts
}

// ServeHTTP implements [http.Handler].
func (f *family) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body) // what is cut short shows in the run
	prompt := strings.ReplaceAll(string(raw), `,"cache_control":{"type":"ephemeral"}`, "")
	w.Header().Set("Content-Type", "text/event-stream")
	switch {
	case strings.Contains(prompt, "Part "):
		if !strings.Contains(prompt, `"tool_result"`) && !strings.Contains(prompt, `"tool_use"`) {
			f.read(prompt)
			<-time.After(thinking)
			f.keep(prompt)
		}
		stream(w, 2)
	default:
		var calls []call
		for i := range sixteen {
			calls = append(calls, call{"Agent", map[string]any{"description": "a part", "prompt": fmt.Sprintf("Part %d is yours.", i), "subagent_type": "general-purpose"}})
		}
		stream(w, 1, calls...)
	}
}

// read counts what of a prompt is in the cache.
func (f *family) read(prompt string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := 0
	for _, p := range f.prompts {
		n := 0
		for n < min(len(p), len(prompt)) && p[n] == prompt[n] {
			n++
		}
		most = max(most, n)
	}
	f.asked, f.bytes, f.cached = f.asked+1, f.bytes+len(prompt), f.cached+most
}

func (f *family) keep(prompt string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prompts = append(f.prompts, prompt)
}
