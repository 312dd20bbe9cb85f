package budget_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/budget"
	"github.com/troupe-sh/troupe/model/anthropic"
	"github.com/troupe-sh/troupe/model/openai"
	"github.com/troupe-sh/troupe/troupetest"
)

// price is one dollar for 100 tokens of a model, five if it is "dear"; what
// comes from a cache costs a tenth.
func price(model string, u troupe.Usage) (float64, bool) {
	per := map[string]float64{"m": 0.01, "dear": 0.05}[model]
	return per * (float64(u.Input+u.Output+u.CacheWrite) + float64(u.CacheRead)/10), per > 0
}

// plays is a model that yields the same for each request and counts what was sent.
type plays struct {
	mu     sync.Mutex
	chunks []troupe.Chunk
	err    error
	sent   int
	hold   chan struct{} // if not nil: closed when requests may be answered
	came   chan struct{}
}

func (p *plays) Stream(context.Context, *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		for _, c := range p.chunks {
			if !yield(c, nil) {
				return
			}
			if _, ok := c.(troupe.Sending); ok {
				p.mu.Lock()
				p.sent++
				p.mu.Unlock()
				if p.hold != nil {
					p.came <- struct{}{}
					<-p.hold
				}
			}
		}
		if p.err != nil {
			yield(nil, p.err)
		}
	}
}

// replies is a model whose replies use so much.
func replies(u troupe.Usage) *plays {
	return &plays{chunks: []troupe.Chunk{troupe.Sending{}, troupe.Opened{}, troupe.Reply{Usage: u}}}
}

// ask sends a request of about n bytes.
func ask(t *testing.T, m troupe.Model, n int) (chunks []troupe.Chunk, err error) {
	t.Helper()
	req := &troupe.Request{Model: "m", System: strings.Repeat("x", n)}
	for c, e := range m.Stream(t.Context(), req) {
		chunks, err = append(chunks, c), e
	}
	return chunks, err
}

func same(t *testing.T, what string, got budget.Spent, tokens int, dollars float64) {
	t.Helper()
	if got.Tokens != tokens || math.Abs(got.Dollars-dollars) > 1e-9 {
		t.Errorf("%s: spent %d tokens and $%v, want %d and $%v", what, got.Tokens, got.Dollars, tokens, dollars)
	}
}

// What an agent uses is missing at all accounts above it, and nowhere else.
func TestUsageAddsUp(t *testing.T) {
	session := budget.New("the session", budget.Limits{})
	child := session.Open("a", budget.Limits{})
	grandchild, sibling := child.Open("b", budget.Limits{}), session.Open("c", budget.Limits{})
	for a, u := range map[*budget.Account]troupe.Usage{session: {Input: 1}, child: {Output: 10}, grandchild: {CacheRead: 100}, sibling: {CacheWrite: 1000}} {
		if _, err := ask(t, a.Wrap(replies(u), price), 30); err != nil {
			t.Fatal(err)
		}
	}
	if got := session.Spent(); got.Usage != (troupe.Usage{Input: 1, Output: 10, CacheRead: 100, CacheWrite: 1000}) {
		t.Errorf("the session has used %+v", got.Usage)
	}
	same(t, "session", session.Spent(), 1111, 10.21)
	same(t, "child", child.Spent(), 110, 0.2)
	same(t, "grandchild", grandchild.Spent(), 100, 0.1)
	same(t, "sibling", sibling.Spent(), 1000, 10)
}

// A limit anywhere above refuses, before anything is sent.
func TestLimitsOfAllAbove(t *testing.T) {
	for name, tt := range map[string]struct {
		session, child budget.Limits
		who            string
		code           string
	}{
		"money of the session":  {budget.Limits{Dollars: 0.5}, budget.Limits{}, "the session", "max_budget_usd"},
		"tokens of the session": {budget.Limits{Tokens: 50}, budget.Limits{}, "the session", "max_tokens"},
		"money of the agent":    {budget.Limits{Dollars: 9}, budget.Limits{Dollars: 0.5}, "agent x", "max_budget_usd"},
		"tokens of the agent":   {budget.Limits{Tokens: 999}, budget.Limits{Tokens: 50}, "agent x", "max_tokens"},
	} {
		session := budget.New("the session", tt.session)
		child := session.Open("agent x", tt.child)
		m := replies(troupe.Usage{Input: 30, Output: 15})
		charged := child.Wrap(m, price)
		if _, err := ask(t, charged, 90); err != nil {
			t.Fatalf("%s: the first request: %v", name, err)
		}
		chunks, err := ask(t, charged, 90)
		var e *budget.Exceeded
		if !errors.Is(err, troupe.ErrBudget) || !errors.As(err, &e) || e.Account != tt.who || e.Code() != tt.code {
			t.Fatalf("%s: %v", name, err)
		}
		if m.sent != 1 || len(chunks) != 1 {
			t.Errorf("%s: %d requests went out, %v", name, m.sent, chunks)
		}
		if !strings.Contains(err.Error(), tt.who) || !strings.Contains(err.Error(), "45") {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, session.Spent(), 45, 0.45)
	}
}

