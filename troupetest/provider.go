package troupetest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
)

// A Provider is a model service for tests: an HTTP server on the loopback
// interface that speaks both dialects, checks requests as strictly as the
// real services and plays replies and faults. It stands in for a model only.
//
// A request that breaks a rule is answered as the service would, and fails
// the test, unless [RefusalsExpected] is given. Its methods are safe for
// concurrent use.
type Provider struct {
	t        testing.TB
	url      string
	server   *http.Server
	key      string
	models   []string
	tolerant bool
	now      func() time.Time
	keep     int // requests; 0 is all
	forgot   int // so many requests
	memory   *memory
	cache    *promptCache

	closeOnce sync.Once
	serving   sync.WaitGroup // the accept loop
	open      sync.WaitGroup // connections

	mu       sync.Mutex
	reply    func(*Request) Reply
	queue    []Reply
	requests []*Request
	bill     map[string]troupe.Usage
	changed  chan struct{} // closed and replaced when requests change
}

// An Option changes a [Provider].
type Option func(*Provider)

// Key makes the provider accept this key alone. Without it Anthropic requests
// need any key, OpenAI ones none.
func Key(key string) Option { return func(p *Provider) { p.key = key } }

// Models makes the provider know these models alone.
func Models(names ...string) Option { return func(p *Provider) { p.models = names } }

// RefusalsExpected keeps requests that break a rule from failing the test.
func RefusalsExpected() Option { return func(p *Provider) { p.tolerant = true } }

// Clock is the source of the time at which requests arrive; without it, it is
// the system's.
func Clock(now func() time.Time) Option { return func(p *Provider) { p.now = now } }

// CacheAge is how long a prompt stays in the simulated cache after its last use, by
// the provider's [Clock]; without it, it is five minutes.
func CacheAge(d time.Duration) Option { return func(p *Provider) { p.cache.age = d } }

// KeepLast makes the provider forget what was in requests but for the latest n: of
// the others only their usage and their end are known. For tests of memory.
func KeepLast(n int) Option { return func(p *Provider) { p.keep = n } }

// NewProvider starts a provider that ends with the test.
func NewProvider(t testing.TB, opts ...Option) *Provider {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start the provider: %v", err)
	}
	p := &Provider{
		t: t, url: "http://" + listener.Addr().String(), now: time.Now,
		memory: newMemory(), cache: newPromptCache(),
		changed: make(chan struct{}), bill: make(map[string]troupe.Usage),
	}
	for _, o := range opts {
		o(p)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", p.serve(Anthropic, anthropicWire{}))
	mux.HandleFunc("POST /v1/chat/completions", p.serve(OpenAI, openaiWire{}))
	mux.HandleFunc("GET /v1/models", p.serveModels)
	p.server = &http.Server{Handler: mux, ConnState: p.countConnections}
	p.serving.Go(func() {
		if err := p.server.Serve(listener); err != http.ErrServerClosed {
			t.Errorf("serve the provider: %v", err)
		}
	})
	t.Cleanup(p.Close)
	return p
}

// Close ends all answers in progress and returns when nothing of the
// provider is left. The end of the test calls it.
func (p *Provider) Close() {
	p.closeOnce.Do(func() {
		if err := p.server.Close(); err != nil {
			p.t.Errorf("close the provider: %v", err)
		}
	})
	p.serving.Wait()
	p.open.Wait()
}

// countConnections lets Close wait for connections, and so for what serves
// them: the server itself does not.
func (p *Provider) countConnections(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		p.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		p.open.Done()
	}
}

// URL is the base URL for the Anthropic dialect. That for the OpenAI dialect
// has "/v1" after it.
func (p *Provider) URL() string { return p.url }

// Queue adds replies to be given in order, before any of [Provider.Respond].
func (p *Provider) Queue(replies ...Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, replies...)
}

// Respond makes the provider ask f for the reply to each accepted request for
// which none is queued. Calls of f may run at the same time. f must return by
// itself: to hold a reply back there is [Fault].
func (p *Provider) Respond(f func(*Request) Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = f
}

// Say queues replies of text.
func (p *Provider) Say(texts ...string) {
	for _, s := range texts {
		p.Queue(Reply{Message: Say(s)})
	}
}

// Know tells the provider of reasoning in messages that another one, or an
// earlier process, has signed: it accepts it unchanged, like its own.
func (p *Provider) Know(messages ...troupe.Message) {
	for _, m := range messages {
		p.memory.learn(m)
	}
}

// Requests returns the requests so far, refused ones too, in order of arrival.
// What it returns does not change any more.
func (p *Provider) Requests() []*Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*Request, len(p.requests))
	for i, r := range p.requests {
		kept := *r
		out[i] = &kept
	}
	return out
}

// Last returns the latest request. It fails the test if there was none.
func (p *Provider) Last() *Request {
	p.t.Helper()
	all := p.Requests()
	if len(all) == 0 {
		p.t.Fatal("the provider got no request")
	}
	return all[len(all)-1]
}

