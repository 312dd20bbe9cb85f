package store

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Mem is a [Store] in memory, for one process and for tests. The zero value
// is an empty store. It must not be copied.
type Mem struct {
	mu      sync.Mutex
	entries map[string]Entry
	gens    map[string]uint64
	rev     uint64
	changed chan struct{} // closed and replaced at each change
}

// Get implements [Store].
func (m *Mem) Get(ctx context.Context, key string) (Entry, error) {
	if err := begin(ctx, key); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	if !ok {
		return Entry{}, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	e.Value = clone(e.Value)
	return e, nil
}

// Put implements [Store].
func (m *Mem) Put(ctx context.Context, key string, val []byte, rev Rev) (Rev, error) {
	if err := checkPut(ctx, key, val); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[key].Rev != rev {
		return "", fmt.Errorf("put %s: %w", key, ErrConflict)
	}
	return m.set(key, val), nil
}

func (m *Mem) set(key string, val []byte) Rev {
	if m.entries == nil {
		m.entries = make(map[string]Entry)
		m.gens = make(map[string]uint64)
	}
	m.rev++
	rev := Rev(strconv.FormatUint(m.rev, 10))
	m.entries[key] = Entry{Key: key, Value: clone(val), Rev: rev}
	m.wake()
	return rev
}

// Delete implements [Store].
func (m *Mem) Delete(ctx context.Context, key string, rev Rev) error {
	if err := checkDelete(ctx, key, rev); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[key].Rev != rev {
		return fmt.Errorf("delete %s: %w", key, ErrConflict)
	}
	delete(m.entries, key)
	m.wake()
	return nil
}

// List implements [Store].
func (m *Mem) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Entry{}, err)
			return
		}
		entries, _ := m.look(prefix)
		for _, e := range entries {
			if ctx.Err() != nil {
				yield(Entry{}, context.Cause(ctx))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Watch implements [Store].
func (m *Mem) Watch(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Entry{}, err)
			return
		}
		known := map[string]Rev{}
		for first := true; ; first = false {
			entries, next := m.look(prefix)
			for _, e := range diff(known, entries) {
				if !yield(e, nil) {
					return
				}
			}
			if first && !yield(Entry{}, nil) {
				return
			}
			select {
			case <-next:
			case <-ctx.Done():
				yield(Entry{}, context.Cause(ctx))
				return
			}
		}
	}
}

// Hold implements [Store].
func (m *Mem) Hold(ctx context.Context, key string, val []byte) (*Lease, error) {
	if err := checkPut(ctx, key, val); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[key].Rev != "" {
		return nil, fmt.Errorf("hold %s: %w", key, ErrHeld)
	}
	m.set(key, val)
	m.gens[key]++
	lost := make(chan struct{})
	var once sync.Once
	return &Lease{Gen: m.gens[key], Lost: lost, Release: func() error {
		once.Do(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.entries, key)
			m.wake()
			close(lost)
		})
		return nil
	}}, nil
}

// look returns the entries below prefix and a channel that is closed at the
// next change.
func (m *Mem) look(prefix string) ([]Entry, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Entry
	for _, k := range slices.Sorted(maps.Keys(m.entries)) {
		if strings.HasPrefix(k, prefix) {
			e := m.entries[k]
			e.Value = clone(e.Value)
			out = append(out, e)
		}
	}
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return out, m.changed
}

func (m *Mem) wake() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}
