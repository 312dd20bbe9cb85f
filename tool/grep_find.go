package tool

import "bytes"

// A lineFinder finds the lines of a text that have a match. It is for one
// goroutine.
type lineFinder struct {
	pattern *grepPattern
	auto    *automaton
	places  []int // of each needle, its next place, -1 if that has to be looked for
	spans   []int // starts and ends of the matches left, if they may span lines
}

func newLineFinder(p *grepPattern) *lineFinder {
	return &lineFinder{pattern: p, auto: newAutomaton(p), places: make([]int, len(p.needles))}
}

// begin is called when there is a new text.
func (f *lineFinder) begin() {
	for i := range f.places {
		f.places[i] = -1
	}
}

// next finds the first line with a match in text[pos:]: text[lo:hi], with its
// end. If there is none, lo is -1. Pos is the start of a line.
func (f *lineFinder) next(text []byte, pos int) (lo, hi int) {
	for pos < len(text) {
		at := f.candidate(text, pos)
		if at < 0 {
			break
		}
		lo, hi = lineAround(text, pos, at)
		if f.pattern.plain || len(f.places) == 0 || f.auto.find(text[lo:hi]) >= 0 {
			return lo, hi
		}
		pos = hi
	}
	return -1, -1
}

// candidate is a place in the next line that can have a match. The word of the
// automaton is final, that of needles is not.
func (f *lineFinder) candidate(text []byte, pos int) int {
	if len(f.places) == 0 {
		if at := f.auto.find(text[pos:]); at >= 0 {
			return pos + at
		}
		return -1
	}
	nearest := len(text)
	for i := range f.places {
		if f.places[i] < pos {
			f.places[i] = len(text)
			if at := f.pattern.needles[i].index(text[pos:]); at >= 0 {
				f.places[i] = pos + at
			}
		}
		nearest = min(nearest, f.places[i])
	}
	if nearest == len(text) {
		return -1
	}
	return nearest
}

// beginSpans finds up to most matches in text, -1 being all, for nextSpan.
func (f *lineFinder) beginSpans(text []byte, most int) {
	f.spans = f.spans[:0]
	for i := range f.pattern.needles {
		if f.pattern.needles[i].index(text) >= 0 {
			break
		}
		if i == len(f.pattern.needles)-1 {
			return
		}
	}
	for _, m := range f.pattern.re.FindAllIndex(text, most) {
		// Behind the end of the last line there is no line.
		if m[0] < len(text) || len(text) > 0 && text[len(text)-1] != '\n' {
			f.spans = append(f.spans, m[0], m[1])
		}
	}
}

// nextSpan is next for matches that may span lines: text[lo:hi] are the lines
// of the first match and of those that begin in them, n matches in all.
func (f *lineFinder) nextSpan(text []byte, pos int) (lo, hi, n int) {
	if len(f.spans) == 0 {
		return -1, -1, 0
	}
	lo, hi = lineAround(text, pos, f.spans[0])
	for ; len(f.spans) > 0 && (n == 0 || f.spans[0] < hi); n++ {
		if end := f.spans[1]; end > hi {
			_, hi = lineAround(text, hi, end-1)
		}
		f.spans = f.spans[2:]
	}
	return lo, hi, n
}

// lineAround is the line of text that has the byte at, with its end. Pos is
// the start of that line or of one before.
func lineAround(text []byte, pos, at int) (lo, hi int) {
	lo = pos + bytes.LastIndexByte(text[pos:at], '\n') + 1
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return lo, at + n + 1
	}
	return lo, len(text)
}
