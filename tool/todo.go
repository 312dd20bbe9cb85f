package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
)

//go:embed todo.md
var todoDoc string

// TodoWrite is the tool by which an agent keeps a list of its steps. The zero
// value is an empty list. It is safe for concurrent use.
type TodoWrite struct {
	mu    sync.Mutex
	todos []todo
}

type todo struct {
	Content    string `json:"content" jsonschema:"what to do"`
	Status     string `json:"status" jsonschema:"pending, in_progress or completed"`
	ActiveForm string `json:"activeForm,omitempty" jsonschema:"what is being done while it is in_progress"`
}

type todoInput struct {
	Todos []todo `json:"todos" jsonschema:"the whole list"`
}

type todoData struct {
	OldTodos []todo `json:"oldTodos"`
	NewTodos []todo `json:"newTodos"`
}

var todoSpec = sync.OnceValue(func() troupe.ToolSpec { return define[todoInput]("TodoWrite", todoDoc) })

// Spec implements [troupe.Tool].
func (t *TodoWrite) Spec() troupe.ToolSpec { return todoSpec() }

// Lane implements [troupe.Ordered]: the last list asked for is the one kept.
func (t *TodoWrite) Lane(*troupe.Call) string { return "todos" }

// Call implements [troupe.Tool].
func (t *TodoWrite) Call(_ context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[todoInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	count := map[string]int{"pending": 0, "in_progress": 0, "completed": 0}
	for i, item := range in.Todos {
		if strings.TrimSpace(item.Content) == "" {
			return troupe.Result{}, fmt.Errorf("todo %d has no content", i+1)
		}
		if _, ok := count[item.Status]; !ok {
			return troupe.Result{}, fmt.Errorf("todo %d has the status %q; it must be pending, in_progress or completed", i+1, item.Status)
		}
		count[item.Status]++
	}
	if in.Todos == nil {
		return troupe.Result{}, errors.New("todos must be a list")
	}
	data, err := troupe.Encode(todoData{OldTodos: t.swap(in.Todos), NewTodos: in.Todos})
	if err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	said := fmt.Sprintf("The list has %s: %d completed, %d in progress, %d pending.",
		plural(len(in.Todos), "item"), count["completed"], count["in_progress"], count["pending"])
	if count["in_progress"] > 1 {
		said += " Better have only one in progress at a time."
	}
	res := troupe.Answer(said)
	res.Data = data
	return res, nil
}

// swap makes todos the list and returns the old one.
func (t *TodoWrite) swap(todos []todo) []todo {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.todos
	if old == nil {
		old = []todo{}
	}
	t.todos = todos
	return old
}
