package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
)

// conversation draws a conversation as a run makes it: turns of the user and of
// the assistant, each call answered at the beginning of the next message.
func conversation(t *rapid.T) []troupe.Message {
	var msgs []troupe.Message
	text := rapid.StringMatching(`[a-z<>&"é\n ]{0,12}`)
	id := 0
	msgs = append(msgs, troupe.Say(troupe.User, "start"))
	for range rapid.IntRange(0, 8).Draw(t, "turns") {
		var reply, answer troupe.Message
		reply.Role, answer.Role = troupe.Assistant, troupe.User
		for range rapid.IntRange(0, 4).Draw(t, "blocks") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				reply.Content = append(reply.Content, troupe.Text(text.Draw(t, "text")))
			case 1:
				reply.Content = append(reply.Content, troupe.Thinking{Text: text.Draw(t, "thought"), Signature: "s", Provider: rapid.SampledFrom([]string{"anthropic", "openai/reasoning"}).Draw(t, "provider")})
			case 2:
				reply.Content = append(reply.Content, troupe.Opaque{Provider: rapid.SampledFrom([]string{"anthropic", "x"}).Draw(t, "provider"), JSON: `{"type":"redacted_thinking", "data":"\u003c"}`})
			default:
				id++
				u := troupe.ToolUse{ID: fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"t_", "fn.x:", "ü "}).Draw(t, "form"), id), Name: "Bash", Input: json.RawMessage(`{"a":"` + "<" + `"}`)}
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

func withoutMarks(b []byte) []byte { return bytes.ReplaceAll(b, []byte(mark), nil) }

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
		if n := bytes.Count(whole, []byte(mark)); n > 4 {
			t.Fatalf("%d marks", n)
		}
		for n := 1; n < len(msgs); n += 2 { // requests are sent after a message of the user
			req.Messages = msgs[:n]
			part, err := Encode(&req, Options{})
			if err != nil {
				t.Fatal(err)
			}
			shorter := bytes.TrimSuffix(withoutMarks(part), []byte("]}]}"))
			if !bytes.HasPrefix(withoutMarks(whole), shorter) {
				t.Fatalf("%d messages are no prefix of %d:\n%s\n%s", n, len(msgs), shorter, withoutMarks(whole))
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
				Role    string
				Content []struct {
					Type, ID, Text string
					ToolUseID      string `json:"tool_use_id"`
					IsError        bool   `json:"is_error"`
					Content        []struct{ Type string }
				}
			}
		}
		if err := json.Unmarshal(raw, &body); err != nil || !body.Stream {
			t.Fatalf("%v: %s", err, raw)
		}
		var open []string
		for i, m := range body.Messages {
			if i%2 == 0 != (m.Role == "user") || len(m.Content) == 0 {
				t.Fatalf("message %d: role %s, %d blocks", i, m.Role, len(m.Content))
			}
			var answered, uses []string
			for j, c := range m.Content {
				switch c.Type {
				case "text":
					if strings.TrimSpace(c.Text) == "" {
						t.Fatal("a blank text")
					}
				case "tool_use":
					uses = append(uses, c.ID)
				case "tool_result":
					if j != len(answered) {
						t.Fatal("a result after something else")
					}
					answered = append(answered, c.ToolUseID)
					for _, in := range c.Content {
						if c.IsError && in.Type != "text" {
							t.Fatalf("a failed result holds %s", in.Type)
						}
					}
				case "thinking", "redacted_thinking":
					if j == len(m.Content)-1 {
						t.Fatal("a message ends with reasoning")
					}
				}
			}
			if !slices.Equal(open, answered) {
				t.Fatalf("calls %v, results %v", open, answered)
			}
			open = uses
		}
	})
}
