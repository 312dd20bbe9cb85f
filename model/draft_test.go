package model_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// encode is an encoder as simple as can be: a line for each message.
func encode(req *troupe.Request, of any) *model.Draft {
	d := model.NewDraft(req, of)
	body, done := d.Final()
	if done == 0 {
		body = append(body, req.Model+req.System+"\n"...)
	}
	for _, m := range req.Messages[done:] {
		body = append(body, m.Content.Text()+"\n"...)
	}
	d.Set(body, len(body), len(req.Messages))
	return d
}

func TestADraftGoesOnWithItsConversationAndNoOther(t *testing.T) {
	say := func(text string) troupe.Message { return troupe.Say(troupe.User, text) }
	tools := []troupe.ToolSpec{{Name: "a"}}
	base := troupe.Request{Model: "m", System: "s", Tools: tools, Messages: append(make([]troupe.Message, 0, 8), say("one"))}
	longer := base
	longer.Messages = append(base.Messages, say("two"))
	change := func(f func(*troupe.Request)) troupe.Request {
		r := longer
		f(&r)
		return r
	}
	for name, c := range map[string]struct {
		next troupe.Request
		of   any
		on   bool
	}{
		"goes on":               {longer, 1, true},
		"the same again":        {base, 1, true},
		"another model":         {change(func(r *troupe.Request) { r.Model = "n" }), 1, false},
		"another system prompt": {change(func(r *troupe.Request) { r.System = "t" }), 1, false},
		"another effort":        {change(func(r *troupe.Request) { r.Effort = "low" }), 1, false},
		"another limit":         {change(func(r *troupe.Request) { r.MaxTokens = 9 }), 1, false},
		"other tools":           {change(func(r *troupe.Request) { r.Tools = []troupe.ToolSpec{{Name: "b"}} }), 1, false},
		"no tools":              {change(func(r *troupe.Request) { r.Tools = nil }), 1, false},
		"another encoder":       {longer, 2, false},
		"other messages":        {change(func(r *troupe.Request) { r.Messages = []troupe.Message{say("new"), say("two")} }), 1, false},
		"fewer messages":        {change(func(r *troupe.Request) { r.Messages = nil }), 1, false},
	} {
		scratch := new(troupe.Scratch)
		first := base
		first.Scratch = scratch
		before := encode(&first, 1).Sending()
		c.next.Scratch = scratch
		after := encode(&c.next, c.of).Sending()
		plain := c.next
		plain.Scratch = nil
		if want := encode(&plain, 0).Body(); !bytes.Equal(after.Body, want) {
			t.Errorf("%s: %q, want %q", name, after.Body, want)
		}
		if on := after.Series == before.Series && after.Same > 0; on != c.on {
			t.Errorf("%s: goes on %v, the same are %d bytes", name, on, after.Same)
		}
	}
}

// A server may answer before it has read the request to its end. What it still
// reads is not written over.
func TestABodyThatIsReadStays(t *testing.T) {
	for _, closed := range []bool{false, true} {
		req := troupe.Request{Scratch: new(troupe.Scratch), Messages: make([]troupe.Message, 0, 100)}
		var readers []io.ReadCloser
		var want []string
		for i := range 50 {
			req.Messages = append(req.Messages, troupe.Say(troupe.User, fmt.Sprint("message ", i)))
			d := model.NewDraft(&req, 1)
			body, done := d.Final()
			for _, m := range req.Messages[done:] {
				body = append(body, m.Content.Text()...)
			}
			size := len(body)
			body = append(body, fmt.Sprint(" end ", i)...) // changes each time
			d.Set(body, size, len(req.Messages))
			r := d.Reader()
			if closed {
				_ = r.Close()
				_ = r.Close()
			} else {
				readers, want = append(readers, r), append(want, string(d.Body()))
			}
		}
		for i, r := range readers {
			if got, _ := io.ReadAll(r); string(got) != want[i] {
				t.Fatalf("body %d was written over: %q", i, got)
			}
		}
	}
}
