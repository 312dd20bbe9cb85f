package delegate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// ErrWindow reports an agent that has more to read, before it has done anything,
// than its model takes.
var ErrWindow = errors.New("too much for the window of the model")

// shownParts is how many of the largest parts an ErrWindow names.
const shownParts = 5

// Fits reports with [ErrWindow] that what an agent begins with, its prompt, its
// tools and the messages in req, is more than a model with this window, in tokens,
// can take: each request would be refused, and no summary can make it less. The
// error names the sizes and the largest parts. A window of 0 is not known.
func Fits(req troupe.Request, window int) error {
	size := sizeOf(req)
	if window <= 0 || size <= window {
		return nil
	}
	type part struct {
		name string
		size int
	}
	parts := []part{{"the system prompt", sizeOf(troupe.Request{System: req.System})}, {"the task", sizeOf(troupe.Request{Messages: req.Messages})}}
	for _, t := range req.Tools {
		parts = append(parts, part{"tool " + t.Name, sizeOf(troupe.Request{Tools: []troupe.ToolSpec{t}})})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.size, a.size) })
	var largest []string
	for _, p := range parts[:min(len(parts), shownParts)] {
		largest = append(largest, fmt.Sprintf("%s %d", p.name, p.size))
	}
	return fmt.Errorf("%w: %s takes %d tokens, and the first request would be about %d, of which the %d tools are %d; the largest parts: %s. Leave tools out in the agent's definition (tools, disallowedTools), or choose a model with a larger window",
		ErrWindow, req.Model, window, size, len(req.Tools), sizeOf(troupe.Request{Tools: req.Tools}), strings.Join(largest, ", "))
}

// sizeOf is about how many tokens a request has.
func sizeOf(req troupe.Request) int { return (&troupe.State{Request: req}).Size() }

// fits is [Fits] of what the child begins with. A conversation that it goes on
// from is no part of it: that can be cut short.
func (k *child) fits() error {
	req := k.started.Request
	if req.Messages = nil; k.config.State != nil {
		req.Model = k.config.State.Request.Model
	}
	for _, ev := range k.first {
		if m, ok := ev.(troupe.Received); ok {
			req.Messages = append(req.Messages, m.Message)
		}
	}
	if err := Fits(req, k.scope.Window(req.Model)); err != nil {
		return fmt.Errorf("agent of type %s: %w", k.started.Definition, err)
	}
	return nil
}
