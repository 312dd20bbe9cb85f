// Package statefile changes the files that troupe keeps for itself: it
// replaces, renames and removes them, and says what can be done when that
// fails.
//
// All who rename or remove such a file do it here, because on Windows another
// program (a virus scanner, an indexer, a second troupe) may have it open at
// just that moment. There it is tried again for about a second; elsewhere an
// open file is no obstacle. The functions may be called at any time, by any
// number of goroutines.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-sh/troupe/internal/failpoint"
)

// ErrFull reports that there is no room for what was to be written: the disk is
// full, or a quota or a limit of file sizes is reached.
var ErrFull = errors.New("no room left")

// Explain adds to an error of the system what can be done about it. An error
// of which nothing is known is returned as it is.
func Explain(err error) error {
	switch {
	case err == nil || errors.Is(err, ErrFull):
		return err
	case tooLong(err):
		return fmt.Errorf("%w: %w; raise the limit of file sizes (ulimit -f) and try again", ErrFull, err)
	case full(err):
		return fmt.Errorf("%w: %w; make room there and try again", ErrFull, err)
	case errors.Is(err, fs.ErrPermission), forbidden(err):
		return fmt.Errorf("%w; make it writable, or set TROUPE_HOME to a directory you can write", err)
	}
	return err
}

// Replace gives path a new content in one step: who reads it, even after a
// crash, finds the old content or the new. The file has the mode afterwards, and
// before that nobody else can read it. The temporary file
// beside it, which a crash leaves behind, is o's.
func Replace(path string, data []byte, mode fs.FileMode, o Owner) (err error) {
	f, err := os.OpenFile(o.Temporary(filepath.Dir(path)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Explain(err)
	}
	defer func() {
		if err != nil {
			_ = Remove(f.Name()) // the first error is the one to tell
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		failpoint.Here(failpoint.StateTemporary)
		err = Rename(f.Name(), path)
	}
	return Explain(err)
}

// Rename is [os.Rename], tried again while another program is in the way.
func Rename(from, to string) error {
	return Retry(func() error { return os.Rename(from, to) })
}

// Remove is [os.Remove], tried again while another program is in the way.
func Remove(path string) error {
	return Retry(func() error { return os.Remove(path) })
}

// RemoveAll is [os.RemoveAll], tried again while another program is in the way.
func RemoveAll(path string) error {
	return Retry(func() error { return os.RemoveAll(path) })
}

// Retry calls f, which changes or opens a file, until it does not fail because
// of another program, or about a second is over. The last error is returned.
func Retry(f func() error) error { return retry(busy, f) }

// The waits of retry: they double, and sum up to less than a second and a half.
const (
	firstWait = 5 * time.Millisecond
	lastWait  = 640 * time.Millisecond
)

func retry(busy func(error) bool, f func() error) error {
	for wait := firstWait; ; wait *= 2 {
		err := f()
		if err == nil || !busy(err) || wait > lastWait {
			return err
		}
		timer := time.NewTimer(wait)
		<-timer.C
	}
}
