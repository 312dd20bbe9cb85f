package troupetest

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

func messages(b *body) []object { return objects(list(b.top, "messages")) }

// block is a block of a message, or of a tool result in one.
type block struct {
	object
	at      string
	role    string
	message int
	nested  bool
}

func (b block) kind() string { return text(b.object, "type") }

// blocks yields the blocks of all messages in order, and those of a tool
// result after it. Content that is a string has none.
func blocks(b *body) iter.Seq[block] {
	return func(yield func(block) bool) {
		for i, m := range messages(b) {
			for j, o := range objects(list(m, "content")) {
				out := block{o, fmt.Sprintf("messages.%d.content.%d", i, j), text(m, "role"), i, false}
				if !yield(out) {
					return
				}
				if out.kind() != "tool_result" {
					continue
				}
				for k, inner := range objects(list(o, "content")) {
					at := fmt.Sprintf("%s.tool_result.content.%d", out.at, k)
					if !yield(block{inner, at, out.role, i, true}) {
						return
					}
				}
			}
		}
	}
}

// eachBlock returns the first complaint about a block.
func eachBlock(b *body, check func(block) string) string {
	for block := range blocks(b) {
		if complaint := check(block); complaint != "" {
			return block.at + complaint
		}
	}
	return ""
}

// ofKind returns the blocks of one kind of a message.
func ofKind(m object, kind string) []object {
	return slices.DeleteFunc(objects(list(m, "content")), func(o object) bool { return text(o, "type") != kind })
}

func anthropicMessages(b *body) string {
	if len(messages(b)) == 0 {
		return "messages: at least one message is required"
	}
	return first(messages(b), func(i int, m object) string {
		return shape{required: fields("role content")}.fits(fmt.Sprintf("messages.%d.", i), m)
	})
}

func anthropicRoles(b *body) string {
	return first(messages(b), func(i int, m object) string {
		if role := text(m, "role"); role != "user" && role != "assistant" {
			return fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant', not %q", i, role)
		}
		return ""
	})
}

func firstIsUser(b *body) string {
	if text(messages(b)[0], "role") != "user" {
		return "messages: first message must use the \"user\" role"
	}
	return ""
}

func anthropicContent(b *body) string {
	return first(messages(b), func(i int, m object) string {
		switch v := m["content"].(type) {
		case string:
			return ""
		case []any:
			return first(v, func(j int, one any) string {
				if _, ok := one.(object); !ok {
					return fmt.Sprintf("messages.%d.content.%d: Input should be an object", i, j)
				}
				return ""
			})
		}
		return fmt.Sprintf("messages.%d.content: Input should be a string or a valid list", i)
	})
}

// anthropicEmptyMessages: the service lets a final assistant message be empty,
// but nobody has a reason to send one.
func anthropicEmptyMessages(b *body) string {
	return first(messages(b), func(i int, m object) string {
		if text(m, "content") == "" && len(list(m, "content")) == 0 {
			return fmt.Sprintf("messages.%d: all messages must have non-empty content", i)
		}
		return ""
	})
}

func blockTypes(b *body) string {
	return eachBlock(b, func(block block) string {
		allowed := "text image tool_result document"
		switch {
		case block.nested:
			allowed = "text image document"
		case block.role == "assistant":
			allowed = "text thinking redacted_thinking tool_use"
		}
		if !slices.Contains(fields(allowed), block.kind()) {
			return fmt.Sprintf(": Input tag %q found using 'type' does not match any of: %s", block.kind(), allowed)
		}
		return ""
	})
}

func anthropicBlockShape(kind string) shape {
	switch kind {
	case "text":
		return shape{fields("type text"), fields("cache_control citations")}
	case "image":
		return shape{fields("type source"), fields("cache_control")}
	case "document":
		return shape{fields("type source"), fields("cache_control title context citations")}
	case "thinking":
		return shape{required: fields("type thinking signature")}
	case "redacted_thinking":
		return shape{required: fields("type data")}
	case "tool_use":
		return shape{fields("type id name input"), fields("cache_control caller")}
	case "tool_result":
		return shape{fields("type tool_use_id"), fields("content is_error cache_control")}
	}
	return shape{}
}

func blockFields(b *body) string {
	return eachBlock(b, func(block block) string {
		if content, ok := block.object["content"]; ok && list(block.object, "content") == nil {
			if _, ok := content.(string); !ok {
				return ".tool_result.content: Input should be a string or a valid list"
			}
		}
		return anthropicBlockShape(block.kind()).fits("."+block.kind()+".", block.object)
	})
}

func emptyText(b *body) string {
	complaint := first(messages(b), func(i int, m object) string {
		if s, ok := m["content"].(string); ok && strings.TrimSpace(s) == "" {
			return fmt.Sprintf("messages.%d: text content blocks must contain non-whitespace text", i)
		}
		return ""
	})
	if complaint != "" {
		return complaint
	}
	return eachBlock(b, func(block block) string {
		if block.kind() == "text" && strings.TrimSpace(text(block.object, "text")) == "" {
			return ".text: text content blocks must contain non-whitespace text"
		}
		return ""
	})
}

func anthropicIDs(b *body) string {
	return eachBlock(b, func(block block) string {
		for _, key := range []string{"id", "tool_use_id"} {
			if id, ok := block.object[key]; ok && !isName(text(block.object, key), 0) {
				return fmt.Sprintf(".%s.%s: %v: String should match pattern '^[a-zA-Z0-9_-]+$'", block.kind(), key, id)
			}
		}
		return ""
	})
}

func anthropicCalledNames(b *body) string {
	return eachBlock(b, func(block block) string {
		if block.kind() == "tool_use" && !isName(text(block.object, "name"), 128) {
			return ".tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
		}
		return ""
	})
}

