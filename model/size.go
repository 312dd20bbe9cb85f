package model

import "github.com/troupe-sh/troupe"

// Size estimates how many bytes the body of a request will have, so that the
// memory for it is taken at once and not doubled again and again.
func Size(req *troupe.Request) int {
	const around = 64 // names and braces around a block
	n := len(req.System) + 4*around
	for _, t := range req.Tools {
		n += len(t.Description) + len(t.Schema) + around
	}
	for _, m := range req.Messages {
		n += around + size(m.Content, around)
	}
	return n + n/8 // what has to be escaped
}

func size(blocks troupe.Blocks, around int) int {
	n := 0
	for _, b := range blocks {
		n += around
		switch b := b.(type) {
		case troupe.Text:
			n += len(b)
		case troupe.Image:
			n += len(b.Data)
		case troupe.Thinking:
			n += len(b.Text) + len(b.Signature)
		case troupe.Opaque:
			n += len(b.JSON)
		case troupe.ToolUse:
			n += len(b.Input)
		case troupe.ToolResult:
			n += size(b.Content, around)
		}
	}
	return n
}
