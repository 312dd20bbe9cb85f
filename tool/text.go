package tool

import (
	"slices"
	"strings"
)

const byteOrderMark = "\ufeff"

// A text is the content of a text file in two forms: as it is, and as a model
// sees it, without byte order mark and with \n for every line end. A model
// cannot tell \r\n from \n in what it was shown, and writes \n.
type text struct {
	raw     string // without the mark
	mark    bool
	body    string // raw with \n for \r\n
	returns []int  // where in body a \n stands for \r\n
}

func parseText(content []byte) text {
	var t text
	t.raw, t.mark = strings.CutPrefix(string(content), byteOrderMark)
	if !strings.Contains(t.raw, "\r\n") {
		t.body = t.raw
		return t
	}
	var body strings.Builder
	body.Grow(len(t.raw))
	rest := t.raw
	for {
		line, after, more := strings.Cut(rest, "\r\n")
		body.WriteString(line)
		if !more {
			break
		}
		t.returns = append(t.returns, body.Len())
		body.WriteByte('\n')
		rest = after
	}
	t.body = body.String()
	return t
}

// lineEnd is the line end that most lines of t have; \n if none wins.
func (t text) lineEnd() string {
	if 2*len(t.returns) > strings.Count(t.body, "\n") {
		return "\r\n"
	}
	return "\n"
}

// rawOffset is where in raw the offset of body is.
func (t text) rawOffset(offset int) int {
	before, _ := slices.BinarySearch(t.returns, offset)
	return offset + before
}

// replace returns the content of the file with new in place of the length
// bytes of body at each of the offsets, which are in order. All else stays
// byte for byte, also where line ends are mixed; new gets the line end of what
// it replaces, or else of the file.
func (t text) replace(offsets []int, length int, new string) []byte {
	var out strings.Builder
	out.Grow(len(byteOrderMark) + len(t.raw) + len(offsets)*(len(new)-length)) // or a little more, for the line ends
	if t.mark {
		out.WriteString(byteOrderMark)
	}
	usual, done := t.lineEnd(), 0
	for _, o := range offsets {
		start, end := t.rawOffset(o), t.rawOffset(o+length)
		lineEnd := usual
		switch replaced := t.raw[start:end]; {
		case strings.Contains(replaced, "\r\n"):
			lineEnd = "\r\n"
		case strings.Contains(replaced, "\n"):
			lineEnd = "\n"
		}
		out.WriteString(t.raw[done:start])
		out.WriteString(withLineEnds(new, lineEnd))
		done = end
	}
	out.WriteString(t.raw[done:])
	return []byte(out.String())
}

// plainLineEnds is s with \n for \r\n.
func plainLineEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// withLineEnds is s, which has \n for every line end, with another.
func withLineEnds(s, lineEnd string) string {
	if lineEnd == "\n" {
		return s
	}
	return strings.ReplaceAll(s, "\n", lineEnd)
}

// countLines is the number of lines of s; one without line end at the end of
// s counts.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
