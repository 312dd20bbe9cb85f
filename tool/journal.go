package tool

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/proc"
)

// A Journal knows which agent wrote which file when. All agents of a session
// share one, so that an agent whose file another has changed hears who it was,
// and so that two agents never change one file at the same moment. It is safe
// for concurrent use.
type Journal struct {
	now func() time.Time

	mu    sync.Mutex
	last  map[string]written   // by real path
	locks map[string]*pathLock // of the paths that somebody holds or waits for
	swept map[string]bool      // directories without what a killed run has left

	self func() statefile.Owner
}

// written is the last write of a file by an agent.
type written struct {
	agent string
	at    time.Time
	made  digest
}

// A pathLock is held by whoever has put the one value into held.
type pathLock struct {
	held  chan struct{}
	users int
}

// NewJournal returns an empty journal. Now is the clock by which it notes
// when a file was written.
func NewJournal(now func() time.Time) *Journal {
	return &Journal{now: now, last: make(map[string]written), locks: make(map[string]*pathLock), swept: make(map[string]bool),
		self: sync.OnceValue(proc.Owner)}
}

// Sweep removes the temporary files that a run which was killed while it wrote a
// file has left in dir. It is done once for a directory; who writes there does it.
func (j *Journal) Sweep(dir string) {
	j.mu.Lock()
	done := j.swept[dir]
	j.swept[dir] = true
	j.mu.Unlock()
	if !done {
		j.self().Sweep(dir)
	}
}

// Recover removes what the open calls of a run that was killed may have left, in
// the directories of their files and in that of the agent.
func (j *Journal) Recover(p troupe.Place, open []troupe.ToolUse) {
	if len(open) == 0 {
		return
	}
	j.Sweep(p.Dir)
	for _, u := range open {
		var in struct {
			File     string `json:"file_path"`
			Notebook string `json:"notebook_path"`
		}
		_ = json.Unmarshal(u.Input, &in) // of what is no such call nothing is known
		for _, file := range []string{in.File, in.Notebook} {
			if path, err := realPath(resolve(p, file)); file != "" && err == nil {
				j.Sweep(filepath.Dir(path))
			}
		}
	}
}

// lock waits until no other agent changes the file at the real path, or for
// the end of ctx. The caller must call unlock.
func (j *Journal) lock(ctx context.Context, path string) (unlock func(), err error) {
	j.mu.Lock()
	l := j.locks[path]
	if l == nil {
		l = &pathLock{held: make(chan struct{}, 1)}
		j.locks[path] = l
	}
	l.users++
	j.mu.Unlock()

	leave := func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(j.locks, path)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// wrote notes that the agent has given the file at the real path its content.
func (j *Journal) wrote(path, agent string, made digest) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last[path] = written{agent, j.now(), made}
}

// author returns who gave the file at the real path the content present, if
// it was an agent.
func (j *Journal) author(path string, present digest) (written, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w, ok := j.last[path]
	return w, ok && w.made == present
}
