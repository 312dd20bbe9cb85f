package troupetest

import (
	"net/http"
	"slices"
	"time"

	"github.com/troupe-sh/troupe"
)

// A Request is one request as a [Provider] got it. The embedded request is
// what could be read of the body, in troupe's own types: of a refused one
// perhaps nothing. Thinking carries the provider "anthropic" or
// "openai/FIELD".
type Request struct {
	troupe.Request
	Number  int // from 1, in order of arrival
	Arrived time.Time
	Dialect Dialect
	Body    []byte      // as it came; must not be changed
	Header  http.Header // with keys masked
	// Refused names the rule that the request broke and Complaint says how.
	// Both are empty if it was accepted.
	Refused, Complaint string
	// Shared is the length in bytes of the longest prefix that Body has in
	// common with an earlier request of its dialect. SharedUnmarked is the
	// same of the two bodies without their cache_control marks.
	Shared, SharedUnmarked int
	// Unmarked is Body without cache_control marks.
	Unmarked []byte
	// Usage is what was billed: for a stream that was cut, what came out.
	Usage troupe.Usage
	// Ended says that the provider is done with the request, in whatever way.
	Ended bool
}

// FirstUser returns the text of the first message of the user.
func (r *Request) FirstUser() string {
	for _, m := range r.Messages {
		if m.Role == troupe.User {
			return m.Content.Text()
		}
	}
	return ""
}

// LastUser returns the text of the last message of the user that has text.
func (r *Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if said := m.Content.Text(); m.Role == troupe.User && said != "" {
			return said
		}
	}
	return ""
}

// Results returns the tool results of the last message, in order.
func (r *Request) Results() []troupe.ToolResult {
	var out []troupe.ToolResult
	if len(r.Messages) == 0 {
		return nil
	}
	for _, b := range r.Messages[len(r.Messages)-1].Content {
		if result, ok := b.(troupe.ToolResult); ok {
			out = append(out, result)
		}
	}
	return out
}

// ToolNames returns the names of the tools offered, in order.
func (r *Request) ToolNames() []string {
	var out []string
	for _, tool := range r.Tools {
		out = append(out, tool.Name)
	}
	return out
}

// masked returns h with the values of credentials replaced.
func masked(h http.Header) http.Header {
	out := h.Clone()
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization"} {
		if out.Get(name) != "" {
			out.Set(name, "masked")
		}
	}
	return out
}

// commonPrefix returns how many bytes a and b share from their start.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