// Bill returns the usage of all answers so far by the model asked for. A
// stream that was cut is billed for its prompt and for the output that was sent.
func (p *Provider) Bill() map[string]troupe.Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.bill)
}

// Wait returns when n requests have arrived, or with the cause of ctx's end.
func (p *Provider) Wait(ctx context.Context, n int) error {
	return p.until(ctx, func() bool { return len(p.requests) >= n })
}

// Idle returns when no request is being served, or with the cause of ctx's
// end. A client that leaves ends the serving of its request.
func (p *Provider) Idle(ctx context.Context) error {
	return p.until(ctx, func() bool {
		return !slices.ContainsFunc(p.requests, func(r *Request) bool { return !r.Ended })
	})
}

// until waits for a condition on what mu guards.
func (p *Provider) until(ctx context.Context, holds func() bool) error {
	for {
		p.mu.Lock()
		done, changed := holds(), p.changed
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// update changes the record of a request, or anything else that mu guards.
func (p *Provider) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Provider) serve(d Dialect, w wire) http.HandlerFunc {
	return func(rw http.ResponseWriter, hr *http.Request) {
		raw, err := io.ReadAll(hr.Body)
		if err != nil {
			return // the client left
		}
		r := p.record(d, w, hr, raw)
		defer p.update(func() { r.Ended = true })
		e := &exchange{p: p, w: w, rw: rw, left: hr.Context().Done(), request: r}
		if broken, complaint := p.check(w, hr, raw); broken != nil {
			p.update(func() { r.Refused, r.Complaint = broken.name, complaint })
			if !p.tolerant {
				p.t.Errorf("the provider refused request %d: %s: %s", r.Number, broken.name, complaint)
			}
			e.refuse(max(http.StatusBadRequest, broken.status), complaint)
			return
		}
		usage, store := e.prompt() // before anybody is asked for the reply, and may wait
		e.answer(p.next(r), usage, store)
	}
}

func (p *Provider) check(w wire, hr *http.Request, raw []byte) (*rule, string) {
	b := &body{header: hr.Header, raw: raw, top: decodeObject(raw), key: p.key, models: p.models, memory: p.memory}
	for _, rule := range w.rules() {
		if complaint := rule.check(b); complaint != "" {
			return &rule, complaint
		}
	}
	return nil, ""
}

// record keeps a request and measures what it shares with earlier ones.
func (p *Provider) record(d Dialect, w wire, hr *http.Request, raw []byte) *Request {
	r := &Request{
		Request: w.parse(raw), Arrived: p.now(), Dialect: d, Body: raw, Header: masked(hr.Header), Unmarked: raw,
	}
	if decodeObject(raw) != nil {
		r.Unmarked = unmarked(raw)
	}
	p.update(func() {
		for _, earlier := range p.requests {
			if earlier.Dialect == d {
				r.Shared = max(r.Shared, commonPrefix(raw, earlier.Body))
				r.SharedUnmarked = max(r.SharedUnmarked, commonPrefix(r.Unmarked, earlier.Unmarked))
			}
		}
		p.requests = append(p.requests, r)
		r.Number = len(p.requests)
		for ; p.keep > 0 && p.forgot < len(p.requests)-p.keep && p.requests[p.forgot].Ended; p.forgot++ {
			o := p.requests[p.forgot]
			o.Request, o.Body, o.Unmarked, o.Header = troupe.Request{}, nil, nil, nil
		}
	})
	return r
}

// next returns the reply to r.
func (p *Provider) next(r *Request) Reply {
	p.mu.Lock()
	seen := *r
	reply := p.reply
	if len(p.queue) > 0 {
		queued := p.queue[0]
		p.queue = p.queue[1:]
		p.mu.Unlock()
		return queued
	}
	p.mu.Unlock()
	if reply != nil {
		defer func() { // the server would only close the connection, and the client try again
			if v := recover(); v != nil {
				p.t.Errorf("request %d: the reply panics: %v", seen.Number, v)
				panic(v)
			}
		}()
		return reply(&seen)
	}
	p.t.Errorf("request %d: %v", seen.Number, ErrNoReply)
	return Reply{Fault: Fault{Status: http.StatusBadRequest}}
}

// Forget drops the replies that are still queued.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = nil
}

func (p *Provider) serveModels(rw http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID     string `json:"id"`
		Type   string `json:"type"`
		Object string `json:"object"`
	}
	page := struct {
		Object  string  `json:"object"`
		Data    []model `json:"data"`
		HasMore bool    `json:"has_more"`
	}{Object: "list", Data: []model{}}
	for _, name := range p.models {
		page.Data = append(page.Data, model{name, "model", "model"})
	}
	rw.Header().Set("Content-Type", "application/json")
	if _, err := rw.Write(encode(page)); err != nil {
		p.t.Log(fmt.Errorf("list models: %w", err))
	}
}
