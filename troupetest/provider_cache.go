package troupetest

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
)

// piece is a part of a prompt, without marks. Marked says that the prompt may
// be cached up to and with it.
type piece struct {
	data   []byte
	marked bool
}

// The figures of the simulated caches.
const (
	lookback = 20   // pieces before a mark in which Anthropic looks for an entry
	step     = 1024 // tokens in which OpenAI's cache grows
)

// cacheAge is how long the services keep a prompt after its last use.
const cacheAge = 5 * time.Minute

// promptCache simulates the prompt caches of the services, without a minimum
// size. A prompt is in the cache when its answer begins, not before: of two
// requests at the same time both pay. There it stays until it has not been read
// for its age.
type promptCache struct {
	age time.Duration

	mu      sync.Mutex
	entries map[[sha256.Size]byte]time.Time // last use of prefixes that ended at a mark
	prompts map[string][]cachedPrompt       // whole prompts by model
}

// cachedPrompt is a prompt of a cache that needs no marks.
type cachedPrompt struct {
	data []byte
	used time.Time
}

func newPromptCache() *promptCache {
	return &promptCache{age: cacheAge, entries: map[[sha256.Size]byte]time.Time{}, prompts: map[string][]cachedPrompt{}}
}

// fresh reports whether what was used last then is still there.
func (c *promptCache) fresh(used, now time.Time) bool { return now.Sub(used) < c.age }

// marked is the usage of a prompt that comes now and whose cache is governed by
// marks, without output, and a function that puts the prompt into the cache.
func (c *promptCache) marked(model string, pieces []piece, now time.Time) (troupe.Usage, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := make([]int, len(pieces))
	sums := make([][sha256.Size]byte, len(pieces))
	sum, end := sha256.Sum256([]byte(model)), 0
	for i, p := range pieces {
		end += len(p.data)
		head := binary.BigEndian.AppendUint64(sum[:], uint64(len(p.data)))
		sum = sha256.Sum256(append(head, p.data...))
		ends[i], sums[i] = end, sum
	}
	read, marked := 0, 0
	for i, p := range pieces {
		if !p.marked {
			continue
		}
		marked = ends[i]
		for j := i; j >= 0 && j > i-lookback; j-- {
			if used, ok := c.entries[sums[j]]; ok && c.fresh(used, now) {
				c.entries[sums[j]] = later(used, now)
				read = max(read, ends[j])
				break
			}
		}
	}
	u := troupe.Usage{CacheRead: tokens(read), CacheWrite: tokens(marked) - tokens(read), Input: tokens(end) - tokens(marked)}
	return u, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, p := range pieces {
			if p.marked {
				c.entries[sums[i]] = later(c.entries[sums[i]], now)
			}
		}
	}
}

// automatic is the same for a cache that needs no marks.
func (c *promptCache) automatic(model string, pieces []piece, now time.Time) (troupe.Usage, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var prompt []byte
	for _, p := range pieces {
		prompt = append(prompt, p.data...)
	}
	c.prompts[model] = slices.DeleteFunc(c.prompts[model], func(p cachedPrompt) bool { return !c.fresh(p.used, now) })
	read := 0
	for _, earlier := range c.prompts[model] {
		read = max(read, commonPrefix(prompt, earlier.data)/4/step*step)
	}
	u := troupe.Usage{CacheRead: read, Input: tokens(len(prompt)) - read}
	return u, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.prompts[model] = append(c.prompts[model], cachedPrompt{prompt, now})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
