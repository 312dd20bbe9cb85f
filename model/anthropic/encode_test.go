package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

func say(role troupe.Role, blocks ...troupe.Block) troupe.Message {
	return troupe.Message{Role: role, Content: blocks}
}

func TestEncode(t *testing.T) {
	const picture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}`
	const hello = `{"role":"user","content":[{"type":"text","text":"hi"` + mark + `}]}`
	image := troupe.Image{Media: "image/png", Data: "QQ=="}
	use := troupe.ToolUse{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"b":"<x>","a":1}`)}
	const used = `{"type":"tool_use","id":"t1","name":"Bash","input":{"b":"<x>","a":1}}`
	hi := say(troupe.User, troupe.Text("hi"))
	for _, tt := range []struct {
		name    string
		req     troupe.Request
		options Options
		want    string // the whole body, or from its messages on
	}{
		{"least", troupe.Request{Model: "m", Messages: []troupe.Message{hi}}, Options{},
			`{"model":"m","max_tokens":8192,"stream":true,"messages":[` + hello + `]}`},
		{"most", troupe.Request{Model: "m", System: "s & <t>", MaxTokens: 9, Effort: "high", Messages: []troupe.Message{hi},
			Tools: []troupe.ToolSpec{{Name: "B", Description: "d", Schema: json.RawMessage("{\"type\": \"object\"}")}, {Name: "A", Schema: json.RawMessage(`{}`)}}}, Options{MaxTokens: 5},
			`{"model":"m","max_tokens":9,"stream":true,"output_config":{"effort":"high"},"tools":[{"name":"B","description":"d","input_schema":{"type":"object"}},{"name":"A","description":"","input_schema":{}}],` +
				`"system":[{"type":"text","text":"s & <t>"` + mark + `}],"messages":[` + hello + `]}`},
		{"tools are marked without a system prompt", troupe.Request{Messages: []troupe.Message{hi}, Tools: []troupe.ToolSpec{{Name: "A", Schema: json.RawMessage(`{}`)}}}, Options{MaxTokens: 5},
			`{"model":"","max_tokens":5,"stream":true,"tools":[{"name":"A","description":"","input_schema":{}` + mark + `}],"messages":[` + hello + `]}`},
		{"budget", troupe.Request{Effort: "4000", Messages: []troupe.Message{hi}}, Options{},
			`{"model":"","max_tokens":8192,"stream":true,"thinking":{"type":"enabled","budget_tokens":4000},"messages":[` + hello + `]}`},
		{"budget over the limit", troupe.Request{Effort: "99000", Messages: []troupe.Message{hi}}, Options{MaxTokens: 2000},
			`{"model":"","max_tokens":2000,"stream":true,"thinking":{"type":"enabled","budget_tokens":1999},"messages":[` + hello + `]}`},
		{"call and results", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.Text("ok"), use),
			say(troupe.User, troupe.ToolResult{ID: "t1", Content: troupe.Blocks{troupe.Text("out"), image}}, troupe.Text("note"))}}, Options{},
			`,"messages":[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"ok"},` + used + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"out"},` + picture + `]},{"type":"text","text":"note"` + mark + `}]}]}`},
		{"failed call with a picture", troupe.Request{Messages: []troupe.Message{say(troupe.User, troupe.ToolResult{ID: "t1", IsError: true, Content: troupe.Blocks{troupe.Text("no"), image}})}}, Options{},
			`,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"}]},` + strings.TrimSuffix(picture, "}") + mark + `}]}]}`},
		{"one role twice; results to the front", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, use), say(troupe.User, troupe.Text("late")), say(troupe.User, troupe.ToolResult{ID: "t1"})}}, Options{},
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"},{"type":"text","text":"late"` + mark + `}]}]}`},
		{"own reasoning unchanged", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.Thinking{Text: "hm <", Signature: "sig", Provider: "anthropic"},
			troupe.Opaque{Provider: "anthropic", JSON: `{ "type":"redacted_thinking",  "data":"\u003c" }`}, troupe.Text("yes"))}}, Options{},
			`,{"role":"assistant","content":[{"type":"thinking","thinking":"hm <","signature":"sig"},{ "type":"redacted_thinking",  "data":"\u003c" },{"type":"text","text":"yes"}]}]}`},
		{"reasoning of others, unsigned or last is left out", troupe.Request{Messages: []troupe.Message{hi,
			say(troupe.Assistant, troupe.Thinking{Text: "x", Provider: "openai/reasoning"}, troupe.Opaque{Provider: "other", JSON: `{}`}, troupe.Opaque{Provider: "anthropic", JSON: `{`}),
			say(troupe.User, troupe.Text("go on")),
			say(troupe.Assistant, troupe.Thinking{Text: "x", Provider: "anthropic"}, troupe.Text("yes"), troupe.Thinking{Text: "x", Signature: "s", Provider: "anthropic"})}}, Options{},
			`"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"go on"` + mark + `}]},{"role":"assistant","content":[{"type":"text","text":"yes"}]}]}`},
		{"another provider of the dialect", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.Thinking{Text: "x", Provider: "kimi"}, troupe.Thinking{Text: "y", Signature: "s", Provider: "anthropic"}, troupe.Text("yes"))}}, Options{Provider: "kimi"},
			`,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":""},{"type":"text","text":"yes"}]}]}`},
		{"odd ids and inputs", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.ToolUse{ID: "functions.Bash:0", Name: "B", Input: json.RawMessage(`[`)}),
			say(troupe.User, troupe.ToolResult{ID: "functions.Bash:0", Content: troupe.Blocks{troupe.Text(" ")}})}}, Options{},
			`,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_a97d15071f75fb2043da80d3","name":"B","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_a97d15071f75fb2043da80d3"` + mark + `}]}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Encode(&tt.req, tt.options)
			if err != nil || !json.Valid(got) {
				t.Fatalf("%v, valid: %v\n%s", err, json.Valid(got), got)
			}
			whole := strings.HasPrefix(tt.want, `{"model"`)
			if whole && string(got) != tt.want || !strings.HasSuffix(string(got), tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestEncodeNamesToolWithBadSchema(t *testing.T) {
	_, err := Encode(&troupe.Request{Tools: []troupe.ToolSpec{{Name: "Odd", Schema: json.RawMessage(`{`)}}}, Options{})
	if err == nil || !strings.Contains(err.Error(), "Odd") {
		t.Errorf("%v", err)
	}
}
