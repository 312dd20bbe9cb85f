package prefix

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The marks by which a request tells the provider up to where it is to be cached.
// They move and are no part of the prompt. In a text these bytes cannot be: its
// quotes have backslashes.
var markStart, markEnd = []byte(`,"cache_control":{`), []byte(`}`)

// unmarked returns body without its marks.
func unmarked(body []byte) []byte {
	i, n := mark(body)
	if i < 0 {
		return body
	}
	out, rest := make([]byte, 0, len(body)), body
	for ; i >= 0; i, n = mark(rest) {
		out, rest = append(out, rest[:i]...), rest[i+n:]
	}
	return append(out, rest...)
}

// mark returns where the first mark in b is and how long it is; -1 is none.
func mark(b []byte) (at, size int) {
	i := bytes.Index(b, markStart)
	if i < 0 {
		return -1, 0
	}
	n := bytes.Index(b[i:], markEnd)
	if n < 0 {
		return -1, 0
	}
	return i, n + len(markEnd)
}

// sent returns which byte of body is the n-th of unmarked(body).
func sent(body []byte, n int) int {
	before := 0
	for rest := body; ; {
		i, size := mark(rest)
		if i < 0 || i > n {
			return before + n
		}
		rest, before, n = rest[i+size:], before+i+size, n-i
	}
}

// common returns how many bytes a and b have in common at their beginning.
func common(a, b []byte) int {
	const piece = 4096
	n, most := 0, min(len(a), len(b))
	for n+piece <= most && bytes.Equal(a[n:n+piece], b[n:n+piece]) {
		n += piece
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// A span is a member of an object or an element of a list, and where its value is.
type span struct {
	key      string
	from, to int
}

// spans returns the parts of a JSON object or list, as far as it can be read. Base
// is where it begins.
func spans(text []byte, base int) (out []span) {
	dec := json.NewDecoder(bytes.NewReader(text))
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil
	}
	for dec.More() {
		var s span
		if open == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return out
			}
			s.key, _ = key.(string)
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return out
		}
		s.to = base + int(dec.InputOffset())
		s.from = s.to - len(value)
		out = append(out, s)
	}
	return out
}

// messages is the list of messages in the body of a request, in whichever protocol.
func messages(body []byte) []span {
	for _, s := range spans(body, 0) {
		if s.key == "messages" || s.key == "Messages" {
			return spans(body[s.from:s.to], s.from)
		}
	}
	return nil
}

// goesOn reports whether a prompt goes on with all of an earlier one: they have the
// first n bytes in common. What closes the earlier one need not be among them.
func goesOn(earlier []byte, n int) bool {
	if len(bytes.Trim(earlier[n:], "]}")) == 0 {
		return true
	}
	list := messages(earlier)
	if len(list) == 0 {
		return false
	}
	last := list[len(list)-1]
	return n >= last.from+len(bytes.TrimRight(earlier[last.from:last.to], "]}"))
}

// part says in words in which part of a body its n-th byte is.
func part(body []byte, n int) string {
	for _, s := range spans(body, 0) {
		if n >= s.to {
			continue
		}
		switch s.key {
		case "messages", "Messages":
			return message(body, s, n)
		case "tools", "Tools":
			return tool(body, s, n)
		case "system", "System":
			return "the system prompt"
		case "model", "Model":
			return "the name of the model"
		}
		return "the field " + s.key
	}
	return "the end"
}

func message(body []byte, list span, n int) string {
	all := spans(body[list.from:list.to], list.from)
	for i, s := range all {
		if n >= s.to {
			continue
		}
		var m struct{ Role string }
		_ = json.Unmarshal(body[s.from:s.to], &m) // it was read a moment ago
		if m.Role == "system" || m.Role == "developer" {
			return "the system prompt"
		}
		if m.Role == "" {
			return fmt.Sprintf("message %d", i+1)
		}
		return fmt.Sprintf("message %d (%s)", i+1, m.Role)
	}
	return fmt.Sprintf("the end of the messages, after %d", len(all))
}

func tool(body []byte, list span, n int) string {
	for i, s := range spans(body[list.from:list.to], list.from) {
		if n >= s.to {
			continue
		}
		var t struct {
			Name     string
			Function struct{ Name string }
		}
		_ = json.Unmarshal(body[s.from:s.to], &t) // it was read a moment ago
		if name := t.Name + t.Function.Name; name != "" {
			return "the tool " + name
		}
		return fmt.Sprintf("tool %d", i+1)
	}
	return "the end of the tools"
}
