package script

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ErrNoRule is in the error for a conversation that no rule of the script
// foresees. Trying again does not help: the script lacks a rule.
var ErrNoRule = errors.New("no rule of the script applies")

// An Error is a failure that the script asks for: what a provider would have
// answered instead of a reply.
type Error struct {
	Status  int           // HTTP status; 0 is a connection that was lost
	After   time.Duration // wait that the provider asks for; 0 if it asks for none
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Status == 0 {
		return "scripted connection loss: " + e.Message
	}
	return fmt.Sprintf("scripted failure: status %d: %s", e.Status, e.Message)
}

// Unwrap makes a lost connection an [io.ErrUnexpectedEOF], as it is when a
// real one is lost.
func (e *Error) Unwrap() error {
	if e.Status == 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// HTTPStatus is the status that the provider answered with; 0 if the
// connection was lost.
func (e *Error) HTTPStatus() int { return e.Status }

// RetryAfter is the wait that the provider asks for before the next attempt;
// 0 if it asks for none.
func (e *Error) RetryAfter() time.Duration { return e.After }

// Temporary reports whether the same request may succeed later: after a lost
// connection, a timeout, a rate limit and most faults of a server.
func (e *Error) Temporary() bool {
	switch e.Status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return e.Status >= 500
}
