package troupetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// rules returns what the Chat Completions API checks, and what strict
// compatible servers check besides: the system message comes first and a user
// message next, texts are not empty, arguments are JSON objects, ids are
// unique, reasoning is what a model said.
func (openaiWire) rules() []rule {
	return slices.Concat(bodyRules(), []rule{
		{name: "key", check: openaiKey, status: http.StatusUnauthorized},
		{name: "required fields", check: openaiRequired},
		{name: "top-level fields", check: openaiTop},
		{name: "model", check: modelKnown, status: http.StatusNotFound},
		{name: "max_tokens", check: openaiMaxTokens},
		{name: "stream_options", check: streamOptions},
		{name: "tools", check: openaiTools},
		{name: "tool names", check: openaiToolNames},
		{name: "tool names unique", check: openaiToolsUnique},
		{name: "tool schemas", check: openaiSchemas},
		{name: "tool_choice", check: openaiToolChoice},
		{name: "reasoning_effort", check: reasoningEffort},
		{name: "messages", check: openaiMessages},
		{name: "roles", check: openaiRoles},
		{name: "message fields", check: messageFields},
		{name: "system first", check: systemFirst},
		{name: "first message", check: openaiFirst},
		{name: "content", check: openaiContent},
		{name: "parts", check: openaiPartTypes},
		{name: "empty text", check: openaiEmptyText},
		{name: "images", check: openaiImages},
		{name: "tool_calls", check: toolCalls},
		{name: "tool ids", check: openaiIDs},
		{name: "tool ids unique", check: openaiIDsUnique},
		{name: "called names", check: openaiCalledNames},
		{name: "arguments", check: openaiArguments},
		{name: "results called", check: openaiResultsCalled},
		{name: "one result a call", check: openaiOneResult},
		{name: "calls answered", check: openaiCallsAnswered},
		{name: "reasoning unchanged", check: reasoningUnchanged},
	})
}

func openaiKey(b *body) string {
	if b.key == "" {
		return ""
	}
	if given, _ := strings.CutPrefix(b.header.Get("Authorization"), "Bearer "); given != b.key {
		return "Incorrect API key provided"
	}
	return ""
}

func openaiTopShape() shape {
	return shape{fields("model messages"), fields(`stream stream_options tools tool_choice parallel_tool_calls
		max_tokens max_completion_tokens reasoning_effort temperature top_p n stop seed user metadata store
		response_format service_tier prompt_cache_key prompt_cache_retention safety_identifier verbosity
		frequency_penalty presence_penalty logit_bias logprobs top_logprobs`)}
}

func openaiRequired(b *body) string { return openaiTopShape().missing("", b.top) }

func openaiTop(b *body) string { return openaiTopShape().fits("", b.top) }

func openaiMaxTokens(b *body) string {
	return first(fields("max_tokens max_completion_tokens"), func(_ int, key string) string {
		if v, ok := b.top[key]; ok && !positive(v) {
			return fmt.Sprintf("Invalid '%s': integer below minimum value. Expected a value >= 1.", key)
		}
		return ""
	})
}

func streamOptions(b *body) string {
	v, ok := b.top["stream_options"]
	if !ok {
		return ""
	}
	if b.top["stream"] != true {
		return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	o, isObject := v.(object)
	if !isObject {
		return "Invalid type for 'stream_options': expected an object."
	}
	return shape{nil, fields("include_usage include_obfuscation")}.fits("stream_options.", o)
}

func functionOf(o object) object { f, _ := o["function"].(object); return f }

func openaiTools(b *body) string {
	if _, ok := b.top["tools"]; ok && len(list(b.top, "tools")) == 0 {
		return "Invalid 'tools': empty array. Expected an array with minimum length 1."
	}
	return first(tools(b), func(i int, o object) string {
		at := fmt.Sprintf("tools.%d.", i)
		if text(o, "type") != "function" {
			return at + "type: must be 'function'"
		}
		if complaint := (shape{required: fields("type function")}).fits(at, o); complaint != "" {
			return complaint
		}
		return shape{fields("name"), fields("description parameters strict")}.fits(at+"function.", functionOf(o))
	})
}

func openaiToolNames(b *body) string {
	return first(tools(b), func(i int, o object) string {
		if !isName(text(functionOf(o), "name"), 64) {
			return fmt.Sprintf("Invalid 'tools[%d].function.name': expected a string that matches '^[a-zA-Z0-9_-]{1,64}$'.", i)
		}
		return ""
	})
}

func openaiToolsUnique(b *body) string {
	seen := map[string]bool{}
	return first(tools(b), func(_ int, o object) string {
		name := text(functionOf(o), "name")
		if seen[name] {
			return fmt.Sprintf("Duplicate function name '%s'.", name)
		}
		seen[name] = true
		return ""
	})
}

func openaiSchemas(b *body) string {
	return first(tools(b), func(i int, o object) string {
		parameters, ok := functionOf(o)["parameters"]
		if ok && !isObjectSchema(parameters) {
			return fmt.Sprintf("Invalid schema for function in 'tools[%d]': schema must be of type \"object\".", i)
		}
		return ""
	})
}

func openaiToolChoice(b *body) string {
	for _, key := range fields("tool_choice parallel_tool_calls") {
		if _, ok := b.top[key]; ok && len(tools(b)) == 0 {
			return fmt.Sprintf("'%s' is only allowed when 'tools' are specified.", key)
		}
	}
	switch v := b.top["tool_choice"].(type) {
	case nil:
		return ""
	case string:
		if slices.Contains(fields("none auto required"), v) {
			return ""
		}
	case object:
		if text(v, "type") == "function" && text(functionOf(v), "name") != "" {
			return ""
		}
	}
	return "Invalid value for 'tool_choice'."
}

func reasoningEffort(b *body) string {
	v, ok := b.top["reasoning_effort"]
	if ok && !slices.Contains([]any{"none", "minimal", "low", "medium", "high", "xhigh"}, v) {
		return fmt.Sprintf("Invalid value for 'reasoning_effort': %v", v)
	}
	return ""
}
