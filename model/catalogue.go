package model

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/troupe-sh/troupe"
)

// A Price is in dollars for a million tokens.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// Info is what is known of a model. Zero numbers are not known.
type Info struct {
	Provider, Name string
	Window         int   // tokens of request and reply together
	MaxOutput      int   // tokens of a reply
	Price          Price // counts only if Priced
	Priced         bool  // a model may cost nothing; that is not the same as not knowing
}

// Cost returns the dollars for u, and whether they are known.
func (i Info) Cost(u troupe.Usage) (dollars float64, known bool) {
	if !i.Priced {
		return 0, false
	}
	const million = 1e6
	return (float64(u.Input)*i.Price.Input + float64(u.Output)*i.Price.Output +
		float64(u.CacheRead)*i.Price.CacheRead + float64(u.CacheWrite)*i.Price.CacheWrite) / million, true
}

// A Catalogue knows models: their windows and prices, and their providers. Its
// data is part of the program and read when it is asked for the first time,
// which takes some milliseconds. It is safe for concurrent use.
type Catalogue struct {
	overrides []Info
	once      sync.Once
	providers []catwalk.Provider // in the order of the data; only those that can be spoken to
	models    map[Name]Info
}

// NewCatalogue returns the catalogue with the given entries on top: what is not
// zero in one replaces what the data says of that model, and a model that the
// data lacks is added.
func NewCatalogue(overrides ...Info) *Catalogue {
	return &Catalogue{overrides: slices.Clone(overrides)}
}

func (c *Catalogue) load() {
	c.once.Do(func() {
		c.models = map[Name]Info{}
		for _, p := range embedded.GetAll() {
			if dialectOf(p) == "" {
				continue
			}
			c.providers = append(c.providers, p)
			for _, m := range p.Models {
				i := Info{Provider: string(p.ID), Name: m.ID, Window: int(m.ContextWindow), MaxOutput: int(m.DefaultMaxTokens)}
				i.Price, i.Priced = price(m)
				c.models[Name{i.Provider, i.Name}] = i
			}
		}
		for _, o := range c.overrides {
			n := Name{o.Provider, o.Name}
			c.models[n] = c.models[n].with(o)
		}
	})
}

func (i Info) with(o Info) Info {
	i.Provider, i.Name = o.Provider, o.Name
	if o.Window > 0 {
		i.Window = o.Window
	}
	if o.MaxOutput > 0 {
		i.MaxOutput = o.MaxOutput
	}
	if o.Priced {
		i.Price, i.Priced = o.Price, true
	}
	return i
}

// price reads the prices of a model. The data gives two for caches, under names
// that its sources use in different ways: some have the price of writing first
// and of reading second, some the price of reading in either place. But reading
// from a cache is never dearer than plain input, and writing costs at most
// twice as much; what is left over by that, or missing, costs like plain input.
// Two zeros are models whose price is not stated, as those of a subscription.
func price(m catwalk.Model) (Price, bool) {
	if m.CostPer1MIn <= 0 && m.CostPer1MOut <= 0 {
		return Price{}, false
	}
	p := Price{Input: m.CostPer1MIn, Output: m.CostPer1MOut, CacheRead: m.CostPer1MIn, CacheWrite: m.CostPer1MIn}
	for _, v := range []float64{m.CostPer1MInCached, m.CostPer1MOutCached} {
		switch {
		case v <= 0:
		case v <= p.Input:
			p.CacheRead = min(p.CacheRead, v)
		case v <= 2*p.Input:
			p.CacheWrite = v
		}
	}
	return p, true
}

// Lookup returns what is known of a model of a provider, and whether the
// catalogue has it. A model that it lacks can be used all the same.
func (c *Catalogue) Lookup(provider, name string) (Info, bool) {
	c.load()
	i, ok := c.models[Name{provider, name}]
	if !ok {
		i = Info{Provider: provider, Name: name}
	}
	return i, ok
}

// Default returns the name of the model that a provider is best used with, ""
// if the catalogue knows none.
func (c *Catalogue) Default(provider string) string { return c.provider(provider).DefaultLargeModelID }

// Small returns the name of a provider's small and fast model, "" if the
// catalogue knows none.
func (c *Catalogue) Small(provider string) string { return c.provider(provider).DefaultSmallModelID }

// Keys returns the names of the variables in which users keep keys of
// providers.
func (c *Catalogue) Keys() []string {
	c.load()
	keys := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"}
	for _, p := range c.providers {
		if key := variable(p.APIKey); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// provider returns a provider of the data, the zero one if there is none.
func (c *Catalogue) provider(id string) catwalk.Provider {
	c.load()
	for _, p := range c.providers {
		if string(p.ID) == id {
			return p
		}
	}
	return catwalk.Provider{}
}

// names returns all models, sorted, those of the makers first.
func (c *Catalogue) names() []Name {
	c.load()
	return slices.SortedFunc(maps.Keys(c.models), func(a, b Name) int {
		if x, y := maker(a.Provider), maker(b.Provider); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a.String(), b.String())
	})
}

// maker reports whether a provider makes the models that others resell.
func maker(provider string) bool { return provider == anthropicID || provider == openaiID }

// newest returns the latest model of a family of Anthropic's (opus, sonnet,
// haiku), going by the version in its name, "" if there is none.
func (c *Catalogue) newest(family string) string {
	form := regexp.MustCompile(`^claude-` + regexp.QuoteMeta(family) + `-(\d{1,2})(?:-(\d{1,2}))?(?:-(\d{8}))?$`)
	best, version := "", []int(nil)
	for _, n := range c.names() {
		m := form.FindStringSubmatch(n.Model)
		if n.Provider != anthropicID || m == nil {
			continue
		}
		v := make([]int, 0, 3)
		for _, part := range m[1:] {
			number, _ := strconv.Atoi(part) // "" is 0
			v = append(v, number)
		}
		if best == "" || slices.Compare(v, version) > 0 {
			best, version = n.Model, v
		}
	}
	return best
}
