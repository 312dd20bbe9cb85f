// Catalogue makes the table of models that package model holds: of the data of
// charm.land/catwalk, in the version of go.mod, it keeps what the package uses.
// Reading the whole of that data at each start would cost more than everything
// else a start does. Run it with
//
//	go generate ./model
//
// when catwalk's version changes; a test says so.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "catalogue: want the name of the file to write")
		os.Exit(2)
	}
	text, err := table(embedded.GetAll())
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "catalogue:", err)
		os.Exit(1)
	}
}

// table writes the providers that can be spoken to, and their models.
func table(providers []catwalk.Provider) ([]byte, error) {
	var b bytes.Buffer
	for _, p := range providers {
		d := dialect(p)
		if d == "" {
			continue
		}
		if err := line(&b, "provider", string(p.ID), d, variable(p.APIKey), p.APIEndpoint, p.DefaultLargeModelID, p.DefaultSmallModelID); err != nil {
			return nil, err
		}
		models := slices.Clone(p.Models)
		slices.SortStableFunc(models, func(a, b catwalk.Model) int { return cmp.Compare(a.ID, b.ID) })
		for i, m := range models {
			if i+1 < len(models) && models[i+1].ID == m.ID {
				continue // the last one counts
			}
			fields := []string{"model", m.ID, strconv.FormatInt(m.ContextWindow, 10), strconv.FormatInt(m.DefaultMaxTokens, 10)}
			if err := line(&b, append(fields, prices(m)...)...); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), nil
}

// line writes the fields of a line, divided by tabs.
func line(b *bytes.Buffer, fields ...string) error {
	for _, f := range fields {
		if strings.ContainsAny(f, "\t\r\n") {
			return fmt.Errorf("%q would break the table", f)
		}
	}
	b.WriteString(strings.Join(fields, "\t") + "\n")
	return nil
}

// dialect returns the protocol of a provider, in the words of package model, ""
// for one that cannot be spoken to: other protocols, or no key that a user
// could set.
func dialect(p catwalk.Provider) string {
	if variable(p.APIKey) == "" {
		return ""
	}
	switch p.Type {
	case catwalk.TypeAnthropic:
		return "anthropic"
	case catwalk.TypeOpenAI, catwalk.TypeOpenAICompat, catwalk.TypeOpenRouter, catwalk.TypeVercel:
		return "openai"
	}
	return ""
}

// variable returns NAME for "$NAME", else "".
func variable(s string) string {
	name, ok := strings.CutPrefix(s, "$")
	if !ok {
		return ""
	}
	return name
}

// prices returns the prices of a model: of input, output, reading from a cache
// and writing to it. The data gives two for caches, under names that its sources
// use in different ways: some have the price of writing first and of reading
// second, some the price of reading in either place. But reading from a cache is
// never dearer than plain input, and writing costs at most twice as much; what
// is left over by that, or missing, costs like plain input. Two zeros are models
// whose price is not stated, as those of a subscription: they have no prices.
func prices(m catwalk.Model) []string {
	in, out := m.CostPer1MIn, m.CostPer1MOut
	if in <= 0 && out <= 0 {
		return nil
	}
	read, write := in, in
	for _, v := range []float64{m.CostPer1MInCached, m.CostPer1MOutCached} {
		switch {
		case v <= 0:
		case v <= in:
			read = min(read, v)
		case v <= 2*in:
			write = v
		}
	}
	var fields []string
	for _, v := range []float64{in, out, read, write} {
		fields = append(fields, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return fields
}
