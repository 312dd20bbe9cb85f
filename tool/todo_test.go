package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

func TestTodoWrite(t *testing.T) {
	d := newDesk(t)
	list := new(TodoWrite)
	item := func(content, status string) args {
		return args{"content": content, "status": status, "activeForm": content + "ing"}
	}
	first := []args{item("plan", "completed"), item("do", "in_progress"), item("test", "in_progress")}
	second := []args{item("do", "completed")}
	for _, step := range []struct {
		todos    []args
		old, new []args
		text     string
	}{
		{first, []args{}, first, "The list has 3 items: 1 completed, 2 in progress, 0 pending. Better have only one in progress at a time."},
		{second, first, second, "The list has 1 item: 1 completed, 0 in progress, 0 pending."},
		{[]args{}, second, []args{}, "The list has 0 items: 0 completed, 0 in progress, 0 pending."},
	} {
		res, err := d.call(list, args{"todos": step.todos})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Content.Text(); got != step.text {
			t.Errorf("text %q, want %q", got, step.text)
		}
		want, err := troupe.Encode(args{"oldTodos": step.old, "newTodos": step.new})
		if err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if err := json.Unmarshal(want, &wanted); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(res.Data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
	}
}

func TestTodoWriteRefuses(t *testing.T) {
	d := newDesk(t)
	list := new(TodoWrite)
	if _, err := d.call(list, args{"todos": []args{{"content": "keep", "status": "pending"}}}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		in   args
		word string
	}{
		{args{}, `"todos"`},
		{args{"todos": nil}, "list"},
		{args{"todos": "x"}, "todos"},
		{args{"todos": []args{{"content": "a", "status": "pending"}, {"content": "b", "status": "done"}}}, `todo 2 has the status "done"`},
		{args{"todos": []args{{"content": "a"}}}, `todo 1 has the status ""`},
		{args{"todos": []args{{"content": " ", "status": "pending"}}}, "todo 1 has no content"},
	} {
		_, err := d.call(list, test.in)
		wantErr(t, err, nil, test.word)
	}
	if len(list.todos) != 1 || list.todos[0].Content != "keep" {
		t.Errorf("a refused list was kept: %v", list.todos)
	}
}

// What the model is told of each tool: the fields that it knows, no more.
func TestSpecs(t *testing.T) {
	for name, test := range map[string]struct {
		tool             troupe.Tool
		fields, required []string
	}{
		"Read":      {Read{}, []string{"file_path", "limit", "offset"}, []string{"file_path"}},
		"Write":     {Write{}, []string{"content", "file_path"}, []string{"content", "file_path"}},
		"Edit":      {Edit{}, []string{"file_path", "new_string", "old_string", "replace_all"}, []string{"file_path", "new_string", "old_string"}},
		"TodoWrite": {new(TodoWrite), []string{"todos"}, []string{"todos"}},
	} {
		spec := test.tool.Spec()
		var schema struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		if spec.Name != name || schema.Type != "object" || spec.Description == "" || strings.TrimSpace(spec.Description) != spec.Description {
			t.Errorf("%s: spec %+v", name, spec)
		}
		if diff := cmp.Diff(test.fields, sortedKeys(schema.Properties)); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", name, diff)
		}
		required := map[string]any{}
		for _, r := range schema.Required {
			required[r] = nil
		}
		if diff := cmp.Diff(test.required, sortedKeys(required)); diff != "" {
			t.Errorf("%s: required (-want +got):\n%s", name, diff)
		}
	}
}
