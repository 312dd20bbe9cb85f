package troupe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// The JSON form of a block or an event names its type: {"Text":"hi"}.
var (
	blockTypes = types(Text(""), Image{}, Thinking{}, Opaque{}, ToolUse{}, ToolResult{})
	eventTypes = types(Started{}, Received{}, Replied{}, ToolStarted{}, Decided{}, ToolEnded{}, Switched{}, Moved{}, Retrying{}, Ended{})
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
	var in []json.RawMessage
	if err := json.Unmarshal(data, &in); err != nil {
		return err
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
	v, err := decode(eventTypes, data)
	if err != nil {
		return nil, err
	}
	return v.(Event), nil
}

func decode(types map[string]reflect.Type, data []byte) (any, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	for name, raw := range m {
		if t := types[name]; t != nil {
			v := reflect.New(t)
			err := json.Unmarshal(raw, v.Interface())
			return v.Elem().Interface(), err
		}
	}
	return nil, fmt.Errorf("unknown type in %.60s", data)
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
