package tool

import (
	"encoding/json"
	"testing"

	"github.com/troupe-sh/troupe"
)

// The model is told which field is wrong and what it should be, in words of
// JSON.
func TestInputErrors(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`[]`, `the input of Edit is not a JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`},
		{`{}`, `Edit needs the field "file_path"`},
		{`{"file_path":"a","old_string":"b"}`, `Edit needs the field "new_string"`},
		{`{"file_path":1,"old_string":"b","new_string":"c"}`, `the input of Edit: the field "file_path" must be a string, not number`},
		{`{"file_path":"a","old_string":"b","new_string":"c","replace_all":"yes"}`, `the input of Edit: the field "replace_all" must be true or false, not string`},
		{`{"file_path":"a","old_string":"b","new_string":"c","other":1}`, ``},
	} {
		_, err := input[editInput](&troupe.Call{ToolUse: troupe.ToolUse{Name: "Edit", Input: json.RawMessage(test.in)}})
		if got := errText(err); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.in, got, test.want)
		}
	}
	_, err := input[readInput](&troupe.Call{ToolUse: troupe.ToolUse{Name: "Read", Input: json.RawMessage(`{"file_path":"a","limit":2.5}`)}})
	if got, want := errText(err), `the input of Read: the field "limit" must be a whole number, not number 2.5`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	_, err = input[todoInput](&troupe.Call{ToolUse: troupe.ToolUse{Name: "TodoWrite", Input: json.RawMessage(`{"todos":"a"}`)}})
	if got, want := errText(err), `the input of TodoWrite: the field "todos" must be a list, not string`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
