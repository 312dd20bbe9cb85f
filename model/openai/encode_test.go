package openai

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
	const head = `{"model":"m","stream":true,"stream_options":{"include_usage":true}`
	const picture = `{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}`
	image := troupe.Image{Media: "image/png", Data: "QQ=="}
	use := troupe.ToolUse{ID: "c1", Name: "Bash", Input: json.RawMessage(`{"b":"<x>","a":1}`)}
	const used = `{"id":"c1","type":"function","function":{"name":"Bash","arguments":"{\"b\":\"<x>\",\"a\":1}"}}`
	hi := say(troupe.User, troupe.Text("hi"))
	const hello = `{"role":"user","content":"hi"}`
	for _, tt := range []struct {
		name    string
		req     troupe.Request
		options Options
		want    string // the end of the body
	}{
		{"least", troupe.Request{Model: "m", Messages: []troupe.Message{hi}}, Options{}, head + `,"messages":[` + hello + `]}`},
		{"most", troupe.Request{Model: "m", System: "s & <t>", MaxTokens: 9, Effort: "high", Messages: []troupe.Message{hi},
			Tools: []troupe.ToolSpec{{Name: "B", Description: "d", Schema: json.RawMessage(`{"type": "object"}`)}, {Name: "A", Schema: json.RawMessage(`{}`)}}}, Options{},
			head + `,"max_completion_tokens":9,"reasoning_effort":"high","tools":[{"type":"function","function":{"name":"B","description":"d","parameters":{"type":"object"}}},{"type":"function","function":{"name":"A","description":"","parameters":{}}}],` +
				`"messages":[{"role":"system","content":"s & <t>"},` + hello + `]}`},
		{"another server", troupe.Request{Model: "m", MaxTokens: 9, Effort: "9000", Messages: []troupe.Message{hi}}, Options{Provider: "ollama"},
			head + `,"max_tokens":9,"reasoning_effort":"medium","messages":[` + hello + `]}`},
		{"calls and results", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.Text("one"), use, troupe.Text("two")),
			say(troupe.User, troupe.ToolResult{ID: "c1", Content: troupe.Blocks{troupe.Text("a"), troupe.Text("b")}}, troupe.Text("note"))}}, Options{},
			hello + `,{"role":"assistant","content":"one\n\ntwo","tool_calls":[` + used + `]},{"role":"tool","tool_call_id":"c1","content":"a\n\nb"},{"role":"user","content":"note"}]}`},
		{"call alone, failed result, no output", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, use, troupe.ToolUse{ID: "c2", Name: "B"}),
			say(troupe.User, troupe.ToolResult{ID: "c1", IsError: true, Content: troupe.Blocks{troupe.Text("no")}}, troupe.ToolResult{ID: "c2"})}}, Options{},
			hello + `,{"role":"assistant","content":null,"tool_calls":[` + used + `,{"id":"c2","type":"function","function":{"name":"B","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":"Error: no"},{"role":"tool","tool_call_id":"c2","content":"(no output)"}]}`},
		{"pictures follow all results", troupe.Request{Messages: []troupe.Message{say(troupe.User,
			troupe.ToolResult{ID: "c1", Content: troupe.Blocks{troupe.Text("a"), image}}, troupe.ToolResult{ID: "c2", Content: troupe.Blocks{image}}, troupe.Text("note"))}}, Options{},
			`[{"role":"tool","tool_call_id":"c1","content":"a"},{"role":"tool","tool_call_id":"c2","content":"(see the image that follows)"},{"role":"user","content":[` +
				`{"type":"text","text":"Image in the result of call c1:"},` + picture + `,{"type":"text","text":"Image in the result of call c2:"},` + picture + `,{"type":"text","text":"note"}]}]}`},
		{"picture of the user", troupe.Request{Messages: []troupe.Message{say(troupe.User, troupe.Text("see"), image)}}, Options{},
			`[{"role":"user","content":[{"type":"text","text":"see"},` + picture + `]}]}`},
		{"reasoning under its name", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.Thinking{Text: "hm", Provider: "deepseek/reasoning_content"}, troupe.Text("yes"))}}, Options{Provider: "deepseek"},
			`,{"role":"assistant","content":"yes","reasoning_content":"hm"}]}`},
		{"details byte for byte, and not the text beside them", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.Opaque{Provider: "openrouter/reasoning_details", JSON: `[ {"a":"\u003c"} ]`},
			troupe.Thinking{Text: "hm", Provider: "openrouter/reasoning"}, troupe.Text("yes"))}}, Options{Provider: "openrouter"},
			`,{"role":"assistant","content":"yes","reasoning_details":[ {"a":"\u003c"} ]}]}`},
		{"reasoning of others, or alone, is left out", troupe.Request{Messages: []troupe.Message{hi,
			say(troupe.Assistant, troupe.Thinking{Text: "x", Provider: "openai/reasoning"}),
			say(troupe.Assistant, troupe.Thinking{Text: "x", Signature: "s", Provider: "anthropic"}, troupe.Opaque{Provider: "anthropic", JSON: `{}`}, troupe.Opaque{Provider: "openai/reasoning_details", JSON: `[`}, troupe.Text("yes"))}}, Options{},
			hello + `,{"role":"assistant","content":"yes"}]}`},
		{"blank texts", troupe.Request{Messages: []troupe.Message{say(troupe.User, troupe.Text(" ")), say(troupe.Assistant, troupe.Text("\n"), use), say(troupe.User, troupe.Text(""), image)}}, Options{},
			`"messages":[{"role":"assistant","content":null,"tool_calls":[` + used + `]},{"role":"user","content":[` + picture + `]}]}`},
		{"ids", troupe.Request{Messages: []troupe.Message{hi, say(troupe.Assistant, troupe.ToolUse{ID: "functions.Bash:0", Name: "B"}, troupe.ToolUse{ID: strings.Repeat("x", 41), Name: "B"})}}, Options{},
			`[{"id":"functions.Bash:0","type":"function","function":{"name":"B","arguments":"{}"}},{"id":"call_3164596df4fdd018b2c567ec","type":"function","function":{"name":"B","arguments":"{}"}}]}]}`},
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
