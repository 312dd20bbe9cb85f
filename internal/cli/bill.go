package cli

import (
	"fmt"
	"strings"
)

// Bill tells what each model was used for and what it cost.
func Bill(t *Tally) string {
	var b strings.Builder
	for _, m := range t.Models {
		d, known := t.CostOf(m)
		fmt.Fprintf(&b, "%s: %s tokens in, %s from cache, %s to cache, %s out: %s\n", OneLine(m.Model, 60), group(m.Usage.Input),
			group(m.Usage.CacheRead), group(m.Usage.CacheWrite), group(m.Usage.Output), Money(d, known))
	}
	return b.String() + "in all " + tokens(t.Usage()) + " tokens, " + Money(t.Cost())
}
