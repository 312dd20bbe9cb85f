package openai

import (
	"bytes"
	"encoding/json"

	"github.com/troupe-sh/troupe"
)

// joinDetails makes a JSON list of the reasoning details of a stream, "" if
// there are none. Pieces of one entry, which follow each other with the same
// type and index, are joined; an entry that came whole keeps its bytes.
func joinDetails(pieces []json.RawMessage) string {
	var list []json.RawMessage
	var last map[string]any // the last entry of list, nil if it was not read
	for _, raw := range pieces {
		var next map[string]any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if dec.Decode(&next) != nil || next == nil {
			continue
		}
		if joined, ok := joinDetail(last, next); ok {
			if whole, err := troupe.Encode(joined); err == nil {
				list[len(list)-1], last = whole, joined
				continue
			}
		}
		list, last = append(list, raw), next
	}
	if len(list) == 0 {
		return ""
	}
	return "[" + string(bytes.Join(toBytes(list), []byte(","))) + "]"
}

func toBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

// joinDetail appends the texts of b to those of a, if both are pieces of one
// entry. Encrypted data is never joined.
func joinDetail(a, b map[string]any) (map[string]any, bool) {
	if a == nil || a["type"] != b["type"] || a["index"] != b["index"] {
		return nil, false
	}
	field := ""
	switch a["type"] {
	case "reasoning.text":
		field = "text"
	case "reasoning.summary":
		field = "summary"
	default:
		return nil, false
	}
	out := map[string]any{}
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		if v != nil {
			out[k] = v
		}
	}
	first, _ := a[field].(string)
	second, _ := b[field].(string)
	out[field] = first + second
	return out, true
}
