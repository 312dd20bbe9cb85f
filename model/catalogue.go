package model

import (
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

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
// data is part of the program; of it only what is asked for is read. It is safe
// for concurrent use.
type Catalogue struct {
	overrides []Info
	providers func() []provider // in the order of the data
}

// NewCatalogue returns the catalogue with the given entries on top: what is not
// zero in one replaces what the data says of that model, and a model that the
// data lacks is added.
func NewCatalogue(overrides ...Info) *Catalogue {
	return &Catalogue{overrides: slices.Clone(overrides), providers: sync.OnceValue(readProviders)}
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

// Lookup returns what is known of a model of a provider, and whether the
// catalogue has it. A model that it lacks can be used all the same.
func (c *Catalogue) Lookup(provider, name string) (Info, bool) {
	i, ok := c.provider(provider).lookup(name)
	for _, o := range c.overrides {
		if o.Provider == provider && o.Name == name {
			i, ok = i.with(o), true
		}
	}
	if !ok {
		i = Info{Provider: provider, Name: name}
	}
	return i, ok
}

// Default returns the name of the model that a provider is best used with, ""
// if the catalogue knows none.
func (c *Catalogue) Default(provider string) string { return c.provider(provider).large }

// Small returns the name of a provider's small and fast model, "" if the
// catalogue knows none.
func (c *Catalogue) Small(provider string) string { return c.provider(provider).small }

// Keys returns the names of the variables in which users keep keys of
// providers.
func (c *Catalogue) Keys() []string {
	keys := []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"}
	for _, p := range c.providers() {
		if !slices.Contains(keys, p.key) {
			keys = append(keys, p.key)
		}
	}
	return keys
}

// provider returns a provider of the data, the zero one if there is none.
func (c *Catalogue) provider(id string) provider {
	for _, p := range c.providers() {
		if p.id == id {
			return p
		}
	}
	return provider{}
}

// names returns all models, sorted, those of the makers first.
func (c *Catalogue) names() []Name {
	var all []Name
	for _, p := range c.providers() {
		for name := range p.models() {
			all = append(all, Name{p.id, name})
		}
	}
	for _, o := range c.overrides {
		all = append(all, Name{o.Provider, o.Name})
	}
	slices.SortFunc(all, func(a, b Name) int {
		if x, y := maker(a.Provider), maker(b.Provider); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a.String(), b.String())
	})
	return slices.Compact(all)
}

// modelsOf yields the names of a provider's models; one that was given on top
// may come twice.
func (c *Catalogue) modelsOf(provider string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range c.provider(provider).models() {
			if !yield(name) {
				return
			}
		}
		for _, o := range c.overrides {
			if o.Provider == provider && !yield(o.Name) {
				return
			}
		}
	}
}

// maker reports whether a provider makes the models that others resell.
func maker(provider string) bool { return provider == anthropicID || provider == openaiID }

// newest returns the latest model of a family of Anthropic's (opus, sonnet,
// haiku), going by the version in its name, "" if there is none.
func (c *Catalogue) newest(family string) string {
	form := regexp.MustCompile(`^claude-` + regexp.QuoteMeta(family) + `-(\d{1,2})(?:-(\d{1,2}))?(?:-(\d{8}))?$`)
	best, version := "", []int(nil)
	for name := range c.modelsOf(anthropicID) {
		m := form.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		v := make([]int, 0, 3)
		for _, part := range m[1:] {
			number, _ := strconv.Atoi(part) // "" is 0
			v = append(v, number)
		}
		if best == "" || slices.Compare(v, version) > 0 {
			best, version = name, v
		}
	}
	return best
}
