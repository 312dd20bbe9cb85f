package troupetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// rules returns what the Messages API checks, in the order in which a request
// is checked. Each has a request that it accepts and one that it refuses in
// the tests.
func (anthropicWire) rules() []rule {
	return slices.Concat(bodyRules(), []rule{
		{name: "anthropic-version", check: versionHeader},
		{name: "key", check: anthropicKey, status: http.StatusUnauthorized},
		{name: "required fields", check: anthropicRequired},
		{name: "top-level fields", check: anthropicTop},
		{name: "sampling", check: sampling},
		{name: "model", check: modelKnown, status: http.StatusNotFound},
		{name: "max_tokens", check: maxTokens},
		{name: "system", check: anthropicSystem},
		{name: "tools", check: anthropicTools},
		{name: "tool names", check: anthropicToolNames},
		{name: "tool names unique", check: anthropicToolsUnique},
		{name: "tool schemas", check: anthropicSchemas},
		{name: "tool_choice", check: anthropicToolChoice},
		{name: "thinking config", check: thinkingConfig},
		{name: "output_config", check: outputConfig},
		{name: "messages", check: anthropicMessages},
		{name: "roles", check: anthropicRoles},
		{name: "first message", check: firstIsUser},
		{name: "content", check: anthropicContent},
		{name: "empty messages", check: anthropicEmptyMessages},
		{name: "cache shape", check: cacheShape},
		{name: "cache breakpoints", check: cacheBreakpoints},
		{name: "cache on thinking", check: cacheOnThinking},
		{name: "cache on empty text", check: cacheOnEmpty},
		{name: "block types", check: blockTypes},
		{name: "block fields", check: blockFields},
		{name: "empty text", check: emptyText},
		{name: "images", check: anthropicImages},
		{name: "tool ids", check: anthropicIDs},
		{name: "called names", check: anthropicCalledNames},
		{name: "tool inputs", check: toolInputs},
		{name: "tool ids unique", check: anthropicIDsUnique},
		{name: "results first", check: resultsFirst},
		{name: "calls answered", check: callsAnswered},
		{name: "results called", check: resultsCalled},
		{name: "one result a call", check: oneResult},
		{name: "final whitespace", check: finalWhitespace},
		{name: "prefill with thinking", check: prefillWithThinking},
		{name: "thinking signature", check: thinkingSigned},
		{name: "thinking unchanged", check: thinkingUnchanged},
		{name: "redacted unchanged", check: redactedUnchanged},
		{name: "thinking order", check: thinkingOrder},
		{name: "thinking kept", check: thinkingKept},
	})
}

// The versions of the API that are served. The newer one has no sampling
// parameters: https://platform.claude.com/docs/en/api/migration-2026-10-21.
const (
	versionSampled = "2023-06-01"
	versionPlain   = "2026-10-21"
)

func versionHeader(b *body) string {
	if v := b.header.Get("Anthropic-Version"); v != versionSampled && v != versionPlain {
		return fmt.Sprintf("anthropic-version: header is required and must be a known version, not %q", v)
	}
	return ""
}

func sampling(b *body) string {
	if b.header.Get("Anthropic-Version") == versionSampled {
		return ""
	}
	return first(fields("temperature top_p top_k"), func(_ int, key string) string {
		if _, ok := b.top[key]; ok {
			return key + ": Extra inputs are not permitted in this version"
		}
		return ""
	})
}

func anthropicKey(b *body) string {
	bearer, _ := strings.CutPrefix(b.header.Get("Authorization"), "Bearer ")
	given := max(b.header.Get("X-Api-Key"), bearer)
	if given == "" {
		return "x-api-key header is required"
	}
	if b.key != "" && given != b.key {
		return "invalid x-api-key"
	}
	return ""
}

func anthropicTopShape() shape {
	return shape{fields("model max_tokens messages"), fields(`system tools tool_choice stream thinking output_config
		metadata stop_sequences temperature top_k top_p service_tier cache_control container inference_geo`)}
}

func anthropicRequired(b *body) string { return anthropicTopShape().missing("", b.top) }

func anthropicTop(b *body) string { return anthropicTopShape().fits("", b.top) }

