package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/gofrs/flock"

	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// A lease has three files. KEY.lease holds its generation, a line end and the
// value; it is never removed, for the sake of the generation. KEY.lease.taken is
// locked by the holder, and nobody else ever tries to lock it for a look, so a
// taker fails only if there is a holder. KEY.lease.shown is locked by the
// holder when the value is written, and looked at by readers: so nobody sees
// the value of an earlier holder.
const (
	takenExt = ".taken"
	shownExt = ".shown"
)

// Hold implements [Store]. The lease ends with the process at the latest; it
// is never lost before. A program that the holder starts does not inherit it.
func (d *Dir) Hold(ctx context.Context, key string, val []byte) (*Lease, error) {
	if err := checkPut(ctx, key, val); err != nil {
		return nil, err
	}
	path := d.path(key) + leaseExt
	err := d.mkdir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", key, statefile.Explain(err))
	}
	taken := flock.New(path + takenExt)
	ok, err := try(taken.TryLock)
	if err == nil && !ok {
		err = ErrHeld
	}
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", key, statefile.Explain(err))
	}
	// Written to be closed: that is what the kernel tells watches of.
	shown := flock.New(path+shownExt, flock.SetFlag(os.O_CREATE|os.O_RDWR))
	gen, err := d.show(ctx, path, val, shown)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hold %s: %w", key, statefile.Explain(err)), taken.Close())
	}
	lost := make(chan struct{})
	release := sync.OnceValue(func() error {
		defer notices.tell(path)
		defer close(lost)
		return errors.Join(shown.Close(), taken.Close())
	})
	return &Lease{Gen: gen, Lost: lost, Release: release}, nil
}

// show writes the value of a lease that was taken, and lets others see it.
func (d *Dir) show(ctx context.Context, path string, val []byte, shown *flock.Flock) (uint64, error) {
	old, err := read(path, math.MaxInt64)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, err
	}
	gen := uint64(0)
	if err == nil {
		if gen, _, err = cutGen(old); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	gen++
	tmp, err := d.write(ctx, append(strconv.AppendUint(nil, gen, 10), append([]byte("\n"), val...)...))
	if err != nil {
		return 0, err
	}
	if err := statefile.Rename(tmp, path); err != nil {
		return 0, errors.Join(err, statefile.Remove(tmp))
	}
	failpoint.Here(failpoint.StoreTaken)
	if err := syncDir(filepath.Dir(path)); err != nil {
		return 0, err
	}
	// Those who look have it for a moment, the dead until they are gone.
	if err := await(ctx, shown.TryLock); err != nil {
		return 0, err
	}
	ring(path + shownExt)
	notices.tell(path)
	return gen, nil
}

// cutGen parts the content of a lease's file into generation and value.
func cutGen(b []byte) (gen uint64, val []byte, err error) {
	line, val, ok := bytes.Cut(b, []byte("\n"))
	gen, err = strconv.ParseUint(string(line), 10, 64)
	if err != nil || !ok {
		return 0, nil, errors.New("the file of the lease is damaged: its first line is no number; write one there that is larger than any before")
	}
	return gen, val, nil
}

// holder returns the file of a lease that is held now. It looks twice: what it
// reads between is the value of one who held it before or holds it after.
func (d *Dir) holder(key string) ([]byte, error) {
	path := d.path(key) + leaseExt
	if err := held(path); err != nil {
		return nil, err
	}
	val, err := read(path, math.MaxInt64)
	if err == nil {
		_, _, err = cutGen(val)
	}
	if err != nil {
		return nil, err
	}
	return val, held(path)
}

// held returns nil if the lease at path is, and ErrNotFound if it is not.
func held(path string) error {
	look := flock.New(path+shownExt, flock.SetFlag(os.O_RDONLY))
	free, err := try(look.TryRLock)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNotFound
	case err != nil:
		return err
	case free:
		return errors.Join(ErrNotFound, look.Close())
	}
	return nil
}
