package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// played is a connection that answers every request with a stream.
type played string

func (p played) RoundTrip(req *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(string(p))), Request: req}, nil
}

// stream asks a model that is answered with sse, and collects what it yields.
func stream(ctx context.Context, sse string) (deltas []troupe.Delta, reply *troupe.Reply, err error) {
	m := New(Options{BaseURL: "http://localhost/v1", Provider: "acme", HTTP: &http.Client{Transport: played(sse)}})
	for c, e := range m.Stream(ctx, &troupe.Request{Model: "m"}) {
		switch c := c.(type) {
		case troupe.Delta:
			deltas = append(deltas, c)
		case troupe.Reply:
			reply = &c
		}
		err = e
	}
	return deltas, reply, err
}

// sse makes a stream of events, a line each, as the protocol frames them.
func sse(lines string) string {
	var s strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			s.WriteString("data: " + line + "\n\n")
		}
	}
	return s.String()
}

func piece(d string) string {
	return `{"model":"big-1","choices":[{"index":0,"delta":` + d + `}]}` + "\n"
}

func finish(reason string) string {
	return `{"model":"big-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n"
}

const done = "[DONE]\n"

func use(id, name, input string) troupe.ToolUse {
	return troupe.ToolUse{ID: id, Name: name, Input: json.RawMessage(input)}
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, lines string
		want        troupe.Blocks
		stop        string
		usage       troupe.Usage
	}{
		{"text and usage", piece(`{"role":"assistant","content":""}`) + piece(`{"content":"hel"}`) + piece(`{"content":"lo"}`) + finish("stop") +
			`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}}` + "\n" + done,
			troupe.Blocks{troupe.Text("hello")}, "stop", troupe.Usage{Input: 10, Output: 7, CacheRead: 60, CacheWrite: 30}},
		{"DeepSeek's word for cached", piece(`{"content":"x"}`) + `{"choices":[{"index":0,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":60}}` + "\n" + done,
			troupe.Blocks{troupe.Text("x")}, "stop", troupe.Usage{Input: 40, Output: 7, CacheRead: 60}},
		{"no usage, no [DONE]", piece(`{"content":"x"}`) + finish("stop"), troupe.Blocks{troupe.Text("x")}, "stop", troupe.Usage{}},
		{"two calls in pieces, text around them", piece(`{"content":"a"}`) +
			piece(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"Bash","arguments":""}}]}`) +
			piece(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}`) +
			piece(`{"tool_calls":[{"index":1,"id":"c2","function":{"name":"Read","arguments":"{\"b\":2"}},{"index":0,"function":{"arguments":"1}"}}]}`) +
			piece(`{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}`) + piece(`{"content":"z"}`) + finish("tool_calls") + done,
			troupe.Blocks{troupe.Text("a"), use("c1", "Bash", `{"a":1}`), use("c2", "Read", `{"b":2}`), troupe.Text("z")}, "tool_calls", troupe.Usage{}},
		{"no index", piece(`{"tool_calls":[{"id":"c1","function":{"name":"Bash","arguments":"{}"}}]}`) + piece(`{"tool_calls":[{"id":"c2","function":{"name":"Bash","arguments":"{\"a\""}}]}`) +
			piece(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`) + finish("tool_calls"), troupe.Blocks{use("c1", "Bash", `{}`), use("c2", "Bash", `{"a":1}`)}, "tool_calls", troupe.Usage{}},
		{"one index for all", piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":"{}"}}]}`) + piece(`{"tool_calls":[{"index":0,"id":"c2","function":{"name":"B","arguments":"{\"x\":"}}]}`) +
			piece(`{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}`) + finish("tool_calls"), troupe.Blocks{use("c1", "A", `{}`), use("c2", "B", `{"x":2}`)}, "tool_calls", troupe.Usage{}},
		{"no id, one index for all", piece(`{"tool_calls":[{"index":0,"function":{"name":"A","arguments":"{}"}}]}`) + piece(`{"tool_calls":[{"index":0,"function":{"name":"A","arguments":"{\"x\":1}"}}]}`) + finish("tool_calls"),
			troupe.Blocks{use("", "A", `{}`), use("", "A", `{"x":1}`)}, "tool_calls", troupe.Usage{}},
		{"name and id in each piece", piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":"{\"x\""}}]}`) + piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":":1}"}}]}`) + finish("tool_calls"),
			troupe.Blocks{use("c1", "A", `{"x":1}`)}, "tool_calls", troupe.Usage{}},
		{"arguments as an object, none, broken", piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":{"x":1}}},{"index":1,"id":"c2","function":{"name":"B"}},{"index":2,"id":"c3","function":{"name":"C","arguments":"{\"x"}}]}`) + finish("tool_calls"),
			troupe.Blocks{use("c1", "A", `{"x":1}`), use("c2", "B", `{}`), use("c3", "C", `{"x`)}, "tool_calls", troupe.Usage{}},
		{"a call cut by the limit is dropped", piece(`{"content":"a"}`) + piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":"{\"x\":1}"}},{"index":1,"id":"c2","function":{"name":"B","arguments":"{\"x\":"}}]}`) + finish("length"),
			troupe.Blocks{troupe.Text("a"), use("c1", "A", `{"x":1}`)}, "length", troupe.Usage{}},
		{"a call cut before its input is dropped", piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":""}}]}`) + finish("length"), nil, "length", troupe.Usage{}},
		{"reasoning_content", piece(`{"reasoning_content":"h"}`) + piece(`{"reasoning_content":"m","content":null}`) + piece(`{"content":"yes"}`) + finish("stop"),
			troupe.Blocks{troupe.Thinking{Text: "hm", Provider: "acme/reasoning_content"}, troupe.Text("yes")}, "stop", troupe.Usage{}},
		{"reasoning with details", piece(`{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0,"format":"f"}]}`) +
			piece(`{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}`) +
			piece(`{"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}, {"type":"reasoning.encrypted", "data":"\u003c","index":1}]}`) + piece(`{"content":"yes"}`) + finish("stop"),
			troupe.Blocks{troupe.Opaque{Provider: "acme/reasoning_details", JSON: `[{"format":"f","index":0,"signature":"s","text":"hm","type":"reasoning.text"},{"type":"reasoning.encrypted", "data":"\u003c","index":1}]`},
				troupe.Thinking{Text: "hm", Provider: "acme/reasoning"}, troupe.Text("yes")}, "stop", troupe.Usage{}},
		{"content in parts, refusal, odd fields", piece(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`) + `{"error":null,"model":7,"choices":[{"index":0,"delta":{"refusal":"no"}},{"index":1,"delta":{"content":"other"}}],"usage":{"prompt_tokens":"x"}}` + "\n" + finish("stop"),
			troupe.Blocks{troupe.Text("abno")}, "stop", troupe.Usage{}},
		{"comments keep alive", ": waiting\n" + piece(`{"content":"a"}`) + finish("stop"), troupe.Blocks{troupe.Text("a")}, "stop", troupe.Usage{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			deltas, reply, err := stream(t.Context(), strings.ReplaceAll(sse(tt.lines), "data: :", ":"))
			if err != nil || reply == nil {
				t.Fatalf("reply %v, %v", reply, err)
			}
			want := troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: tt.want}, Usage: tt.usage, Stop: tt.stop, Model: "big-1"}
			if d := cmp.Diff(want, *reply); d != "" {
				t.Error(d)
			}
			shown := ""
			for _, d := range deltas {
				if !d.Thinking {
					shown += d.Text
				}
			}
			if shown != reply.Message.Content.Text() {
				t.Errorf("shown %q, replied %q", shown, reply.Message.Content.Text())
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	call := piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":"{\"x\":1}"}}]}`)
	for _, tt := range []struct {
		name, stream string
		status       int
		cause        error
		temporary    bool
	}{
		{"nothing", "", 0, model.ErrCut, true},
		{"cut in a text", sse(piece(`{"content":"x"}`)), 0, model.ErrCut, true},
		{"cut in a call", sse(call), 0, model.ErrCut, true},
		{"done without a reason", sse(call + done), 0, model.ErrCut, true},
		{"cut in an event", sse(call) + `data: {"choices":[{"finish_reason":"stop"`, 0, model.ErrCut, true},
		{"error in the stream", sse(call + `{"error":{"message":"upstream","code":502}}`), 502, nil, true},
		{"refused in the stream", sse(`{"error":{"message":"no","type":"invalid_request_error"}}`), 400, nil, false},
		{"no JSON", "data: hello\n\n", 0, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, reply, err := stream(t.Context(), tt.stream)
			var e *model.APIError
			if reply != nil || !errors.As(err, &e) || e.Status != tt.status || e.Temporary() != tt.temporary || tt.cause != nil && !errors.Is(err, tt.cause) {
				t.Errorf("reply %v, %#v", reply, err)
			}
		})
	}
}

