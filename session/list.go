package session

import (
	"errors"
	"fmt"
	"io/fs"
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
		info, err := describe(filepath.Dir(p))
		if errors.Is(err, ErrNewer) {
			info.Prompt = "(" + ErrNewer.Error() + ")"
		} else if err != nil {
			return nil, err
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

// describe reads the first records of a session, and its last.
func describe(dir string) (Info, error) {
	info := Info{ID: filepath.Base(dir), Dir: dir}
	for r, err := range Read(LogPath(dir, Lead)) {
		if err != nil {
			var d *Damage
			if errors.As(err, &d) && !errors.Is(err, ErrNewer) {
				continue
			}
			return info, fmt.Errorf("session %s: %w", info.ID, err)
		}
		switch ev := r.Event.(type) {
		case troupe.Started:
			info.Project, info.Model, info.Started = ev.Place.Dir, ev.Request.Model, r.Time
		case troupe.Switched:
			if ev.Model != "" {
				info.Model = ev.Model
			}
		case troupe.Received:
			if ev.From == "user" && info.Prompt == "" {
				info.Prompt = lastText(ev.Message)
			}
		}
		info.Last = r.Time
	}
	return info, nil
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
	// The lock's own file goes last, while it is held: who waits for it sees
	// afterwards that the session is gone.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Join(fmt.Errorf("remove session: %w", err), lock.Close())
	}
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return errors.Join(fmt.Errorf("remove session: %w", err), lock.Close())
		}
	}
	err = errors.Join(os.RemoveAll(dir), lock.Close())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove session: %w", err)
	}
	return nil
}
