package model

import (
	"slices"
	"strings"
)

// Providers returns the names of all providers that can be spoken to: those
// that are known without the catalogue, then its own in its order.
func (c *Catalogue) Providers() []string {
	names := []string{anthropicID, openaiID, ollamaID}
	for _, p := range c.providers() {
		if !slices.Contains(names, p.id) {
			names = append(names, p.id)
		}
	}
	return names
}

// Models returns what is known of the models of a provider, sorted by name.
func (c *Catalogue) Models(provider string) []Info {
	var all []Info
	for name := range c.modelsOf(provider) {
		if !slices.ContainsFunc(all, func(i Info) bool { return i.Name == name }) {
			i, _ := c.Lookup(provider, name)
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Server is where e is, without what only the user and the server should know.
func (e Endpoint) Server() string { return bare(e.BaseURL) }
