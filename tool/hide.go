package tool

import (
	"context"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/secret"
)

// Hide wraps a tool so that no result and no error of it holds a value that m
// masks. It goes inside of [Cap], which keeps long results in files. The tool
// that Hide returns is a [troupe.Ordered] if t is.
func Hide(t troupe.Tool, m *secret.Mask) troupe.Tool {
	h := hidden{t, m}
	if o, ok := t.(troupe.Ordered); ok {
		return hiddenOrdered{h, o}
	}
	return h
}

type hidden struct {
	troupe.Tool
	mask *secret.Mask
}

type hiddenOrdered struct {
	hidden
	ordered troupe.Ordered
}

// Lane implements [troupe.Ordered].
func (h hiddenOrdered) Lane(c *troupe.Call) string { return h.ordered.Lane(c) }

// Call implements [troupe.Tool].
func (h hidden) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	res, err := h.Tool.Call(ctx, c)
	var content troupe.Blocks
	for _, b := range res.Content {
		if t, ok := b.(troupe.Text); ok {
			b = troupe.Text(h.mask.Text(string(t)))
		}
		content = append(content, b)
	}
	res.Content, res.Data = content, h.mask.JSON(res.Data)
	return res, h.mask.Error(err)
}
