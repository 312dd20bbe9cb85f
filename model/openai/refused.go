package openai

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe/model"
)

// The fields of a request that not every server takes, and that it can do
// without: then there is no usage, the model thinks as much as it does, or
// writes as much as it can.
const (
	streamOptions = "stream_options"
	effort        = "reasoning_effort"
	newLimit      = "max_completion_tokens"
	oldLimit      = "max_tokens"
)

// refusals remembers which fields a server has refused, model by model: models
// of one server differ. It is safe for concurrent use.
type refusals struct {
	mu   sync.Mutex
	have map[string][]string
}

// of returns the fields that are not to be sent for a model.
func (r *refusals) of(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.have[name]
}

// keep remembers fields without which a request was taken.
func (r *refusals) keep(name string, fields []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.have == nil {
		r.have = map[string][]string{}
	}
	r.have[name] = fields
}

// refusedField returns which of the fields in body err complains of, "" if it
// is about something else. The value of a field is something else: what the
// user asked for is not left out because it was misspelt.
func refusedField(err error, body []byte) string {
	var e *model.APIError
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity || strings.HasSuffix(e.Type, "_value") {
		return ""
	}
	about := e.Param
	if about == "" {
		about = e.Message
	}
	for _, field := range []string{streamOptions, effort, newLimit, oldLimit} {
		if strings.Contains(about, field) && hasField(body, field) {
			return field
		}
	}
	// Ollama names what it means, and not the field.
	if strings.Contains(about, "does not support thinking") && hasField(body, effort) {
		return effort
	}
	return ""
}

// hasField reports whether a body of [Encode] has a field. They all stand in
// front of the first text that is not ours but for the model's name.
func hasField(body []byte, field string) bool {
	return strings.Contains(string(body[:min(len(body), 1<<10)]), `,"`+field+`":`)
}

// limit is the field for the longest reply, "" if the server takes none. OpenAI's
// models of today refuse the old name, other servers may not know the new one.
func limit(provider string, refused []string) string {
	names := []string{oldLimit, newLimit}
	if provider == "openai" {
		names = []string{newLimit, oldLimit}
	}
	for _, name := range names {
		if !slices.Contains(refused, name) {
			return name
		}
	}
	return ""
}
