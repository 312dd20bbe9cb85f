// Package tool holds the built-in tools: one file of code and one of
// description each, under the names and with the input that models of this
// field know.
//
// A tool is given what it needs when it is made, by the fields of its type,
// and knows nothing of the agent beside. Whether a call may run is not
// decided here: a [troupe.Guard] does that before.
package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/schema"
)

// define makes the spec of a tool whose input is In. The fields of In carry
// their JSON names and, in a jsonschema tag, what the model is told of them.
func define[In any](name, doc string) troupe.ToolSpec {
	return troupe.ToolSpec{Name: name, Description: strings.TrimSpace(doc), Schema: schema.Of[In]()}
}

// input decodes the input of c. Its error tells the model which field is
// missing or wrong; fields that In does not have are passed over.
func input[In any](c *troupe.Call) (In, error) {
	var in In
	var have map[string]json.RawMessage
	if err := json.Unmarshal(c.Input, &have); err != nil {
		return in, fmt.Errorf("the input of %s is not a JSON object: %w", c.Name, err)
	}
	t := reflect.TypeFor[In]()
	for i := range t.NumField() {
		name, opt, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if _, ok := have[name]; !ok && !strings.Contains(opt, "omit") {
			return in, fmt.Errorf("%s needs the field %q", c.Name, name)
		}
	}
	err := json.Unmarshal(c.Input, &in)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return in, fmt.Errorf("the input of %s: the field %q must be %s, not %s", c.Name, wrong.Field, jsonType(wrong.Type), wrong.Value)
	}
	if err != nil {
		return in, fmt.Errorf("the input of %s: %w", c.Name, err)
	}
	return in, nil
}

// jsonType names the JSON that a Go type is decoded from.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// resolve makes a path of a call's input absolute and clean. A relative path
// starts in the agent's directory.
func resolve(p troupe.Place, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(p.Dir, path)
}
