// Package store keeps small values under slash-separated keys and lets many
// processes change them safely.
//
// It is the only shared state of a team. [Mem] is a store for one process,
// [Dir] one of files for the processes of one machine. Both pass
// troupetest.TestStore, and so must any other.
//
// There is no write of two keys at once. Who changes several keys does it in
// steps that may be repeated, and lets the last step be the one that counts; a
// rule over two keys needs a lease.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

var (
	// ErrNotFound reports that a key has no value.
	ErrNotFound = errors.New("key not found")
	// ErrConflict reports that a value is not the one the caller knows.
	// Nothing was written.
	ErrConflict = errors.New("value changed meanwhile")
	// ErrHeld reports that someone else holds a lease.
	ErrHeld = errors.New("lease held by another")
	// ErrKey reports a malformed key or prefix.
	ErrKey = errors.New("malformed key")
	// ErrTooLarge reports a value above MaxValue.
	ErrTooLarge = errors.New("value too large")
)

// MaxValue is the size limit of a value in bytes. Larger things are files, and
// the value names them.
const MaxValue = 512 << 10

// A Rev stands for the value of one key: two equal Revs of one key mean equal
// values, also across a delete. It is compared for equality only; it does not
// grow. The zero Rev stands for "no entry".
type Rev string

// An Entry is a value and its revision.
type Entry struct {
	Key   string
	Value []byte // the caller's to keep; nil only from Watch: gone, or the mark
	Rev   Rev
	// By is the identity that the store itself vouches for as the writer, or
	// "" where all writers are the same user (Mem, Dir). Who reads a value
	// that names its author and finds another one in By must not believe it.
	By string
}

// A Store holds entries. Implementations must be safe for concurrent use by
// many goroutines and many processes.
//
// Operations on one key are linearizable: they take effect in one order, in
// which each Get sees the last write before it. Nothing is said about the
// order of different keys.
//
// When Put or Delete returns nil the change survives the end of the process
// and of the machine. When it returns ErrConflict, ErrKey or ErrTooLarge
// nothing changed. After any other error, the end of ctx included, the change
// may or may not have happened; the caller finds out with Get, or repeats the
// call through [Create] or [Update], for which repeating is harmless.
type Store interface {
	// Get returns the entry at key, or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)

	// Put writes val if the entry's revision still is rev ("": no entry) and
	// returns the new revision; otherwise ErrConflict. To write the value that
	// is already there is allowed and may be no change.
	Put(ctx context.Context, key string, val []byte, rev Rev) (Rev, error)

	// Delete removes the entry if its revision still is rev, else ErrConflict.
	// To delete what does not exist is ErrConflict too. The rev "" is ErrKey.
	Delete(ctx context.Context, key string, rev Rev) error

	// List yields the entries below prefix in byte order of their keys.
	// It is no snapshot: an entry that exists from beginning to end is yielded
	// exactly once; of those created, changed or deleted meanwhile each is
	// yielded at most once, in a state that it had meanwhile. An error is the
	// last that it yields.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]

	// Watch yields the entries below prefix as List does, then once the zero
	// Entry, which says that these were all, and then each entry that has
	// changed since, until ctx ends or the range is left; its last pair
	// carries the cause of ctx or what broke the watch.
	//
	// Watch is about states, not about events: after any change the watcher is
	// given the entry as it then is or later; states between two looks, and an
	// entry that came and went between them, may be skipped. For one key the
	// states come in order and never the same Rev twice running. A deletion is
	// {Key}. Order between keys is not defined. A reader that lags costs the
	// store no memory beyond one Rev a key, and delays nobody.
	Watch(ctx context.Context, prefix string) iter.Seq2[Entry, error]

	// Hold makes the caller the holder of key until it releases the lease or
	// dies, or returns ErrHeld. While it is held, the key is an entry with the
	// value val for Get, List and Watch; afterwards it is gone. Hold does not
	// wait; see [Wait]. A key is either for Hold or for Put, never for both.
	Hold(ctx context.Context, key string, val []byte) (*Lease, error)
}

