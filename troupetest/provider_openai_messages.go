package troupetest

import (
	"fmt"
	"slices"
	"strings"
)

// eachMessage returns the first complaint about a message.
func eachMessage(b *body, check func(object) string) string {
	return first(messages(b), func(i int, m object) string {
		if complaint := check(m); complaint != "" {
			return fmt.Sprintf("messages.[%d].%s", i, complaint)
		}
		return ""
	})
}

func openaiMessages(b *body) string {
	if len(messages(b)) == 0 {
		return "Invalid 'messages': empty array. Expected an array with minimum length 1."
	}
	return first(list(b.top, "messages"), func(i int, m any) string {
		if _, ok := m.(object); !ok {
			return fmt.Sprintf("Invalid type for 'messages[%d]': expected an object.", i)
		}
		return ""
	})
}

func openaiRoles(b *body) string {
	return eachMessage(b, func(m object) string {
		if !slices.Contains(fields("system developer user assistant tool"), text(m, "role")) {
			return fmt.Sprintf("role: Invalid value: %v", m["role"])
		}
		return ""
	})
}

func messageFields(b *body) string {
	return eachMessage(b, func(m object) string {
		switch text(m, "role") {
		case "assistant":
			optional := append(openaiReasoning(), fields("content name refusal tool_calls")...)
			return shape{fields("role"), optional}.fits("", m)
		case "tool":
			return shape{required: fields("role content tool_call_id")}.fits("", m)
		}
		return shape{fields("role content"), fields("name")}.fits("", m)
	})
}

func isSystem(m object) bool { return text(m, "role") == "system" || text(m, "role") == "developer" }

func systemFirst(b *body) string {
	begun := false
	return eachMessage(b, func(m object) string {
		if isSystem(m) && begun {
			return "role: System message must be at the beginning."
		}
		begun = begun || !isSystem(m)
		return ""
	})
}

func openaiFirst(b *body) string {
	rest := slices.DeleteFunc(messages(b), isSystem)
	if len(rest) == 0 || text(rest[0], "role") != "user" {
		return "messages: the first message after the system message must be of role 'user'"
	}
	return ""
}

func openaiContent(b *body) string {
	return eachMessage(b, func(m object) string {
		switch m["content"].(type) {
		case string, []any:
			return ""
		case nil:
			if text(m, "role") == "assistant" && m["tool_calls"] != nil {
				return ""
			}
		}
		return "content: expected a string or an array of parts"
	})
}

// parts returns the parts of a message whose content is a list.
func parts(m object) []object { return objects(list(m, "content")) }

func openaiPartTypes(b *body) string {
	return eachMessage(b, func(m object) string {
		return first(parts(m), func(i int, part object) string {
			at := fmt.Sprintf("content[%d].", i)
			switch kind := text(part, "type"); {
			case kind == "text":
				return shape{required: fields("type text")}.fits(at, part)
			case kind == "image_url" && text(m, "role") == "user":
				return shape{required: fields("type image_url")}.fits(at, part)
			default:
				return fmt.Sprintf("%stype: Invalid value %q for a message of role %q", at, kind, text(m, "role"))
			}
		})
	})
}

// openaiEmptyText lets a tool have no output.
func openaiEmptyText(b *body) string {
	return eachMessage(b, func(m object) string {
		s, isText := m["content"].(string)
		switch {
		case text(m, "role") == "tool":
			return ""
		case isText && strings.TrimSpace(s) == "" && m["tool_calls"] == nil:
			return "content: must not be empty"
		case m["content"] != nil && !isText && len(parts(m)) == 0:
			return "content: empty array. Expected an array with minimum length 1."
		}
		return first(parts(m), func(i int, part object) string {
			if text(part, "type") == "text" && strings.TrimSpace(text(part, "text")) == "" {
				return fmt.Sprintf("content[%d].text: must not be empty", i)
			}
			return ""
		})
	})
}

func openaiImages(b *body) string {
	return eachMessage(b, func(m object) string {
		return first(parts(m), func(i int, part object) string {
			if text(part, "type") != "image_url" {
				return ""
			}
			at := fmt.Sprintf("content[%d].image_url", i)
			image, _ := part["image_url"].(object)
			if complaint := (shape{fields("url"), fields("detail")}).fits(at+".", image); complaint != "" {
				return complaint
			}
			url := text(image, "url")
			if strings.HasPrefix(url, "https://") {
				return ""
			}
			media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
			if !ok || !strings.HasPrefix(url, "data:") {
				return at + ".url: expected an https or a data URL"
			}
			if complaint := imageData(media, data); complaint != "" {
				return at + ".url: " + complaint
			}
			return ""
		})
	})
}

