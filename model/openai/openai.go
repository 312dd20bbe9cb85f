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
	"iter"
	"net/http"
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

// New returns the model that o describes. It is safe for concurrent use, sends
// each request once and keeps no state between requests.
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
	return &completions{o, model.Client(o.HTTP), header}
}

type completions struct {
	options Options
	client  *http.Client
	header  http.Header
}

// Stream implements [troupe.Model].
func (m *completions) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		body, err := Encode(req, m.options)
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(troupe.Sending{Body: body}, nil) {
			return
		}
		x := &model.Exchange{
			Provider: m.options.provider(), URL: m.options.BaseURL, Model: req.Model, KeyName: m.options.KeyName,
			Secrets: []string{m.options.Key}, Idle: m.options.Idle, Now: m.options.Now,
		}
		ctx, stop := x.Start(ctx)
		defer stop()
		res, err := x.Post(ctx, m.client, strings.TrimRight(m.options.BaseURL, "/")+"/chat/completions", m.header, body)
		if err != nil {
			yield(nil, x.Fail(ctx, err))
			return
		}
		defer res.Body.Close()
		// The events are taken as they came, and not as the SDK's types, which
		// know neither reasoning nor the ways of servers other than OpenAI's.
		reply, left, err := read(ssestream.NewDecoder(res), m.options.provider(), yield)
		var said *saidError
		switch {
		case left:
		case errors.As(err, &said):
			yield(nil, x.Broken(said.raw))
		case err != nil:
			yield(nil, x.Fail(ctx, err))
		default:
			yield(reply, nil)
		}
	}
}

// read takes the stream in and yields what is to be shown of it. It returns the
// reply, or whether the consumer has left.
func read(events ssestream.Decoder, provider string, yield func(troupe.Chunk, error) bool) (r troupe.Reply, left bool, err error) {
	d := decoder{provider: provider}
	opened := false
	for !d.done && events.Next() {
		if !opened {
			if opened = true; !yield(troupe.Opened{}, nil) {
				return r, true, nil
			}
		}
		shown, err := d.event(events.Event().Data)
		if err != nil {
			return r, false, err
		}
		for _, delta := range shown {
			if delta.Text != "" && !yield(delta, nil) {
				return r, true, nil
			}
		}
	}
	// After its reason to finish a reply is complete: what is lost with a
	// connection that breaks then is at most the usage.
	if err := events.Err(); err != nil && d.stop == "" {
		return r, false, err
	}
	r, err = d.reply()
	return r, false, err
}
