package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// An Amount is money in steps of 10⁻¹⁰ dollars: whole numbers of them add up to the
// last digit, and a token costs some whole number of them. Prices have four decimals
// of a dollar for a million tokens at most.
type Amount int64

// step is how many decimals of a dollar an Amount has.
const step = 10

// NewAmount returns what is nearest to so many dollars.
func NewAmount(dollars float64) Amount { return Amount(math.Round(dollars * math.Pow10(step))) }

// String is the amount in dollars to its last digit, as a decimal number.
func (a Amount) String() string { return a.fixed(a.digits()) }

// digits is how many decimals a has.
func (a Amount) digits() int {
	n := step
	for ; n > 0 && a%10 == 0; n-- {
		a /= 10
	}
	return n
}

// fixed is the amount with so many decimals, which are enough for it.
func (a Amount) fixed(decimals int) string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	whole := fmt.Sprintf("%0*d", step+1, int64(a))
	at := len(whole) - step
	if decimals == 0 {
		return sign + whole[:at]
	}
	return sign + whole[:at] + "." + whole[at:at+decimals]
}

// MarshalJSON implements [json.Marshaler].
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// A Cost is what was used and what it costs.
type Cost struct {
	Usage     troupe.Usage
	Known     Amount // of what has a price and was counted
	Unpriced  int    // tokens of models without a known price
	Uncounted int    // replies that broke off before their provider had counted
}

// Whole reports whether Known is all there is to pay.
func (c Cost) Whole() bool { return c.Unpriced == 0 && c.Uncounted == 0 }

func (c Cost) add(d Cost) Cost {
	return Cost{c.Usage.Add(d.Usage), c.Known + d.Known, c.Unpriced + d.Unpriced, c.Uncounted + d.Uncounted}
}

// A Line is the cost of one agent, without those that it started, or of one model.
type Line struct {
	Cost
	Agent, Definition, Parent string
	Depth                     int
	Model                     string
	Models                    []Line // of an agent
}

// Costs are what the agents of a session have used. Those of the agents add up to
// those of the models and to All, to the last digit.
type Costs struct {
	Session string
	Agents  []Line // as a tree: below each those that it started
	Models  []Line // in the order of first use
	All     Cost
	Damaged int // parts of logs that could not be read, whose usage is missing
}

// Costs returns what was counted so far.
func (t *Tally) Costs() Costs {
	var c Costs
	at := map[string]int{}
	for _, a := range t.tree() {
		line := Line{Agent: a.id, Definition: a.definition, Parent: a.parent, Depth: a.depth}
		for _, m := range a.models {
			part := t.cost(m)
			line.Cost = line.add(part)
			line.Models = append(line.Models, Line{Model: m.Model, Cost: part})
			if _, ok := at[m.Model]; !ok {
				at[m.Model] = len(c.Models)
				c.Models = append(c.Models, Line{Model: m.Model})
			}
			all := &c.Models[at[m.Model]]
			all.Cost = all.add(part)
		}
		c.Agents = append(c.Agents, line)
		c.All = c.All.add(line.Cost)
	}
	return c
}

func (t *Tally) cost(m ModelUse) Cost {
	c := Cost{Usage: m.Usage, Uncounted: m.uncounted}
	if d, known := t.Price(m.Model, m.Usage); known {
		c.Known = NewAmount(d)
	} else {
		c.Unpriced = m.Usage.Total()
	}
	return c
}

// tree returns the agents, each below the one that started it. One whose starter is
// not known, or who would be below itself, stands at the top.
func (t *Tally) tree() []*agent {
	below := map[string][]*agent{}
	for _, a := range t.order {
		below[a.parent] = append(below[a.parent], a)
	}
	var out []*agent
	seen := map[*agent]bool{}
	var walk func(a *agent)
	walk = func(a *agent) {
		if seen[a] {
			return
		}
		seen[a] = true
		out = append(out, a)
		for _, b := range below[a.id] {
			walk(b)
		}
	}
	for _, a := range t.order {
		if t.agents[a.parent] == nil {
			walk(a)
		}
	}
	for _, a := range t.order {
		walk(a)
	}
	return out
}

// Text prints c for people.
func (c Costs) Text(w io.Writer) error {
	digits := 4
	for _, l := range append(append([]Line{}, c.Agents...), c.Models...) {
		digits = max(digits, l.Known.digits())
	}
	rows := [][]string{{"AGENT", "INPUT", "FROM CACHE", "TO CACHE", "OUTPUT", "COST"}}
	row := func(name string, c Cost) {
		u := c.Usage
		rows = append(rows, []string{name, group(u.Input), group(u.CacheRead), group(u.CacheWrite), group(u.Output), c.money(digits)})
	}
	for _, a := range c.Agents {
		name := OneLine(a.Agent, 20)
		if a.Agent != session.Lead {
			name = strings.Repeat("  ", a.Depth) + OneLine(a.Definition+" "+a.Agent, 40)
		}
		row(name, a.Cost)
	}
	rows = append(rows, nil, []string{"MODEL"})
	for _, m := range c.Models {
		row(OneLine(m.Model, 60), m.Cost)
	}
	rows = append(rows, nil)
	row("in all", c.All)
	if _, err := io.WriteString(w, aligned(rows)+c.notes()); err != nil {
		return fmt.Errorf("write the cost: %w", err)
	}
	return nil
}

// money is the cost as far as it is known.
func (c Cost) money(digits int) string {
	switch {
	case c.Whole():
		return "$" + c.Known.fixed(digits)
	case c.Known == 0:
		return "unknown"
	}
	return "unknown, over $" + c.Known.fixed(digits)
}

// notes says why a cost is unknown.
func (c Costs) notes() string {
	var b strings.Builder
	if c.All.Unpriced > 0 {
		fmt.Fprintf(&b, "\n%s tokens have no price that is known; set one in settings (catalogue)\n", group(c.All.Unpriced))
	}
	if n := c.All.Uncounted; n > 0 {
		verb := "have"
		if n == 1 {
			verb = "has"
		}
		fmt.Fprintf(&b, "\n%s broke off before the provider had counted, and %s cost something, too\n", plural(n, "request"), verb)
	}
	return b.String()
}

// aligned puts rows into columns: the first to the left, the others to the right.
func aligned(rows [][]string) string {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		for i, cell := range r {
			switch pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)); {
			case i > 0:
				b.WriteString("  " + pad + cell)
			case len(r) > 1:
				b.WriteString(cell + pad)
			default:
				b.WriteString(cell)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// JSON prints c as one object.
func (c Costs) JSON(w io.Writer) error {
	agents, models := []object{}, []object{}
	for _, a := range c.Agents {
		o := a.object()
		o["agent_id"], o["agent_type"], o["parent_id"], o["depth"] = a.Agent, a.Definition, null(a.Parent), a.Depth
		of := []object{}
		for _, m := range a.Models {
			of = append(of, m.ofModel())
		}
		o["models"] = of
		agents = append(agents, o)
	}
	for _, m := range c.Models {
		models = append(models, m.ofModel())
	}
	o := c.All.object()
	o["type"], o["session_id"], o["agents"], o["models"], o["damaged"] = "cost", c.Session, agents, models, c.Damaged
	return printJSON(w, o)
}

func (l Line) ofModel() object {
	o := l.object()
	o["model"] = l.Model
	return o
}

func (c Cost) object() object {
	o := object{"usage": usage(c.Usage), "total_cost_usd": nil, "known_cost_usd": c.Known, "unpriced_tokens": c.Unpriced, "uncounted_replies": c.Uncounted}
	if c.Whole() {
		o["total_cost_usd"] = c.Known
	}
	return o
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
