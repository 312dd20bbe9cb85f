package tool

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// What Grep can be asked for.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

// maxLineShown is how many bytes of a line are shown.
const maxLineShown = 2000

// A grepQuery is what is wanted of each file.
type grepQuery struct {
	pattern       *grepPattern
	mode          string
	multiline     bool
	only          bool // show the matches, not their lines
	before, after int  // lines of context
	most          int  // lines shown after which a file need not be searched further; 0 is all
}

// A fileMatch is what was found in one file.
type fileMatch struct {
	count int // lines with a match, or matches if they may span lines
	lines []shownLine
}

// A shownLine is one line of output. Mark is ':' for a match, '-' for context
// and 0 for a remark on the file, which has no number.
type shownLine struct {
	number int
	mark   byte
	gap    bool // lines of the file between the one before and this are left out
	text   string
}

// A fileSearch searches one file after the other with the same memory. It is
// for one goroutine.
type fileSearch struct {
	grepQuery
	finder *lineFinder
	pieceReader

	// Of the file at hand. Places are in the buffer of the reader.
	found     fileMatch
	counted   int // place up to which lines are counted
	number    int // of the line at counted
	shownTo   int // place behind the last line shown
	lastShown int // number of the last line shown
	owed      int // lines of context that the last match still wants
}

func newFileSearch(q grepQuery) *fileSearch {
	return &fileSearch{grepQuery: q, finder: newLineFinder(q.pattern)}
}

// search looks through a file. One that was asked for by its name is searched
// even if it is binary.
func (s *fileSearch) search(ctx context.Context, f io.Reader, size int64, named bool) (fileMatch, error) {
	s.open(f, size, named)
	s.found, s.number = fileMatch{}, 1
	s.counted, s.shownTo, s.lastShown, s.owed = 0, 0, 0, 0
	if s.multiline {
		if err := s.all(ctx, s.pattern.keepCR); err != nil {
			return fileMatch{}, err
		}
		s.spans()
		return s.found, nil
	}
	for {
		keep := s.keepFrom()
		err := s.next(ctx, keep)
		s.counted -= keep
		s.shownTo = max(0, s.shownTo-keep)
		if err == io.EOF {
			if s.cut && s.mode == modeCount {
				return fileMatch{}, nil // a number that is too small would mislead
			}
			return s.found, nil
		}
		if err != nil {
			return fileMatch{}, err
		}
		if s.lines() {
			return s.found, nil
		}
	}
}

// lines searches the text at hand line by line. It reports whether the file
// need not be searched further.
func (s *fileSearch) lines() (done bool) {
	s.finder.begin()
	for s.pos < s.limit {
		lo, hi := s.finder.next(s.buf[:s.limit], s.pos)
		if lo < 0 {
			break
		}
		s.found.count++
		if s.show(lo, hi) {
			return true
		}
	}
	s.trail(s.limit)
	return false
}

// spans searches the text at hand for matches that may span lines.
func (s *fileSearch) spans() {
	most := -1
	switch {
	case s.mode == modeFiles:
		most = 1
	case s.mode == modeContent && s.most > 0:
		most = s.most
	}
	s.finder.beginSpans(s.buf[s.pos:s.limit], most)
	start := s.pos
	for {
		lo, hi, n := s.finder.nextSpan(s.buf[start:s.limit], s.pos-start)
		if n == 0 {
			break
		}
		s.found.count += n
		if s.show(start+lo, start+hi) {
			return
		}
	}
	s.trail(s.limit)
}

// keepFrom is where the text begins that is still needed when all up to limit
// has been searched: lines that a match to come may show as context, unless
// they fill more than half of the buffer.
func (s *fileSearch) keepFrom() int {
	if s.mode != modeContent {
		return s.limit
	}
	s.countTo(s.limit)
	from := s.limit
	for n := 0; n < s.before && from > 0; n++ {
		start := bytes.LastIndexByte(s.buf[:from-1], '\n') + 1
		if s.limit-start > len(s.buf)/2 {
			break
		}
		from = start
	}
	return from
}