// A Lease is a key that belongs to the caller. What it protects must be
// written with Gen in it, so that a holder who was paused and lost the lease
// without noticing is found out (files: cannot happen; machines: can).
type Lease struct {
	// Gen is larger than that of every earlier holder of the key.
	Gen uint64
	// Lost is closed when the lease has ended, by Release or by loss.
	Lost <-chan struct{}
	// Release ends the lease. It may be called more than once and by any
	// goroutine; only the first call does something.
	Release func() error
}

// CheckKey reports whether key is well formed: segments of 1 to 128 bytes out
// of a-z, 0-9, '_' and '-', joined by '/', 512 bytes in all; else ErrKey. So a key
// is a file name on every system and a subject of a message queue; names given
// by people are encoded before they get here.
func CheckKey(key string) error {
	if len(key) > 512 {
		return fmt.Errorf("%w: %d bytes, 512 are the most", ErrKey, len(key))
	}
	for seg := range strings.SplitSeq(key, "/") {
		if seg == "" || len(seg) > 128 || strings.Trim(seg, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			return fmt.Errorf("%w: %q", ErrKey, key)
		}
	}
	return nil
}

// CheckPrefix reports whether prefix is "" or a key followed by a slash.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	key, ok := strings.CutSuffix(prefix, "/")
	if !ok {
		return fmt.Errorf("%w: prefix %q does not end in a slash", ErrKey, prefix)
	}
	return CheckKey(key)
}

// Create puts val at a key that has no entry. Repeating it is harmless: if
// the very same value is there already, that is success. For a key which others
// may create too, val must name its author; else Create cannot tell them apart.
func Create(ctx context.Context, s Store, key string, val []byte) (Rev, error) {
	rev, err := s.Put(ctx, key, val, "")
	if !errors.Is(err, ErrConflict) {
		return rev, err
	}
	if e, gerr := s.Get(ctx, key); gerr == nil && bytes.Equal(e.Value, val) {
		return e.Rev, nil
	}
	return "", err
}

// Update replaces the value at key by f of it, and tries again on conflict.
// f gets nil if there is no value, and must not keep or change old. If f
// returns an error, nothing changes and Update returns that error.
func Update(ctx context.Context, s Store, key string, f func(old []byte) ([]byte, error)) error {
	for {
		e, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		val, err := f(e.Value)
		if err != nil {
			return err
		}
		if _, err = s.Put(ctx, key, val, e.Rev); !errors.Is(err, ErrConflict) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Wait is Hold that waits for its turn until ctx ends.
func Wait(ctx context.Context, s Store, key string, val []byte) (*Lease, error) {
	for {
		l, err := s.Hold(ctx, key, val)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		if err := ended(ctx, s, key); err != nil {
			return nil, err
		}
	}
}

// ended waits until the lease of key may have ended. A lease that was taken
// and released between two looks of the watch goes unseen; hence the limit.
func ended(ctx context.Context, s Store, key string) error {
	look, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held := false
	for e, err := range s.Watch(look, key[:strings.LastIndexByte(key, '/')+1]) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if look.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		held = held || e.Key == key
		if e.Key == key && e.Value == nil || e.Key == "" && !held {
			return nil
		}
	}
	return context.Cause(ctx)
}

// clone never returns nil: nil means gone.
func clone(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// begin is what every operation checks first.
func begin(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func checkPut(ctx context.Context, key string, val []byte) error {
	if len(val) > MaxValue {
		return fmt.Errorf("%s: %w: %d bytes, %d are the most", key, ErrTooLarge, len(val), MaxValue)
	}
	return begin(ctx, key)
}

func checkDelete(ctx context.Context, key string, rev Rev) error {
	if rev == "" {
		return fmt.Errorf("%w: delete %s without a revision", ErrKey, key)
	}
	return begin(ctx, key)
}

// diff brings known up to entries, all there are, and returns what changed.
func diff(known map[string]Rev, entries []Entry) []Entry {
	var out []Entry
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Key] = true
		if known[e.Key] != e.Rev {
			known[e.Key] = e.Rev
			out = append(out, e)
		}
	}
	for k := range known {
		if !there[k] {
			delete(known, k)
			out = append(out, Entry{Key: k})
		}
	}
	return out
}