// calls returns the tool calls of a message.
func calls(m object) []object { return objects(list(m, "tool_calls")) }

// eachCall returns the first complaint about a tool call.
func eachCall(b *body, check func(object) string) string {
	return eachMessage(b, func(m object) string {
		return first(calls(m), func(i int, call object) string {
			if complaint := check(call); complaint != "" {
				return fmt.Sprintf("tool_calls[%d].%s", i, complaint)
			}
			return ""
		})
	})
}

func toolCalls(b *body) string {
	complaint := eachMessage(b, func(m object) string {
		if v, ok := m["tool_calls"]; ok && len(calls(m)) == 0 {
			return fmt.Sprintf("tool_calls: expected an array with minimum length 1, not %v", v)
		}
		return ""
	})
	if complaint != "" {
		return complaint
	}
	return eachCall(b, func(call object) string {
		if text(call, "type") != "function" {
			return "type: must be 'function'"
		}
		if complaint := (shape{required: fields("id type function")}).fits("", call); complaint != "" {
			return complaint
		}
		return shape{required: fields("name arguments")}.fits("function.", functionOf(call))
	})
}

func openaiIDs(b *body) string {
	return eachCall(b, func(call object) string {
		if text(call, "id") == "" {
			return "id: must be a string that is not empty"
		}
		return ""
	})
}

func openaiIDsUnique(b *body) string {
	seen := map[string]bool{}
	return eachCall(b, func(call object) string {
		id := text(call, "id")
		if seen[id] {
			return fmt.Sprintf("id: duplicate tool call id %q", id)
		}
		seen[id] = true
		return ""
	})
}

func openaiCalledNames(b *body) string {
	return eachCall(b, func(call object) string {
		if !isName(text(functionOf(call), "name"), 64) {
			return "function.name: expected a string that matches '^[a-zA-Z0-9_-]{1,64}$'"
		}
		return ""
	})
}

func openaiArguments(b *body) string {
	return eachCall(b, func(call object) string {
		if decodeObject([]byte(text(functionOf(call), "arguments"))) == nil {
			return "function.arguments: expected a string that is a JSON object"
		}
		return ""
	})
}

// answers returns the tool messages directly after message i.
func answers(all []object, i int) []object {
	end := i + 1
	for end < len(all) && text(all[end], "role") == "tool" {
		end++
	}
	return all[i+1 : end]
}

func openaiResultsCalled(b *body) string {
	var open []string
	return eachMessage(b, func(m object) string {
		if text(m, "role") != "tool" {
			open = ids(calls(m), "id")
			return ""
		}
		if id := text(m, "tool_call_id"); !slices.Contains(open, id) {
			return fmt.Sprintf("tool_call_id: %q is not a call of the preceding message with 'tool_calls'", id)
		}
		return ""
	})
}

func openaiOneResult(b *body) string {
	all := messages(b)
	return first(all, func(i int, _ object) string {
		seen := map[string]bool{}
		return first(ids(answers(all, i), "tool_call_id"), func(j int, id string) string {
			if seen[id] {
				return fmt.Sprintf("messages.[%d].tool_call_id: second result for %q", i+1+j, id)
			}
			seen[id] = true
			return ""
		})
	})
}

func openaiCallsAnswered(b *body) string {
	all := messages(b)
	return first(all, func(i int, m object) string {
		given := ids(answers(all, i), "tool_call_id")
		missing := slices.DeleteFunc(ids(calls(m), "id"), func(id string) bool { return slices.Contains(given, id) })
		if len(missing) > 0 {
			return fmt.Sprintf("messages.[%d]: An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. Without one: %s",
				i, strings.Join(missing, ", "))
		}
		return ""
	})
}

func reasoningUnchanged(b *body) string {
	return eachMessage(b, func(m object) string {
		return first(openaiReasoning(), func(_ int, name string) string {
			if v, ok := m[name]; ok && !b.memory.reasoned(reasoningText(v)) {
				return name + ": is not what a model said"
			}
			return ""
		})
	})
}
