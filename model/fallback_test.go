package model_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

// byName answers for each model as it says, and notes who was asked.
type byName struct {
	errs  map[string]error
	asked []string
}

func (b *byName) Stream(_ context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		b.asked = append(b.asked, req.Model)
		if !yield(troupe.Sending{}, nil) {
			return
		}
		if err := b.errs[req.Model]; err != nil {
			yield(nil, err)
			return
		}
		yield(troupe.Reply{Model: req.Model}, nil)
	}
}

func TestFallback(t *testing.T) {
	cut := &model.APIError{Provider: "p", Transient: true, Err: model.ErrCut, Message: "cut"}
	reach := func(op string) error {
		return &model.APIError{Provider: "p", Message: "x", Err: &url.Error{Err: &net.OpError{Op: op, Err: errors.New("no")}}}
	}
	for name, tt := range map[string]struct {
		errs  map[string]error
		names []string
		asked []string
		fails bool
	}{
		"all is well":          {nil, []string{"b", "c"}, []string{"a"}, false},
		"overloaded":           {map[string]error{"a": status(529)}, []string{"b", "c"}, []string{"a", "b"}, false},
		"broken":               {map[string]error{"a": status(503), "b": status(500)}, []string{"b", "c"}, []string{"a", "b", "c"}, false},
		"cut off (S104)":       {map[string]error{"a": cut}, []string{"b"}, []string{"a", "b"}, false},
		"nobody is there":      {map[string]error{"a": reach("dial")}, []string{"b"}, []string{"a", "b"}, false},
		"not to be trusted":    {map[string]error{"a": reach("remote error")}, []string{"b"}, []string{"a"}, true},
		"none is there":        {map[string]error{"a": status(529), "b": status(529)}, []string{"b"}, []string{"a", "b"}, true},
		"none is named (S104)": {map[string]error{"a": cut}, nil, []string{"a"}, true},
		"in the list":          {map[string]error{"a": status(529)}, []string{"z", "a", "b"}, []string{"a", "b"}, false},
		"last of the list":     {map[string]error{"a": status(529)}, []string{"b", "a"}, []string{"a"}, true},
		"rate limit":           {map[string]error{"a": status(429)}, []string{"b"}, []string{"a"}, true},
		"wrong request":        {map[string]error{"a": status(400)}, []string{"b"}, []string{"a"}, true},
		"wrong key":            {map[string]error{"a": status(401)}, []string{"b"}, []string{"a"}, true},
		"no failure":           {map[string]error{"a": errors.New("x")}, []string{"b"}, []string{"a"}, true},
	} {
		m := &byName{errs: tt.errs}
		req := &troupe.Request{Model: "a"}
		var steps []string
		var reply string
		var failed error
		for c, err := range model.Fallback(m, tt.names).Stream(t.Context(), req) {
			switch c := c.(type) {
			case troupe.Switched:
				if !strings.HasPrefix(c.Cause, m.asked[len(m.asked)-1]+" is not available: p") {
					t.Errorf("%s: the cause is %q", name, c.Cause)
				}
				steps = append(steps, c.Model)
			case troupe.Reply:
				reply = c.Model
			}
			failed = err
		}
		if !slices.Equal(m.asked, tt.asked) || (failed != nil) != tt.fails || !slices.Equal(steps, tt.asked[1:]) {
			t.Errorf("%s: asked %v, told of %v, %v; want %v", name, m.asked, steps, failed, tt.asked)
		}
		if failed == nil && reply != tt.asked[len(tt.asked)-1] {
			t.Errorf("%s: %s answered", name, reply)
		}
		if req.Model != "a" {
			t.Errorf("%s: the request was changed", name)
		}
	}
}

func TestFallbackEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &byName{errs: map[string]error{"a": status(529)}}
	names(model.Fallback(m, []string{"b"}).Stream(ctx, &troupe.Request{Model: "a"}))
	if len(m.asked) != 1 {
		t.Errorf("asked %v after the end", m.asked)
	}
}
