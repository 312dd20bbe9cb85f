package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// Info is what a list of sessions shows.
type Info struct {
	ID      string
	Dir     string // of the session itself
	Project string // directory that it works in
	Model   string
	Prompt  string // the first
	Started time.Time
	Last    time.Time // of the newest record
}

// List returns the sessions below root, the newest first. Project, if not "",
// names the directory whose sessions are wanted. What cannot be read is told in
// the error, and the others are returned all the same.
func List(root, project string) ([]Info, error) {
	dirs, lost := folders(root, project)
	var out []Info
	for _, dir := range dirs {
		info, err := describe(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has not begun, or was removed just now
		}
		if err != nil { // one that cannot be read must not hide the others
			if errors.Is(err, ErrNewer) {
				err = ErrNewer
			}
			info.Prompt = fmt.Sprintf("(%v)", err)
		}
		out = append(out, info)
	}
	slices.SortStableFunc(out, func(a, b Info) int { return b.Last.Compare(a.Last) })
	return out, lost
}

// folders returns the directories of the sessions below root, all of them or
// those of one project. What cannot be looked into is told in the error: it
// may hold sessions. What does not exist holds none.
func folders(root, project string) ([]string, error) {
	projects := []string{ProjectName(project)}
	if project == "" {
		entries, err := os.ReadDir(root)
		if err != nil {
			return nil, unlisted(err)
		}
		projects = nil
		for _, e := range entries {
			if !e.Type().IsRegular() { // it may be a link
				projects = append(projects, e.Name())
			}
		}
	}
	var out []string
	var errs []error
	for _, p := range projects {
		entries, err := os.ReadDir(filepath.Join(root, p))
		errs = append(errs, unlisted(err))
		for _, e := range entries {
			if !e.Type().IsRegular() && validID(e.Name()) { // else not one of ours, or the rest of one that was removed
				out = append(out, filepath.Join(root, p, e.Name()))
			}
		}
	}
	return out, errors.Join(errs...)
}

// unlisted is the error of a directory that cannot be looked into.
func unlisted(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("list sessions: %w; make it readable, or set TROUPE_HOME to another directory", err)
}

// describe reads the first records of a session, and its last: a list must not
// cost what reading all of its sessions would.
func describe(dir string) (Info, error) {
	info := Info{ID: filepath.Base(dir), Dir: dir}
	path := LogPath(dir, Lead)
	for r, err := range Read(path) {
		var d *Damage
		switch {
		case errors.As(err, &d) && !errors.Is(err, ErrNewer):
			continue
		case err != nil:
			return info, fmt.Errorf("session %s: %w", info.ID, err)
		}
		info.Last = r.Time
		switch ev := r.Event.(type) {
		case troupe.Started:
			info.Project, info.Model, info.Started = ev.Place.Dir, ev.Request.Model, r.Time
		case troupe.Received:
			if ev.From == "user" {
				info.Prompt = ev.Message.Content.LastText()
			}
		}
		if info.Prompt != "" {
			break
		}
	}
	last, err := lastTime(path)
	if err != nil {
		return info, fmt.Errorf("session %s: %w", info.ID, err)
	}
	if !last.IsZero() {
		info.Last = last
	}
	return info, nil
}

// lastTime returns the time of the newest record that can be read at the end
// of a log. It is zero if there is none.
func lastTime(path string) (time.Time, error) {
	f, err := os.Open(path)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return time.Time{}, err
	}
	for n := int64(64 << 10); ; n *= 4 { // a record can be long
		n = min(n, size)
		tail := make([]byte, n)
		if _, err := f.ReadAt(tail, size-n); err != nil {
			return time.Time{}, err
		}
		all := bytes.Split(tail, []byte("\n"))
		if n < size {
			all = all[1:] // it may have begun before
		}
		for _, line := range slices.Backward(all) {
			if r, err := parse(line); err == nil {
				return r.Time, nil
			}
		}
		if n == size {
			return time.Time{}, nil
		}
	}
}

// Find returns the session whose ID is or begins with id, which may be one of
// any project. A beginning that fits several is an error that names them.
func Find(root, id string) (Info, error) {
	if !validID(id) {
		return Info{}, fmt.Errorf("%q: %w", id, ErrNotFound)
	}
	dirs, lost := folders(root, "")
	var found []string
	for _, p := range dirs {
		if filepath.Base(p) == id {
			return describe(p)
		}
		if !strings.HasPrefix(filepath.Base(p), id) {
			continue
		}
		if _, err := os.Stat(LogPath(p, Lead)); err == nil {
			found = append(found, p)
		}
	}
	if lost != nil { // what was meant may be there
		return Info{}, lost
	}
	switch len(found) {
	case 0:
		return Info{}, fmt.Errorf("%s: %w", id, ErrNotFound)
	case 1:
		return describe(found[0])
	}
	var ids []string
	for _, p := range found {
		ids = append(ids, filepath.Base(p))
	}
	return Info{}, fmt.Errorf("%s fits several sessions (%s): %w", id, strings.Join(ids, ", "), ErrNotFound)
}

// Remove deletes a session that nobody has open.
func Remove(dir string) error {
	lock, err := acquire(dir)
	if err != nil {
		return err
	}
	// Under its name it is gone at once: nobody can open what is half removed.
	gone := filepath.Join(filepath.Dir(dir), removed+filepath.Base(dir))
	if os.Rename(dir, gone) == nil {
		err = errors.Join(statefile.RemoveAll(gone), lock.Close())
	} else {
		err = removeInPlace(dir, lock)
	}
	if err != nil {
		return fmt.Errorf("remove session: %w", statefile.Explain(err))
	}
	return nil
}

// removeInPlace removes a session where its directory cannot be renamed: on
// Windows the open lock keeps it from that, and from being removed. So the lock
// goes last, after it is closed.
func removeInPlace(dir string, lock *flock.Flock) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != filepath.Base(lock.Path()) {
			errs = append(errs, statefile.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(append(errs, lock.Close(), statefile.RemoveAll(dir))...)
}

// removed begins the name of a session that is being deleted. No ID does.
const removed = ".removed-"

// InUse reports whether a process has the session in dir open.
func InUse(dir string) (bool, error) {
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	free := false
	err := statefile.Retry(func() (err error) { free, err = lock.TryRLock(); return err })
	if err != nil {
		return false, fmt.Errorf("look whether session %s is in use: %w", filepath.Base(dir), statefile.Explain(err))
	}
	return !free, lock.Close()
}