// modelKnown is for both dialects.
func modelKnown(b *body) string {
	name := text(b.top, "model")
	if name == "" || b.models != nil && !slices.Contains(b.models, name) {
		return "model: " + name
	}
	return ""
}

func positive(v any) bool {
	n, ok := v.(json.Number)
	i, err := n.Int64()
	return ok && err == nil && i > 0
}

func maxTokens(b *body) string {
	if !positive(b.top["max_tokens"]) {
		return "max_tokens: Input should be greater than or equal to 1"
	}
	return ""
}

func anthropicSystem(b *body) string {
	switch v := b.top["system"].(type) {
	case nil, string:
		return ""
	case []any:
		return first(objects(v), func(i int, o object) string {
			at := fmt.Sprintf("system.%d.", i)
			if text(o, "type") != "text" {
				return at + "type: Input should be 'text'"
			}
			if strings.TrimSpace(text(o, "text")) == "" {
				return at + "text: text content blocks must be non-empty"
			}
			return anthropicBlockShape("text").fits(at, o)
		})
	}
	return "system: Input should be a valid list"
}

func tools(b *body) []object { return objects(list(b.top, "tools")) }

func anthropicTools(b *body) string {
	if v, ok := b.top["tools"]; ok && list(b.top, "tools") == nil {
		return fmt.Sprintf("tools: Input should be a valid list, not %T", v)
	}
	return first(tools(b), func(i int, o object) string {
		return shape{fields("name input_schema"), fields("description type cache_control strict eager_input_streaming input_examples")}.
			fits(fmt.Sprintf("tools.%d.custom.", i), o)
	})
}

