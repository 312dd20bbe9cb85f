package troupetest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/troupe-sh/troupe"
)

// streamed is a reply with everything in it.
func streamed() Reply {
	return Reply{
		Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
			troupe.Thinking{Text: "hm", Signature: "c2ln"},
			troupe.Text("<ok>"),
			troupe.ToolUse{ID: "c1", Name: "Read", Input: []byte(`{"a":1}`)},
			troupe.ToolUse{ID: "c2", Name: "List", Input: []byte(`{}`)},
		}},
		Usage: troupe.Usage{Input: 7, Output: 9, CacheRead: 5},
	}
}

// anthropicStream is what the reply of streamed is on the wire.
const anthropicStream = `event: message_start
data: {"message":{"content":[],"id":"msg_000001","model":"m","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":1}},"type":"message_start"}

event: content_block_start
data: {"content_block":{"signature":"","thinking":"","type":"thinking"},"index":0,"type":"content_block_start"}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"delta":{"thinking":"h","type":"thinking_delta"},"index":0,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"thinking":"m","type":"thinking_delta"},"index":0,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"signature":"c2ln","type":"signature_delta"},"index":0,"type":"content_block_delta"}

event: content_block_stop
data: {"index":0,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"text":"","type":"text"},"index":1,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"text":"<o","type":"text_delta"},"index":1,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"text":"k>","type":"text_delta"},"index":1,"type":"content_block_delta"}

event: content_block_stop
data: {"index":1,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"id":"c1","input":{},"name":"Read","type":"tool_use"},"index":2,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"partial_json":"","type":"input_json_delta"},"index":2,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"partial_json":"{\"a\"","type":"input_json_delta"},"index":2,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"partial_json":":1}","type":"input_json_delta"},"index":2,"type":"content_block_delta"}

event: content_block_stop
data: {"index":2,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"id":"c2","input":{},"name":"List","type":"tool_use"},"index":3,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"partial_json":"","type":"input_json_delta"},"index":3,"type":"content_block_delta"}

event: content_block_stop
data: {"index":3,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"type":"redacted_thinking","data":"x"},"index":4,"type":"content_block_start"}

event: content_block_stop
data: {"index":4,"type":"content_block_stop"}

event: message_delta
data: {"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

`

// The events are those that the Messages API documents for a stream.
func TestAnthropicStream(t *testing.T) {
	p := NewProvider(t)
	reply := streamed()
	redacted := troupe.Opaque{Provider: "anthropic", JSON: `{"type":"redacted_thinking","data":"x"}`}
	reply.Message.Content = append(reply.Message.Content, redacted)
	p.Queue(reply)
	res, got := post(t, p, Anthropic, with(`{"stream":true}`))
	if diff := cmp.Diff(anthropicStream, string(got)); diff != "" {
		t.Error(diff)
	}
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Errorf("content type is %q", kind)
	}
}

