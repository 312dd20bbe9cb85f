package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// Dir is a [Store] of files below one directory, for the processes of one
// machine. The value of key a/b is the file a/b.json, byte for byte, so that
// it can be read with cat and even be edited by hand; a lease on a/b is the
// file a/b.lease, with two lock files beside it.
//
// The directory may hold other things: only regular files with these endings
// and a valid key are entries, all else is passed over and never touched. A
// directory is never removed, whoever made it.
//
// How it works:
//   - A Rev is the hash of the value. Equal values are one state, so a writer
//     that decided by the value decided right even if it changed and changed back.
//   - To create is to link a finished file: no lock at all.
//   - To replace or remove, a writer takes one of 64 locks, which the key
//     chooses, compares, and renames or removes. No disk is waited for under it.
//   - All locks are the kernel's and end with their process.
//   - Watches are told by the kernel what has changed, and look for themselves
//     from time to time; where the kernel does not tell, twice a second.
//
// Between machines that share a directory none of this holds.
type Dir struct {
	root string
	link func(from, to string) error // os.Link; a test has none

	mu   sync.Mutex
	mine *flock.Flock // shared, on the unfinished files; nil until the first write
}

const (
	valueExt = ".json"
	leaseExt = ".lease"
	ownDir   = ".store" // locks and unfinished files; no key begins with a dot
	newFile  = "new-"   // begins the name of an unfinished file
)

// OpenDir opens the store in the directory root, which it makes if there is
// none. More is done at the first write only. Errors say what to do where
// that is known.
func OpenDir(root string) (*Dir, error) {
	root, err := filepath.Abs(root)
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", statefile.Explain(err))
	}
	return &Dir{root: root, link: os.Link}, nil
}

// Close lets go of what the Dir holds; it must not be used afterwards. Leases
// are to be released and watches to be ended before.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mine == nil {
		return nil
	}
	return d.mine.Close()
}

