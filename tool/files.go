package tool

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/troupe-sh/troupe"
)

// DefaultFiles is the number of files that an agent remembers unless it is
// told another.
const DefaultFiles = 1000

// Reasons for which a file is not changed.
var (
	// ErrNotRead says that the agent has not read the file, or so long ago
	// that it is not remembered.
	ErrNotRead = errors.New("not read yet; Read it before changing it")
	// ErrChanged says that the file has another content than the agent saw.
	ErrChanged = errors.New("changed since this agent read it")
)

// Files remembers which content of which file one agent has seen: what it read
// or wrote last. An agent may change a file only if that is the file's present
// content, so no change that it has not seen gets lost. Size and time of a
// file play no part: only equal content is equal.
//
// It is safe for concurrent use.
type Files struct {
	journal *Journal
	limit   int

	mu     sync.Mutex
	seen   map[string]*list.Element // by real path, of sight
	recent *list.List               // of sight, the last used first
}

// A sight is the content of a file that the agent saw.
type sight struct {
	path   string
	digest digest
}

// NewFiles returns the memory of an agent that has seen nothing. It holds limit
// files, 0 meaning DefaultFiles; of more it forgets those not used for the
// longest time, which must then be read again. The agents of a session share
// the journal.
func NewFiles(journal *Journal, limit int) *Files {
	if limit <= 0 {
		limit = DefaultFiles
	}
	return &Files{journal: journal, limit: limit, seen: make(map[string]*list.Element), recent: list.New()}
}

// Clone returns the memory of an agent that has seen what this one has seen so
// far, and from then on sees for itself.
func (f *Files) Clone() *Files {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := NewFiles(f.journal, f.limit)
	for e := f.recent.Back(); e != nil; e = e.Prev() {
		s := e.Value.(sight)
		out.seen[s.path] = out.recent.PushFront(s)
	}
	return out
}

// saw notes that the agent knows this content of the file at the real path.
func (f *Files) saw(path string, d digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.seen[path]; e != nil {
		e.Value = sight{path, d}
		f.recent.MoveToFront(e)
		return
	}
	f.seen[path] = f.recent.PushFront(sight{path, d})
	for f.recent.Len() > f.limit {
		oldest := f.recent.Back()
		f.recent.Remove(oldest)
		delete(f.seen, oldest.Value.(sight).path)
	}
}

// forget makes the file at the real path one that the agent has not read.
func (f *Files) forget(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.seen[path]; e != nil {
		f.recent.Remove(e)
		delete(f.seen, path)
	}
}

func (f *Files) lookUp(path string) (digest, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.seen[path]
	if e == nil {
		return digest{}, false
	}
	f.recent.MoveToFront(e)
	return e.Value.(sight).digest, true
}

// check tells whether the agent has seen the present content of the file at
// the real path.
func (f *Files) check(path string, present snapshot) error {
	known, ok := f.lookUp(path)
	switch {
	case present.info == nil && !ok:
		return nil // it is new to everybody
	case present.info == nil:
		// Once is enough to hear of it: then it is a new file.
		f.forget(path)
		return errGone()
	case !ok:
		return ErrNotRead
	case known == present.digest:
		return nil
	}
	return f.changed(path, present)
}

// changed is ErrChanged with what is known of who did it.
func (f *Files) changed(path string, present snapshot) error {
	if w, ok := f.journal.author(path, present.digest); ok {
		return fmt.Errorf("%w, by agent %s at %s; Read it again before changing it",
			ErrChanged, w.agent, w.at.Format("15:04:05"))
	}
	if present.info == nil {
		return errGone()
	}
	return fmt.Errorf("%w, by something else (a command, a user), as its time says at %s; Read it again before changing it",
		ErrChanged, present.info.ModTime().Format("15:04:05"))
}

func errGone() error {
	return fmt.Errorf("%w: it is gone; call Write again if it is to be made anew", ErrChanged)
}

// change gives the file at the real path the content that edit makes of the
// present one, if the agent has seen that; edit may refuse it. From the check
// to the replacement the path is locked for all agents. It returns the content
// before and after.
func (f *Files) change(ctx context.Context, c *troupe.Call, path string, edit func(snapshot) ([]byte, error)) (before snapshot, after []byte, err error) {
	unlock, err := f.journal.lock(ctx, path)
	if err != nil {
		return before, nil, err
	}
	defer unlock()
	before, err = takeSnapshot(path)
	if err != nil {
		return before, nil, err
	}
	if err := f.check(path, before); err != nil {
		return before, nil, err
	}
	after, err = edit(before)
	if err != nil {
		return before, nil, err
	}
	if before.info != nil && bytes.Equal(before.content, after) {
		return before, after, nil
	}
	if len(after) > maxFileSize {
		return before, nil, fmt.Errorf("the new content is %w", errTooLarge)
	}
	if err := ctx.Err(); err != nil {
		return before, nil, err
	}
	f.journal.Sweep(filepath.Dir(path))
	err = replaceFile(ctx, path, before, after, f.journal.self())
	if errors.Is(err, ErrChanged) {
		present, serr := takeSnapshot(path)
		if serr == nil {
			err = f.changed(path, present)
		}
	}
	if err != nil {
		return before, nil, err
	}
	made := sha256.Sum256(after)
	f.journal.wrote(path, c.Agent, made)
	f.saw(path, made)
	return before, after, nil
}

// lane is the lane of calls that work on the file that a call names: the
// real path, so that two names of one file are one lane.
func lane(c *troupe.Call, file string) string {
	if file == "" {
		return ""
	}
	path := resolve(c.Place, file)
	if real, err := realPath(path); err == nil {
		path = real
	}
	return "file:" + path
}
