package session

import (
	"bufio"
	"errors"
	"io"
	"iter"
)

// numbered is a line of a file, without its end.
type numbered struct {
	number int
	text   []byte
	ended  bool // by a newline
}

// lines yields the lines of r, however long. The last one may not be ended.
func lines(r io.Reader) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		most := int64(64 << 10)
		if part, ok := r.(*io.SectionReader); ok { // a follower reads a line or two
			most = min(most, part.Size())
		}
		br := bufio.NewReaderSize(r, int(most))
		for n := 1; ; n++ {
			b, err := br.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(numbered{}, err)
				return
			}
			ended := err == nil
			if len(b) > 0 && !yield(numbered{n, b, ended}, nil) {
				return
			}
			if !ended {
				return
			}
		}
	}
}
