package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// Read yields the records of a log that are there now. A line that cannot be
// read is yielded as a [*Damage], and reading goes on after it.
func Read(path string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Record{}, fmt.Errorf("read log: %w", err))
			return
		}
		defer f.Close()
		p := pieces{from: f}
		for {
			batch, err := p.next()
			if !yieldAll(path, batch, yield) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("read log: %w", err))
				return
			}
		}
	}
}

// Sizes of what is read and parsed at once, in bytes. The first piece is small, as
// some want to know only how a log begins.
const (
	firstPiece = 64 << 10
	mostPiece  = 1 << 20
)

// pieces takes a file apart into lines, many at a time, all in one memory.
type pieces struct {
	from io.Reader
	mem  []byte
	rest []byte // the beginning of a line whose end was not read yet, within mem
	line int    // number of the last line
}

// next returns the next whole lines, with [io.EOF] those that are left, of which
// the last may have no end. They are good until the next call.
func (p *pieces) next() ([]numbered, error) {
	for {
		if size := max(min(mostPiece, 16*len(p.mem)), firstPiece, 2*len(p.rest)); size > len(p.mem) {
			p.mem = append(make([]byte, 0, size), p.rest...)[:size]
		} else {
			copy(p.mem, p.rest)
		}
		n, err := io.ReadFull(p.from, p.mem[len(p.rest):])
		all := p.mem[:len(p.rest)+n]
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return p.split(all), io.EOF
		}
		whole := bytes.LastIndexByte(all, '\n') + 1
		p.rest = all[whole:]
		if whole > 0 || err != nil {
			return p.split(all[:whole]), err
		}
	}
}

// split returns the lines of text that are not blank.
func (p *pieces) split(text []byte) (out []numbered) {
	for l := range bytes.Lines(text) {
		p.line++
		if len(bytes.TrimSpace(l)) > 0 {
			out = append(out, numbered{number: p.line, text: l})
		}
	}
	return out
}

// yieldAll parses lines, by all processors, and yields their records in order: to
// parse is nearly all that reading a log costs.
func yieldAll(path string, batch []numbered, yield func(Record, error) bool) bool {
	type result struct {
		rec Record
		err error
	}
	results := make([]result, len(batch))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(batch)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(batch)); i = next.Add(1) - 1 {
				rec, err := parse(batch[i].text)
				if rec.Line = batch[i].number; err != nil {
					err = &Damage{path, batch[i].number, err}
				}
				results[i] = result{rec, err}
			}
		})
	}
	wg.Wait()
	for _, r := range results {
		if !yield(r.rec, r.err) {
			return false
		}
	}
	return true
}
