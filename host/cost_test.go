package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// house answers for a lead with three agents that have two each. Of the six one is
// refused and one is cut off in its reply; so is the lead's reply to "wait".
func house(r *troupetest.Request) troupetest.Reply {
	task := r.FirstUser()[strings.LastIndex(r.FirstUser(), "\n")+1:]
	start := func(n int, kind, what string) troupetest.Reply {
		m := troupe.Message{Role: troupe.Assistant}
		for i := range n {
			m.Content = append(m.Content, use(fmt.Sprintf("c%d-%d", r.Number, i), "Agent",
				map[string]any{"description": "d", "prompt": fmt.Sprintf("%s %d", what, i), "subagent_type": kind}))
		}
		return troupetest.Reply{Message: m}
	}
	first := len(r.Messages) == 1
	switch {
	case task == "the house" && first:
		return start(3, "mid", "floor")
	case r.LastUser() == "wait":
		return troupetest.Reply{Message: troupetest.Say("ok"), Fault: troupetest.Fault{Stall: troupetest.Midway}}
	case strings.HasPrefix(task, "floor") && !strings.Contains(task, "room") && first:
		return start(2, "", task+" room")
	case task == "floor 1 room 0":
		return troupetest.Reply{Fault: troupetest.Fault{Status: 400}}
	case task == "floor 2 room 1":
		return troupetest.Reply{Message: troupetest.Say("never heard"), Fault: troupetest.Fault{Cut: troupetest.AfterStart}}
	}
	return troupetest.Reply{Message: troupetest.Say("done with " + task)}
}

// S105: what a session has cost is what the provider bills: of agents of agents, one
// that failed, one whose reply was cut off, a turn that was interrupted in the reply,
// and of what came after that. Where the provider has not counted, that is said.
func TestS105CostOfATreeIsTheBill(t *testing.T) {
	for dialect, name := range names {
		t.Run(string(dialect), func(t *testing.T) {
			p := newPlace(t)
			p.model = name
			p.env = append(p.env, "TROUPE_MAX_RETRIES=0")
			p.provider.Respond(house)
			p.src.Agents = `{"mid": {"description": "d", "prompt": "You lead some.", "tools": ["Agent", "Glob"]}}`
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s := p.open(t, func(o *host.Options) {
				o.Watch = func(ev troupe.Event) {
					if d, ok := ev.(troupe.Streaming); ok && d.Text == "o" {
						cancel(troupe.ErrInterrupted)
					}
				}
			})
			if end := ask(t, s, "the house"); end.Reason != troupe.Done {
				t.Fatalf("%+v", end)
			}
			if err := s.Send(ctx, "wait"); err != nil {
				t.Fatal(err)
			}
			if end, err := s.Run(ctx); !errors.Is(err, troupe.ErrInterrupted) {
				t.Fatalf("%+v, %v", end, err)
			}
			if end := ask(t, s, "go on"); end.Reason != troupe.Done {
				t.Fatalf("%+v", end)
			}
			if err := p.provider.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			isTheBill(t, p, s, dialect)
		})
	}
}

// isTheBill compares the cost of a session with what the provider bills.
func isTheBill(t *testing.T, p *place, s *host.Session, dialect troupetest.Dialect) {
	t.Helper()
	tally := &cli.Tally{Price: p.options(t).Models.Price}
	records, err := session.NewReader(s.Path()).Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		tally.Add(r)
	}
	c := tally.Costs()
	var bill, told troupe.Usage // told is what the provider has said, too
	for _, r := range p.provider.Requests() {
		bill = bill.Add(r.Usage)
		if cut := r.LastUser() == "wait" || strings.HasSuffix(r.FirstUser(), "floor 2 room 1"); !cut || dialect == troupetest.Anthropic {
			told = told.Add(r.Usage)
		}
	}
	dollars, _ := p.options(t).Models.Price(p.model, told)
	if c.All.Usage != told || c.All.Known != cli.NewAmount(dollars) || len(c.Agents) != 1+3+6 {
		t.Errorf("%d agents have cost %+v, billed %+v, of which the provider told %+v", len(c.Agents), c.All, bill, told)
	}
	if want := map[troupetest.Dialect]int{troupetest.OpenAI: 2}[dialect]; c.All.Uncounted != want || c.All.Whole() != (want == 0) || (bill == told) != (want == 0) {
		t.Errorf("%d replies were not counted, want %d; billed %+v, told %+v", c.All.Uncounted, want, bill, told)
	}
	var depths []string
	for _, a := range c.Agents {
		depths = append(depths, fmt.Sprint(a.Depth))
	}
	if got := strings.Join(depths, ""); got != "0122122122" {
		t.Errorf("the tree is %s", got)
	}
	if u := s.Spent().Usage; u != told {
		t.Errorf("the accounts have %+v, told %+v", u, told)
	}
	var out bytes.Buffer
	if err := c.JSON(&out); err != nil || !strings.Contains(out.String(), c.All.Known.String()) {
		t.Errorf("%s, %v", out.String(), err)
	}
}
