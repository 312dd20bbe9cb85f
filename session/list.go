package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
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
// names the directory whose sessions are wanted.
func List(root, project string) ([]Info, error) {
	pattern := filepath.Join(escape(root), "*", "*", "lead.jsonl")
	if project != "" {
		pattern = filepath.Join(escape(root), ProjectName(project), "*", "lead.jsonl")
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var out []Info
	for _, p := range paths {
		if !validID(filepath.Base(filepath.Dir(p))) {
			continue // not one of ours, or the rest of one that was removed
		}
		info, err := describe(filepath.Dir(p))
		if err != nil { // one that cannot be read must not hide the others
			if errors.Is(err, ErrNewer) {
				err = ErrNewer
			}
			info.Prompt = fmt.Sprintf("(%v)", err)
		}
		out = append(out, info)
	}
	slices.SortStableFunc(out, func(a, b Info) int { return b.Last.Compare(a.Last) })
	return out, nil
}

// escape keeps characters in a path from being taken for a pattern.
func escape(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
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
				info.Prompt = lastText(ev.Message)
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

// lastText is the prompt in a message that begins with the facts of the place.
func lastText(m troupe.Message) string {
	for _, b := range slices.Backward(m.Content) {
		if t, ok := b.(troupe.Text); ok {
			return string(t)
		}
	}
	return ""
}

// Find returns the session whose ID is or begins with id, which may be one of
// any project. A beginning that fits several is an error that names them.
func Find(root, id string) (Info, error) {
	if !validID(id) {
		return Info{}, fmt.Errorf("%q: %w", id, ErrNotFound)
	}
	paths, err := filepath.Glob(filepath.Join(escape(root), "*", id+"*"))
	if err != nil {
		return Info{}, fmt.Errorf("find session: %w", err)
	}
	var found []string
	for _, p := range paths {
		if filepath.Base(p) == id {
			return describe(p)
		}
		if _, err := os.Stat(LogPath(p, Lead)); err == nil {
			found = append(found, p)
		}
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
	// Where an open file keeps a directory from being renamed, it goes in place.
	gone := filepath.Join(filepath.Dir(dir), removed+filepath.Base(dir))
	if err := os.Rename(dir, gone); err != nil {
		gone = dir
	}
	if err := errors.Join(os.RemoveAll(gone), lock.Close()); err != nil {
		return fmt.Errorf("remove session: %w", err)
	}
	return nil
}

// removed begins the name of a session that is being deleted. No ID does.
const removed = ".removed-"
