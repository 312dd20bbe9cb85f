package budget

import (
	"context"
	"iter"
	"sync"

	"github.com/troupe-sh/troupe"
)

// A Price returns what tokens of a model cost in dollars. The model is a full
// name, "provider/name"; known is false if there is no price for it.
type Price func(model string, u troupe.Usage) (dollars float64, known bool)

// Wrap returns m with its requests charged to a. Each attempt has to be within
// the limits, so retries and fallbacks belong into m. A request that is not is
// abandoned before anything of it leaves the process: its error is an
// [*Exceeded], or [ErrNoPrice] if there is a limit of money, in a or above, and
// no price for the model. Without a price function none has one.
func (a *Account) Wrap(m troupe.Model, price Price) troupe.Model {
	if price == nil {
		price = func(string, troupe.Usage) (float64, bool) { return 0, false }
	}
	return &metered{model: m, account: a, price: price}
}

type metered struct {
	model   troupe.Model
	account *Account
	price   Price

	mu      sync.Mutex
	last    measured
	counted counted
}

// counted is what was counted of a conversation, which goes on by messages that
// are added: they are never changed, so the same place in memory is the same one.
type counted struct {
	first    *troupe.Message
	messages int
	bytes    int
}

// size is about how many bytes a provider counts the tokens of. What was counted
// with the request before is not counted again.
func (m *metered) size(req *troupe.Request) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	var first *troupe.Message
	if len(req.Messages) > 0 {
		first = &req.Messages[0]
	}
	if m.counted.first != first || m.counted.messages > len(req.Messages) {
		m.counted = counted{first: first}
	}
	for _, msg := range req.Messages[m.counted.messages:] {
		m.counted.bytes += around + blocks(msg.Content)
	}
	m.counted.messages = len(req.Messages)
	n := len(req.System) + m.counted.bytes
	for _, t := range req.Tools {
		n += around + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// around is what a message, a block or a tool adds by being one, in bytes.
const around = 16

// measured is what is known of a request that was answered.
type measured struct {
	model  string
	bytes  int // of the request, as size counts
	read   int // tokens of the request, as the provider counts
	cached int // of these, that are in the provider's cache now
}

// Stream implements [troupe.Model].
func (m *metered) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		t := &attempt{metered: m, model: req.Model, bytes: m.size(req)}
		defer t.end()
		for c, err := range m.model.Stream(ctx, req) {
			switch c := c.(type) {
			case troupe.Sending:
				t.end()
				if err := t.begin(); err != nil {
					yield(nil, err)
					return
				}
			case troupe.Opened:
				t.opened = true
			case troupe.Delta:
				t.written += len(c.Text)
			case troupe.Billed:
				t.charge(c.Usage)
			case troupe.Switched:
				t.end()
				if c.Model != "" {
					t.model = c.Model
				}
			case troupe.Reply:
				t.charge(c.Usage)
				m.learn(t, c.Usage)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// learn keeps what an answer tells for the estimate of the next request.
func (m *metered) learn(t *attempt, u troupe.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = measured{model: t.model, bytes: t.bytes, read: u.Input + u.CacheRead + u.CacheWrite, cached: u.CacheRead + u.CacheWrite}
}

// An attempt is one sending of a request, from its sending until it is paid for.
type attempt struct {
	*metered
	model string
	bytes int // of the request

	held    amount
	pending bool // sent, and not charged
	opened  bool
	written int // bytes of the reply so far
}

// begin sets aside what the attempt will be charged for reading at least.
func (t *attempt) begin() error {
	if err := t.account.Check(t.model, t.price); err != nil {
		return err
	}
	guess := t.guess()
	dollars, _ := t.dear(guess)
	held := amount{guess.Total(), dollars}
	if err := t.account.reserve(held); err != nil {
		return err
	}
	t.held, t.pending, t.opened, t.written = held, true, false, 0
	return nil
}

// guess is what a provider will count for reading the request: what it counted
// for the last one of this agent, and for what has come to it since a token for
// each three bytes, which is more than most texts have.
func (t *attempt) guess() troupe.Usage {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	if last.model != t.model || last.read == 0 || t.bytes < last.bytes {
		return troupe.Usage{Input: tokens(t.bytes)}
	}
	return troupe.Usage{Input: last.read - last.cached + tokens(t.bytes-last.bytes), CacheRead: last.cached}
}

// dear is the price of a guess, of which the new part may also be what is
// written to a cache, which costs more with some.
func (t *attempt) dear(u troupe.Usage) (dollars float64, known bool) {
	dollars, known = t.price(t.model, u)
	written, _ := t.price(t.model, troupe.Usage{CacheWrite: u.Input, CacheRead: u.CacheRead, Output: u.Output})
	return max(dollars, written), known
}

// charge books what the provider has counted for the attempt. If it has counted
// nothing, that is what was to be expected and what has come so far.
func (t *attempt) charge(u troupe.Usage) {
	if u == (troupe.Usage{}) {
		guess := t.guess()
		guess.Output = tokens(t.written)
		dollars, _ := t.dear(guess)
		t.book(amount{guess.Total(), dollars}, u)
		return
	}
	dollars, _ := t.price(t.model, u)
	t.book(amount{u.Total(), dollars}, u)
}

func (t *attempt) book(used amount, counted troupe.Usage) {
	t.account.charge(t.held, used, counted)
	t.held, t.pending = amount{}, false
}

// end settles an attempt that came to no reply: what was answered has cost
// something, and what was refused has not.
func (t *attempt) end() {
	switch {
	case !t.pending:
	case t.opened:
		t.charge(troupe.Usage{})
	default:
		t.book(amount{}, troupe.Usage{})
	}
}

func tokens(bytes int) int { return (bytes + 2) / 3 }

// blocks is that of blocks.
func blocks(all troupe.Blocks) (n int) {
	const picture = 15_000 // what a provider counts for one has little to do with its bytes
	for _, b := range all {
		n += around
		switch b := b.(type) {
		case troupe.Text:
			n += len(b)
		case troupe.Image:
			n += picture
		case troupe.Thinking:
			n += len(b.Text)
		case troupe.Opaque:
			n += len(b.JSON)
		case troupe.ToolUse:
			n += len(b.Name) + len(b.Input)
		case troupe.ToolResult:
			n += blocks(b.Content)
		}
	}
	return n
}
