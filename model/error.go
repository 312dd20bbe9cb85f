package model

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

var (
	// ErrIdle is the cause of an error of a provider that was silent for
	// longer than the idle limit.
	ErrIdle = errors.New("no sign of life from the server")
	// ErrCut is the cause of an error of a stream that ended before the
	// provider said that the reply is complete.
	ErrCut = errors.New("the stream ended before the reply was complete")
)

// A Failure is an error of a model that says whether and when the same request
// may be sent again. [Retry] and [Governor] look for one in the chain of an
// error; an error without one is final.
type Failure interface {
	error
	// HTTPStatus is the status of the answer, 0 if there was none.
	HTTPStatus() int
	// RetryAfter is the wait that the provider asked for, 0 if it asked for none.
	RetryAfter() time.Duration
	// Temporary reports whether the same request may succeed later.
	Temporary() bool
}

// An APIError is a request that a provider did not fulfil. Its text is one
// line, says what to do about it where that is known, and never holds a key.
type APIError struct {
	Provider  string
	Status    int           // HTTP status; 0 if there was no answer
	Type      string        // the provider's word for the kind of error, or ""
	Param     string        // the field of the request that the provider complains of, or ""
	Message   string        // the provider's text, one line without keys
	Remedy    string        // what the user can do, or ""
	After     time.Duration // wait that the provider asked for; 0 is none
	Transient bool          // the same request may succeed later
	Err       error         // the cause, if there is one: ErrIdle, ErrCut, a network error
}

// Error implements error.
func (e *APIError) Error() string {
	var s strings.Builder
	s.WriteString(e.Provider)
	if e.Status != 0 {
		fmt.Fprintf(&s, ": %d", e.Status)
		if text := http.StatusText(e.Status); text != "" && e.Message == "" {
			s.WriteString(" " + text)
		}
	}
	if e.Message != "" {
		s.WriteString(": " + e.Message)
	}
	if e.Remedy != "" {
		s.WriteString("; " + e.Remedy)
	}
	return s.String()
}

// Unwrap returns the cause.
func (e *APIError) Unwrap() error { return e.Err }

// HTTPStatus implements [Failure].
func (e *APIError) HTTPStatus() int { return e.Status }

// RetryAfter implements [Failure].
func (e *APIError) RetryAfter() time.Duration { return e.After }

// Temporary implements [Failure].
func (e *APIError) Temporary() bool { return e.Transient }

// Code is the word for programs: prompt_too_long if the conversation does not
// fit, else api_error.
func (e *APIError) Code() string {
	if errors.Is(e.Err, ErrTooLong) {
		return "prompt_too_long"
	}
	return "api_error"
}

// statusOverloaded is Anthropic's status for a service that is overloaded.
const statusOverloaded = 529

// temporary reports whether a request that was answered with status may be sent
// again unchanged.
func temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// statusOf is the status that an error has which came inside a stream, after
// the status of the answer was 200. It is 0 for words that are not known.
func statusOf(kind string) int {
	if n, err := strconv.Atoi(kind); err == nil && n >= 400 && n < 600 {
		return n
	}
	switch kind {
	case "overloaded_error", "overloaded":
		return statusOverloaded
	case "rate_limit_error", "rate_limit_exceeded", quotaUsedUp:
		return http.StatusTooManyRequests
	case "api_error", "server_error", "internal_server_error", "internal_error":
		return http.StatusInternalServerError
	case "timeout_error", "timeout":
		return http.StatusGatewayTimeout
	case "invalid_request_error", "context_length_exceeded":
		return http.StatusBadRequest
	case "authentication_error", "invalid_api_key":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error", "model_not_found":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	}
	return 0
}

// quotaUsedUp is the word for a 429 that waiting does not cure.
const quotaUsedUp = "insufficient_quota"

// RetryAfter reads of the headers of an answer how long a server wants to be left
// alone: milliseconds, seconds or a date; 0 if it does not say, a day at most. A
// date is compared with the server's own clock, because the one here may be
// wrong; now, which may be nil, is asked if the server does not tell the time.
func RetryAfter(h http.Header, now func() time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return wait(ms, time.Millisecond)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return wait(s, time.Second)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if server, err := http.ParseTime(h.Get("Date")); err == nil {
		return max(0, at.Sub(server))
	}
	if now == nil {
		return 0
	}
	return max(0, at.Sub(now()))
}

// wait is n units, at most a day; what is no number of them is 0.
func wait(n float64, unit time.Duration) time.Duration {
	const longest = 24 * time.Hour
	if !(n > 0) {
		return 0
	}
	if n > float64(longest/unit) {
		return longest
	}
	return time.Duration(n * float64(unit))
}

// oneLine makes the text of a provider fit for a terminal and a log: without
// line ends, control characters and secrets, and not longer than limit runes.
func oneLine(text string, secrets []string, limit int) string {
	for _, s := range secrets {
		if len(s) >= 6 { // shorter ones protect nothing and would riddle the text
			text = strings.ReplaceAll(text, s, "[key]")
		}
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return text
}
