package tool

import (
	"context"
	"errors"

	"github.com/troupe-sh/troupe"
)

// As returns t under another spec: that which a model was shown before.
func As(t troupe.Tool, spec troupe.ToolSpec) troupe.Tool {
	if o, ok := t.(troupe.Ordered); ok {
		return renderedAsOrdered{renderedAs{t, spec}, o}
	}
	return renderedAs{t, spec}
}

type renderedAs struct {
	troupe.Tool
	spec troupe.ToolSpec
}

// Spec implements [troupe.Tool].
func (s renderedAs) Spec() troupe.ToolSpec { return s.spec }

type renderedAsOrdered struct {
	renderedAs
	ordered troupe.Ordered
}

// Lane implements [troupe.Ordered].
func (s renderedAsOrdered) Lane(c *troupe.Call) string { return s.ordered.Lane(c) }

// Refused returns a tool that a model is shown, and that its agent may not use:
// each call fails, with why. A list of tools stays the same that way.
func Refused(spec troupe.ToolSpec, why string) troupe.Tool { return refused{spec, why} }

type refused struct {
	spec troupe.ToolSpec
	why  string
}

// Spec implements [troupe.Tool].
func (r refused) Spec() troupe.ToolSpec { return r.spec }

// Call implements [troupe.Tool].
func (r refused) Call(context.Context, *troupe.Call) (troupe.Result, error) {
	return troupe.Result{}, errors.New(r.why)
}
