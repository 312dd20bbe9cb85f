package troupetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
)

// hangs is when a check gives a model up. No check waits for it to pass.
const hangs = 2 * time.Minute

// TestModel checks that a model keeps the contract of [troupe.Model]. The
// tests of each implementation call it. open is called once a check; it
// returns the bare model, without retries or limits around it, and the
// provider that the model talks to, which must refuse nothing it is sent.
func TestModel(t *testing.T, open func(t *testing.T) (troupe.Model, *Provider)) {
	for _, check := range modelChecks() {
		t.Run(check.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), hangs)
			defer cancel()
			m, p := open(t)
			if err := check.run(ctx, m, p); err != nil {
				t.Error(err)
			}
		})
	}
}

// modelCheck is one clause of the contract. It returns an error, rather than
// fail a test, so that broken models can be shown to be found out.
type modelCheck struct {
	name string
	run  func(context.Context, troupe.Model, *Provider) error
}

func modelChecks() []modelCheck {
	return []modelCheck{
		{"reply", checkReply},
		{"fragments", checkFragments},
		{"sending", checkSending},
		{"same bytes", checkSameBytes},
		{"append only", checkAppendOnly},
		{"hard conversations", checkConversations},
		{"reasoning goes back", checkReasoning},
		{"broken streams", checkBroken},
		{"what a broken stream costs", checkBilled},
		{"refusals", checkRefusals},
		{"odd answers", checkOdd},
		{"leave", checkLeave},
		{"ctx ends", checkCtx},
		{"ctx over", checkCtxOver},
		{"concurrent", checkConcurrent},
	}
}

// outcome is what came of one request.
type outcome struct {
	chunks []troupe.Chunk
	reply  *troupe.Reply
	err    error
}

// ask streams one request to its end. The error says that the sequence of
// chunks itself is against the contract.
func ask(ctx context.Context, m troupe.Model, req *troupe.Request) (outcome, error) {
	var o outcome
	for c, err := range m.Stream(ctx, req) {
		switch {
		case o.err != nil:
			return o, fmt.Errorf("the sequence goes on after its error %q", o.err)
		case o.reply != nil:
			return o, fmt.Errorf("the sequence goes on after its Reply: %T, %v", c, err)
		case err != nil:
			o.err = err
			continue
		}
		o.chunks = append(o.chunks, c)
		if r, ok := c.(troupe.Reply); ok {
			o.reply = &r
		}
	}
	if o.reply == nil && o.err == nil {
		return o, errors.New("the sequence ends without Reply and without error")
	}
	return o, inOrder(o)
}

// inOrder checks Sending, Opened, Delta …, Reply.
func inOrder(o outcome) error {
	var sent, opened int
	for _, c := range o.chunks {
		switch c.(type) {
		case troupe.Sending:
			sent++
		case troupe.Opened:
			opened++
		case troupe.Retrying, troupe.Waiting, troupe.Switched:
			return fmt.Errorf("%T from a bare model", c)
		}
		if sent != 1 || opened > 1 {
			return fmt.Errorf("%d Sending and %d Opened at %T", sent, opened, c)
		}
		_, isSending := c.(troupe.Sending)
		if opened == 0 && !isSending {
			return fmt.Errorf("%T before Opened", c)
		}
	}
	return nil
}

// answered is ask for a request that must be answered.
func answered(ctx context.Context, m troupe.Model, req *troupe.Request) (outcome, error) {
	o, err := ask(ctx, m, req)
	if err == nil && o.reply == nil {
		err = fmt.Errorf("no reply: %w", o.err)
	}
	return o, err
}

// failed is ask for a request that must fail.
func failed(ctx context.Context, m troupe.Model, req *troupe.Request) error {
	o, err := ask(ctx, m, req)
	if err != nil {
		return err
	}
	if o.reply != nil {
		return fmt.Errorf("a reply of %d blocks where an error was due", len(o.reply.Message.Content))
	}
	return nil
}

// asking is a request for a conversation.
func asking(messages ...troupe.Message) *troupe.Request {
	return &troupe.Request{
		Model: "test-model", System: "You are tested.", MaxTokens: 4096,
		Tools: []troupe.ToolSpec{{
			Name: "Read", Description: "Reads a file.",
			Schema: []byte(`{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`),
		}},
		Messages: messages,
	}
}

func hello() *troupe.Request { return asking(troupe.Say(troupe.User, "hello")) }

// calling is an assistant message with reasoning, text and two calls.
func calling() troupe.Message {
	return troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
		troupe.Thinking{Text: "The user greets. I look at two files."},
		troupe.Text("I read <both> & \"more\":\u2028\u00e4\u4e16\U0001f600\\n\t."),
		troupe.ToolUse{ID: "call_1", Name: "Read", Input: []byte(`{"file_path":"/tmp/a<b>&\"c\".txt"}`)},
		troupe.ToolUse{ID: "call_2", Name: "Read", Input: []byte(`{"file_path":"/tmp/\u4e16.txt"}`)},
	}}
}

