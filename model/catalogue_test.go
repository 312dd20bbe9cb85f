package model_test

import (
	"math"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

func TestLookup(t *testing.T) {
	c := model.NewCatalogue()
	opus, ok := c.Lookup("anthropic", "claude-opus-4-5-20251101")
	if !ok || opus.Window != 200_000 || opus.MaxOutput != 64_000 || !opus.Priced {
		t.Errorf("Lookup = %+v, %v", opus, ok)
	}
	if want := (model.Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25}); opus.Price != want {
		t.Errorf("price %+v, want %+v", opus.Price, want)
	}
	// A name without a date is the newest with one; with another date it is not known.
	if i, ok := c.Lookup("anthropic", "claude-opus-4-5"); !ok || i.Price != opus.Price || i.Name != "claude-opus-4-5" {
		t.Errorf("without a date: %+v, %v", i, ok)
	}
	if i, ok := c.Lookup("anthropic", "claude-opus-4-5-20991101"); ok {
		t.Errorf("with another date: %+v", i)
	}
	if i, ok := c.Lookup("anthropic", "claude-opus-4"); !ok || i.Price.Input != 15 { // and not 4-1 or 4-5
		t.Errorf("an older one: %+v, %v", i, ok)
	}
	unknown, ok := c.Lookup("anthropic", "claude-of-tomorrow")
	if ok || unknown.Window != 0 || unknown.Priced || unknown.Name != "claude-of-tomorrow" {
		t.Errorf("unknown model: %+v, %v", unknown, ok)
	}
}

// A name with a date and one without mean the same model; two dates do not.
func TestLookupOfAStateOfAModel(t *testing.T) {
	c := model.NewCatalogue()
	for name, want := range map[string]bool{
		"claude-haiku-4-5": true, "claude-haiku-4-5-latest": true, "claude-haiku-4-5-20251001": true,
		"claude-haiku-4-5-20240101": false, "claude-haiku": false, "claude-haiku-4-5-9": false, "claude-opus-4-5-20251101": true,
	} {
		i, ok := c.Lookup("anthropic", name)
		if ok != want || i.Name != name || (i.Window > 0) != want || i.Priced != want {
			t.Errorf("%s: %+v, %v", name, i, ok)
		}
	}
	if i, ok := c.Lookup("openai", "gpt-4o-2024-08-06"); !ok || !i.Priced {
		t.Errorf("%+v, %v", i, ok)
	}
}

// The data names the two prices of a cache in different ways. Whatever it
// does, reading is at most as dear as input, and writing at most twice as dear.
func TestCachePrices(t *testing.T) {
	c := model.NewCatalogue()
	for _, tt := range []struct {
		provider, name string
		read, write    float64
	}{
		{"anthropic", "claude-haiku-4-5-20251001", 0.1, 1.25}, // write, read
		{"openai", "gpt-5.5", 0.5, 5},                         // read, none
		{"minimax", "MiniMax-M2.7", 0.06, 0.375},              // read, write
		{"qiniucloud", "z-ai/glm-5", 0.56, 0.56},              // prices of input and output once more
		{"openai", "gpt-5.5-pro", 30, 30},                     // none: full price, never free
	} {
		i, ok := c.Lookup(tt.provider, tt.name)
		if !ok || i.Price.CacheRead != tt.read || i.Price.CacheWrite != tt.write {
			t.Errorf("%s/%s: %+v, want read %v, write %v", tt.provider, tt.name, i, tt.read, tt.write)
		}
	}
}

func TestCost(t *testing.T) {
	c := model.NewCatalogue()
	sonnet, _ := c.Lookup("anthropic", "claude-sonnet-4-5-20250929")
	got, known := sonnet.Cost(troupe.Usage{Input: 1_000_000, Output: 100_000, CacheRead: 1_000_000, CacheWrite: 200_000})
	if want := 3 + 1.5 + 0.3 + 0.75; !known || math.Abs(got-want) > 1e-9 {
		t.Errorf("Cost = %v, %v; want %v", got, known, want)
	}
	if got, known := (model.Info{}).Cost(troupe.Usage{Input: 1}); known || got != 0 {
		t.Errorf("cost of an unknown model: %v, %v", got, known)
	}
	// A price of zero in the data means that none is stated.
	free, ok := c.Lookup("kimi-coding", "kimi-for-coding")
	if _, known := free.Cost(troupe.Usage{Input: 1}); !ok || known {
		t.Errorf("a model without a stated price has one: %+v", free)
	}
}

func TestOverrides(t *testing.T) {
	c := model.NewCatalogue(
		model.Info{Provider: "anthropic", Name: "claude-opus-4-5-20251101", Window: 7},
		model.Info{Provider: "ollama", Name: "qwen3:8b", Window: 32_768, Priced: true},
	)
	opus, _ := c.Lookup("anthropic", "claude-opus-4-5-20251101")
	if opus.Window != 7 || opus.MaxOutput != 64_000 || opus.Price.Input != 5 {
		t.Errorf("override did not leave the rest: %+v", opus)
	}
	local, ok := c.Lookup("ollama", "qwen3:8b")
	if cost, known := local.Cost(troupe.Usage{Input: 5}); !ok || local.Window != 32_768 || !known || cost != 0 {
		t.Errorf("added model: %+v, %v", local, ok)
	}
}

func TestDefaults(t *testing.T) {
	c := model.NewCatalogue()
	for _, provider := range []string{"anthropic", "openai", "openrouter", "deepseek"} {
		for _, name := range []string{c.Default(provider), c.Small(provider)} {
			if _, ok := c.Lookup(provider, name); !ok {
				t.Errorf("%s: default %q is not in the catalogue", provider, name)
			}
		}
	}
	if got := c.Default("nobody"); got != "" {
		t.Errorf("default of an unknown provider: %q", got)
	}
}
