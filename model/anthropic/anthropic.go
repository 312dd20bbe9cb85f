// Package anthropic speaks the Anthropic Messages protocol: to Anthropic and to
// whoever else offers it.
//
// The body of a request is made here, by [Encode], and not by an SDK: the same
// request must give the same bytes, and a longer conversation must begin with
// the bytes of the shorter one, or the provider's cache is of no use. Of the
// SDK only the reader of event streams is used: the rest of it would carry one
// POST and take minutes to compile.
package anthropic

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// Options say where a model is and how to speak to it. Nothing is read from the
// environment in place of what is empty.
type Options struct {
	Provider  string           // whose reasoning blocks are ours; "" is "anthropic"
	BaseURL   string           // without /v1; "" is https://api.anthropic.com
	Key       string           // sent as x-api-key, if not empty
	Token     string           // sent as Authorization: Bearer, if not empty
	KeyName   string           // what errors call the key; "" is ANTHROPIC_API_KEY
	MaxTokens int              // of a reply, if the request does not say; 0 is 8192
	Idle      time.Duration    // longest silence of the server; 0 is model.DefaultIdle
	HTTP      *http.Client     // nil is one with the default transport
	Now       func() time.Time // for a date in Retry-After if the server tells no time; may be nil
}

// provider is the name under which reasoning is stored and given back.
func (o Options) provider() string {
	if o.Provider == "" {
		return "anthropic"
	}
	return o.Provider
}

// New returns the model that o describes. It is safe for concurrent use, sends
// each request once and keeps no state between requests.
func New(o Options) troupe.Model {
	if o.BaseURL == "" {
		o.BaseURL = "https://api.anthropic.com"
	}
	if o.KeyName == "" {
		o.KeyName = "ANTHROPIC_API_KEY"
	}
	header := http.Header{"Anthropic-Version": {version}}
	if o.Key != "" {
		header.Set("X-Api-Key", o.Key)
	}
	if o.Token != "" {
		header.Set("Authorization", "Bearer "+o.Token)
	}
	return &messages{o, model.Client(o.HTTP), header}
}

// version is that of the protocol that [Encode] speaks.
const version = "2023-06-01"

type messages struct {
	options Options
	client  *http.Client
	header  http.Header
}

// Stream implements [troupe.Model].
func (m *messages) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		draft, err := m.options.encode(req, m)
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(draft.Sending(), nil) {
			return
		}
		x := &model.Exchange{
			Provider: m.options.provider(), URL: m.options.BaseURL, Model: req.Model, KeyName: m.options.KeyName,
			Secrets: []string{m.options.Key, m.options.Token}, Idle: m.options.Idle, Now: m.options.Now,
		}
		ctx, stop := x.Start(ctx)
		defer stop()
		res, err := x.Post(ctx, m.client, strings.TrimRight(m.options.BaseURL, "/")+"/v1/messages", m.header, draft)
		if err != nil {
			yield(nil, x.Fail(ctx, err))
			return
		}
		defer res.Body.Close()
		// The events are taken as they came, and not as the SDK's types: blocks
		// that go back to the provider must not lose a byte.
		reply, left, err := read(ssestream.NewDecoder(res), m.options.provider(), yield)
		var said *saidError
		switch {
		case left:
		case errors.As(err, &said):
			yield(nil, x.Broken(said.raw))
		case err != nil:
			yield(nil, x.Fail(ctx, err))
		default:
			x.Finish(res.Body)
			yield(reply, nil)
		}
	}
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
	for !d.ended && events.Next() {
		if !opened {
			if opened = true; !yield(troupe.Opened{}, nil) {
				return opened, true, nil
			}
		}
		delta, err := d.event(events.Event().Data)
		if err != nil {
			return opened, false, err
		}
		if delta.Text != "" && !yield(delta, nil) {
			return opened, true, nil
		}
	}
	if d.ended {
		return opened, false, nil
	}
	return opened, false, events.Err()
}
