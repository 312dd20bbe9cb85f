package troupe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// The JSON form of a block or an event names its type: {"Text":"hi"}.
var (
	blockTypes = types(Text(""), Image{}, Thinking{}, Opaque{}, ToolUse{}, ToolResult{})
	eventTypes = types(Started{}, Received{}, Replied{}, ToolStarted{}, Decided{}, ToolEnded{}, Switched{}, Moved{}, Compacting{}, Compacted{}, NotCompacted{}, Retrying{}, Waiting{}, Billed{}, Ended{})
)

func types(vs ...any) map[string]reflect.Type {
	m := make(map[string]reflect.Type)
	for _, v := range vs {
		m[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	return m
}

// MarshalJSON implements [json.Marshaler].
func (b Blocks) MarshalJSON() ([]byte, error) {
	out := make([]map[string]Block, len(b))
	for i, c := range b {
		out[i] = map[string]Block{reflect.TypeOf(c).Name(): c}
	}
	return Encode(out)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *Blocks) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*b = nil
		return nil
	}
	in, ok := elements(data)
	if !ok {
		return fmt.Errorf("content is no list: %.60s", data)
	}
	*b = nil
	for _, raw := range in {
		v, err := decode(blockTypes, raw)
		if err != nil {
			return err
		}
		*b = append(*b, v.(Block))
	}
	return nil
}

// EncodeEvent returns the JSON form of an event that belongs in a log.
func EncodeEvent(e Event) ([]byte, error) {
	return Encode(map[string]Event{reflect.TypeOf(e).Name(): e})
}

// DecodeEvent is the inverse of EncodeEvent.
func DecodeEvent(data []byte) (Event, error) {
	if e, ok := readEvent(data); ok {
		return e, nil
	}
	v, err := decode(eventTypes, data)
	if err != nil {
		return nil, err
	}
	return v.(Event), nil
}

func decode(types map[string]reflect.Type, data []byte) (any, error) {
	if name, raw, ok := single(data); ok && types[name] != nil {
		if v, err := decodeAs(types[name], raw); err == nil {
			return v, nil
		}
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	for name, raw := range m {
		if t := types[name]; t != nil {
			return decodeAs(t, raw)
		}
	}
	return nil, fmt.Errorf("unknown type in %.60s", data)
}

func decodeAs(t reflect.Type, raw []byte) (any, error) {
	v := reflect.New(t)
	err := json.Unmarshal(raw, v.Interface())
	return v.Elem().Interface(), err
}

// elements returns the elements of a list. That data is valid JSON its caller
// knows already: [json.Unmarshal] looks before it calls a method, and to have it
// look again at each level is what reading a long log would cost most.
func elements(data []byte) (out [][]byte, ok bool) {
	data = bytes.TrimSpace(data)
	if len(data) < 2 || data[0] != '[' {
		return nil, false
	}
	depth, start := 0, 1
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfString(data, i)
		case '[', '{':
			depth++
		case ']', '}', ',':
			if depth > 0 && data[i] != ',' {
				depth--
				continue
			}
			if depth > 0 {
				continue
			}
			if e := bytes.TrimSpace(data[start:i]); len(e) > 0 {
				out = append(out, e)
			}
			start = i + 1
		}
	}
	return out, true
}

// endOfString is the place of the quote that ends the string which begins at start.
func endOfString(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i
		case '\\':
			i++ // what is escaped
		}
	}
	return len(data)
}

// single takes {"Name":value} apart without reading the value, which saves a
// look at each byte at each level. If what it returns is no JSON, data was not
// an object of one field.
func single(data []byte) (name string, value []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"`))
	if !ok {
		return "", nil, false
	}
	key, rest, ok := bytes.Cut(rest, []byte(`":`))
	if !ok || !bytes.HasSuffix(rest, []byte("}")) {
		return "", nil, false
	}
	return string(key), rest[:len(rest)-1], true
}

// Encode returns the canonical JSON of v: compact, map keys sorted, and <, >
// and & as they are, so that what a model wrote comes back as it wrote it.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendText appends s to b as a JSON string: the bytes that [Encode] gives for
// it, without what that costs. A request is made of many long texts, again at
// every turn.
func AppendText(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // s[:done] is in b
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !plain[c] {
				b = appendEscape(append(b, s[done:i]...), c)
				done = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[done:i]...), `\ufffd`...)
			done = i + size
		case r == '\u2028', r == '\u2029': // would end a line of JavaScript
			b = append(append(b, s[done:i]...), `\u202`...)
			b = append(b, '0'+byte(r&0xF))
			done = i + size
		}
		i += size
	}
	return append(append(b, s[done:]...), '"')
}

// appendEscape appends the form of a byte that cannot stand in a string as it is.
func appendEscape(b []byte, c byte) []byte {
	const short, letters, hex = "\b\f\n\r\t\"\\", `bfnrt"\`, "0123456789abcdef"
	for i := range len(short) {
		if short[i] == c {
			return append(b, '\\', letters[i])
		}
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
}
