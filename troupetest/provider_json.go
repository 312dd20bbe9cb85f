package troupetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strconv"
	"unicode/utf8"
)

// bodyRules are those of both dialects on the bytes of a request. They come
// first: all others may take the body for a JSON object.
func bodyRules() []rule {
	return []rule{
		{name: "content-type", check: func(b *body) string {
			if kind, _, err := mime.ParseMediaType(b.header.Get("Content-Type")); err != nil || kind != "application/json" {
				return "content-type: must be application/json"
			}
			return ""
		}},
		{name: "utf-8", check: func(b *body) string {
			if !utf8.Valid(b.raw) {
				return "The request body is not valid UTF-8"
			}
			return ""
		}},
		{name: "json", check: func(b *body) string {
			if b.top == nil {
				return "The request body is not valid JSON: it must be one object"
			}
			return ""
		}},
		{name: "surrogates", check: func(b *body) string {
			if at := loneSurrogate(b.raw); at >= 0 {
				return fmt.Sprintf("The request body is not valid JSON: lone surrogate in string: char %d", at)
			}
			return ""
		}},
	}
}

// decodeObject returns nil for what is not exactly one object.
func decodeObject(raw []byte) object {
	if !json.Valid(raw) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var top object
	if dec.Decode(&top) != nil {
		return nil
	}
	return top
}

// loneSurrogate returns the offset of an escape in valid JSON that is half a
// character, or -1. Decoders differ in what they make of it, so services
// refuse it.
func loneSurrogate(raw []byte) int {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++ // the escaped character, which may be a backslash
			continue
		}
		switch code := escape(raw[i:]); {
		case code >= 0xDC00 && code <= 0xDFFF:
			return i
		case code >= 0xD800 && code <= 0xDBFF:
			if low := escape(raw[i+6:]); low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 11
		default:
			i += 5
		}
	}
	return -1
}

// escape returns the number of the \uXXXX that b starts with, or -1.
func escape(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(n)
}

// member is one member of a JSON object as it stands.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of a JSON object in their order, and whether
// raw is one.
func members(raw []byte) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{key: key.(string)}
		if dec.Decode(&m.value) != nil {
			return nil, false
		}
		out = append(out, m)
	}
	return out, true
}

// elements returns the elements of a JSON array, and whether raw is one.
func elements(raw []byte) ([]json.RawMessage, bool) {
	var out []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) || json.Unmarshal(raw, &out) != nil {
		return nil, false
	}
	return out, true
}

// unmarked is raw without cache_control, which says how to read a prompt and
// is no part of it. What looks like one inside a tool's input or schema is
// data and stays.
func unmarked(raw []byte) []byte {
	if all, ok := members(raw); ok {
		out := []byte{'{'}
		for _, m := range all {
			if m.key == "cache_control" {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(out, encode(m.key)...), ':')
			switch m.key {
			case "input", "input_schema", "parameters":
				out = append(out, m.value...)
			default:
				out = append(out, unmarked(m.value)...)
			}
		}
		return append(out, '}')
	}
	if all, ok := elements(raw); ok {
		out := []byte{'['}
		for i, e := range all {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, unmarked(e)...)
		}
		return append(out, ']')
	}
	return raw
}
