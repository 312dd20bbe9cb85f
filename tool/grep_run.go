package tool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
)

// A grepRun searches files side by side and puts what it finds in the order of
// the files. It stops as soon as the first files have given enough.
type grepRun struct {
	query grepQuery
	root  string   // absolute
	shown string   // root as the caller named it
	files []string // relative to root, in the order of the result; "" is root itself
	named bool     // the caller gave the one file by its name
	need  int      // entries that are enough; 0 is all

	mu      sync.Mutex
	turn    *sync.Cond
	next    int               // the file to be searched next
	early   map[int]fileMatch // found, but files before are not done
	done    int               // files[:done] are in the result
	entries int               // that they gave
	result  []foundFile
	unread  int // files that could not be read
	tooLong int // files too large for a search across lines
	failed  error
}

// A foundFile is a file with a match.
type foundFile struct {
	rel string
	fileMatch
}

// ahead is how many files may be searched before the first of them is done. It
// bounds what has to be held for them.
const ahead = 256

// run searches the files. It ends when all goroutines that it started have.
func (r *grepRun) run(ctx context.Context) ([]foundFile, error) {
	r.turn = sync.NewCond(&r.mu)
	r.early = make(map[int]fileMatch)
	var wg sync.WaitGroup
	for range min(len(r.files), max(2, runtime.GOMAXPROCS(0))) {
		wg.Go(func() { r.work(ctx) })
	}
	wg.Wait()
	if r.failed != nil {
		return nil, r.failed
	}
	return r.result, ctx.Err()
}

// notes says what was not searched.
func (r *grepRun) notes() []string {
	var notes []string
	if r.unread > 0 {
		notes = append(notes, fmt.Sprintf("files that could not be read: %d", r.unread))
	}
	if r.tooLong > 0 {
		notes = append(notes, fmt.Sprintf("files of more than %d MB, not searched across lines: %d", maxMultiline>>20, r.tooLong))
	}
	return notes
}

func (r *grepRun) work(ctx context.Context) {
	search := newFileSearch(r.query)
	for {
		i, ok := r.take(ctx)
		if !ok {
			return
		}
		m, err := r.file(ctx, search, i)
		r.give(ctx, i, m, err)
	}
}

// take gives out the next file.
func (r *grepRun) take(ctx context.Context) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.next < len(r.files) && r.next >= r.done+ahead && !r.over(ctx) {
		r.turn.Wait()
	}
	if r.next == len(r.files) || r.over(ctx) {
		return 0, false
	}
	r.next++
	return r.next - 1, true
}

func (r *grepRun) over(ctx context.Context) bool {
	return ctx.Err() != nil || r.failed != nil || r.need > 0 && r.entries >= r.need
}

// give takes what was found in a file, and moves the result on as far as files
// are done without a hole.
func (r *grepRun) give(ctx context.Context, i int, m fileMatch, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil || ctx.Err() != nil:
	case r.named:
		r.failed = err
	case errors.Is(err, errTooLong):
		r.tooLong++
	default:
		r.unread++
	}
	r.early[i] = m
	for {
		m, ok := r.early[r.done]
		if !ok {
			break
		}
		delete(r.early, r.done)
		if m.count > 0 && !r.over(ctx) {
			r.result = append(r.result, foundFile{r.files[r.done], m})
			r.entries += max(1, len(m.lines))
		}
		r.done++
	}
	r.turn.Broadcast()
}

func (r *grepRun) file(ctx context.Context, search *fileSearch, i int) (fileMatch, error) {
	f, info, err := openFound(filepath.Join(r.root, filepath.FromSlash(r.files[i])))
	if err != nil {
		return fileMatch{}, err
	}
	defer f.Close()
	return search.search(ctx, unwaiting(f, info), info.Size(), r.named)
}
