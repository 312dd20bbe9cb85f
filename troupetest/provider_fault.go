package troupetest

import (
	"time"

	"github.com/troupe-sh/troupe"
)

// A Reply is what the [Provider] answers to one request.
type Reply struct {
	// Message is the assistant's message; an empty one is a reply without
	// content, which real services send now and then. The input of a tool use
	// goes out as it is, valid JSON or not. A Thinking without signature gets
	// one in the Anthropic dialect. In the OpenAI dialect Thinking.Provider
	// "openai/NAME" chooses the field it is streamed in (reasoning_content if
	// not given). An Opaque is the JSON of a block, for Anthropic only.
	Message troupe.Message
	// Usage is reported and billed as it is; zero derives it from the bytes
	// and the simulated prompt cache.
	Usage troupe.Usage
	// Stop is the stop reason in the words of either dialect; "" is the one
	// that fits the message.
	Stop string
	// Model is the name of the model that says it answers; "" is the one asked.
	Model string
	// Fault is what goes wrong on the way; the zero value is nothing.
	Fault Fault
}

// A Fault is what goes wrong with one answer. Its fields may be combined; at
// one point Stall comes before all others.
type Fault struct {
	Delay      time.Duration // before the headers
	Pace       time.Duration // before each event of the stream
	Status     int           // answer with an error of this HTTP status, in the dialect's form
	RetryAfter string        // value of that header: seconds, or a date in http.TimeFormat
	HTML       bool          // answer with a page of HTML, as a proxy does
	Empty      bool          // answer 200 with no body at all
	NoUsage    bool          // leave the usage out
	NoIndex    bool          // leave the index of tool calls out (OpenAI)

	Stall     Point           // say no more from here until the client leaves …
	Until     <-chan struct{} // … or this is closed, if it is given
	Cut       Point           // cut the connection here
	Truncate  Point           // end the body here, in good order but without the end of the stream
	Overload  Point           // send an error event of overload here, and nothing after it
	Malformed Point           // send an event here whose data is not JSON, and go on
}

// A Point is a place in an answer where a [Fault] can strike.
type Point int

// The points, in the order in which an answer reaches them. A fault at a
// point that its reply does not reach fails the test: it would test nothing.
// Before the headers an answer can only stall or be cut.
const (
	Nowhere       Point = iota
	BeforeHeaders       // the request has been read
	AfterHeaders        // status and headers are out, no byte of the body
	AfterStart          // the first event is out
	Midway              // the first fragment of the first block is out
	InCall              // the first fragment of the first tool call's input is out
	BeforeEnd           // all of the message is out, the end of the stream is not
)

// tokens is the number of tokens that n bytes count as.
func tokens(n int) int { return (n + 3) / 4 }

// outputBytes is the size of what a model had to write for m.
func outputBytes(m troupe.Message) int {
	n := 0
	for _, b := range m.Content {
		switch b := b.(type) {
		case troupe.Text:
			n += len(b)
		case troupe.Thinking:
			n += len(b.Text)
		case troupe.Opaque:
			n += len(b.JSON)
		case troupe.ToolUse:
			n += len(b.Name) + len(b.Input)
		}
	}
	return n
}