// Requests that run side by side reserve what they will be charged: ten that
// need 30 of 100 are three that run and seven that are refused, and all is given
// back.
func TestRequestsSideBySide(t *testing.T) {
	session := budget.New("the session", budget.Limits{Tokens: 100})
	m := replies(troupe.Usage{Input: 30})
	m.hold, m.came = make(chan struct{}), make(chan struct{})
	errs := make(chan error, 10)
	for range 10 {
		child := session.Open("a child", budget.Limits{}).Wrap(m, price)
		go func() {
			_, err := ask(t, child, 90)
			errs <- err
		}()
	}
	refused := 0
	for running := 0; running+refused < 10; {
		select {
		case <-m.came:
			running++
		case err := <-errs:
			if refused++; !errors.Is(err, troupe.ErrBudget) {
				t.Error(err)
			}
		}
	}
	if refused != 7 {
		t.Errorf("%d were refused, want 7", refused)
	}
	close(m.hold)
	for range 10 - refused {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	same(t, "session", session.Spent(), 90, 0.9)
	m.hold = nil
	if _, err := ask(t, session.Wrap(m, price), 30); err != nil {
		t.Errorf("what was set aside was not given back: %v", err)
	}
}

// Whatever comes of an attempt, what it has cost is charged, and what was set
// aside is free again.
func TestWhatAttemptsCost(t *testing.T) {
	broken := errors.New("broken")
	u := troupe.Usage{Input: 20, Output: 3}
	attempt := func(cs ...troupe.Chunk) []troupe.Chunk { return append([]troupe.Chunk{troupe.Sending{}}, cs...) }
	for name, tt := range map[string]struct {
		chunks  []troupe.Chunk
		err     error
		tokens  int
		dollars float64
	}{
		"a reply":                 {attempt(troupe.Opened{}, troupe.Reply{Usage: u}), nil, 23, 0.23},
		"a reply nobody counted":  {attempt(troupe.Opened{}, troupe.Delta{Text: "123456"}, troupe.Reply{}), nil, 32, 0.32},
		"refused":                 {attempt(), broken, 0, 0},
		"cut off and counted":     {attempt(troupe.Opened{}, troupe.Billed{Usage: u}), broken, 23, 0.23},
		"cut off and not counted": {attempt(troupe.Opened{}, troupe.Delta{Text: "123"}, troupe.Billed{}), broken, 31, 0.31},
		"again after a refusal":   {append(attempt(troupe.Retrying{}), attempt(troupe.Opened{}, troupe.Reply{Usage: u})...), nil, 23, 0.23},
		"again after a cut":       {append(attempt(troupe.Opened{}, troupe.Billed{Usage: u}, troupe.Retrying{}), attempt(troupe.Opened{}, troupe.Reply{Usage: u})...), nil, 46, 0.46},
		"on another model":        {append(attempt(troupe.Switched{Model: "dear"}), attempt(troupe.Opened{}, troupe.Reply{Usage: u})...), nil, 23, 1.15},
	} {
		a := budget.New("the session", budget.Limits{Tokens: 76, Dollars: 10})
		_, err := ask(t, a.Wrap(&plays{chunks: tt.chunks, err: tt.err}, price), 90)
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, a.Spent(), tt.tokens, tt.dollars)
		if _, err := ask(t, a.Wrap(replies(u), price), 3*(76-tt.tokens)); err != nil {
			t.Errorf("%s: something is still set aside: %v", name, err)
		}
	}
}

// An attempt after one that was charged has to be within the limits, too.
func TestAttemptsAreAllWithinTheLimits(t *testing.T) {
	cut := []troupe.Chunk{troupe.Sending{}, troupe.Opened{}, troupe.Billed{Usage: troupe.Usage{Input: 40}}, troupe.Retrying{}}
	m := &plays{chunks: append(append(cut, cut...), cut...)}
	a := budget.New("the session", budget.Limits{Tokens: 100})
	if _, err := ask(t, a.Wrap(m, price), 90); !errors.Is(err, troupe.ErrBudget) || m.sent != 2 {
		t.Errorf("%d attempts, %v", m.sent, err)
	}
	same(t, "session", a.Spent(), 80, 0.8)
}

// Who stops listening in the middle is charged for what had come.
func TestConsumerLeaves(t *testing.T) {
	for stop, want := range map[int]int{1: 0, 2: 30, 3: 32} {
		a := budget.New("the session", budget.Limits{})
		m := &plays{chunks: []troupe.Chunk{troupe.Sending{}, troupe.Opened{}, troupe.Delta{Text: "123456"}, troupe.Reply{}}}
		n := 0
		for range a.Wrap(m, price).Stream(t.Context(), &troupe.Request{Model: "m", System: strings.Repeat("x", 90)}) {
			if n++; n == stop {
				break
			}
		}
		same(t, "left", a.Spent(), want, float64(want)/100)
	}
}

