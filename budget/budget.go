// Package budget keeps agents within what they may spend: tokens and money.
//
// What may be spent is an [Account]: one for the session, below it one for each
// agent, below that one for each agent that the agent starts. An account's model
// ([Account.Wrap]) asks the account and all above it before a request leaves the
// process, with an estimate of what the request will be charged for reading, and
// charges them with what the provider has counted. So agents that run side by
// side cannot pass a limit together, and what the ones at the bottom spend is
// missing at the top. What the reply under way adds is charged, never hidden: a
// limit can be passed by what the replies that run when it is reached still write.
package budget

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
)

// ErrNoPrice reports a limit of money for a model whose price is not known.
var ErrNoPrice = errors.New("the price of the model is not known")

// Limits are what an account may spend. Zero is no limit.
type Limits struct {
	Tokens  int // read and written, those out of a provider's cache included
	Dollars float64
}

// Spent is what an account has been charged with. Tokens that nobody counted
// are in Dollars and Tokens as they were estimated, and not in Usage.
type Spent struct {
	Usage   troupe.Usage // as providers have counted
	Tokens  int          // what counts against a limit
	Dollars float64      // of the models whose price is known
}

// An Account is what one agent, with all that it starts, may spend. A nil
// Account has no limit and keeps no books. It is safe for concurrent use.
type Account struct {
	name   string
	above  *Account
	limits Limits

	mu    sync.Mutex // taken from below upwards only
	spent Spent
	held  amount // reserved for requests under way
}

// An amount is what counts against limits.
type amount struct {
	tokens  int
	dollars float64
}

func (a amount) add(b amount) amount { return amount{a.tokens + b.tokens, a.dollars + b.dollars} }
func (a amount) sub(b amount) amount { return amount{a.tokens - b.tokens, a.dollars - b.dollars} }

// New returns an account that stands for itself. The name is for errors, as in
// "the session".
func New(name string, l Limits) *Account { return &Account{name: name, limits: l} }

// Open returns an account below a, whose spending counts in a, too.
func (a *Account) Open(name string, l Limits) *Account {
	return &Account{name: name, above: a, limits: l}
}

// Spent returns what a and all accounts below it have been charged with so far.
func (a *Account) Spent() Spent {
	if a == nil {
		return Spent{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}

// Check reports with [ErrNoPrice] that a model cannot be used because there is a
// limit of money, in a or above, and no price for it.
func (a *Account) Check(model string, price Price) error {
	for ; a != nil; a = a.above {
		if a.limits.Dollars == 0 {
			continue
		}
		if _, known := price(model, troupe.Usage{}); !known {
			return fmt.Errorf(`%w: %s; a limit of money cannot be kept without: set it in settings, in dollars for a million tokens, as in {"catalogue": {%q: {"price": {"input": 1, "output": 2}}}}`,
				ErrNoPrice, model, model)
		}
	}
	return nil
}

// A Near is a limit of which a good part is used.
type Near struct {
	Account string // whose it is
	Money   bool   // it is one of money, and not of tokens
	Words   string // how much of it is used, for people and agents
}

// Near returns the limits of a, and of all accounts above it, of which at least so
// many per cent are used.
func (a *Account) Near(percent float64) (out []Near) {
	for ; a != nil; a = a.above {
		a.mu.Lock()
		spent, l := a.spent, a.limits
		a.mu.Unlock()
		if l.Tokens > 0 && float64(spent.Tokens)*100 >= percent*float64(l.Tokens) {
			out = append(out, Near{a.name, false, fmt.Sprintf("%s may spend %s tokens and has spent %s", a.name, group(l.Tokens), group(spent.Tokens))})
		}
		if l.Dollars > 0 && spent.Dollars*100 >= percent*l.Dollars {
			out = append(out, Near{a.name, true, fmt.Sprintf("%s may spend $%.4f and has spent $%.4f", a.name, l.Dollars, spent.Dollars)})
		}
	}
	return out
}

// reserve sets x aside in a and in all accounts above it, or in none of them if
// one has too little left.
func (a *Account) reserve(x amount) error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.short(x); err != nil {
		return err
	}
	if err := a.above.reserve(x); err != nil {
		return err
	}
	a.held = a.held.add(x)
	return nil
}

// short reports what a limit leaves no room for. The caller holds mu.
func (a *Account) short(x amount) error {
	e := Exceeded{Account: a.name, Limits: a.limits, Spent: a.spent, held: a.held, next: x}
	switch {
	case a.limits.Dollars > 0 && a.spent.Dollars+a.held.dollars+x.dollars > a.limits.Dollars:
		e.money = true
		return &e
	case a.limits.Tokens > 0 && a.spent.Tokens+a.held.tokens+x.tokens > a.limits.Tokens:
		return &e
	}
	return nil
}

// charge gives back what was held and books what was used; counted is the part
// of it that a provider has counted.
func (a *Account) charge(held, used amount, counted troupe.Usage) {
	for ; a != nil; a = a.above {
		a.mu.Lock()
		a.held = a.held.sub(held)
		if a.held.tokens == 0 {
			a.held = amount{} // what is left of dollars is how fractions are rounded
		}
		a.spent.Usage = a.spent.Usage.Add(counted)
		a.spent.Tokens += used.tokens
		a.spent.Dollars += used.dollars
		a.mu.Unlock()
	}
}

// Exceeded is the error of a request that was not sent, because an account has
// too little left for it. It is a [troupe.ErrBudget].
type Exceeded struct {
	Account string
	Limits  Limits
	Spent   Spent

	held, next amount
	money      bool
}

// Error implements error.
func (e *Exceeded) Error() string {
	show := func(a amount) string { return group(a.tokens) + " tokens" }
	if e.money {
		show = func(a amount) string { return fmt.Sprintf("$%.4f", a.dollars) }
	}
	limit, spent := amount{e.Limits.Tokens, e.Limits.Dollars}, amount{e.Spent.Tokens, e.Spent.Dollars}
	var s strings.Builder
	fmt.Fprintf(&s, "%v: %s may spend %s, has spent %s", troupe.ErrBudget, e.Account, show(limit), show(spent))
	if e.held.tokens > 0 {
		fmt.Fprintf(&s, ", has requests under way for %s", show(e.held))
	}
	need := amount{e.Spent.Tokens, e.Spent.Dollars}.add(e.held).add(e.next)
	need.dollars = math.Ceil(need.dollars*1e4) / 1e4 // what is shown must do
	fmt.Fprintf(&s, ", and the next request is about %s; raise the limit to %s at least to go on", show(e.next), show(need))
	return s.String()
}

// Unwrap returns troupe.ErrBudget.
func (*Exceeded) Unwrap() error { return troupe.ErrBudget }

// Code is the word for programs: max_budget_usd or max_tokens.
func (e *Exceeded) Code() string {
	if e.money {
		return "max_budget_usd"
	}
	return "max_tokens"
}

// group writes a number with a comma at each thousand.
func group(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
