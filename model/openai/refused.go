package openai

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
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

// optional returns which of these fields req is sent with.
func optional(req *troupe.Request, provider string, refused []string) (fields []string) {
	takes := func(field string) bool { return !slices.Contains(refused, field) }
	if takes(streamOptions) {
		fields = append(fields, streamOptions)
	}
	// OpenAI's models of today refuse the old name, other servers may not know
	// the new one.
	limits := []string{oldLimit, newLimit}
	if provider == "openai" {
		limits = []string{newLimit, oldLimit}
	}
	if i := slices.IndexFunc(limits, takes); i >= 0 && req.MaxTokens > 0 {
		fields = append(fields, limits[i])
	}
	if req.Effort != "" && takes(effort) {
		fields = append(fields, effort)
	}
	return fields
}

// refusedField returns which of the fields that were sent err complains of, ""
// if it is about something else. The value of a field is something else: what
// the user asked for is not left out because it was misspelt.
func refusedField(err error, sent []string) (field string, status int) {
	var e *model.APIError
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity || strings.HasSuffix(e.Type, "_value") {
		return "", 0
	}
	about := e.Param
	if about == "" {
		about = e.Message
	}
	for _, field := range sent {
		// Ollama names what it means, and not the field.
		if strings.Contains(about, field) || field == effort && strings.Contains(about, "does not support thinking") {
			return field, e.Status
		}
	}
	return "", 0
}
