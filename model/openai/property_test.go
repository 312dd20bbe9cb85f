package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
)

// conversation draws a conversation as a run makes it: turns of the user and of
// the assistant, each call answered at the beginning of the next message.
func conversation(t *rapid.T) []troupe.Message {
	msgs := []troupe.Message{troupe.Say(troupe.User, "start")}
	text := rapid.StringMatching(`[a-z<>&"é\n ]{0,12}`)
	id := 0
	for range rapid.IntRange(0, 8).Draw(t, "turns") {
		var reply, answer troupe.Message
		reply.Role, answer.Role = troupe.Assistant, troupe.User
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				reply.Content = append(reply.Content, troupe.Text(text.Draw(t, "text")))
			case 1:
				reply.Content = append(reply.Content, troupe.Thinking{Text: text.Draw(t, "thought"), Provider: rapid.SampledFrom([]string{"anthropic", "openai/reasoning"}).Draw(t, "provider")})
			case 2:
				reply.Content = append(reply.Content, troupe.Opaque{Provider: rapid.SampledFrom([]string{"anthropic", "openai/reasoning_details"}).Draw(t, "provider"), JSON: `[ {"data":"\u003c"}]`})
			default:
				id++
				u := troupe.ToolUse{ID: fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"t_", "fn.x:", "ü "}).Draw(t, "form"), id), Name: "Bash", Input: json.RawMessage(`{"a":"<"}`)}
				reply.Content = append(reply.Content, u)
				r := troupe.ToolResult{ID: u.ID, IsError: rapid.Bool().Draw(t, "failed"), Content: troupe.Blocks{troupe.Text(text.Draw(t, "result"))}}
				if rapid.Bool().Draw(t, "picture") {
					r.Content = append(r.Content, troupe.Image{Media: "image/png", Data: "QQ=="})
				}
				answer.Content = append(answer.Content, r)
			}
		}
		answer.Content = append(answer.Content, troupe.Text("next "+text.Draw(t, "next")))
		msgs = append(msgs, reply, answer)
	}
	return msgs
}

// A longer conversation begins with the bytes of the shorter one.
func TestPrefixIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := conversation(t)
		req := troupe.Request{Model: "m", System: "s", Messages: msgs, Tools: []troupe.ToolSpec{{Name: "Bash", Schema: json.RawMessage(`{"type":"object"}`)}}}
		whole, err := Encode(&req, Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, _ := Encode(&req, Options{})
		if !bytes.Equal(whole, again) {
			t.Fatal("the same request gives other bytes")
		}
		for n := range len(msgs) {
			req.Messages = msgs[:n]
			part, err := Encode(&req, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if shorter := bytes.TrimSuffix(part, []byte("]}")); !bytes.HasPrefix(whole, shorter) {
				t.Fatalf("%d messages are no prefix of %d:\n%s\n%s", n, len(msgs), shorter, whole)
			}
		}
	})
}

// Whatever the conversation, the body is one that the protocol takes.
func TestBodyIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := conversation(t)
		before := fmt.Sprintf("%#v", msgs)
		raw, err := Encode(&troupe.Request{Model: "m", Messages: msgs}, Options{})
		if err != nil || !utf8.Valid(raw) {
			t.Fatalf("%v, UTF-8: %v", err, utf8.Valid(raw))
		}
		if after := fmt.Sprintf("%#v", msgs); after != before {
			t.Fatal("the request was changed")
		}
		var body struct {
			Stream   bool
			Messages []struct {
				Role       string
				Content    any
				ToolCallID string `json:"tool_call_id"`
				ToolCalls  []struct {
					ID       string
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(raw, &body); err != nil || !body.Stream {
			t.Fatalf("%v: %s", err, raw)
		}
		var open []string
		for i, m := range body.Messages {
			if m.Role == "tool" {
				if len(open) == 0 || m.ToolCallID != open[0] || m.Content == "" {
					t.Fatalf("message %d: result of %s, open are %v", i, m.ToolCallID, open)
				}
				open = slices.Delete(open, 0, 1)
				continue
			}
			if len(open) > 0 {
				t.Fatalf("message %d: no result for %v", i, open)
			}
			if m.Content == "" || m.Content == nil && len(m.ToolCalls) == 0 {
				t.Fatalf("message %d is empty", i)
			}
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
				if !json.Valid([]byte(c.Function.Arguments)) {
					t.Fatalf("arguments %q", c.Function.Arguments)
				}
			}
		}
		if len(open) > 0 {
			t.Fatalf("no result for %v", open)
		}
	})
}
