package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
)

// However a conversation grows, the body of its next request is the one that it
// would have if all of it were encoded anew, and begins as the one before as far
// as the draft says.
func TestWhatIsKeptIsWhatWouldBeEncoded(t *testing.T) {
	block := rapid.Custom(func(t *rapid.T) troupe.Block {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return troupe.Thinking{Text: "hm", Signature: "s", Provider: rapid.SampledFrom([]string{"anthropic", "openai/reasoning", "x"}).Draw(t, "provider")}
		case 1:
			return troupe.Image{Media: "image/png", Data: "eA=="}
		}
		return troupe.Text(rapid.SampledFrom([]string{"", " ", "hello", "[", "ü \"<&>\u2028", "}"}).Draw(t, "text"))
	})
	rapid.Check(t, func(t *rapid.T) {
		o, m := Options{}, new(completions)
		req := troupe.Request{Model: "m", System: rapid.SampledFrom([]string{"", "s"}).Draw(t, "system"), Scratch: new(troupe.Scratch),
			Messages: make([]troupe.Message, 0, rapid.SampledFrom([]int{1, 100}).Draw(t, "room"))}
		var before []byte
		var series any
		for i := range rapid.IntRange(1, 30).Draw(t, "messages") {
			next := troupe.Message{Role: rapid.SampledFrom([]troupe.Role{troupe.User, troupe.Assistant}).Draw(t, "role"),
				Content: rapid.SliceOfN(block, 0, 3).Draw(t, "content")}
			req.Messages = append(req.Messages, next)
			if next.Role == troupe.Assistant && rapid.Bool().Draw(t, "calls") {
				id := fmt.Sprint("c", i)
				use := troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.ToolUse{ID: id, Name: "Read", Input: json.RawMessage("{}")}}}
				res := troupe.ToolResult{ID: id, IsError: rapid.Bool().Draw(t, "failed"), Content: rapid.SliceOfN(block, 0, 2).Draw(t, "result")}
				req.Messages = append(req.Messages, use, troupe.Message{Role: troupe.User, Content: troupe.Blocks{res}})
			}
			if rapid.IntRange(0, 2).Draw(t, "sent") == 0 {
				continue
			}
			got, err := encode(&req, o, optional(&req, o.provider(), nil), m)
			if err != nil {
				t.Fatal(err)
			}
			plain := req
			plain.Scratch = nil
			want, err := Encode(&plain, o)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Body(), want) {
				t.Fatalf("kept and encoded differ:\n%s\n%s", got.Body(), want)
			}
			s := got.Sending()
			if s.Series == series && !bytes.Equal(s.Body[:s.Same], before[:s.Same]) {
				t.Fatalf("the first %d bytes are not those of the body before", s.Same)
			}
			before, series = bytes.Clone(s.Body), s.Series
		}
	})
}
