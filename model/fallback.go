package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"

	"github.com/troupe-sh/troupe"
)

// Fallback returns a Model that asks another one of m's when the one that a
// request names is not available: its service is overloaded or broken, or cannot
// be reached, and has been asked as often as it is worth. It goes down the list
// of names from its beginning, or from the request's model on if that is in it,
// and yields a [troupe.Switched] for each step, which makes void what was
// streamed. What a provider refuses - a wrong key, a request that it does not
// take, a rate limit - is an error as ever: another model would hide it.
//
// Retries belong into m. Who takes the Switched to heart goes on with the model
// that it names, so the one that failed is not asked at every turn again.
func Fallback(m troupe.Model, names []string) troupe.Model {
	return &fallback{m, slices.Clone(names)}
}

type fallback struct {
	model troupe.Model
	names []string
}

// Stream implements [troupe.Model].
func (f *fallback) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		for own := req; ; {
			err, left := forward(f.model.Stream(ctx, own), yield)
			if err == nil || left {
				return
			}
			next := f.after(own.Model)
			if next == "" || context.Cause(ctx) != nil || !unavailable(err) {
				yield(nil, err)
				return
			}
			if !yield(troupe.Switched{Model: next, Cause: fmt.Sprintf("%s is not available: %v", own.Model, err)}, nil) {
				return
			}
			again := *own // the request that was sent does not change
			again.Model = next
			own = &again
		}
	}
}

// after is the model to ask when name fails; "" is none.
func (f *fallback) after(name string) string {
	rest := f.names[slices.Index(f.names, name)+1:]
	if len(rest) == 0 {
		return ""
	}
	return rest[0]
}

// unavailable reports whether err says that a model is not there for now,
// rather than what is wrong with the request. A server that nobody has started, or
// a host that is not found, is not worth another try, but another model is.
func unavailable(err error) bool {
	var f Failure
	if !errors.As(err, &f) {
		return false
	}
	if f.HTTPStatus() == 0 {
		var op *net.OpError
		return f.Temporary() || errors.As(err, &op) && op.Op == "dial"
	}
	return f.Temporary() && f.HTTPStatus() >= http.StatusInternalServerError
}
