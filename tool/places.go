package tool

import (
	"encoding/json"
	"strings"
)

// A span is a part of a JSON text, from start up to end.
type span struct{ start, end int }

// of is the part of text that s is.
func (s span) of(text []byte) []byte { return text[s.start:s.end] }

// A member is where a name and its value stand in a JSON text.
type member struct {
	name       string
	key, value span
}

// members are those of the object at s in text, which is valid JSON. It has
// none if there is another kind of value.
func members(text []byte, s span) []member {
	if s.start >= s.end || text[s.start] != '{' {
		return nil
	}
	var out []member
	for i := skipSpace(text, s.start+1); text[i] != '}'; i = nextPart(text, i) {
		var m member
		m.key = span{i, skipValue(text, i)}
		if json.Unmarshal(m.key.of(text), &m.name) != nil {
			return nil // cannot be: it is a string
		}
		colon := skipSpace(text, m.key.end)
		m.value.start = skipSpace(text, colon+1)
		m.value.end = skipValue(text, m.value.start)
		i = m.value.end
		out = append(out, m)
	}
	return out
}

// elements are those of the array at s in text, which is valid JSON. It has
// none if there is another kind of value.
func elements(text []byte, s span) []span {
	if s.start >= s.end || text[s.start] != '[' {
		return nil
	}
	var out []span
	for i := skipSpace(text, s.start+1); text[i] != ']'; i = nextPart(text, i) {
		e := span{i, skipValue(text, i)}
		i = e.end
		out = append(out, e)
	}
	return out
}

// lookUp is the value of the member of that name. Of several the last counts,
// as it does for other readers of JSON.
func lookUp(ms []member, name string) (value span, ok bool) {
	for _, m := range ms {
		if m.name == name {
			value, ok = m.value, true
		}
	}
	return value, ok
}

// nextPart is where the next part of an array or an object begins, or where
// its closing bracket is. The part before it ends at i.
func nextPart(text []byte, i int) int {
	i = skipSpace(text, i)
	if text[i] == ',' {
		i = skipSpace(text, i+1)
	}
	return i
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// skipValue is where the value that begins at i ends.
func skipValue(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // of what is around a number or a word
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// textAt is the text at s: a string, or a list of strings to be joined.
func textAt(text []byte, s span) (string, bool) {
	var one string
	if json.Unmarshal(s.of(text), &one) == nil && text[s.start] == '"' {
		return one, true
	}
	var parts []*string // a pointer, as null is no string
	if json.Unmarshal(s.of(text), &parts) != nil || text[s.start] != '[' {
		return "", false
	}
	var joined strings.Builder
	for _, p := range parts {
		if p == nil {
			return "", false
		}
		joined.WriteString(*p)
	}
	return joined.String(), true
}
