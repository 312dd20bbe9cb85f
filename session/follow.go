package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Reader reads all logs of a session while they grow. It is for one
// goroutine; any process may have one, at its own pace.
type Reader struct {
	dir  string
	read map[string]int64 // bytes of each agent's log that were read
	file *os.File         // the log that was read last, kept open while there is more to come
}

// NewReader returns a Reader at the beginning of the session in dir.
func NewReader(dir string) *Reader { return &Reader{dir: dir, read: map[string]int64{}} }

// Next returns the records that are new since the last call, those of all
// agents in the order in which they were written. Lines that cannot be read
// are joined in the error; the records are good all the same.
func (r *Reader) Next() ([]Record, error) {
	defer r.close()
	sizes, err := sizes(r.dir)
	if err != nil {
		return nil, err
	}
	return r.upTo(sizes)
}

// sizes returns how long the logs in dir are.
func sizes(dir string) (map[string]int64, error) {
	out := map[string]int64{}
	paths := []string{LogPath(dir, Lead)}
	entries, err := os.ReadDir(filepath.Join(dir, "agents"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read session: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jsonl") && !strings.HasSuffix(e.Name(), ".sent.jsonl") {
			paths = append(paths, filepath.Join(dir, "agents", e.Name()))
		}
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read session: %w", err)
		}
		out[strings.TrimSuffix(filepath.Base(p), ".jsonl")] = info.Size()
	}
	return out, nil
}

func (r *Reader) upTo(sizes map[string]int64) ([]Record, error) {
	var out []Record
	var errs []error
	for agent, size := range sizes {
		if size <= r.read[agent] {
			continue
		}
		recs, err := r.readLog(agent, size)
		out = append(out, recs...)
		errs = append(errs, err)
	}
	slices.SortStableFunc(out, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return out, errors.Join(errs...)
}

// open opens a log unless it is the one that is open.
func (r *Reader) open(path string) (f *os.File, err error) {
	if r.file != nil && r.file.Name() == path {
		return r.file, nil
	}
	r.close()
	r.file, err = os.Open(path)
	return r.file, err
}

func (r *Reader) close() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
	}
}

// readLog reads the whole lines of one log up to size.
func (r *Reader) readLog(agent string, size int64) ([]Record, error) {
	f, err := r.open(LogPath(r.dir, agent))
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	from := r.read[agent]
	var out []Record
	var errs []error
	for b, err := range lines(io.NewSectionReader(f, from, size-from)) {
		if err != nil {
			return out, errors.Join(append(errs, err)...)
		}
		if !b.ended {
			break // it is being written
		}
		r.read[agent] += int64(len(b.text))
		if len(bytes.TrimSpace(b.text)) == 0 {
			continue
		}
		rec, err := parse(b.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("log of %s: %w", agent, err))
			continue
		}
		rec.Agent = agent
		out = append(out, rec)
	}
	return out, errors.Join(errs...)
}

// Follow yields the records of all agents in the order in which they were
// written, from the mark on, those to come included, until ctx ends, or over is
// closed: then nothing more will come, and what is there is yielded first. Each
// follower has its own pace: a slow one delays nobody, costs no memory and
// loses no record.
func (f *Folder) Follow(ctx context.Context, from Mark, over <-chan struct{}) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := NewReader(f.Dir)
		defer r.close()
		for agent, size := range from {
			r.read[agent] = size
		}
		for last := false; ; {
			// Sizes taken at one moment keep the order over several logs.
			now, changed := f.look()
			recs, err := r.upTo(now)
			for _, rec := range recs {
				if !yield(rec, nil) {
					return
				}
			}
			if err != nil && !yield(Record{}, err) {
				return
			}
			if last {
				return
			}
			select {
			case <-changed:
			case <-over:
				last = true
			case <-ctx.Done():
				return
			}
		}
	}
}

// A Mark is a point in the life of a session.
type Mark map[string]int64

// Mark returns the present end of what this process has written or opened.
func (f *Folder) Mark() Mark {
	m, _ := f.look()
	return m
}

func (f *Folder) look() (Mark, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := Mark{}
	for _, l := range f.logs {
		m[l.agent] = l.size
	}
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return m, f.changed
}
