package schema_test

import (
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/schema"
)

type step struct {
	Text string   `json:"text" jsonschema:"what to do"`
	Cost float64  `json:"cost,omitzero"`
	Tags []string `json:"tags,omitempty" jsonschema:"words for it"`
}

type input struct {
	Path    string  `json:"path" jsonschema:"a \"file\", <absolute> & clean, like **/*.go"`
	Limit   int     `json:"limit,omitempty" jsonschema:"lines, at most; ≤ 5"`
	Timeout int64   `json:"-A,omitempty" jsonschema:"milliseconds"`
	Force   bool    `json:"force"`
	Numbers *bool   `json:"numbers,omitempty" jsonschema:"show them"`
	Head    *int    `json:"head,omitempty"`
	Why     *string `json:"why"`
	Steps   []step  `json:"steps" jsonschema:"the whole list"`
	First   step    `json:"first,omitempty" jsonschema:"the one to begin with"`
	Plain   step    `json:"plain"`
}

type optional struct {
	Name string `json:"name,omitempty" jsonschema:"a name"`
}

type empty struct{}

// What Of writes is what the module would write that knows all of the standard,
// but for characters of HTML, which need no escape.
func TestOf(t *testing.T) {
	same[input](t, schema.Of[input]())
	same[step](t, schema.Of[step]())
	same[optional](t, schema.Of[optional]())
	same[empty](t, schema.Of[empty]())
}

func same[T any](t *testing.T, got []byte) {
	t.Helper()
	s, err := jsonschema.For[T](nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := troupe.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(want))
	if string(got) != plain {
		t.Errorf("Of[%T]:\n%s\nwant\n%s", *new(T), got, plain)
	}
}

func TestOfRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, make := range map[string]func(){
		"no struct": func() { schema.Of[string]() },
		"map": func() {
			schema.Of[struct {
				M map[string]string `json:"m"`
			}]()
		},
		"no name": func() {
			schema.Of[struct{ Name string }]()
		},
		"pointer to a struct": func() {
			schema.Of[struct {
				S *step `json:"s"`
			}]()
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			make()
		})
	}
}
