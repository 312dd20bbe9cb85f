package tool

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A source is the stream of a file, looked at while it passes by.
type source struct {
	text   *bufio.Reader // what to show of the file
	binary string        // the media type, if it is not text
	utf16  bool
	valid  validity // of the bytes that have passed

	file   io.Reader
	info   fs.FileInfo
	hash   hash.Hash
	passed int64
	ended  bool
}

// openSource begins to read f and finds out what it is.
func openSource(f *os.File, info fs.FileInfo) (*source, error) {
	s := &source{file: unwaiting(f, info), info: info, hash: sha256.New()}
	s.text = bufio.NewReaderSize(s, 64<<10)
	head, err := s.text.Peek(8 << 10)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if order := utf16Order(head); order != nil {
		s.utf16 = true
		s.text = bufio.NewReaderSize(&utf16Reader{in: s.text, order: order}, 64<<10)
	} else {
		s.binary = binaryType(head)
	}
	return s, nil
}

// Read passes on what the file has.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	s.passed += int64(n)
	if !s.huge() {
		s.hash.Write(p[:n])
	}
	s.valid.write(p[:n])
	s.ended = s.ended || err == io.EOF
	return n, err
}

// huge says that the file is too large to be changed, and so to be hashed. A
// file can be longer than its size says: while it grows, or under /proc.
func (s *source) huge() bool { return s.size() > maxFileSize }

// size is that of the file, as far as it is known.
func (s *source) size() int64 { return max(s.info.Size(), s.passed) }

// digest is that of the whole file, if the whole file has passed by.
func (s *source) digest() (d digest, whole bool) {
	if s.huge() || !s.ended {
		return d, false
	}
	return digest(s.hash.Sum(nil)), true
}

// drain lets the rest of the file pass by, unless that is huge.
func (s *source) drain(ctx context.Context) error {
	buf := make([]byte, 64<<10)
	for !s.huge() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := s.text.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// binaryType is the media type of a file that begins with head, or "" if it
// is text. Text has no NUL and few control characters; the beginnings of some
// formats are words of plain text too (BM, ID3), so they count only for what
// is not UTF-8.
func binaryType(head []byte) string {
	const unknown = "application/octet-stream"
	kind := http.DetectContentType(head)
	if strings.HasPrefix(kind, "text/") {
		kind = unknown
	}
	control := 0
	for _, b := range head {
		if b < ' ' && !bytes.ContainsRune([]byte("\t\n\r\f\b\x1b"), rune(b)) {
			control++
		}
	}
	utf8Text := utf8.Valid(head[:len(head)-len(openEnd(head))])
	switch {
	case bytes.IndexByte(head, 0) >= 0, 20*control > len(head), bytes.HasPrefix(head, []byte("%PDF-")):
		return kind
	case kind != unknown && !utf8Text:
		return kind
	}
	return ""
}

// validity tells whether what is written to it is UTF-8.
type validity struct {
	bad  bool
	rest []byte // a character of which more is to come
}

func (v *validity) write(p []byte) {
	if v.bad {
		return
	}
	if len(v.rest) > 0 {
		p = append(v.rest, p...)
	}
	whole := len(p) - len(openEnd(p))
	v.bad = !utf8.Valid(p[:whole])
	v.rest = bytes.Clone(p[whole:])
}

func (v *validity) ok() bool { return !v.bad && len(v.rest) == 0 }

// openEnd is the beginning of a character at the end of p, if there is one.
func openEnd(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if last := p[len(p)-i:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return nil
			}
			return last
		}
	}
	return nil
}

// utf16Order is the byte order that a byte order mark of UTF-16 tells, nil if
// there is none. (Two zero bytes after it would make it one of UTF-32.)
func utf16Order(head []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe, 0, 0}):
		return nil
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return binary.BigEndian
	}
	return nil
}

// A utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
}

// Read implements [io.Reader]; p must have room for one character.
func (u *utf16Reader) Read(p []byte) (int, error) {
	n := 0
	for n+utf8.UTFMax <= len(p) {
		unit, err := u.in.Peek(2)
		if len(unit) == 0 {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		used := len(unit)
		r := utf8.RuneError // for a byte that is left over
		if used == 2 {
			r = rune(u.order.Uint16(unit))
		}
		if utf16.IsSurrogate(r) {
			r, used = u.pair(r)
		}
		n += utf8.EncodeRune(p[n:], r)
		u.in.Discard(used) // cannot fail: it was peeked
	}
	return n, nil
}

// pair is the character that begins with the surrogate first, and its length.
func (u *utf16Reader) pair(first rune) (rune, int) {
	four, _ := u.in.Peek(4)
	if len(four) == 4 {
		if r := utf16.DecodeRune(first, rune(u.order.Uint16(four[2:]))); r != utf8.RuneError {
			return r, 4
		}
	}
	return utf8.RuneError, 2
}

// byteSize is n bytes in words.
func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}
