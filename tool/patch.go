package tool

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// maxOriginal is the size in bytes up to which the data of a change repeats
// the file as it was before.
const maxOriginal = 64 << 10

// A hunk is a place where a file was changed, in the words of a unified diff:
// each line begins with ' ', '-' or '+'.
type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// structuredPatch is what turns before into after. It is empty for texts
// where that would be more than somebody looks at, or cost more than the
// change itself.
func structuredPatch(before, after string) []hunk {
	const maxSize, maxEdits = 1 << 20, 1000
	hunks := []hunk{}
	if len(before)+len(after) > maxSize {
		return hunks
	}
	edits := udiff.Lines(before, after)
	if len(edits) > maxEdits {
		return hunks
	}
	diff, err := udiff.ToUnifiedDiff("", "", before, edits, udiff.DefaultContextLines)
	if err != nil {
		return hunks // cannot be: the edits were made for this text
	}
	for _, h := range diff.Hunks {
		hunks = append(hunks, makeHunk(h))
	}
	return hunks
}

func makeHunk(h *udiff.Hunk) hunk {
	out := hunk{OldStart: h.FromLine, NewStart: h.ToLine}
	for _, l := range h.Lines {
		sign := " "
		switch l.Kind {
		case udiff.Delete:
			sign = "-"
			out.OldLines++
		case udiff.Insert:
			sign = "+"
			out.NewLines++
		default:
			out.OldLines++
			out.NewLines++
		}
		line, ended := strings.CutSuffix(l.Content, "\n")
		out.Lines = append(out.Lines, sign+line)
		if !ended {
			out.Lines = append(out.Lines, `\ No newline at end of file`)
		}
	}
	// A side without lines is named by the line before it.
	if out.OldLines == 0 {
		out.OldStart--
	}
	if out.NewLines == 0 {
		out.NewStart--
	}
	return out
}
