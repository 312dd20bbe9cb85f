package model

import (
	_ "embed"
	"iter"
	"strconv"
	"strings"
	"time"
)

// The data is a table of lines, their fields divided by tabs. A line that
// begins with "provider" is followed by those of its models:
//
//	provider  ID  dialect  key variable  address  default model  small model
//	model     name  window  most output  price of input, output, cache read, cache write
//
// The address may be a variable, as in "$AZURE_URL". The four prices are left
// out where none is stated. The file is made and not to be edited.
//
//go:generate go run ./internal/catalogue catalogue.txt
//go:embed catalogue.txt
var catalogueData string

// A provider is what the data says of a provider that can be spoken to.
type provider struct {
	id      string
	dialect Dialect
	key     string // name of the variable that holds its key
	address string // URL, or $NAME of the variable that holds it
	large   string // default model
	small   string // small and fast model
	lines   string // of its models
}

// readProviders reads the lines of the providers and leaves those of their
// models for later.
func readProviders() []provider {
	var out []provider
	for block := range strings.SplitSeq(strings.TrimPrefix(catalogueData, "provider\t"), "\nprovider\t") {
		head, models, _ := strings.Cut(block, "\n")
		if f := strings.Split(head, "\t"); len(f) == 6 {
			out = append(out, provider{id: f[0], dialect: Dialect(f[1]), key: f[2], address: f[3], large: f[4], small: f[5], lines: models})
		}
	}
	return out
}

// models yields the names of p's models, and what else their lines say.
func (p provider) models() iter.Seq2[string, string] {
	return func(yield func(name, rest string) bool) {
		for line := range strings.Lines(p.lines) {
			line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "model\t")
			if name, rest, ok := strings.Cut(line, "\t"); ok && !yield(name, rest) {
				return
			}
		}
	}
}

// lookup reads the line of one model. Providers give a model out under a name
// and, for each state of it, under the name with a date; the table may have one
// or the other. Of several states the newest counts.
func (p provider) lookup(model string) (Info, bool) {
	var best, line string
	short := undated(model)
	anyState := short == model || strings.HasSuffix(model, "-latest")
	for name, rest := range p.models() {
		if name == model {
			return p.info(name, strings.Split(rest, "\t")), true
		}
		if strings.HasPrefix(name, short) && undated(name) == short && (anyState || name == short) && name > best {
			best, line = name, rest
		}
	}
	if best == "" {
		return Info{}, false
	}
	return p.info(model, strings.Split(line, "\t")), true
}

// undated is name without what makes a state of a model of it.
func undated(name string) string {
	if short, ok := strings.CutSuffix(name, "-latest"); ok {
		return short
	}
	for _, layout := range []string{"-20060102", "-2006-01-02"} {
		if at := len(name) - len(layout); at > 0 {
			if _, err := time.Parse(layout, name[at:]); err == nil {
				return name[:at]
			}
		}
	}
	return name
}

// info makes an Info of the fields of a line. The generator wrote them, so none
// is broken.
func (p provider) info(name string, fields []string) Info {
	i := Info{Provider: p.id, Name: name}
	numbers := make([]float64, 6)
	for n, field := range fields[:min(len(fields), len(numbers))] {
		numbers[n], _ = strconv.ParseFloat(field, 64)
	}
	i.Window, i.MaxOutput, i.Priced = int(numbers[0]), int(numbers[1]), len(fields) == len(numbers)
	i.Price = Price{Input: numbers[2], Output: numbers[3], CacheRead: numbers[4], CacheWrite: numbers[5]}
	return i
}
