// Package openai speaks the OpenAI Chat Completions protocol: to OpenAI and to
// the many servers and gateways that offer it too (Ollama, vLLM, llama.cpp,
// OpenRouter and others).
//
// The body of a request is made here, by [Encode], and not by an SDK: the same
// request must give the same bytes, and a longer conversation must begin with
// the bytes of the shorter one, or the provider's cache is of no use. Of the
// SDK only the reader of event streams is used: the rest of it would carry one
// POST and take minutes to compile.
//
// What servers send differs in small ways from what OpenAI documents. The
// decoder takes what can be understood: calls without index or ID, arguments as
// an object, content in parts, reasoning under several names, no usage. It does
// not take a stream that ends before its reply is finished.
package openai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// Options say where a model is and how to speak to it. Nothing is read from the
// environment in place of what is empty.
type Options struct {
	Provider string           // whose reasoning is ours; "" is "openai"
	BaseURL  string           // with its /v1; "" is https://api.openai.com/v1
	Key      string           // sent as Authorization: Bearer, if not empty
	KeyName  string           // what errors call the key; "" is OPENAI_API_KEY
	Idle     time.Duration    // longest silence of the server; 0 is model.DefaultIdle
	HTTP     *http.Client     // nil is one with the default transport
	Now      func() time.Time // for a date in Retry-After if the server tells no time; may be nil
}

// provider is the name under which reasoning is stored and given back.
func (o Options) provider() string {
	if o.Provider == "" {
		return "openai"
	}
	return o.Provider
}

// New returns the model that o describes. It is safe for concurrent use and
// sends each request once, unless the server refuses a field that a request can
// do without, such as stream_options: then it yields [troupe.Retrying], sends
// it without that field, and does so from then on.
func New(o Options) troupe.Model {
	if o.BaseURL == "" {
		o.BaseURL = "https://api.openai.com/v1"
	}
	if o.KeyName == "" {
		o.KeyName = "OPENAI_API_KEY"
	}
	header := http.Header{}
	if o.Key != "" {
		header.Set("Authorization", "Bearer "+o.Key)
	}
	return &completions{options: o, client: model.Client(o.HTTP), header: header}
}

type completions struct {
	options Options
	client  *http.Client
	header  http.Header
	refused refusals
}

// Stream implements [troupe.Model].
func (m *completions) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		refused := m.refused.of(req.Model)
		for attempt := 1; ; attempt++ {
			fields := optional(req, m.options.provider(), refused)
			draft, err := encode(req, m.options, fields, m)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(draft.Sending(), nil) {
				return
			}
			reply, left, err := m.send(ctx, req.Model, draft, yield)
			if left {
				return
			}
			field, status := refusedField(err, fields)
			switch {
			case err == nil:
				if attempt > 1 {
					m.refused.keep(req.Model, refused)
				}
				yield(reply, nil)
				return
			case field == "":
				yield(nil, err)
				return
			}
			refused = append(slices.Clip(refused), field)
			again := troupe.Retrying{Attempt: attempt, Of: attempt + 1, Status: status, Cause: fmt.Sprintf("%v; asked again without %s", err, field)}
			if !yield(again, nil) {
				return
			}
		}
	}
}

// send sends one request and takes the answer in. It returns the reply, or whether
// the consumer has left.
func (m *completions) send(ctx context.Context, name string, draft *model.Draft, yield func(troupe.Chunk, error) bool) (r troupe.Reply, left bool, err error) {
	x := &model.Exchange{
		Provider: m.options.provider(), URL: m.options.BaseURL, Model: name, KeyName: m.options.KeyName,
		Secrets: []string{m.options.Key}, Idle: m.options.Idle, Now: m.options.Now,
	}
	ctx, stop := x.Start(ctx)
	defer stop()
	res, err := x.Post(ctx, m.client, strings.TrimRight(m.options.BaseURL, "/")+"/chat/completions", m.header, draft)
	if err != nil {
		return r, false, m.versioned(x.Fail(ctx, err))
	}
	defer res.Body.Close()
	// The events are taken as they came, and not as the SDK's types, which
	// know neither reasoning nor the ways of servers other than OpenAI's.
	r, left, err = read(ssestream.NewDecoder(res), m.options.provider(), yield)
	var said *saidError
	switch {
	case errors.As(err, &said):
		err = x.Broken(said.raw)
	case err != nil:
		err = x.Fail(ctx, err)
	case !left:
		x.Finish(res.Body)
	}
	return r, left, err
}

// versioned adds what most likely is wrong if nothing is found at a base URL
// that is a bare host.
func (m *completions) versioned(err error) error {
	var e *model.APIError
	if !errors.As(err, &e) || e.Status != http.StatusNotFound {
		return err
	}
	if u, perr := url.Parse(m.options.BaseURL); perr == nil && strings.Trim(u.Path, "/") == "" {
		e.Remedy = "check the base URL: with most servers it ends in /v1"
	}
	return err
}

// read takes the stream in and yields what is to be shown of it; if it breaks,
// also what it has cost. It returns the reply, or whether the consumer has left.
func read(events ssestream.Decoder, provider string, yield func(troupe.Chunk, error) bool) (r troupe.Reply, left bool, err error) {
	d := decoder{provider: provider}
	opened, left, err := d.take(events, yield)
	if err == nil && !left {
		r, err = d.reply()
	}
	if err != nil && opened {
		left = !yield(troupe.Billed{Usage: d.used()}, nil)
	}
	return r, left, err
}

// take takes the events in. It returns whether there was one, and whether the
// consumer has left.
func (d *decoder) take(events ssestream.Decoder, yield func(troupe.Chunk, error) bool) (opened, left bool, err error) {
	for !d.done && events.Next() {
		if !opened {
			if opened = true; !yield(troupe.Opened{}, nil) {
				return opened, true, nil
			}
		}
		shown, err := d.event(events.Event().Data)
		if err != nil {
			return opened, false, err
		}
		for _, delta := range shown {
			if delta.Text != "" && !yield(delta, nil) {
				return opened, true, nil
			}
		}
	}
	// After its reason to finish a reply is complete: what is lost with a
	// connection that breaks then is at most the usage.
	if d.stop != "" {
		return opened, false, nil
	}
	return opened, false, events.Err()
}
