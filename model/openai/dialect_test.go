package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

// What servers call the end of a reply says nothing of whether there are calls
// in it: some say "stop" where others say "tool_calls". A reply goes on or not
// by its calls.
func TestReasonsToStop(t *testing.T) {
	call := piece(`{"content":"on it"}`) + piece(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"A","arguments":"{}"}}]}`)
	for _, reason := range []string{"stop", "tool_calls", "function_call", "length", "content_filter", "eos", "insufficient_system_resource"} {
		_, reply, err := stream(t.Context(), sse(call+finish(reason)+done))
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		want := troupe.Blocks{troupe.Text("on it"), use("c1", "A", `{}`)}
		if d := cmp.Diff(want, reply.Message.Content); d != "" || reply.Stop != reason {
			t.Errorf("%s: stop %q, %s", reason, reply.Stop, d)
		}
	}
}

// A reply without anything in it is one: the server has said that it is
// finished. Nothing is made up in its place.
func TestEmptyReply(t *testing.T) {
	for name, lines := range map[string]string{
		"no delta at all":    finish("stop") + done,
		"deltas of nothing":  piece(`{"role":"assistant","content":""}`) + piece(`{}`) + finish("stop") + done,
		"null":               piece(`{"content":null,"tool_calls":null,"reasoning_content":null}`) + finish("stop"),
		"an empty list":      piece(`{"tool_calls":[],"reasoning_details":[]}`) + finish("length") + done,
		"no delta, in words": `{"model":"big-1","choices":[{"index":0,"finish_reason":"stop"}]}` + "\n" + done,
	} {
		deltas, reply, err := stream(t.Context(), sse(lines))
		if err != nil || len(reply.Message.Content) > 0 || len(deltas) > 0 || reply.Stop == "" {
			t.Errorf("%s: %v, %+v, %v", name, deltas, reply, err)
		}
	}
}

// Reasoning comes under three names, goes on screen as thought under each, and
// goes back under the one it came with.
func TestNamesOfReasoning(t *testing.T) {
	for _, tt := range []struct {
		name, lines, back string
		thought           string
	}{
		{"reasoning_content", piece(`{"reasoning_content":"hm"}`), `"reasoning_content":"hm"`, "hm"},
		{"reasoning", piece(`{"reasoning":"hm"}`), `"reasoning":"hm"`, "hm"},
		{"reasoning_details", piece(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`), `"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]`, ""},
		{"two at once", piece(`{"reasoning":"hm","reasoning_content":"hm"}`), `"reasoning_content":"hm"`, "hm"},
	} {
		deltas, reply, err := stream(t.Context(), sse(tt.lines+piece(`{"content":"yes"}`)+finish("stop")))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		thought := ""
		for _, d := range deltas {
			if d.Thinking {
				thought += d.Text
			}
		}
		talk := []troupe.Message{troupe.Say(troupe.User, "a"), reply.Message, troupe.Say(troupe.User, "b")}
		body, err := Encode(&troupe.Request{Model: "m", Messages: talk}, Options{Provider: "acme"})
		if err != nil || thought != tt.thought || !strings.Contains(string(body), tt.back) || strings.Count(string(body), "hm") > 1 {
			t.Errorf("%s: thought %q, back as %s, %v", tt.name, thought, body, err)
		}
		other, err := Encode(&troupe.Request{Model: "m", Messages: talk}, Options{Provider: "other"})
		if err != nil || strings.Contains(string(other), "reasoning") {
			t.Errorf("%s: another provider gets it: %s, %v", tt.name, other, err)
		}
	}
}