// prepare makes room for what a writer needs. Whoever finds that no process
// writes removes what the killed have left.
func (d *Dir) prepare(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mine != nil {
		return nil
	}
	own := filepath.Join(d.root, ownDir)
	if err := os.Mkdir(own, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	path := filepath.Join(own, "lock")
	alone := flock.New(path)
	if ok, err := try(alone.TryLock); err != nil {
		return err
	} else if ok {
		if err := errors.Join(sweep(own), alone.Close()); err != nil {
			return err
		}
	}
	mine := flock.New(path)
	if err := await(ctx, mine.TryRLock); err != nil {
		return err
	}
	d.mine = mine
	return nil
}

func sweep(own string) error {
	files, err := os.ReadDir(own)
	for _, f := range files {
		if strings.HasPrefix(f.Name(), newFile) {
			err = errors.Join(err, statefile.Remove(filepath.Join(own, f.Name())))
		}
	}
	return err
}

// try is one attempt at a lock, as often as another program is in the way.
func try(lock func() (bool, error)) (ok bool, err error) {
	err = statefile.Retry(func() error { ok, err = lock(); return err })
	return ok, err
}

// await tries a lock until it is there or ctx ends.
func await(ctx context.Context, lock func() (bool, error)) error {
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		if ok, err := try(lock); ok || err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// path is the file of a key, without its ending.
func (d *Dir) path(key string) string {
	segs := strings.Split(key, "/")
	for i, seg := range segs {
		if reserved(seg) {
			segs[i] += "~"
		}
	}
	return filepath.Join(d.root, filepath.Join(segs...))
}

// dir is the directory of a prefix.
func (d *Dir) dir(prefix string) string {
	if prefix == "" {
		return d.root
	}
	return d.path(strings.TrimSuffix(prefix, "/"))
}

// key is the key of a file, if it is one of an entry.
func (d *Dir) key(file string) (string, bool) {
	rel, err := filepath.Rel(d.root, file)
	if err != nil {
		return "", false
	}
	rel, ok := cutExt(filepath.ToSlash(rel))
	if !ok {
		return "", false
	}
	segs := strings.Split(rel, "/")
	for i, seg := range segs {
		segs[i] = plain(seg)
	}
	key := strings.Join(segs, "/")
	return key, CheckKey(key) == nil
}

// reserved reports whether Windows has no files of that name: they get a '~'
// at the end, on every system, so that a store can be taken elsewhere.
func reserved(seg string) bool {
	switch seg {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(seg) == 4 && (seg[:3] == "com" || seg[:3] == "lpt") && seg[3] >= '0' && seg[3] <= '9'
}

// plain is the segment of a key that the name of a file or directory stands for.
func plain(name string) string {
	if seg, ok := strings.CutSuffix(name, "~"); ok && reserved(seg) {
		return seg
	}
	return name
}

func cutExt(file string) (string, bool) {
	for _, ext := range []string{valueExt, leaseExt + shownExt, leaseExt} {
		if name, ok := strings.CutSuffix(file, ext); ok {
			return name, true
		}
	}
	return "", false
}

func revOf(val []byte) Rev {
	h := sha256.Sum256(val)
	return Rev(hex.EncodeToString(h[:16]))
}

// Get implements [Store].
func (d *Dir) Get(ctx context.Context, key string) (Entry, error) {
	if err := begin(ctx, key); err != nil {
		return Entry{}, err
	}
	val, err := read(d.path(key)+valueExt, MaxValue)
	if errors.Is(err, ErrNotFound) {
		if val, err = d.holder(key); err == nil {
			_, rest, _ := cutGen(val)
			return Entry{Key: key, Value: clone(rest), Rev: revOf(val)}, nil
		}
	}
	if err != nil {
		return Entry{}, fmt.Errorf("get %s: %w", key, err)
	}
	return Entry{Key: key, Value: clone(val), Rev: revOf(val)}, nil
}

// read returns the content of a regular file; what is none is ErrNotFound.
func read(path string, most int64) (val []byte, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, ErrNotFound
	}
	if err == nil && info.Size() > most {
		return nil, fmt.Errorf("%w: %s has %d bytes", ErrTooLarge, path, info.Size())
	}
	if err == nil {
		err = statefile.Retry(func() error { val, err = os.ReadFile(path); return err })
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	return val, err
}

// Put implements [Store].
func (d *Dir) Put(ctx context.Context, key string, val []byte, rev Rev) (Rev, error) {
	if err := checkPut(ctx, key, val); err != nil {
		return "", err
	}
	if err := d.put(ctx, d.path(key)+valueExt, val, rev); err != nil {
		return "", fmt.Errorf("put %s: %w", key, statefile.Explain(err))
	}
	return revOf(val), nil
}

func (d *Dir) put(ctx context.Context, path string, val []byte, rev Rev) error {
	if _, err := os.Lstat(path); rev == "" && err == nil {
		return ErrConflict // and no file written for nothing
	}
	tmp, err := d.write(ctx, val)
	if err != nil {
		return err
	}
	failpoint.Here(failpoint.StoreWritten)
	if rev == "" {
		err = d.create(ctx, tmp, path)
	} else {
		err = d.replace(ctx, path, rev, func() error { return statefile.Rename(tmp, path) })
	}
	// It is still there if it was linked or not used.
	if rerr := statefile.Remove(tmp); err == nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = rerr
	}
	return err
}

// Delete implements [Store].
func (d *Dir) Delete(ctx context.Context, key string, rev Rev) error {
	if err := checkDelete(ctx, key, rev); err != nil {
		return err
	}
	path := d.path(key) + valueExt
	err := d.prepare(ctx)
	if err == nil {
		err = d.replace(ctx, path, rev, func() error { return statefile.Remove(path) })
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, statefile.Explain(err))
	}
	return nil
}

// write makes an unfinished file and returns its path.
func (d *Dir) write(ctx context.Context, val []byte) (string, error) {
	if err := d.prepare(ctx); err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(d.root, ownDir, newFile+rand.Text()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(val)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = statefile.Remove(f.Name()) // the first error is the one to tell
	}
	return f.Name(), err
}

// create gives the finished file tmp the name path, if there is none yet.
func (d *Dir) create(ctx context.Context, tmp, path string) error {
	err := d.mkdir(filepath.Dir(path))
	if err == nil {
		err = d.link(tmp, path)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return ErrConflict
	case noLinks(err):
		err = d.locked(ctx, path, func() error {
			if _, err := os.Lstat(path); err == nil {
				return ErrConflict
			}
			return statefile.Rename(tmp, path)
		})
	}
	if err != nil {
		return err
	}
	return d.changed(path)
}

// replace calls do if the file at path has the revision rev.
func (d *Dir) replace(ctx context.Context, path string, rev Rev, do func() error) error {
	err := d.locked(ctx, path, func() error {
		val, err := read(path, MaxValue)
		if errors.Is(err, ErrNotFound) || err == nil && revOf(val) != rev {
			return ErrConflict
		}
		if err != nil {
			return err
		}
		return do()
	})
	if err != nil {
		return err
	}
	return d.changed(path)
}

// changed makes a change of the directory of path last.
func (d *Dir) changed(path string) error {
	failpoint.Here(failpoint.StoreLinked)
	notices.tell(path)
	return syncDir(filepath.Dir(path))
}

// locked calls do with the lock that belongs to path. Files share 64 locks: a
// lock file for each would be left behind with each message.
func (d *Dir) locked(ctx context.Context, path string, do func() error) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.TrimPrefix(path, d.root))) // never fails
	lock := flock.New(filepath.Join(d.root, ownDir, fmt.Sprintf("%02d.lock", h.Sum32()%64)))
	if err := await(ctx, lock.TryLock); err != nil {
		return err
	}
	return errors.Join(do(), lock.Close())
}

// mkdir makes a directory below the root, and those above it.
func (d *Dir) mkdir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if dir == d.root {
		return fmt.Errorf("the directory %s is gone", dir)
	}
	parent := filepath.Dir(dir)
	if err := d.mkdir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return syncDir(parent)
}