// A reply that has its reason to finish is whole, even if the connection breaks
// before the server says goodbye.
func TestConnectionLostAfterTheReply(t *testing.T) {
	broken := errors.New("broken")
	connection := transport(func(req *http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(sse(piece(`{"content":"x"}`)+finish("stop"))), iotest.ErrReader(broken))
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body), Request: req}, nil
	})
	m := New(Options{BaseURL: "http://localhost/v1", HTTP: &http.Client{Transport: connection}})
	var last troupe.Chunk
	for c, err := range m.Stream(t.Context(), &troupe.Request{}) {
		if err != nil {
			t.Fatal(err)
		}
		last = c
	}
	if r, ok := last.(troupe.Reply); !ok || r.Message.Content.Text() != "x" {
		t.Errorf("%v", last)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Whatever comes, there is a reply or an error and never both.
func FuzzStream(f *testing.F) {
	f.Add(sse(piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":"{}"}}]}`) + finish("length") + done))
	f.Add(sse(piece(`{"reasoning_details":[{"type":"reasoning.text"},{"type":"reasoning.text","text":1}, 7, null]}`) + finish("stop")))
	f.Add("data: {\"error\":1}\n\n")
	f.Add("data: [DONE]\n\n\xff\x00")
	f.Fuzz(func(t *testing.T, s string) {
		_, reply, err := stream(t.Context(), s)
		if (reply == nil) == (err == nil) {
			t.Fatalf("reply %v, %v", reply, err)
		}
		if reply != nil && !strings.Contains(s, "finish_reason") && !strings.Contains(strings.ToLower(s), "finish_reason") && !strings.Contains(s, `\u`) {
			t.Fatalf("a reply without a reason to finish: %v", reply)
		}
		if reply == nil {
			return
		}
		for _, b := range reply.Message.Content {
			if o, ok := b.(troupe.Opaque); ok && !json.Valid([]byte(o.JSON)) {
				t.Fatalf("details are no JSON: %s", o.JSON)
			}
		}
	})
}
