package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/model/anthropic"
	"github.com/troupe-sh/troupe/model/openai"
)

// The estimate is enough for what either protocol writes, and not much more.
func TestSize(t *testing.T) {
	long := strings.Repeat("A line of text as it stands in a file.\n", 500)
	said := func(content ...troupe.Block) troupe.Message {
		return troupe.Message{Role: troupe.Assistant, Content: content}
	}
	req := &troupe.Request{Model: "m", System: long, Tools: []troupe.ToolSpec{{Name: "Read", Description: long, Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []troupe.Message{troupe.Say(troupe.User, long)}}
	for range 20 {
		req.Messages = append(req.Messages,
			said(troupe.Thinking{Text: long, Signature: "s", Provider: "anthropic"}, troupe.Text("Hm."),
				troupe.ToolUse{ID: "toolu_0123456789", Name: "Read", Input: json.RawMessage(`{"file_path":"/a/b"}`)}),
			troupe.Message{Role: troupe.User, Content: troupe.Blocks{troupe.ToolResult{ID: "toolu_0123456789",
				Content: troupe.Blocks{troupe.Text(long), troupe.Image{Media: "image/png", Data: long}}}}})
	}
	body, err := anthropic.Encode(req, anthropic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := openai.Encode(req, openai.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := model.Size(req); n < len(body) || n < len(other) || n > 2*len(body) {
		t.Errorf("Size = %d; the bodies have %d and %d bytes", n, len(body), len(other))
	}
}
