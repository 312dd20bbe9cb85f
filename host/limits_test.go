package host_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/budget"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// each is what every reply of these tests uses: ten cents of the model's.
var each = troupe.Usage{Input: 100_000}

func tokens(n int) host.Limits { return host.Limits{Limits: budget.Limits{Tokens: n}} }

func dollars(n float64) host.Limits { return host.Limits{Limits: budget.Limits{Dollars: n}} }

// agents answers as a lead that starts n agents at once, and as agents that
// never stop looking around.
func agents(n int) func(*troupetest.Request) troupetest.Reply {
	return func(r *troupetest.Request) troupetest.Reply {
		if r.FirstUser() == "" || !strings.Contains(r.FirstUser(), "the lead's task") {
			look := use(fmt.Sprintf("g%d", r.Number), "Glob", map[string]any{"pattern": "*"})
			return troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text("I look."), look}}, Usage: each}
		}
		if len(r.Results()) > 0 {
			return troupetest.Reply{Message: troupetest.Say("the lead is done"), Usage: each}
		}
		m := troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text("I start some.")}}
		for i := range n {
			m.Content = append(m.Content, use(fmt.Sprintf("a%d", i), "Agent", map[string]any{"description": "d", "prompt": fmt.Sprintf("part %d", i)}))
		}
		return troupetest.Reply{Message: m, Usage: each}
	}
}

// A limit holds for all agents together, or for one of them, whoever reaches it.
// What it stops is not sent; what the provider bills is what was counted.
func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		session, each host.Limits
		agents        int // 0: the lead looks around itself
		reason        troupe.Reason
		requests      int
		says          string // the error, or what the lead is told of its agents
	}{
		"money, the lead":                     {dollars(0.25), host.Limits{}, 0, troupe.OverBudget, 2, "the session may spend $0.2500, has spent $0.2000"},
		"tokens, the lead":                    {tokens(250_000), host.Limits{}, 0, troupe.OverBudget, 2, "the session may spend 250,000 tokens, has spent 200,000"},
		"money of all, an agent":              {dollars(0.25), host.Limits{}, 1, troupe.OverBudget, 2, "the session may spend $0.2500, has spent $0.2000"},
		"tokens of all, an agent":             {tokens(250_000), host.Limits{}, 1, troupe.OverBudget, 2, "the session may spend 250,000"},
		"money of all, agents side by side":   {dollars(0.25), host.Limits{}, 3, troupe.OverBudget, 4, "has spent $0.4000"},
		"money of each, an agent":             {dollars(9), dollars(0.25), 1, troupe.Done, 4, "may spend $0.2500, has spent $0.2000"},
		"tokens of each, an agent":            {host.Limits{}, tokens(250_000), 1, troupe.Done, 4, "may spend 250,000 tokens"},
		"money of each, agents side by side":  {host.Limits{}, dollars(0.15), 3, troupe.Done, 5, "may spend $0.1500, has spent $0.1000"},
		"tokens of each, agents side by side": {host.Limits{}, tokens(150_000), 3, troupe.Done, 5, "may spend 150,000"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.provider.Respond(agents(tt.agents))
			s := p.open(t, func(o *host.Options) { o.Limits, o.Each = tt.session, tt.each })
			prompt := "the lead's task"
			if tt.agents == 0 {
				prompt = "look around"
			}
			if err := s.Send(t.Context(), prompt); err != nil {
				t.Fatal(err)
			}
			end, _ := s.Run(t.Context())
			if end.Reason != tt.reason {
				t.Fatalf("ended with %+v", end)
			}
			all := p.provider.Requests()
			if len(all) != tt.requests {
				t.Errorf("%d requests, want %d", len(all), tt.requests)
			}
			told := end.Err
			if tt.reason == troupe.Done {
				told = ""
				for _, res := range p.provider.Last().Results() {
					if !res.IsError {
						t.Errorf("an agent that was stopped is a success: %s", res.Content.Text())
					}
					has(t, res.Content.Text(), "did not finish (over_budget)", "I look.", tt.says)
					told += res.Content.Text()
				}
			} else if !strings.HasPrefix(end.Text, "I ") {
				t.Errorf("what the lead said last is lost: %q", end.Text)
			}
			has(t, told, tt.says)
			billed(t, p, s, end)
		})
	}
}

// billed compares what was counted with what the provider bills.
func billed(t *testing.T, p *place, s *host.Session, lead troupe.Ended) {
	t.Helper()
	var bill, leads troupe.Usage
	turns := 0
	for _, r := range p.provider.Requests() {
		bill = bill.Add(r.Usage)
		if r.FirstUser() != "" && !strings.Contains(r.FirstUser(), "part ") {
			leads = leads.Add(r.Usage)
			turns++
		}
	}
	spent := s.Spent()
	cost := (float64(bill.Input) + 5*float64(bill.Output) + 0.1*float64(bill.CacheRead) + 1.25*float64(bill.CacheWrite)) / 1e6
	if spent.Usage != bill || math.Abs(spent.Dollars-cost) > 1e-9 {
		t.Errorf("counted %+v, billed %+v: $%v", spent, bill, cost)
	}
	if lead.Usage != leads || lead.Turns != turns {
		t.Errorf("the lead has used %+v in %d turns, billed %+v in %d", lead.Usage, lead.Turns, leads, turns)
	}
}

