// Package schema describes the input of a tool as a model wants it described: a
// JSON schema, made of the Go struct that the input is decoded into. So there is
// one source for both.
//
//	type input struct {
//		Path  string `json:"path" jsonschema:"the file to read"`
//		Limit int    `json:"limit,omitempty" jsonschema:"lines to show at most"`
//	}
//	spec := troupe.ToolSpec{Name: "Read", Schema: schema.Of[input]()}
//
// What it writes is what github.com/google/jsonschema-go would write, which the
// tests hold it to. That module can do far more, and takes a tenth of the time
// that a start of the command may take.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/troupe-sh/troupe"
)

// Of returns the schema of T, a struct of strings, numbers, truth values, such
// structs, and lists of and pointers to them. A field is required unless its
// json tag says omitempty or omitzero; its jsonschema tag tells the model what
// it is for. It panics if T has a field of another type, or one without a name
// in JSON.
func Of[T any]() json.RawMessage { return object(nil, reflect.TypeFor[T](), "") }

// object appends the schema of a struct.
func object(b []byte, t reflect.Type, about string) []byte {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("no schema for %s: it is not a struct", t))
	}
	b = append(b, `{"type":"object"`...)
	var required []string
	for i := range t.NumField() {
		name, rest, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			panic(fmt.Sprintf("no schema for %s: its field %s has no name in JSON", t, t.Field(i).Name))
		}
		b = append(b, ',')
		if i == 0 {
			b = append(b, `"properties":{`...)
		}
		b = append(troupe.AppendText(b, name), ':')
		b = property(b, t.Field(i).Type, t.Field(i).Tag.Get("jsonschema"))
		if !strings.Contains(rest, "omit") {
			required = append(required, name)
		}
	}
	if t.NumField() > 0 {
		b = append(b, '}')
	}
	b = described(b, about)
	if len(required) > 0 {
		raw, _ := troupe.Encode(required) // strings have no error
		b = append(append(b, `,"required":`...), raw...)
	}
	return append(b, `,"additionalProperties":false}`...)
}

// property appends the schema of a field.
func property(b []byte, t reflect.Type, about string) []byte {
	switch t.Kind() {
	case reflect.Struct:
		return object(b, t, about)
	case reflect.Slice:
		b = append(b, `{"type":["null","array"],"items":`...)
		b = property(b, t.Elem(), "")
	case reflect.Pointer:
		b = append(append(append(b, `{"type":["null","`...), simple(t.Elem())...), `"]`...)
	default:
		b = append(append(append(b, `{"type":"`...), simple(t)...), '"')
	}
	return append(described(b, about), '}')
}

// described appends what a value is for.
func described(b []byte, about string) []byte {
	if about == "" {
		return b
	}
	return troupe.AppendText(append(b, `,"description":`...), about)
}

// simple names the type of a value that is no list and has no fields.
func simple(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	}
	panic(fmt.Sprintf("no schema for %s", t))
}
