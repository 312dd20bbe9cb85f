package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// Starts returns how the agents below the lead of the session in dir have started,
// oldest first, each without the conversation it began with. Logs whose first
// record cannot be read are told in the error; the others are returned all the same.
func Starts(dir string) ([]troupe.Started, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "agents"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the agents of a session: %w", err)
	}
	var all []Record
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || strings.HasSuffix(name, ".sent") {
			continue
		}
		r, err := firstRecord(LogPath(dir, name))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if start, ok := r.Event.(troupe.Started); ok && start.Agent == name {
			start.Request.Messages = nil
			r.Event = start
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return a.Time.Compare(b.Time) })
	var out []troupe.Started
	for _, r := range all {
		out = append(out, r.Event.(troupe.Started))
	}
	return out, errors.Join(errs...)
}

// firstRecord reads the first record of a log. An empty log, of an agent that a
// crash kept from beginning, has none.
func firstRecord(path string) (Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return Record{}, fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	for b, err := range lines(f) {
		if err != nil {
			return Record{}, fmt.Errorf("read log: %w", err)
		}
		r, err := parse(b.text)
		if err != nil {
			return r, &Damage{path, b.number, err}
		}
		return r, nil
	}
	return Record{}, nil
}