// The estimate goes by what the provider counted for the last request, and what
// was in its cache is taken to be there still.
func TestEstimateGoesByTheLastRequest(t *testing.T) {
	a := budget.New("the session", budget.Limits{Dollars: 12})
	m := a.Wrap(replies(troupe.Usage{Input: 10, CacheRead: 590, CacheWrite: 400}), price)
	if _, err := ask(t, m, 900); err != nil { // $4.69; at the price of what is new the next would be $10
		t.Fatal(err)
	}
	if _, err := ask(t, m, 960); err != nil {
		t.Errorf("a request that costs about $1.30: %v", err)
	}
	if _, err := ask(t, m, 960+3*200); !errors.Is(err, troupe.ErrBudget) { // spent $9.38; costs $3.10
		t.Errorf("a request that is too dear: %v", err)
	}
	if _, err := ask(t, a.Wrap(replies(troupe.Usage{}), price), 900); !errors.Is(err, troupe.ErrBudget) {
		t.Errorf("another agent knows nothing of that cache: %v", err)
	}
}

func TestMoneyNeedsAPrice(t *testing.T) {
	unknown := func(string, troupe.Usage) (float64, bool) { return 0, false }
	m := replies(troupe.Usage{Input: 1})
	session := budget.New("the session", budget.Limits{Dollars: 1})
	if _, err := ask(t, session.Open("a", budget.Limits{}).Wrap(m, unknown), 30); !errors.Is(err, budget.ErrNoPrice) || m.sent != 0 {
		t.Errorf("%d sent, %v", m.sent, err)
	}
	tokens := budget.New("the session", budget.Limits{Tokens: 1000})
	if _, err := ask(t, tokens.Wrap(m, unknown), 30); err != nil {
		t.Error(err)
	}
	same(t, "tokens", tokens.Spent(), 1, 0)
}

func TestNoAccount(t *testing.T) {
	var none *budget.Account
	m := replies(troupe.Usage{Input: 1})
	if _, err := ask(t, none.Wrap(m, price), 30); err != nil || m.sent != 1 || none.Spent() != (budget.Spent{}) {
		t.Error(err)
	}
	child := none.Open("a", budget.Limits{Tokens: 5})
	if _, err := ask(t, child.Wrap(m, price), 30); !errors.Is(err, troupe.ErrBudget) {
		t.Errorf("an account below none has no limit: %v", err)
	}
}

// A model that is charged for keeps the contract of models, and what it is
// charged is what the provider bills.
func TestChargedModelsKeepTheContract(t *testing.T) {
	for name, open := range map[string]func(url string) troupe.Model{
		"anthropic": func(url string) troupe.Model { return anthropic.New(anthropic.Options{BaseURL: url, Key: "k"}) },
		"openai":    func(url string) troupe.Model { return openai.New(openai.Options{BaseURL: url + "/v1", Key: "k"}) },
	} {
		t.Run(name, func(t *testing.T) {
			troupetest.TestModel(t, func(t *testing.T) (troupe.Model, *troupetest.Provider) {
				p := troupetest.NewProvider(t)
				a := budget.New("the session", budget.Limits{Tokens: 1 << 40})
				return a.Wrap(open(p.URL()), price), p
			})
		})
	}
}

// What was charged is what the provider's bill says.
func TestChargedAsBilled(t *testing.T) {
	p := troupetest.NewProvider(t)
	a := budget.New("the session", budget.Limits{})
	m := a.Wrap(anthropic.New(anthropic.Options{BaseURL: p.URL(), Key: "k"}), price)
	for range 3 {
		p.Say("a reply of some length")
		req := &troupe.Request{Model: "m", Messages: []troupe.Message{troupe.Say(troupe.User, strings.Repeat("word ", 1000))}}
		for _, err := range m.Stream(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	bill := p.Bill()["m"]
	if got := a.Spent(); got.Usage != bill || got.Tokens != bill.Total() || bill.Total() == 0 {
		t.Errorf("charged %+v, billed %+v", got, bill)
	}
}

// The error names a limit that would do, and no larger one: a first request that
// is larger than its limit would never be sent.
func TestTheErrorNamesALimitThatWouldDo(t *testing.T) {
	dear := func(_ string, u troupe.Usage) (float64, bool) { return float64(u.Total()) / 1e3 / 7, true }
	try := func(l budget.Limits) error {
		m := replies(troupe.Usage{Input: 30, Output: 15})
		charged := budget.New("the session", l).Wrap(m, dear)
		_, err := ask(t, charged, 9_000)
		return err
	}
	for _, c := range []struct {
		small, enough, less budget.Limits
		says                string
	}{
		{budget.Limits{Tokens: 5}, budget.Limits{Tokens: 3000}, budget.Limits{Tokens: 2999}, "raise the limit to 3,000 tokens at least"},
		{budget.Limits{Dollars: 0.01}, budget.Limits{Dollars: 0.4286}, budget.Limits{Dollars: 0.4285}, "raise the limit to $0.4286 at least"},
	} {
		if err := try(c.small); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.small, err)
		}
		if err := try(c.less); err == nil {
			t.Errorf("%+v is enough", c.less)
		}
		if err := try(c.enough); err != nil {
			t.Errorf("%+v: %v", c.enough, err)
		}
	}
}