// S105: agents of agents, one whose stream was cut and who was asked again: the
// sum is what the provider bills.
func TestS105UsageOfATreeAddsUp(t *testing.T) {
	p := newPlace(t)
	cut := make(chan bool, 1)
	cut <- true
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		task, _, _ := strings.Cut(r.FirstUser(), "#")
		n := map[bool]int{true: 3}[strings.Contains(r.FirstUser(), "depth 0")]
		if strings.Contains(r.FirstUser(), "depth 1") {
			n = 2
		}
		reply := troupetest.Reply{Message: troupetest.Say("done " + task), Usage: troupe.Usage{Input: 10 + r.Number, Output: 4, CacheRead: 7, CacheWrite: r.Number}}
		if len(r.Results()) == 0 && n > 0 {
			reply.Message = troupe.Message{Role: troupe.Assistant}
			for i := range n {
				reply.Message.Content = append(reply.Message.Content, use(fmt.Sprintf("c%d-%d", r.Number, i), "Agent",
					map[string]any{"description": "d", "prompt": fmt.Sprintf("depth %d", 4-n), "subagent_type": map[int]string{3: "mid"}[n]}))
			}
		}
		if n == 0 {
			select {
			case <-cut:
				reply.Usage.Output = 1 // the provider tells no more at this point
				reply.Fault = troupetest.Fault{Cut: troupetest.AfterStart}
			default:
			}
		}
		return reply
	})
	p.src.Agents = `{"mid": {"description": "d", "prompt": "You work.", "tools": ["Agent", "Glob"]}}`
	s := p.open(t)
	end := ask(t, s, "depth 0")
	if end.Reason != troupe.Done {
		t.Fatal(end)
	}
	if n := len(p.provider.Requests()); n != 2+3*2+6+1 {
		t.Errorf("%d requests", n)
	}
	var bill troupe.Usage
	for _, u := range p.provider.Bill() {
		bill = bill.Add(u)
	}
	var logged troupe.Usage
	for _, path := range logs(t, s) {
		for r := range session.Read(path) {
			switch ev := r.Event.(type) {
			case troupe.Replied:
				logged = logged.Add(ev.Usage)
			case troupe.Billed:
				logged = logged.Add(ev.Usage)
			}
		}
	}
	if spent := s.Spent().Usage; spent != bill || logged != bill {
		t.Errorf("counted %+v, logged %+v, billed %+v", spent, logged, bill)
	}
}

// logs are the paths of the logs of a session's agents.
func logs(t *testing.T, s *host.Session) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.Path(), "agents", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, ".sent.jsonl") })
	return append(paths, session.LogPath(s.Path(), session.Lead))
}

// Time that is up ends what is under way: a request, and an agent, of whom the
// lead is told.
func TestLimitsOfTime(t *testing.T) {
	p := newPlace(t)
	stalls := troupetest.Reply{Message: troupetest.Say("half a reply"), Fault: troupetest.Fault{Stall: troupetest.Midway}}
	p.provider.Queue(stalls)
	s := p.open(t, func(o *host.Options) { o.Limits.Time = 300 * time.Millisecond })
	if err := s.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	end, _ := s.Run(t.Context())
	if end.Reason != troupe.OutOfTime || !strings.Contains(end.Err, "the session may work for 300ms") {
		t.Errorf("ended with %+v", end)
	}
	if err := p.provider.Idle(t.Context()); err != nil {
		t.Error(err)
	}

	p = newPlace(t)
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		if strings.Contains(r.FirstUser(), "part ") {
			return stalls
		}
		return agents(2)(r)
	})
	s = p.open(t, func(o *host.Options) { o.Each.Time = 300 * time.Millisecond })
	if end := ask(t, s, "the lead's task"); end.Text != "the lead is done" {
		t.Errorf("ended with %+v", end)
	}
	results := p.provider.Last().Results()
	if len(results) != 2 {
		t.Fatalf("%d results", len(results))
	}
	for _, res := range results {
		has(t, res.Content.Text(), "did not finish (out_of_time)", "may work for 300ms")
	}
}

// A limit of money that cannot be kept does not begin.
func TestMoneyNeedsAPrice(t *testing.T) {
	p := newPlace(t)
	p.model = "anthropic/nobody-knows"
	o := p.options(t)
	o.Limits = dollars(5)
	if _, err := host.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "nobody-knows") || !strings.Contains(err.Error(), "price") {
		t.Errorf("the lead's: %v", err)
	}
	if all := tree(t, host.Sessions(p.home)); len(all) != 0 {
		t.Errorf("a session was left: %v", all)
	}
	o.Limits = tokens(1000)
	s, err := host.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)

	p = newPlace(t)
	o = p.options(t)
	o.Limits, o.Fallback = dollars(5), []string{"anthropic/nobody-knows"}
	if _, err := host.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the fallback anthropic/nobody-knows") {
		t.Errorf("a fallback's: %v", err)
	}
	p.provider.Queue(
		troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": "x", "model": "anthropic/nobody-knows"}))},
		troupetest.Reply{Message: troupetest.Say("so it is")})
	s = p.open(t, func(o *host.Options) { o.Limits = dollars(5) })
	ask(t, s, "go")
	res := p.provider.Last().Results()[0]
	if has(t, res.Content.Text(), "nobody-knows", "price"); !res.IsError || len(p.provider.Requests()) != 2 {
		t.Errorf("an agent's: %v", res)
	}
	if err := s.Switch(troupe.Switched{Model: "anthropic/nobody-knows"}); err == nil {
		t.Error("the lead may switch to a model without a price")
	}
}
