package tool

import (
	"bytes"
	"context"
	"errors"
	"io"
)

const (
	startBuffer  = 64 << 10 // bytes read first; a file with a NUL among them is binary
	maxBuffer    = 4 << 20  // bytes of a line that are searched as one
	maxMultiline = 16 << 20 // bytes of a file that is searched across lines
)

// errTooLong says that a file is too large for a search across lines.
var errTooLong = errors.New("too large for a search across lines")

// A pieceReader holds a file to be searched, in memory that it uses for one
// file after the other: buf[pos:limit] is the text at hand, in whole lines. A
// line longer than maxBuffer comes in several texts.
//
// A binary file, one with a NUL at its start, has no text; of one with a NUL
// further on there is what comes before. If it was asked for by its name it is
// read nevertheless, and NULs are the ends of lines.
type pieceReader struct {
	buf        []byte
	pos, limit int

	file   io.Reader
	size   int // as the system says; some files have more than that
	named  bool
	binary bool // NULs were taken for the ends of lines
	cut    bool // what comes behind a NUL was left out
	end    int  // buf[:end] has been read
	begun  bool
	eof    bool
}

func (r *pieceReader) open(f io.Reader, size int64, named bool) {
	*r = pieceReader{buf: r.buf, file: f, size: int(size), named: named}
	if r.buf == nil {
		r.buf = make([]byte, startBuffer)
	}
}

// next brings the next text. What was in buf before keep is dropped, and the
// rest moved to its start. It returns io.EOF if there is no more.
func (r *pieceReader) next(ctx context.Context, keep int) error {
	copy(r.buf, r.buf[keep:r.end])
	r.end -= keep
	r.limit -= keep
	r.pos = r.limit
	for !r.eof {
		if err := r.read(ctx); err != nil {
			return err
		}
		if r.eof {
			break
		}
		fresh := r.buf[r.pos:r.end]
		if n := bytes.LastIndexByte(fresh, '\n') + 1; n > 0 {
			r.limit = r.pos + n
			return nil
		}
		if r.end == len(r.buf) {
			if len(r.buf) >= maxBuffer {
				r.limit = r.end
				return nil
			}
			r.grow()
		}
	}
	r.limit = r.end
	if r.pos == r.limit {
		return io.EOF
	}
	return nil
}

// all brings the whole file at once, with lines that end as on Unix unless
// carriage returns are to be kept.
func (r *pieceReader) all(ctx context.Context, keepCR bool) error {
	for !r.eof {
		if r.end == len(r.buf) {
			r.grow()
		}
		if err := r.read(ctx); err != nil {
			return err
		}
		if r.end > maxMultiline {
			return errTooLong
		}
	}
	if !keepCR {
		r.end = r.pos + len(unixLines(r.buf[r.pos:r.end]))
	}
	r.limit = r.end
	return nil
}

func (r *pieceReader) grow() { r.buf = append(r.buf, make([]byte, len(r.buf))...) }

// read adds to buf what the file gives next. The first time it fills buf as
// far as the file goes, so that what is binary does not depend on how the file
// is stored.
func (r *pieceReader) read(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var n int
	var err error
	if r.begun {
		n, err = r.file.Read(r.buf[r.end:])
	} else {
		n, err = io.ReadFull(r.file, r.buf[:startBuffer])
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		r.eof, err = true, nil
	}
	if err != nil {
		return err
	}
	r.take(n)
	return nil
}

// take looks at n bytes that were read.
func (r *pieceReader) take(n int) {
	fresh := r.buf[r.end : r.end+n]
	first := !r.begun
	r.begun = true
	if first && n > 0 && n == r.size {
		r.eof = true // saves asking again
	}
	if first && bytes.HasPrefix(fresh, []byte(byteOrderMark)) {
		fresh = fresh[:copy(fresh, fresh[len(byteOrderMark):])]
	}
	r.end += len(fresh)
	nul := bytes.IndexByte(fresh, 0)
	switch {
	case nul < 0:
	case r.named:
		r.binary = true
		for i, b := range fresh {
			if b == 0 {
				fresh[i] = '\n'
			}
		}
	case first:
		r.end, r.eof = 0, true
	default:
		r.end, r.eof, r.cut = r.end-len(fresh)+nul, true, true
	}
}

// unixLines takes the carriage returns at the ends of lines out, in place.
func unixLines(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	out := text[:0]
	for i, b := range text {
		if b != '\r' || i+1 < len(text) && text[i+1] != '\n' {
			out = append(out, b)
		}
	}
	return out
}
