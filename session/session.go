// Package session records what agents do and reads it back.
//
// A session is a directory that one process at a time may write. It holds one
// append-only log for each agent: a JSON record a line, the schema version in
// the first. A log is at once the transcript to resume from, the trace to look
// at, and the source that every face follows. Beside each log lie the exact
// bytes of the requests that were sent. doc/format.md has the details.
package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// Lead is the ID of the agent that a session is about.
const Lead = "lead"

var (
	// ErrInUse reports that another process has the session open.
	ErrInUse = errors.New("session is in use")
	// ErrExists reports that a new session has the ID of an old one.
	ErrExists = errors.New("session exists already")
	// ErrNotFound reports that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrLog reports that a log cannot be written.
	ErrLog = errors.New("cannot write the log")
	// ErrNewer reports a log in a format of a later version.
	ErrNewer = errors.New("the log was written by a newer version of troupe; update troupe to open it")
)

// A Folder is a session that this process may write.
type Folder struct {
	Dir string
	ID  string

	now  func() time.Time
	lock *flock.Flock

	mu      sync.Mutex
	last    time.Time
	logs    []*Log
	changed chan struct{} // closed and replaced whenever a log grows
}

// Create makes the directory of a new session below root and opens it. The
// project is the directory that the session works in.
func Create(root, project, id string, now func() time.Time) (*Folder, error) {
	if !validID(id) {
		return nil, fmt.Errorf("session ID %q: want letters, digits and dashes", id)
	}
	if taken(root, id) {
		return nil, fmt.Errorf("%s: %w", id, ErrExists)
	}
	dir := Path(root, project, id)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("make the session's directory: %w", statefile.Explain(err))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s: %w", id, ErrExists)
		}
		return nil, fmt.Errorf("make the session's directory: %w", statefile.Explain(err))
	}
	failpoint.Here(failpoint.SessionMade)
	return Open(dir, now)
}

// taken reports whether a session of any project has this ID. It looks for the
// name alone: the start of a session must not take longer the more there are.
func taken(root, id string) bool {
	projects, err := os.ReadDir(root)
	if err != nil {
		return false // what is wrong with root shows when it is written
	}
	return slices.ContainsFunc(projects, func(p fs.DirEntry) bool {
		_, err := os.Lstat(filepath.Join(root, p.Name(), id))
		return err == nil
	})
}

// Open opens the session in dir for writing. While it is open nobody else can:
// they get ErrInUse, with the ID of the process that has it.
func Open(dir string, now func() time.Time) (*Folder, error) {
	lock, err := acquire(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "agents"), 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("make the directory of the agents: %w", statefile.Explain(err)), lock.Close())
	}
	return &Folder{Dir: dir, ID: filepath.Base(dir), now: now, lock: lock}, nil
}

// acquire takes the session's lock. It is the kernel's, and ends with the
// process; the file beside it only tells whose it is.
func acquire(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, "lock")
	lock := flock.New(path, flock.SetPermissions(0o600))
	ok := false
	err := statefile.Retry(func() (err error) { ok, err = lock.TryLock(); return err })
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", filepath.Base(dir), ErrNotFound)
		}
		return nil, fmt.Errorf("lock session %s: %w", filepath.Base(dir), statefile.Explain(err))
	}
	owner := filepath.Join(dir, "owner")
	if !ok {
		pid, _ := os.ReadFile(owner)
		return nil, fmt.Errorf("%s: %w by process %s", filepath.Base(dir), ErrInUse, strings.TrimSpace(string(pid)))
	}
	// Who removed the session meanwhile left us a lock that nobody else sees.
	if _, err := os.Stat(path); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Base(dir), ErrNotFound), lock.Close())
	}
	failpoint.Here(failpoint.SessionLocked)
	if err := os.WriteFile(owner, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %s: %w", filepath.Base(dir), statefile.Explain(err)), lock.Close())
	}
	failpoint.Here(failpoint.SessionOwned)
	return lock, nil
}

// Close closes the logs and lets others open the session.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, l := range f.logs {
		errs = append(errs, l.close())
	}
	f.logs = nil
	failpoint.Here(failpoint.SessionClosing)
	return errors.Join(append(errs, f.lock.Close())...)
}

// Path returns the directory of a session of a project.
func Path(root, project, id string) string { return filepath.Join(root, ProjectName(project), id) }

// LogPath returns the file of an agent's log.
func LogPath(dir, agent string) string {
	if agent == Lead {
		return filepath.Join(dir, "lead.jsonl")
	}
	return filepath.Join(dir, "agents", agent+".jsonl")
}

// tick is the time of a new record: no two records of a session have the same,
// so that their order over all logs is known. The caller holds f.mu.
func (f *Folder) tick() time.Time {
	t := f.now().UTC().Round(0)
	if !t.After(f.last) {
		t = f.last.Add(1)
	}
	f.last = t
	return t
}

// wake tells followers that something is new. The caller holds f.mu.
func (f *Folder) wake() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, r := range id {
		if r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return id[0] != '-'
}

// ProjectName names the folder of the sessions that work in dir. Different
// directories get different names, in any script and on file systems that
// ignore case; links lead to the same one.
func ProjectName(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, filepath.Base(dir))
	if len(name) > 32 {
		name = name[:32]
	}
	sum := sha256.Sum256([]byte(dir))
	return strings.Trim(name+"-"+hex.EncodeToString(sum[:8]), "-")
}

// TasksPath returns the directory of the tasks of a session: what they print, and
// the record of each.
func TasksPath(dir string) string { return filepath.Join(dir, "tasks") }
