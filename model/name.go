package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The providers that are known without the catalogue.
const (
	anthropicID = "anthropic"
	openaiID    = "openai"
	ollamaID    = "ollama"
	scriptID    = "script"
)

var (
	// ErrUnknown is in the error for a name that no provider can be found for.
	ErrUnknown = errors.New("unknown model")
	// ErrNoModel is in the error for want of a model that could be chosen.
	ErrNoModel = errors.New("no model to use")
)

// A Name names a model of a provider. Model is as the provider writes it and
// may hold slashes.
type Name struct{ Provider, Model string }

// String is the form that [Catalogue.Parse] reads: provider/model.
func (n Name) String() string { return n.Provider + "/" + n.Model }

// Parse reads what a user wrote for a model: a name of aliases, "provider/name"
// with a provider that is known, a family of Anthropic's (opus, sonnet, haiku:
// the newest one), or a bare name of the catalogue. If several providers have a
// bare name, the one that makes the model is meant; if none of them does, the
// error lists them. After "provider/" any name goes, known or not.
func (c *Catalogue) Parse(s string, aliases map[string]string) (Name, error) {
	s = strings.TrimSpace(s)
	if to, ok := aliases[s]; ok {
		s = strings.TrimSpace(to)
	}
	if s == "" {
		return Name{}, fmt.Errorf("%w: the name is empty; say provider/name", ErrUnknown)
	}
	provider, name, ok := strings.Cut(s, "/")
	if ok && name != "" && c.knows(provider) {
		return Name{provider, name}, nil
	}
	switch family := strings.ToLower(s); family {
	case "opus", "sonnet", "haiku":
		if newest := c.newest(family); newest != "" {
			return Name{anthropicID, newest}, nil
		}
	}
	return c.find(s)
}

func (c *Catalogue) knows(provider string) bool {
	switch provider {
	case anthropicID, openaiID, ollamaID, scriptID:
		return true
	}
	return c.provider(provider).id != ""
}

// find looks for a bare name among all models.
func (c *Catalogue) find(s string) (Name, error) {
	var found []Name
	for _, n := range c.names() {
		if strings.EqualFold(n.Model, s) {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 1, len(found) > 1 && maker(found[0].Provider):
		return found[0], nil
	case len(found) > 1:
		return Name{}, fmt.Errorf("%w: %q is a model of several providers; say which: %s", ErrUnknown, s, list(found))
	}
	hint := ""
	if near := c.near(s); len(near) > 0 {
		hint = "; near names: " + list(near)
	}
	return Name{}, fmt.Errorf("%w: %q%s; to use it all the same name its provider, as in openai/%s", ErrUnknown, s, hint, s)
}

func list(names []Name) string {
	const most = 8
	var s []string
	for i, n := range names {
		if i == most {
			s = append(s, "…")
			break
		}
		s = append(s, n.String())
	}
	return strings.Join(s, ", ")
}

// near returns up to three models whose names differ from s by a slip.
func (c *Catalogue) near(s string) []Name {
	type candidate struct {
		name  Name
		steps int
	}
	var all []candidate
	for _, n := range c.names() {
		steps := min(distance(strings.ToLower(s), strings.ToLower(n.Model)), distance(strings.ToLower(s), strings.ToLower(n.String())))
		if steps <= max(2, len(s)/4) {
			all = append(all, candidate{n, steps})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.steps - b.steps })
	var out []Name
	for _, a := range all[:min(3, len(all))] {
		out = append(out, a.name)
	}
	return out
}

// distance is the number of bytes to insert, delete or replace between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Choose returns the model to use when the user named none, going by the keys
// that lookup has: Anthropic's, then OpenAI's, then those of other providers in
// the order of the catalogue. A server that was named without a key cannot be
// guessed about: then the error asks for a model. Only variables that are for
// nothing but a model (…_API_KEY) are taken as a sign of what the user wants.
func (c *Catalogue) Choose(lookup func(string) string) (Name, error) {
	switch {
	case lookup("ANTHROPIC_API_KEY") != "", lookup("ANTHROPIC_AUTH_TOKEN") != "":
		return Name{anthropicID, c.Default(anthropicID)}, nil
	case lookup("OPENAI_API_KEY") != "":
		return Name{openaiID, c.Default(openaiID)}, nil
	case lookup("OPENAI_BASE_URL") != "":
		return Name{}, fmt.Errorf("%w: OPENAI_BASE_URL names a server but not a model; name one with --model openai/NAME", ErrNoModel)
	}
	for _, p := range c.providers() {
		if strings.HasSuffix(p.key, "_API_KEY") && lookup(p.key) != "" && p.large != "" {
			return Name{p.id, p.large}, nil
		}
	}
	return Name{}, fmt.Errorf("%w: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a model of a server of your own with --model ollama/NAME", ErrNoModel)
}