func checkReply(ctx context.Context, m troupe.Model, p *Provider) error {
	want, usage := calling(), troupe.Usage{Input: 70, Output: 20, CacheRead: 50}
	p.Queue(Reply{Message: want, Usage: usage, Model: "test-model-2"})
	o, err := answered(ctx, m, hello())
	if err != nil {
		return err
	}
	got := o.reply
	if err := sameContent(got.Message, want); err != nil {
		return err
	}
	if got.Usage != usage {
		return fmt.Errorf("usage is %+v, want %+v", got.Usage, usage)
	}
	if got.Model != "test-model-2" || got.Stop != "tool_use" && got.Stop != "tool_calls" {
		return fmt.Errorf("model is %q and stop is %q", got.Model, got.Stop)
	}
	return nil
}

// sameContent compares what dialects agree on: the text and the calls in
// their order, and the text of reasoning.
func sameContent(got, want troupe.Message) error {
	if got.Role != troupe.Assistant {
		return fmt.Errorf("role is %q", got.Role)
	}
	if got.Content.Text() != want.Content.Text() {
		return fmt.Errorf("text is %q, want %q", got.Content.Text(), want.Content.Text())
	}
	same := func(a, b troupe.ToolUse) bool {
		return a.ID == b.ID && a.Name == b.Name && string(a.Input) == string(b.Input)
	}
	if !slices.EqualFunc(got.ToolUses(), want.ToolUses(), same) {
		return fmt.Errorf("calls are %s, want %s", listed(got), listed(want))
	}
	if reasoned(got) != reasoned(want) {
		return fmt.Errorf("reasoning is %q, want %q", reasoned(got), reasoned(want))
	}
	return nil
}

// listed names the calls of a message; their input need not be JSON.
func listed(m troupe.Message) string {
	var all []string
	for _, u := range m.ToolUses() {
		all = append(all, fmt.Sprintf("%s:%s(%s)", u.ID, u.Name, u.Input))
	}
	return strings.Join(all, " ")
}

func reasoned(m troupe.Message) string {
	var all string
	for _, b := range m.Content {
		if t, ok := b.(troupe.Thinking); ok {
			all += t.Text
		}
	}
	return all
}

func checkFragments(ctx context.Context, m troupe.Model, p *Provider) error {
	p.Queue(Reply{Message: calling()})
	o, err := answered(ctx, m, hello())
	if err != nil {
		return err
	}
	var said, thought string
	n := 0
	for _, c := range o.chunks {
		d, ok := c.(troupe.Delta)
		switch {
		case !ok:
			continue
		case d.Thinking:
			thought += d.Text
		default:
			said += d.Text
		}
		n++
	}
	if said != calling().Content.Text() || thought != reasoned(calling()) {
		return fmt.Errorf("the fragments make %q and %q", said, thought)
	}
	if n < 4 {
		return fmt.Errorf("%d fragments: the reply was not streamed", n)
	}
	return nil
}

func checkSending(ctx context.Context, m troupe.Model, p *Provider) error {
	p.Say("hello")
	var body []byte
	for c, err := range m.Stream(ctx, hello()) {
		if err != nil {
			return err
		}
		if s, ok := c.(troupe.Sending); ok {
			body = s.Body
			if n := len(p.Requests()); n > 0 {
				return fmt.Errorf("at Sending the provider has %d requests", n)
			}
		}
	}
	if got := p.Last().Body; string(got) != string(body) {
		return fmt.Errorf("the provider got %s, Sending said %s", got, body)
	}
	return nil
}

func checkSameBytes(ctx context.Context, m troupe.Model, p *Provider) error {
	req := asking(troupe.Say(troupe.User, "hello"), Say("hi"), troupe.Say(troupe.User, "go on"))
	before := string(encode(req))
	for range 2 {
		p.Say("yes")
		if _, err := answered(ctx, m, req); err != nil {
			return err
		}
	}
	if after := string(encode(req)); after != before {
		return fmt.Errorf("the model changed the request: %s, was %s", after, before)
	}
	if sent := p.Requests(); string(sent[0].Body) != string(sent[1].Body) {
		return fmt.Errorf("one request, two bodies: %s, %s", sent[0].Body, sent[1].Body)
	}
	return nil
}

// checkAppendOnly: a conversation that grows keeps all bytes it has sent, but
// for marks of the cache and what closes the body.
func checkAppendOnly(ctx context.Context, m troupe.Model, p *Provider) error {
	short := hello()
	long := asking(append(slices.Clip(short.Messages), Say("hi"), troupe.Say(troupe.User, "go on"))...)
	for _, req := range []*troupe.Request{short, long} {
		p.Say("yes")
		if _, err := answered(ctx, m, req); err != nil {
			return err
		}
	}
	sent := p.Requests()
	at := bytes.LastIndex(sent[0].Unmarked, []byte(`"hello"`))
	if end := at + len(`"hello"`); at < 0 || sent[1].SharedUnmarked < end {
		return fmt.Errorf("the longer conversation shares %d bytes of %d: %s, %s",
			sent[1].SharedUnmarked, at, sent[0].Unmarked, sent[1].Unmarked)
	}
	return nil
}
