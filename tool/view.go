package tool

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
)

const (
	viewLines    = 2000 // lines shown unless the call names another number
	viewLineSize = 2000 // characters shown of one line
	viewNotices  = 500  // characters kept free for what is said about the view
)

// A view is the part of a text file that Read shows.
type view struct {
	from  int // first line shown, from 1
	lines int // lines shown at most
	room  int // characters left

	out   strings.Builder
	line  []byte // space for a line
	shown int    // lines in out
	total int    // lines of the file that have passed by
	full  bool   // a line was wanted that is not in out
	kind  string // what the lines are of: text, notebook
	notes string // to be said behind them
}

// newView makes a view of as many lines from offset on as lines and limit, in
// characters, allow; 0 stands for the usual value.
func newView(offset, lines, limit int) *view {
	if lines == 0 {
		lines = viewLines
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &view{from: max(offset, 1), lines: lines, room: max(limit-viewNotices, viewNotices), kind: "text"}
}

// fill takes the lines of s until they end. Of a file that is too large to be
// changed it takes no more than it shows: neither the number of its lines nor
// its hash is needed.
func (v *view) fill(ctx context.Context, s *source) error {
	for !v.full || !s.huge() {
		line, left, err := nextLine(ctx, s.text, v.line[:0])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		v.line = line
		v.total++
		if v.total == 1 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if v.total >= v.from && !v.full {
			v.show("", line, left)
		}
	}
	return nil
}

// nextLine appends the next line to the empty slice line, without its end,
// and tells how many characters of a long one were left out. At the end the
// error is io.EOF.
func nextLine(ctx context.Context, r *bufio.Reader, line []byte) (_ []byte, left int, err error) {
	const kept = viewLineSize * utf8.UTFMax
	for {
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		part, err := r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return nil, 0, err
		}
		if err == io.EOF && len(part) == 0 && len(line) == 0 && left == 0 {
			return nil, 0, io.EOF
		}
		part = bytes.TrimSuffix(part, []byte("\n"))
		fits := min(len(part), kept-len(line))
		line = append(line, part[:fits]...)
		left += characters(part[fits:])
		if err == bufio.ErrBufferFull {
			continue
		}
		if left == 0 {
			line = bytes.TrimSuffix(line, []byte("\r"))
		}
		end := prefix(line, viewLineSize)
		left += characters(line[end:])
		return line[:end], left, nil
	}
}

// show appends a line to the view if there is room for it, and above it what
// heads it.
func (v *view) show(above string, line []byte, left int) {
	if v.shown == v.lines {
		v.full = true
		return
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(line), "\uFFFD"), "\x00", "\uFFFD")
	rendered := fmt.Sprintf("%s%6d\t%s%s\n", above, v.total, text, cutMark(left))
	n := utf8.RuneCountInString(rendered)
	if n > v.room && v.shown > 0 {
		v.full = true
		return
	}
	if n > v.room { // a first line must be shown, or no call would ever pass it
		over := n - v.room + len(cutMark(left+n))
		end := prefix([]byte(text), max(utf8.RuneCountInString(text)-over, 0))
		left += utf8.RuneCountInString(text[end:])
		rendered = fmt.Sprintf("%s%6d\t%s%s\n", above, v.total, text[:end], cutMark(left))
	}
	v.out.WriteString(rendered)
	v.room -= n
	v.shown++
}

func cutMark(left int) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf(" [line cut: %d more characters]", left)
}

// result is the view with what has to be said about it.
func (v *view) result(path string, s *source) (troupe.Result, error) {
	if v.total == 0 {
		return troupe.Answer(path + " is empty."), nil
	}
	if v.shown == 0 {
		return troupe.Result{}, fmt.Errorf("the file has %d lines; offset %d is behind its end", v.total, v.from)
	}
	last := v.from + v.shown - 1
	if v.full && s.huge() {
		fmt.Fprintf(&v.out, "[lines %d-%d of a file of %s; go on with offset %d]\n", v.from, last, byteSize(s.size()), last+1)
	} else if v.full {
		fmt.Fprintf(&v.out, "[lines %d-%d of %d; go on with offset %d]\n", v.from, last, v.total, last+1)
	}
	if s.huge() {
		fmt.Fprintf(&v.out, "[a file of more than %d MB can only be read in parts; Write and Edit refuse it]\n", maxFileSize>>20)
	}
	if s.utf16 {
		v.out.WriteString("[the file is UTF-16, not UTF-8; Edit refuses it]\n")
	} else if !s.valid.ok() {
		v.out.WriteString("[the file is not UTF-8 (perhaps Latin-1): what could not be shown is \uFFFD, and Edit refuses it]\n")
	}
	v.out.WriteString(v.notes)
	type part struct {
		FilePath   string `json:"filePath"`
		StartLine  int    `json:"startLine"`
		NumLines   int    `json:"numLines"`
		TotalLines int    `json:"totalLines,omitempty"` // not known of a huge file
	}
	shown := part{path, v.from, v.shown, v.total}
	if s.huge() {
		shown.TotalLines = 0
	}
	data, err := troupe.Encode(map[string]any{"type": v.kind, "file": shown})
	if err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	res := troupe.Answer(v.out.String())
	res.Data = data
	return res, nil
}

// prefix is the length in bytes of the first n characters of p.
func prefix(p []byte, n int) int {
	end := 0
	for ; n > 0 && end < len(p); n-- {
		_, width := utf8.DecodeRune(p[end:])
		end += width
	}
	return end
}

// characters is the number of characters that begin in p.
func characters(p []byte) int {
	n := 0
	for _, b := range p {
		if utf8.RuneStart(b) {
			n++
		}
	}
	return n
}
