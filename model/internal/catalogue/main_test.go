package main

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe/model"
)

// The table in the tree is that of the version of catwalk in go.mod.
func TestTableIsUpToDate(t *testing.T) {
	want, err := table(embedded.GetAll())
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../catalogue.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(have)); diff != "" {
		t.Errorf("model/catalogue.txt is not made of catwalk's present data; run: go generate ./model\n%.2000s", diff)
	}
}

// What package model reads out of the table is what catwalk says.
func TestCatalogueHasWhatCatwalkHas(t *testing.T) {
	c, spoken := model.NewCatalogue(), 0
	for _, p := range embedded.GetAll() {
		id, last := string(p.ID), map[string]catwalk.Model{}
		for _, m := range p.Models {
			last[m.ID] = m
		}
		if dialect(p) == "" {
			for name := range last {
				if _, ok := c.Lookup(id, name); ok {
					t.Errorf("%s/%s is in the catalogue, but nobody can speak to it", id, name)
				}
			}
			continue
		}
		spoken++
		if c.Default(id) != p.DefaultLargeModelID || c.Small(id) != p.DefaultSmallModelID {
			t.Errorf("%s: default %q, small %q; want %q, %q", id, c.Default(id), c.Small(id), p.DefaultLargeModelID, p.DefaultSmallModelID)
		}
		if key := variable(p.APIKey); !slices.Contains(c.Keys(), key) {
			t.Errorf("%s: Keys lacks %s", id, key)
		}
		for name, m := range last {
			want := model.Info{Provider: id, Name: name, Window: int(m.ContextWindow), MaxOutput: int(m.DefaultMaxTokens)}
			if f := prices(m); f != nil {
				want.Priced = true
				want.Price = model.Price{Input: number(t, f[0]), Output: number(t, f[1]), CacheRead: number(t, f[2]), CacheWrite: number(t, f[3])}
			}
			if got, ok := c.Lookup(id, name); !ok || got != want {
				t.Errorf("Lookup(%s, %s) = %+v, %v; want %+v", id, name, got, ok, want)
			}
		}
	}
	if spoken < 20 {
		t.Errorf("only %d providers can be spoken to", spoken)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The two prices of a cache come under changing names.
func TestPrices(t *testing.T) {
	for _, tt := range []struct {
		name                               string
		in, out, cachedInput, cachedOutput float64
		want                               []string
	}{
		{"not stated", 0, 0, 1, 1, nil},
		{"write, read", 3, 15, 3.75, 0.3, []string{"3", "15", "0.3", "3.75"}},
		{"read, write", 0.3, 1.2, 0.06, 0.375, []string{"0.3", "1.2", "0.06", "0.375"}},
		{"no cache", 30, 180, 0, 0, []string{"30", "180", "30", "30"}},
		{"input and output once more", 0.5, 2, 0.5, 2, []string{"0.5", "2", "0.5", "0.5"}},
		{"twice", 5, 30, 0.5, 0.6, []string{"5", "30", "0.5", "5"}},
	} {
		m := catwalk.Model{CostPer1MIn: tt.in, CostPer1MOut: tt.out, CostPer1MInCached: tt.cachedInput, CostPer1MOutCached: tt.cachedOutput}
		if diff := cmp.Diff(tt.want, prices(m)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// A name that cannot stand in a field is not written.
func TestTableRefusesWhatWouldBreakIt(t *testing.T) {
	p := catwalk.Provider{ID: "p", APIKey: "$P_API_KEY", Type: catwalk.TypeOpenAI, Models: []catwalk.Model{{ID: "a\tb"}}}
	if text, err := table([]catwalk.Provider{p}); err == nil {
		t.Errorf("table wrote %q", text)
	}
}
