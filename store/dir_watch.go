package store

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// How often a watch looks for itself: rarely where the kernel tells it of
// changes, else often.
const (
	seldom = 10 * time.Second
	often  = 500 * time.Millisecond
)

// List implements [Store].
func (d *Dir) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Entry{}, err)
			return
		}
		d.walk(ctx, prefix, func(string) {}, yield)
	}
}

// walk yields the entries below prefix in key order, and calls enter with each
// directory before it is read. It reports whether to go on.
func (d *Dir) walk(ctx context.Context, prefix string, enter func(dir string), yield func(Entry, error) bool) bool {
	dir := d.dir(prefix)
	enter(dir)
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		yield(Entry{}, err)
		return false
	}
	for _, name := range segments(files) {
		if ctx.Err() != nil {
			yield(Entry{}, context.Cause(ctx))
			return false
		}
		if strings.HasSuffix(name, "/") {
			if CheckPrefix(prefix+name) == nil && !d.walk(ctx, prefix+name, enter, yield) {
				return false
			}
			continue
		}
		e, err := d.Get(ctx, prefix+name)
		if noEntry(err) {
			continue
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// noEntry reports whether err says that a file is none of an entry.
func noEntry(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrKey) || errors.Is(err, ErrTooLarge)
}

// segments returns what keys may have at the place of these files, in their
// order: "k" for the key k, "k/" for those below it.
func segments(files []fs.DirEntry) []string {
	var names []string
	for _, f := range files {
		if f.IsDir() {
			names = append(names, plain(f.Name())+"/")
		} else if name, ok := cutExt(f.Name()); ok {
			names = append(names, plain(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Watch implements [Store].
func (d *Dir) Watch(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Entry{}, err)
			return
		}
		w := &watch{d: d, prefix: prefix, sub: notices.subscribe(d.dir(prefix)), known: map[string]Rev{}}
		defer notices.unsubscribe(w.sub)
		files, all := []string(nil), true
		for first := true; ; first = false {
			changed, err := w.look(ctx, files, all)
			for _, e := range changed {
				if !yield(e, nil) {
					return
				}
			}
			if err == nil && first && !yield(Entry{}, nil) {
				return
			}
			if err == nil {
				files, all, err = w.wait(ctx)
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}

// A watch is one range over [Dir.Watch].
type watch struct {
	d      *Dir
	prefix string
	sub    *sub
	known  map[string]Rev
	blind  bool // the kernel does not tell of every directory
	again  again
}

// wait returns what is to be looked at next, and when it is time.
func (w *watch) wait(ctx context.Context) (files []string, all bool, err error) {
	interval := seldom
	if w.blind {
		interval = often
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	case <-w.sub.wake:
		files, all = w.sub.take()
		w.again.start(files)
	case <-w.again.due:
		files = w.again.next()
	case <-timer.C:
		all = true
	}
	return files, all, nil
}

// look returns what has changed, by the files named or by all.
func (w *watch) look(ctx context.Context, files []string, all bool) (out []Entry, err error) {
	if all {
		return w.lookAll(ctx)
	}
	for _, file := range files {
		key, ok := w.d.key(file)
		if !ok || !strings.HasPrefix(key, w.prefix) {
			continue
		}
		e, err := w.d.Get(ctx, key)
		if noEntry(err) {
			e = Entry{Key: key}
		} else if err != nil {
			return out, err
		}
		if w.known[key] == e.Rev {
			continue
		}
		if w.known[key] = e.Rev; e.Rev == "" {
			delete(w.known, key)
		}
		out = append(out, e)
	}
	return out, nil
}

func (w *watch) lookAll(ctx context.Context) ([]Entry, error) {
	w.blind = false
	enter := func(dir string) { w.blind = !notices.enter(dir) || w.blind }
	// The way down too, to see directories come.
	for dir := w.d.dir(w.prefix); len(dir) >= len(w.d.root); dir = filepath.Dir(dir) {
		enter(dir)
	}
	var entries []Entry
	var err error
	w.d.walk(ctx, w.prefix, enter, func(e Entry, werr error) bool {
		if err = werr; err == nil {
			entries = append(entries, e)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return diff(w.known, entries), nil
}

// again looks at files of leases some more times: the kernel tells that a file
// is closed a moment before it drops the lock.
type again struct {
	files []string
	wait  time.Duration
	due   <-chan time.Time
}

func (a *again) start(files []string) {
	for _, f := range files {
		if !strings.HasSuffix(f, leaseExt+shownExt) {
			continue
		}
		if !slices.Contains(a.files, f) {
			a.files = append(a.files, f)
		}
		a.wait = time.Millisecond
		a.due = time.After(a.wait)
	}
}

func (a *again) next() []string {
	files := a.files
	if a.wait *= 4; a.wait > 300*time.Millisecond {
		*a = again{}
	} else {
		a.due = time.After(a.wait)
	}
	return files
}