// isName reports whether s is made of the characters of names and ids, and of
// 1 to most of them (0 is no limit).
func isName(s string, most int) bool {
	strange := func(r rune) bool {
		return r > 'z' || !(r >= 'a' || r == '_' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	}
	return s != "" && !strings.ContainsFunc(s, strange) && (most == 0 || len(s) <= most)
}

func anthropicToolNames(b *body) string {
	return first(tools(b), func(i int, o object) string {
		if !isName(text(o, "name"), 128) {
			return fmt.Sprintf("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		}
		return ""
	})
}

func anthropicToolsUnique(b *body) string {
	seen := map[string]bool{}
	return first(tools(b), func(_ int, o object) string {
		if seen[text(o, "name")] {
			return "tools: Tool names must be unique."
		}
		seen[text(o, "name")] = true
		return ""
	})
}

// isObjectSchema reports whether v is a JSON schema of type object.
func isObjectSchema(v any) bool {
	schema, ok := v.(object)
	if !ok || text(schema, "type") != "object" {
		return false
	}
	properties, ok := schema["properties"]
	if !ok {
		return true
	}
	_, ok = properties.(object)
	return ok
}

func anthropicSchemas(b *body) string {
	return first(tools(b), func(i int, o object) string {
		if !isObjectSchema(o["input_schema"]) {
			return fmt.Sprintf("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		return ""
	})
}

func anthropicToolChoice(b *body) string {
	choice, ok := b.top["tool_choice"]
	if !ok {
		return ""
	}
	o, _ := choice.(object)
	kind := text(o, "type")
	if !slices.Contains(fields("auto any tool none"), kind) {
		return "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'"
	}
	if len(tools(b)) == 0 {
		return "tool_choice may only be specified while providing tools"
	}
	if (kind == "any" || kind == "tool") && thinks(b) {
		return "Thinking may not be enabled when tool_choice forces tool use."
	}
	return ""
}

// thinks reports whether the request asks for reasoning.
func thinks(b *body) bool {
	o, _ := b.top["thinking"].(object)
	return slices.Contains(fields("enabled adaptive between_tools"), text(o, "type"))
}

func thinkingConfig(b *body) string {
	v, ok := b.top["thinking"]
	if !ok {
		return ""
	}
	o, _ := v.(object)
	switch text(o, "type") {
	case "adaptive":
		return shape{fields("type"), fields("display")}.fits("thinking.adaptive.", o)
	case "disabled", "between_tools":
		return shape{required: fields("type")}.fits("thinking.", o)
	case "enabled":
		if complaint := (shape{fields("type budget_tokens"), fields("display")}).fits("thinking.enabled.", o); complaint != "" {
			return complaint
		}
		budget, _ := o["budget_tokens"].(json.Number)
		n, err := budget.Int64()
		if err != nil || n < 1024 {
			return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
		}
		most, _ := b.top["max_tokens"].(json.Number)
		if limit, err := most.Int64(); err == nil && n >= limit {
			return "`max_tokens` must be greater than `thinking.budget_tokens`"
		}
		return ""
	}
	return "thinking.type: Input should be 'enabled', 'adaptive', 'between_tools' or 'disabled'"
}

func outputConfig(b *body) string {
	v, ok := b.top["output_config"]
	if !ok {
		return ""
	}
	o, _ := v.(object)
	if effort, ok := o["effort"]; ok && !slices.Contains([]any{"low", "medium", "high", "xhigh", "max"}, effort) {
		return "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"
	}
	return shape{nil, fields("effort format")}.fits("output_config.", o)
}

// mark is a place that has a cache_control, in the order of the prompt.
type mark struct {
	at    string
	owner object
}

func marks(b *body) []mark {
	var out []mark
	add := func(at string, o object) {
		if o["cache_control"] != nil {
			out = append(out, mark{at, o})
		}
	}
	for i, o := range tools(b) {
		add(fmt.Sprintf("tools.%d", i), o)
	}
	for i, o := range objects(list(b.top, "system")) {
		add(fmt.Sprintf("system.%d", i), o)
	}
	for block := range blocks(b) {
		add(block.at, block.object)
	}
	add("request", b.top)
	return out
}

func cacheShape(b *body) string {
	short := false
	return first(marks(b), func(_ int, m mark) string {
		o, _ := m.owner["cache_control"].(object)
		ttl := text(o, "ttl")
		if text(o, "type") != "ephemeral" || !slices.Contains([]string{"", "5m", "1h"}, ttl) {
			return m.at + ".cache_control: Input should be {'type': 'ephemeral'} with ttl '5m' or '1h'"
		}
		if ttl == "1h" && short {
			return m.at + ".cache_control.ttl: a ttl='1h' block must not come after a ttl='5m' block"
		}
		short = short || ttl != "1h"
		return shape{fields("type"), fields("ttl")}.fits(m.at+".cache_control.", o)
	})
}

func cacheBreakpoints(b *body) string {
	if n := len(marks(b)); n > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return ""
}

func cacheOnThinking(b *body) string {
	return first(marks(b), func(_ int, m mark) string {
		if kind := text(m.owner, "type"); strings.HasSuffix(kind, "thinking") {
			return m.at + "." + kind + ".cache_control: Extra inputs are not permitted"
		}
		return ""
	})
}

func cacheOnEmpty(b *body) string {
	return first(marks(b), func(_ int, m mark) string {
		if text(m.owner, "type") == "text" && text(m.owner, "text") == "" {
			return m.at + ": cache_control cannot be set for empty text blocks"
		}
		return ""
	})
}

func anthropicImages(b *body) string {
	for block := range blocks(b) {
		if block.kind() != "image" {
			continue
		}
		source, _ := block.object["source"].(object)
		at := block.at + ".image.source"
		switch text(source, "type") {
		case "url":
			if complaint := (shape{required: fields("type url")}).fits(at+".url.", source); complaint != "" {
				return complaint
			}
		case "base64":
			if complaint := (shape{required: fields("type media_type data")}).fits(at+".base64.", source); complaint != "" {
				return complaint
			}
			if complaint := imageData(text(source, "media_type"), text(source, "data")); complaint != "" {
				return at + ".base64: " + complaint
			}
		default:
			return at + ".type: Input should be 'base64' or 'url'"
		}
	}
	return ""
}

// imageData is for both dialects.
func imageData(media, data string) string {
	if !slices.Contains(fields("image/jpeg image/png image/gif image/webp"), media) {
		return "media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
	}
	if decoded, err := base64.StdEncoding.DecodeString(data); err != nil || len(decoded) == 0 {
		return "data: image data is not valid base64"
	}
	return ""
}
