package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

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
	m := New(Options{BaseURL: "http://localhost", HTTP: &http.Client{Transport: played(sse)}})
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

// sse makes a stream of events, a line of JSON each, as the protocol frames them.
func sse(lines string) string {
	var s strings.Builder
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		var e struct{ Type string }
		if json.Unmarshal([]byte(line), &e) == nil {
			s.WriteString("event: " + e.Type + "\ndata: " + line + "\n\n")
		}
	}
	return s.String()
}

const (
	begin = `{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":5,"output_tokens":1}}}` + "\n"
	bash  = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}` + "\n"
	end   = `{"type":"message_stop"}` + "\n"
)

func stop(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":7}}` + "\n" + end
}

func TestDecode(t *testing.T) {
	usage := troupe.Usage{Input: 3, Output: 7, CacheRead: 40, CacheWrite: 5}
	for _, tt := range []struct {
		name, lines string
		want        troupe.Blocks
		stop        string
	}{
		{"thinking, text, call", begin + `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let "}}
			{"type":"ping"}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"me"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SIG"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I <run>"}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}
			{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
			{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}
			{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}
			{"type":"content_block_stop","index":2}
			` + stop("tool_use"),
			troupe.Blocks{troupe.Thinking{Text: "let me", Signature: "SIG", Provider: "anthropic"}, troupe.Text("I <run>"), troupe.ToolUse{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}, "tool_use"},
		{"a block that only the provider reads", begin + `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking", "data":"\u003cx" }}
			{"type":"content_block_stop","index":0}
			` + stop("end_turn"), troupe.Blocks{troupe.Opaque{Provider: "anthropic", JSON: `{"type":"redacted_thinking", "data":"\u003cx" }`}}, "end_turn"},
		{"a call without input", begin + bash + `{"type":"content_block_stop","index":1}
			` + stop("tool_use"), troupe.Blocks{troupe.ToolUse{ID: "t1", Name: "Bash", Input: json.RawMessage(`{}`)}}, "tool_use"},
		{"the input in one piece", begin + `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}}
			{"type":"content_block_stop","index":1}
			` + stop("tool_use"), troupe.Blocks{troupe.ToolUse{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}, "tool_use"},
		{"a finished call with broken input stays", begin + bash + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}
			{"type":"content_block_stop","index":1}
			` + stop("tool_use"), troupe.Blocks{troupe.ToolUse{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"a":`)}}, "tool_use"},
		{"a call cut by the limit is dropped", begin + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"on it"}}
			{"type":"content_block_stop","index":0}
			` + bash + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"rm -rf /tm"}}
			{"type":"content_block_stop","index":1}
			` + stop("max_tokens"), troupe.Blocks{troupe.Text("on it")}, "max_tokens"},
		{"a call cut before its input is dropped", begin + bash + `{"type":"content_block_stop","index":1}
			` + stop("max_tokens"), nil, "max_tokens"},
		{"a whole call before the limit stays", begin + bash + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
			{"type":"content_block_stop","index":1}
			{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"and th"}}
			` + stop("max_tokens"), troupe.Blocks{troupe.ToolUse{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"a":1}`)}, troupe.Text("and th")}, "max_tokens"},
		{"fields of odd types, events that are not known", begin + `{"type":"news","index":"x"}
			{"type":"content_block_start","index":0,"content_block":{"type":"text","text":null,"citations":[]}}
			{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}
			{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"lost"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}
			{"type":"content_block_stop","index":0}
			` + stop("end_turn"), troupe.Blocks{troupe.Text("ok")}, "end_turn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			deltas, reply, err := stream(t.Context(), sse(tt.lines))
			if err != nil || reply == nil {
				t.Fatalf("reply %v, %v", reply, err)
			}
			want := troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: tt.want}, Usage: usage, Stop: tt.stop, Model: "claude-x"}
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
	text := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"half"}}` + "\n"
	for _, tt := range []struct {
		name, stream string
		status       int
		cause        error
		temporary    bool
	}{
		{"nothing", "", 0, model.ErrCut, true},
		{"cut in a text", sse(begin + text), 0, model.ErrCut, true},
		{"cut in a call", sse(begin + bash + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`), 0, model.ErrCut, true},
		{"cut after the reason to stop", sse(begin + text + strings.TrimSuffix(stop("end_turn"), end)), 0, model.ErrCut, true},
		{"a call that does not end", sse(begin + bash + stop("tool_use")), 0, model.ErrCut, true},
		{"cut in an event", sse(begin) + "event: content_block_start\ndata: {\"type\":", 0, model.ErrCut, true},
		{"overloaded", sse(begin + text + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), 529, nil, true},
		{"refused in the stream", sse(`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), 400, nil, false},
		{"no JSON", "event: message_start\ndata: hello\n\n", 0, nil, true},
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

// Whatever comes, there is a reply or an error and never both, and a call in a
// reply has ended.
func FuzzStream(f *testing.F) {
	f.Add(sse(begin + bash + stop("tool_use")))
	f.Add(sse(begin + `{"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}` + "\n" + stop("max_tokens")))
	f.Add("event: error\ndata: {\"error\":1}\n\n")
	f.Add("data: {\"type\":\"message_stop\"}\n\n\xff\x00")
	f.Fuzz(func(t *testing.T, s string) {
		_, reply, err := stream(t.Context(), s)
		if (reply == nil) == (err == nil) {
			t.Fatalf("reply %v, %v", reply, err)
		}
		if reply != nil && strings.Count(s, "content_block_stop") < len(reply.Message.ToolUses()) {
			t.Fatalf("a call that has not ended: %v", reply.Message)
		}
	})
}