func toolInputs(b *body) string {
	return eachBlock(b, func(block block) string {
		if _, ok := block.object["input"].(object); block.kind() == "tool_use" && !ok {
			return ".tool_use.input: Input should be an object"
		}
		return ""
	})
}

func anthropicIDsUnique(b *body) string {
	seen := map[string]bool{}
	return eachBlock(b, func(block block) string {
		if block.kind() != "tool_use" {
			return ""
		}
		id := text(block.object, "id")
		if seen[id] {
			return ": `tool_use` ids must be unique"
		}
		seen[id] = true
		return ""
	})
}

func resultsFirst(b *body) string {
	return first(messages(b), func(i int, m object) string {
		other := false
		return first(objects(list(m, "content")), func(j int, o object) string {
			if text(o, "type") != "tool_result" {
				other = true
			} else if other {
				return fmt.Sprintf("messages.%d.content.%d: `tool_result` blocks must come before all other content of their message", i, j)
			}
			return ""
		})
	})
}

func ids(blocks []object, key string) []string {
	var out []string
	for _, o := range blocks {
		out = append(out, text(o, key))
	}
	return out
}

func callsAnswered(b *body) string {
	all := messages(b)
	return first(all, func(i int, m object) string {
		var results []string
		if i+1 < len(all) {
			results = ids(ofKind(all[i+1], "tool_result"), "tool_use_id")
		}
		missing := slices.DeleteFunc(ids(ofKind(m, "tool_use"), "id"), func(id string) bool { return slices.Contains(results, id) })
		if len(missing) > 0 {
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i, strings.Join(missing, ", "))
		}
		return ""
	})
}

func resultsCalled(b *body) string {
	all := messages(b)
	return first(all, func(i int, m object) string {
		var calls []string
		if i > 0 {
			calls = ids(ofKind(all[i-1], "tool_use"), "id")
		}
		return first(ids(ofKind(m, "tool_result"), "tool_use_id"), func(j int, id string) string {
			if !slices.Contains(calls, id) {
				return fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s", i, j, id)
			}
			return ""
		})
	})
}

func oneResult(b *body) string {
	return first(messages(b), func(i int, m object) string {
		seen := map[string]bool{}
		return first(ids(ofKind(m, "tool_result"), "tool_use_id"), func(j int, id string) string {
			if seen[id] {
				return fmt.Sprintf("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i, j, id)
			}
			seen[id] = true
			return ""
		})
	})
}

func finalWhitespace(b *body) string {
	last := messages(b)[len(messages(b))-1]
	if text(last, "role") != "assistant" {
		return ""
	}
	final := text(last, "content")
	if blocks := objects(list(last, "content")); len(blocks) > 0 {
		final = text(blocks[len(blocks)-1], "text")
	}
	if strings.TrimRight(final, " \t\r\n") != final {
		return "messages: final assistant content cannot end with trailing whitespace"
	}
	return ""
}

func prefillWithThinking(b *body) string {
	all := messages(b)
	if thinks(b) && text(all[len(all)-1], "role") == "assistant" {
		return "messages: the conversation must end with a user message when thinking is enabled"
	}
	return ""
}

const mustNotChange = ": `thinking` or `redacted_thinking` blocks in an assistant message cannot be modified"

func thinkingSigned(b *body) string {
	return eachBlock(b, func(block block) string {
		if block.kind() == "thinking" && text(block.object, "signature") == "" {
			return ".thinking.signature: Field required"
		}
		return ""
	})
}

func thinkingUnchanged(b *body) string {
	return eachBlock(b, func(block block) string {
		if block.kind() != "thinking" {
			return ""
		}
		made, ok := b.memory.origin(text(block.object, "signature"))
		if !ok {
			return ": Invalid `signature` in `thinking` block"
		}
		if made.text != text(block.object, "thinking") {
			return mustNotChange
		}
		return ""
	})
}

func redactedUnchanged(b *body) string {
	return eachBlock(b, func(block block) string {
		if block.kind() != "redacted_thinking" {
			return ""
		}
		if _, ok := b.memory.origin(text(block.object, "data")); !ok {
			return ": Invalid `data` in `redacted_thinking` block"
		}
		return ""
	})
}

// reasoning returns what identifies the reasoning of a message, in order.
func reasoning(m object) []string {
	var out []string
	for _, o := range objects(list(m, "content")) {
		switch text(o, "type") {
		case "thinking":
			out = append(out, text(o, "signature"))
		case "redacted_thinking":
			out = append(out, text(o, "data"))
		}
	}
	return out
}

func thinkingOrder(b *body) string {
	return first(messages(b), func(i int, m object) string {
		latest := map[int]int{} // position by message of origin
		return first(reasoning(m), func(_ int, signature string) string {
			made, _ := b.memory.origin(signature)
			if before, ok := latest[made.message]; ok && made.position <= before {
				return fmt.Sprintf("messages.%d%s", i, mustNotChange)
			}
			latest[made.message] = made.position
			return ""
		})
	})
}

// thinkingKept: the latest turn of the assistant, if it calls tools, has all
// the reasoning that it was made with.
func thinkingKept(b *body) string {
	for i, m := range slices.Backward(messages(b)) {
		if text(m, "role") != "assistant" {
			continue
		}
		leads := false
		if blocks := objects(list(m, "content")); len(blocks) > 0 {
			leads = strings.HasSuffix(text(blocks[0], "type"), "thinking")
		}
		return first(ids(ofKind(m, "tool_use"), "id"), func(_ int, id string) string {
			if !b.memory.keeps(id, reasoning(m), leads) {
				return fmt.Sprintf("messages.%d%s", i, mustNotChange)
			}
			return ""
		})
	}
	return ""
}
