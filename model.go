package troupe

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// A Request is everything a model sees. It is immutable once sent: the
// provider's encoding of a Request is a pure function, so equal prefixes give
// equal bytes. Messages may have spare capacity that belongs to the run; who
// appends to it must clip it first.
type Request struct {
	Model     string
	Effort    string `json:",omitempty"`
	System    string
	Tools     []ToolSpec
	Messages  []Message
	MaxTokens int `json:",omitempty"` // of the reply; 0 is the model's default
	// Scratch is for the provider: what it may keep from one request of the
	// conversation to the next. It changes nothing about the request; nil is
	// none. Who copies a request for another conversation leaves it out.
	Scratch *Scratch `json:"-"`
}

// A Scratch is memory of a provider between the requests of one conversation,
// which come one after another.
type Scratch struct{ Value any }

// A ToolSpec is the part of a tool that the model sees. Schema is a JSON
// schema of type object.
type ToolSpec struct {
	Name, Description string
	Schema            json.RawMessage
}

// Usage counts tokens. Input does not include CacheRead and CacheWrite: what
// the model read is the sum of the three.
type Usage struct{ Input, Output, CacheRead, CacheWrite int }

// Add returns u + v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Total is the number of tokens read and written.
func (u Usage) Total() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// A Model answers requests. Implementations must be safe for concurrent use.
// Rate limits and retries are Models around a Model.
//
// The sequence yields, for each attempt, [Sending] before anything leaves the
// process, [Opened] when the provider begins to answer and any number of
// [Delta]; a [Retrying] between attempts makes void what was streamed before
// it. It ends with exactly one [Reply], or with a non-nil error. Breaking out
// of the range abandons the request and releases its connection.
//
// [Billed] comes before the error of an attempt that had begun to be answered.
// [Waiting] comes before Sending; [Switched] is a Retrying on another model.
type Model interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// A Chunk is a [Sending], [Opened], [Delta], [Retrying], [Waiting], [Switched],
// [Billed] or [Reply].
type Chunk interface{ chunk() }

type (
	// Sending carries the body of the request as it is about to go out. It
	// must not be changed, and is good until the next request of the
	// conversation: who keeps it copies it. Bodies of one Series, which is
	// compared with ==, begin with the Same bytes of the one before; nil and 0
	// say nothing.
	Sending struct {
		Body   []byte
		Series any
		Same   int
	}
	// Opened says that the provider has read the prompt and answers.
	Opened struct{}
	// Delta is a fragment of text to show; it is not stored.
	Delta struct {
		Text     string
		Thinking bool
	}
	// Retrying says that the request failed and will be sent again.
	Retrying struct {
		Attempt int           // that failed, from 1
		Of      int           // attempts there will be at most
		After   time.Duration // wait before the next
		Status  int           `json:",omitempty"` // HTTP status; 0 if there was no answer
		Cause   string
	}
	// Waiting says that the request is held back, for about For if that is
	// known: the account's limit was hit by it or by another.
	Waiting struct {
		For   time.Duration `json:",omitempty"`
		Cause string
	}
	// Billed carries what an attempt that comes to no reply has used, as far as
	// the provider has said; zero is that it has not.
	Billed struct{ Usage Usage }
	// Reply is the finished assistant message. Stop is the provider's word
	// for why the model stopped; Model is the one that answered, as the
	// provider names it.
	Reply struct {
		Message Message
		Usage   Usage
		Stop    string
		Model   string
	}
)

func (Sending) chunk()  {}
func (Opened) chunk()   {}
func (Delta) chunk()    {}
func (Retrying) chunk() {}
func (Waiting) chunk()  {}
func (Switched) chunk() {}
func (Billed) chunk()   {}
func (Reply) chunk()    {}
