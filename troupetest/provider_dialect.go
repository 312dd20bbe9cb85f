package troupetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A Dialect is a wire format of model services.
type Dialect string

// The dialects of a [Provider].
const (
	Anthropic Dialect = "anthropic" // POST /v1/messages
	OpenAI    Dialect = "openai"    // POST /v1/chat/completions
)

// wire is what differs between the dialects.
type wire interface {
	rules() []rule
	// parse reads a body that has passed the rules, or as much of another as
	// it can, for the record.
	parse(raw []byte) troupe.Request
	// prompt cuts what the model reads into the pieces of the prompt cache.
	prompt(raw []byte) []piece
	// frames is the stream of a, whole its answer without streaming.
	frames(a *answer) []frame
	whole(a *answer) []byte
	// problem is the body of an error; overload an event of the stream.
	problem(status int, id, message string) []byte
	overload() frame
}

// A rule is one thing that a service checks of a request.
type rule struct {
	name string
	// check returns "" or what is wrong, and where.
	check func(*body) string
	// status is that of the refusal; 0 is 400.
	status int
}

// body is a request as the rules see it.
type body struct {
	header http.Header
	raw    []byte
	top    object // nil if raw is not a JSON object
	key    string // that must be given; "" is any
	models []string
	memory *memory
}

// frame is one event of a stream. Before it is sent the stream is at the
// points in before.
type frame struct {
	event  string
	data   []byte
	before []Point
	output int // bytes of the model's output in it
}

// bytes is the frame as server-sent event.
func (f frame) bytes() []byte {
	var out []byte
	if f.event != "" {
		out = fmt.Appendf(out, "event: %s\n", f.event)
	}
	return fmt.Appendf(out, "data: %s\n\n", f.data)
}

// answer is a reply with all that the wire needs to say it.
type answer struct {
	Reply
	id           string
	created      int64 // seconds since 1970
	includeUsage bool
}

// object is a decoded JSON object; numbers in it are json.Number.
type object = map[string]any

func text(o object, key string) string { s, _ := o[key].(string); return s }

func list(o object, key string) []any { l, _ := o[key].([]any); return l }

// objects returns l with what is not an object as an empty one, so that
// positions stay true.
func objects(l []any) []object {
	out := make([]object, len(l))
	for i, v := range l {
		out[i], _ = v.(object)
	}
	return out
}

// A shape names the fields that an object must and may have.
type shape struct{ required, optional []string }

// fits returns "" or the first field that o lacks or has too much.
func (s shape) fits(at string, o object) string {
	if complaint := s.missing(at, o); complaint != "" {
		return complaint
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(s.required, key) && !slices.Contains(s.optional, key) {
			return fmt.Sprintf("%s%s: Extra inputs are not permitted", at, key)
		}
	}
	return ""
}

func (s shape) missing(at string, o object) string {
	for _, key := range s.required {
		if _, ok := o[key]; !ok {
			return fmt.Sprintf("%s%s: Field required", at, key)
		}
	}
	return ""
}

func fields(names string) []string { return strings.Fields(names) }

// first returns the first complaint.
func first[T any](items []T, check func(int, T) string) string {
	for i, item := range items {
		if complaint := check(i, item); complaint != "" {
			return complaint
		}
	}
	return ""
}

// split cuts s between characters into fragments as a model streams it: at
// least two where there are two characters, at most about a hundred.
func split(s string) []string {
	runes := []rune(s)
	if len(runes) == 0 {
		return nil
	}
	size := max(1, min(16, (len(runes)+1)/2), len(runes)/100)
	var out []string
	for part := range slices.Chunk(runes, size) {
		out = append(out, string(part))
	}
	return out
}

// encode is for values of which the encoding cannot fail.
func encode(v any) []byte {
	data, err := troupe.Encode(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return data
}