// show takes the lines of a match, buf[lo:hi], with their context, and moves
// pos behind them. It reports whether the file need not be searched further.
func (s *fileSearch) show(lo, hi int) (done bool) {
	if s.mode != modeContent {
		s.pos = hi
		return s.mode == modeFiles
	}
	if s.binary {
		s.found.lines = append(s.found.lines, shownLine{text: "binary file matches"})
		return true
	}
	s.trail(lo)
	s.lead(lo)
	if s.only {
		s.matches(lo, hi)
	} else {
		for lo < hi {
			_, end := lineAround(s.buf[:hi], lo, lo)
			s.line(lo, end, ':')
			lo = end
		}
	}
	s.owed, s.pos = s.after, hi
	return s.most > 0 && len(s.found.lines) >= s.most
}

// trail shows the lines from pos on, up to the place to, that the last match
// wants after it.
func (s *fileSearch) trail(to int) {
	for s.owed > 0 && s.pos < to {
		_, end := lineAround(s.buf[:to], s.pos, s.pos)
		s.line(s.pos, end, '-')
		s.pos = end
		s.owed--
	}
}

// lead shows the lines that the match at the place to wants before it.
func (s *fileSearch) lead(to int) {
	from := to
	for n := 0; n < s.before && from > s.shownTo; n++ {
		from = max(s.shownTo, bytes.LastIndexByte(s.buf[:from-1], '\n')+1)
	}
	for from < to {
		_, end := lineAround(s.buf[:to], from, from)
		s.line(from, end, '-')
		from = end
	}
}

// line shows buf[lo:hi].
func (s *fileSearch) line(lo, hi int, mark byte) {
	text := s.trimmed(lo, hi)
	at := 0
	if len(text) > maxLineShown && mark == ':' {
		if m := s.pattern.re.FindIndex(text); m != nil {
			at = m[0]
		}
	}
	s.add(s.numberAt(lo), mark, cutLine(text, at))
	s.shownTo = hi
}

// matches shows the matches in buf[lo:hi] without what stands around them.
func (s *fileSearch) matches(lo, hi int) {
	text := s.buf[lo:hi]
	if !s.multiline {
		text = s.trimmed(lo, hi)
	}
	for _, m := range s.pattern.re.FindAllIndex(text, -1) {
		number := s.numberAt(lo) + bytes.Count(text[:m[0]], []byte("\n"))
		for part := range bytes.Lines(text[m[0]:m[1]]) {
			s.add(number, ':', cutLine(bytes.TrimSuffix(part, []byte("\n")), 0))
			number++
		}
	}
	s.shownTo = hi
}

// trimmed is buf[lo:hi] without the end of its line.
func (s *fileSearch) trimmed(lo, hi int) []byte {
	text := bytes.TrimSuffix(s.buf[lo:hi], []byte("\n"))
	if !s.pattern.keepCR {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	return text
}

func (s *fileSearch) add(number int, mark byte, text string) {
	gap := s.lastShown > 0 && number > s.lastShown+1
	s.found.lines = append(s.found.lines, shownLine{number, mark, gap, text})
	s.lastShown = number
}

// countTo counts the lines up to a place, numberAt tells which line begins
// there. Places may go back as far as lines are kept.
func (s *fileSearch) countTo(place int) {
	if place > s.counted {
		s.number += bytes.Count(s.buf[s.counted:place], []byte("\n"))
	} else {
		s.number -= bytes.Count(s.buf[place:s.counted], []byte("\n"))
	}
	s.counted = place
}

func (s *fileSearch) numberAt(place int) int {
	s.countTo(place)
	return s.number
}

// cutLine makes a line fit to be shown. A long one is cut to the part around
// the place at.
func cutLine(line []byte, at int) string {
	if len(line) <= maxLineShown {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	from := 0
	if at > maxLineShown*3/4 {
		from = min(at-maxLineShown/4, len(line)-maxLineShown)
	}
	to := from + maxLineShown
	for from > 0 && from < to && !utf8.RuneStart(line[from]) {
		from++
	}
	for to > from && to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	text := strings.ToValidUTF8(string(line[from:to]), "\uFFFD")
	if from > 0 {
		text = fmt.Sprintf("[%d bytes cut] %s", from, text)
	}
	if to < len(line) {
		text = fmt.Sprintf("%s [%d bytes cut]", text, len(line)-to)
	}
	return text
}