// The chunks are those that the Chat Completions API documents for a stream,
// reasoning those of compatible servers.
func TestOpenAIStream(t *testing.T) {
	p := NewProvider(t)
	p.Queue(streamed(), streamed())
	_, got := post(t, p, OpenAI, with(`{"stream":true,"stream_options":{"include_usage":true}}`))
	created := `"created":` + between(string(got), `"created":`, ",")
	chunk := func(delta, finish string) string {
		return `data: {"choices":[{"delta":` + delta + `,"finish_reason":` + finish + `,"index":0,"logprobs":null}],` +
			created + `,"id":"chatcmpl-000001","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp_test","usage":null}` + "\n\n"
	}
	call := func(s string) string { return chunk(`{"tool_calls":[{`+s+`}]}`, "null") }
	want := chunk(`{"content":"","role":"assistant"}`, "null") +
		chunk(`{"reasoning_content":"h"}`, "null") + chunk(`{"reasoning_content":"m"}`, "null") +
		chunk(`{"content":"<o"}`, "null") + chunk(`{"content":"k>"}`, "null") +
		call(`"function":{"arguments":"","name":"Read"},"id":"c1","index":0,"type":"function"`) +
		call(`"function":{"arguments":"{\"a\""},"index":0`) + call(`"function":{"arguments":":1}"},"index":0`) +
		call(`"function":{"arguments":"","name":"List"},"id":"c2","index":1,"type":"function"`) +
		call(`"function":{"arguments":"{"},"index":1`) + call(`"function":{"arguments":"}"},"index":1`) +
		chunk(`{}`, `"tool_calls"`) +
		`data: {"choices":[],` + created + `,"id":"chatcmpl-000001","model":"m","object":"chat.completion.chunk","system_fingerprint":"fp_test",` +
		`"usage":{"completion_tokens":9,"prompt_tokens":12,"prompt_tokens_details":{"cached_tokens":5},"total_tokens":21}}` + "\n\n" +
		"data: [DONE]\n\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	_, got = post(t, p, OpenAI, with(`{"stream":true}`))
	if strings.Contains(string(got), "usage") {
		t.Error("usage was not asked for and is in the stream")
	}
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

func TestReasoningFields(t *testing.T) {
	for provider, want := range map[string]string{
		"":                         `{"reasoning_content":"h"}`,
		"openai/reasoning":         `{"reasoning":"h"}`,
		"openai/reasoning_details": `{"reasoning_details":[{"index":0,"text":"h","type":"reasoning.text"}]}`,
	} {
		p := NewProvider(t)
		said := troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Thinking{Text: "hm", Provider: provider}}}
		p.Queue(Reply{Message: said})
		if _, got := post(t, p, OpenAI, with(`{"stream":true}`)); !strings.Contains(string(got), want) {
			t.Errorf("%q: no %s in %s", provider, want, got)
		}
	}
}

func TestWithoutStream(t *testing.T) {
	p := NewProvider(t)
	p.Queue(streamed(), streamed())
	res, got := post(t, p, Anthropic, probe{})
	want := `{"content":[{"signature":"c2ln","thinking":"hm","type":"thinking"},{"text":"<ok>","type":"text"},` +
		`{"id":"c1","input":{"a":1},"name":"Read","type":"tool_use"},{"id":"c2","input":{},"name":"List","type":"tool_use"}],` +
		`"id":"msg_000001","model":"m","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message",` +
		`"usage":{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":9}}`
	if diff := cmp.Diff(want, string(got)); diff != "" || res.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", res.StatusCode, diff)
	}
	_, got = post(t, p, OpenAI, probe{})
	message := `"message":{"content":"<ok>","reasoning_content":"hm","refusal":null,"role":"assistant","tool_calls":[` +
		`{"function":{"arguments":"{\"a\":1}","name":"Read"},"id":"c1","type":"function"},` +
		`{"function":{"arguments":"{}","name":"List"},"id":"c2","type":"function"}]}`
	if !strings.Contains(string(got), message) || !strings.Contains(string(got), `"total_tokens":21`) {
		t.Errorf("got %s", got)
	}
}

func TestStopReasons(t *testing.T) {
	for _, c := range []struct{ stop, anthropic, openai string }{
		{"", "end_turn", "stop"},
		{"max_tokens", "max_tokens", "length"},
		{"length", "max_tokens", "length"},
		{"end_turn", "end_turn", "stop"},
		{"refusal", "refusal", "content_filter"},
		{"tool_calls", "tool_use", "tool_calls"},
		{"pause_turn", "pause_turn", "pause_turn"},
	} {
		a := &answer{Reply: Reply{Message: Say("x"), Stop: c.stop}}
		if got := (anthropicWire{}).stopReason(a); got != c.anthropic {
			t.Errorf("%q is %q in Anthropic's words, want %q", c.stop, got, c.anthropic)
		}
		if got := (openaiWire{}).stopReason(a); got != c.openai {
			t.Errorf("%q is %q in OpenAI's words, want %q", c.stop, got, c.openai)
		}
	}
}

func TestModelsList(t *testing.T) {
	p := NewProvider(t, Models("a", "b"))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(p.URL() + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := new(strings.Builder)
	if err := res.Write(buf); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(buf.String(), `"data":[{"id":"a","type":"model","object":"model"},{"id":"b",`) {
		t.Errorf("got %s", buf)
	}
}
