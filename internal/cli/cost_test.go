package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

func TestAmount(t *testing.T) {
	for want, dollars := range map[string]float64{"0": 0, "1": 1, "0.1": 0.1, "12.0000000003": 12.0000000003, "-0.5": -0.5, "0.3": 0.1 + 0.2, "1000000.25": 1e6 + 0.25} {
		if got := cli.NewAmount(dollars).String(); got != want {
			t.Errorf("%v is %s, want %s", dollars, got, want)
		}
	}
}

func began(id, parent string, depth int, model string) troupe.Started {
	return troupe.Started{Agent: id, Definition: "worker", Parent: parent, Call: "c", Depth: depth, Request: troupe.Request{Model: model}}
}

func costs(records []session.Record) cli.Costs {
	t := &cli.Tally{Price: func(model string, u troupe.Usage) (float64, bool) {
		return (float64(u.Input)*3 + float64(u.CacheRead)*0.3 + float64(u.CacheWrite)*3.75 + float64(u.Output)*15) / 1e6, !strings.HasPrefix(model, "free/")
	}}
	for _, r := range records {
		t.Add(r)
	}
	return t.Costs()
}

// family has a lead with two agents, of which one has an agent with a model that
// nobody knows the price of, and the other was cut off.
func family() (out []session.Record) {
	out = append(out, at(0, "lead", troupe.Started{Agent: "lead", Definition: "lead", Request: troupe.Request{Model: "p/big"}},
		replied("p/big", troupe.Usage{Input: 1001, Output: 7, CacheRead: 13, CacheWrite: 1}))...)
	out = append(out, at(2, "a", began("a", "lead", 1, "p/big"), replied("p/big", troupe.Usage{Input: 10, Output: 1}))...)
	out = append(out, at(4, "b", began("b", "lead", 1, "p/big"), troupe.Billed{Usage: troupe.Usage{Input: 5}}, replied("p/big", troupe.Usage{}))...)
	out = append(out, at(7, "c", began("c", "a", 2, "free/small"), replied("free/small", troupe.Usage{Input: 2000}))...)
	out = append(out, at(9, "b", troupe.Retrying{}, troupe.Billed{})...)
	return out
}

func TestCostsText(t *testing.T) {
	var b bytes.Buffer
	if err := costs(family()).Text(&b); err != nil {
		t.Fatal(err)
	}
	want := `AGENT          INPUT  FROM CACHE  TO CACHE  OUTPUT                       COST
lead           1,001          13         1       7                 $0.00311565
  worker a        10           0         0       1                 $0.00004500
    worker c   2,000           0         0       0                    unknown
  worker b         5           0         0       0  unknown, over $0.00001500

MODEL
p/big          1,016          13         1       8  unknown, over $0.00317565
free/small     2,000           0         0       0                    unknown

in all         3,016          13         1       8  unknown, over $0.00317565

2,000 tokens have no price that is known; set one in settings (catalogue)

1 request broke off before the provider had counted, and has cost something, too
`
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(b.String())); diff != "" {
		t.Errorf("%s\n%s", b.String(), diff)
	}
	lines := strings.Split(b.String(), "\n")
	for _, line := range append(lines[:5:5], lines[6+1:9]...) {
		if len(line) != len(lines[0]) {
			t.Errorf("%q is not in the columns of %q", line, lines[0])
		}
	}
}

func TestCostsJSON(t *testing.T) {
	var b bytes.Buffer
	c := costs(family())
	c.Session, c.Damaged = "s1", 2
	if err := c.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Type    string
		Session string       `json:"session_id"`
		Total   *json.Number `json:"total_cost_usd"`
		Known   json.Number  `json:"known_cost_usd"`
		Damaged int
		Agents  []struct {
			ID     string  `json:"agent_id"`
			Parent *string `json:"parent_id"`
			Depth  int
			Total  *json.Number `json:"total_cost_usd"`
			Models []struct{ Model string }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "cost" || got.Session != "s1" || got.Total != nil || got.Known != "0.00317565" || got.Damaged != 2 || len(got.Agents) != 4 {
		t.Errorf("%s", b.String())
	}
	lead, grandchild := got.Agents[0], got.Agents[2]
	if lead.Total == nil || *lead.Total != "0.00311565" || lead.Parent != nil || grandchild.ID != "c" || *grandchild.Parent != "a" || grandchild.Depth != 2 ||
		grandchild.Total != nil || grandchild.Models[0].Model != "free/small" {
		t.Errorf("%s", b.String())
	}
}

// Whatever agents with whatever parents have used of whatever models: each is there
// once, and all sums are the same to the last digit.
func TestCostsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agents := rapid.IntRange(1, 6).Draw(t, "agents")
		var records []session.Record
		var all troupe.Usage
		for i := range agents {
			parent := rapid.SampledFrom([]string{"", "a0", "a1", "a5", "gone"}).Draw(t, "parent")
			model := func() string { return rapid.SampledFrom([]string{"p/a", "p/b", "free/c"}).Draw(t, "model") }
			id := fmt.Sprint("a", i)
			records = append(records, at(len(records), id, began(id, parent, rapid.IntRange(-1, 9).Draw(t, "depth"), model()))...)
			for range rapid.IntRange(0, 4).Draw(t, "requests") {
				n := rapid.IntRange(0, 100_000)
				u := troupe.Usage{Input: n.Draw(t, "in"), Output: n.Draw(t, "out"), CacheRead: n.Draw(t, "read"), CacheWrite: n.Draw(t, "write")}
				ev := rapid.SampledFrom([]troupe.Event{replied("x", u), troupe.Billed{Usage: u}, troupe.Compacted{Usage: u}}).Draw(t, "event")
				records = append(records, at(len(records), id, troupe.Switched{Model: model()}, ev)...)
				all = all.Add(u)
			}
		}
		c := costs(records)
		if len(c.Agents) != agents || c.All.Usage != all {
			t.Fatalf("%d agents, %+v, want %d, %+v", len(c.Agents), c.All.Usage, agents, all)
		}
		sum := func(lines []cli.Line) string {
			money := new(big.Rat)
			var u troupe.Usage
			unpriced, uncounted := 0, 0
			for _, l := range lines {
				r, _ := new(big.Rat).SetString(l.Known.String())
				money.Add(money, r)
				u, unpriced, uncounted = u.Add(l.Usage), unpriced+l.Unpriced, uncounted+l.Uncounted
			}
			return fmt.Sprint(money.FloatString(10), u, unpriced, uncounted)
		}
		if a, m, whole := sum(c.Agents), sum(c.Models), sum([]cli.Line{{Cost: c.All}}); a != m || a != whole {
			t.Errorf("agents %s, models %s, all %s", a, m, whole)
		}
		above := map[string]string{}
		for _, a := range c.Agents {
			above[a.Agent] = a.Parent
		}
		for i, a := range c.Agents {
			own := false // it is below itself
			for up, n := a.Parent, 0; above[up] != "" && n <= agents; up, n = above[up], n+1 {
				own = own || n == agents
			}
			at := slices.IndexFunc(c.Agents, func(b cli.Line) bool { return b.Agent == a.Parent })
			if at >= i && !own {
				t.Errorf("%s stands above %s, who started it", a.Agent, a.Parent)
			}
			if len(a.Models) > 0 && sum(a.Models) != sum([]cli.Line{a}) {
				t.Errorf("the models of %s do not add up", a.Agent)
			}
		}
	})
}
