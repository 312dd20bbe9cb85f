package host

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/secret"
	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/model/anthropic"
	"github.com/troupe-sh/troupe/model/openai"
	"github.com/troupe-sh/troupe/model/script"
)

// Models is the [troupe.Model] of all agents of a process: it sends a request
// to the provider that the request's model names. Agents of one account share
// its governor. It is safe for concurrent use.
type Models struct {
	catalogue *model.Catalogue
	lookup    func(string) string
	aliases   map[string]string
	dir       string
	now       func() time.Time
	governors *model.Governors
	wire      func() (wire, error) // made when a model with a server is first used
	mask      func() *secret.Mask  // of the keys, for errors

	mu   sync.Mutex
	open map[model.Name]troupe.Model
}

// NewModels returns the models that can be reached with the variables that
// lookup finds ("" for those not set): keys, addresses, proxies and own
// authorities as [model.Network] has them, TROUPE_IDLE_TIMEOUT,
// TROUPE_REQUEST_TIMEOUT and TROUPE_MAX_RETRIES. Aliases are names that the user gave;
// a relative path of a script starts in dir. What is known of models replaces
// what the catalogue says of them.
func NewModels(lookup func(string) string, aliases map[string]string, dir string, now func() time.Time, random func() float64,
	known ...model.Info) *Models {
	m := &Models{catalogue: model.NewCatalogue(known...), lookup: lookup, aliases: aliases, dir: dir, now: now,
		governors: model.NewGovernors(now, random), open: map[model.Name]troupe.Model{},
		wire: sync.OnceValues(func() (wire, error) { return newWire(lookup) })}
	m.mask = sync.OnceValue(func() *secret.Mask { return m.hide(nil, m.Secrets()) })
	return m
}

// Transport returns how other servers than those of models are reached: through
// the same proxies, with the same authorities.
func (m *Models) Transport() (*http.Transport, error) { return model.Transport(m.lookup) }

// Choose returns the full name of the model to use: that of the first of
// wanted which is not empty, else the default of the provider with a key.
func (m *Models) Choose(wanted ...string) (string, error) {
	for _, w := range wanted {
		if w != "" {
			return m.Resolve(w, "")
		}
	}
	n, err := m.catalogue.Choose(m.lookup)
	if err != nil {
		return "", err
	}
	return m.usable(n)
}

// Resolve makes the full name of a model, "provider/name", of what a user, a
// call or a definition says; "" and "inherit" mean the parent's.
//
// Definitions of other tools name families of Anthropic's. Under a parent from
// another provider they mean sizes: haiku is that provider's small model if the
// catalogue knows one, everything else the parent's own.
func (m *Models) Resolve(name, parent string) (string, error) {
	if name == "" || strings.EqualFold(name, "inherit") {
		return parent, nil
	}
	if provider, _, ok := strings.Cut(parent, "/"); ok && m.aliases[name] == "" && provider != "anthropic" {
		switch strings.ToLower(name) {
		case "haiku":
			if small := m.catalogue.Small(provider); small != "" {
				return m.usable(model.Name{Provider: provider, Model: small})
			}
			return parent, nil
		case "opus", "sonnet":
			return parent, nil
		}
	}
	n, err := m.catalogue.Parse(name, m.aliases)
	if err != nil {
		return "", err
	}
	return m.usable(n)
}

// usable reports early what would make every request fail.
func (m *Models) usable(n model.Name) (string, error) {
	if n.Provider == string(model.Script) && !filepath.IsAbs(n.Model) {
		n.Model = filepath.Join(m.dir, n.Model)
	}
	if _, err := m.model(n); err != nil {
		return "", err
	}
	return n.String(), nil
}

// Price returns what tokens of a model cost.
func (m *Models) Price(name string, u troupe.Usage) (dollars float64, known bool) {
	provider, short, _ := strings.Cut(name, "/")
	info, _ := m.catalogue.Lookup(provider, short)
	return info.Cost(u)
}

// Window returns how many tokens a model takes in and writes in all, 0 if that
// is not known.
func (m *Models) Window(name string) int {
	provider, short, _ := strings.Cut(name, "/")
	info, _ := m.catalogue.Lookup(provider, short)
	return info.Window
}

// KeyName is the variable from which the key for a model comes, "none" if it
// has none.
func (m *Models) KeyName(name string) string {
	provider, short, _ := strings.Cut(name, "/")
	e, err := m.catalogue.Endpoint(model.Name{Provider: provider, Model: short}, m.lookup)
	if err != nil || e.KeyName == "" || e.Key == "" && e.Token == "" {
		return "none"
	}
	return e.KeyName
}

// Secrets are the names of the variables that may hold a key.
func (m *Models) Secrets() []string { return m.catalogue.Keys() }

// Stream implements [troupe.Model].
func (m *Models) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		provider, short, _ := strings.Cut(req.Model, "/")
		to, err := m.model(model.Name{Provider: provider, Model: short})
		if err != nil {
			yield(nil, err)
			return
		}
		own := *req
		own.Model = short
		speech := newSpeech(m.mask())
		for c, err := range to.Stream(ctx, &own) {
			err = m.mask().Error(err)
			if again, ok := c.(troupe.Retrying); ok {
				again.Cause = m.mask().Text(again.Cause)
				c = again
			}
			if r, ok := c.(troupe.Reply); ok {
				r.Model = provider + "/" + strings.TrimPrefix(r.Model, provider+"/")
				r.Message.Content = lessKeys(m.mask(), r.Message.Content)
				c = r
			}
			var chunks []troupe.Chunk
			if err != nil {
				chunks = speech.rest()
			} else {
				chunks = speech.next(c)
			}
			for _, c := range chunks {
				if !yield(c, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// model returns the model of that name, with retries and governor around it.
func (m *Models) model(n model.Name) (troupe.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.open[n]; have != nil {
		return have, nil
	}
	e, err := m.catalogue.Endpoint(n, m.lookup)
	if err != nil {
		return nil, err
	}
	made, policy, err := m.connect(e)
	if err != nil {
		return nil, err
	}
	m.open[n] = model.Retry(m.governors.For(e).Wrap(made, policy.Patience), policy)
	return m.open[n], nil
}

// longestReply is in tokens. Services refuse a request whose prompt and longest
// reply together pass the window, so what is asked for must leave it room.
const longestReply = 32_000

// connect returns the bare model at an endpoint, and how often it may be asked
// again.
func (m *Models) connect(e model.Endpoint) (troupe.Model, model.Policy, error) {
	if e.Dialect == model.Script {
		made, err := script.Open(e.Name)
		return made, model.Policy{}, err
	}
	w, err := m.wire()
	if err != nil {
		return nil, w.policy, err
	}
	info, _ := m.catalogue.Lookup(e.Provider, e.Name)
	switch e.Dialect {
	case model.Anthropic:
		return anthropic.New(anthropic.Options{Provider: e.Provider, BaseURL: e.BaseURL, Key: e.Key, Token: e.Token, KeyName: e.KeyName,
			MaxTokens: min(info.MaxOutput, longestReply), Idle: w.idle, HTTP: w.client, Now: m.now}), w.policy, nil
	case model.OpenAI:
		return openai.New(openai.Options{Provider: e.Provider, BaseURL: e.BaseURL, Key: e.Key, KeyName: e.KeyName, Idle: w.idle, HTTP: w.client,
			Now: m.now}), w.policy, nil
	}
	return nil, w.policy, fmt.Errorf("%s cannot be spoken to: its protocol is not supported", e.Provider)
}
