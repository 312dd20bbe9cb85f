package model

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/troupe-sh/troupe"
)

// A Draft is the body of a request in the making. It remembers, from one request
// of a conversation to the next, the bytes that do not change any more, so that
// a turn costs what is new in it and not all that was said before.
//
// It is for one request at a time.
type Draft struct {
	head     head
	of       any
	first    *troupe.Message // of the conversation
	messages int             // that the final bytes hold
	final    []byte
	body     []byte
	same     int
	readers  atomic.Int32 // of the body, that are not closed yet
}

// head is all of a request that stands before its messages.
type head struct {
	model, effort, system string
	limit                 int
	tools                 *troupe.ToolSpec
	count                 int
}

// NewDraft returns the draft for req: the one of the request before, if the
// conversation has one and req goes on with it, else an empty one. Of is all on
// which the encoding depends besides req; it is compared with ==.
func NewDraft(req *troupe.Request, of any) *Draft {
	h := head{req.Model, req.Effort, req.System, req.MaxTokens, nil, len(req.Tools)}
	if h.count > 0 {
		h.tools = &req.Tools[0]
	}
	var first *troupe.Message
	if len(req.Messages) > 0 {
		first = &req.Messages[0]
	}
	if req.Scratch != nil {
		d, ok := req.Scratch.Value.(*Draft)
		// Messages are never changed, so the same place in memory is the same message.
		if ok && d.of == of && d.head == h && d.first == first && d.messages <= len(req.Messages) && d.messages > 0 {
			if d.readers.Load() > 0 { // a connection still reads what would be written over
				d.final = bytes.Clone(d.final)
			}
			d.same = len(d.final)
			return d
		}
	}
	d := &Draft{head: h, of: of, first: first, final: make([]byte, 0, Size(req))}
	if req.Scratch != nil {
		req.Scratch.Value = d
	}
	return d
}

// Final returns the bytes that the body begins with, to which the rest is to be
// appended, and how many messages they hold; none at all of a draft that is new.
func (d *Draft) Final() (begin []byte, messages int) { return d.final, d.messages }

// Set ends the making: body is the whole, of which the first final bytes, with so
// many messages, will be the same in every later request of the conversation.
func (d *Draft) Set(body []byte, final, messages int) {
	d.body, d.final, d.messages = body, body[:final], messages
}

// Body is the body. It is good until the next request of the conversation.
func (d *Draft) Body() []byte { return d.body }

// Sending is the chunk for it.
func (d *Draft) Sending() troupe.Sending {
	return troupe.Sending{Body: d.body, Series: d, Same: d.same}
}

// Reader returns a reader of the body. Until it is closed, the body is not
// written over.
func (d *Draft) Reader() io.ReadCloser {
	d.readers.Add(1)
	return &lent{*bytes.NewReader(d.body), sync.OnceFunc(func() { d.readers.Add(-1) })}
}

type lent struct {
	bytes.Reader
	back func()
}

// Close implements [io.Closer].
func (l *lent) Close() error {
	l.back()
	return nil
}
