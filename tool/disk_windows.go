package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// openFlags are the flags of every open; on Windows an open does not wait.
const openFlags = 0

// A promptFile is a file as it is: on Windows none that calls itself a file
// waits.
type promptFile struct{ *os.File }

// mayWrite has nothing to add to the read-only attribute, which is part of
// the mode.
func mayWrite(string) error { return nil }

// hardLinks is the number of names the file has; it is not known here.
func hardLinks(fs.FileInfo) uint64 { return 1 }

// keepOwner does nothing: a file takes its rights from its directory.
func keepOwner(string, fs.FileInfo) error { return nil }

// moveOver renames temp to path if check still allows it. While another
// program (a virus scanner, an indexer, an editor) has the file open Windows
// refuses, so it is tried several times within about a second; check is asked
// each time.
func moveOver(ctx context.Context, temp, path string, check func() error) error {
	const sharingViolation = syscall.Errno(32) // ERROR_SHARING_VIOLATION
	wait := 5 * time.Millisecond
	for {
		if err := check(); err != nil {
			return err
		}
		err := os.Rename(temp, path)
		busy := errors.Is(err, syscall.ERROR_ACCESS_DENIED) || errors.Is(err, sharingViolation)
		if !busy || wait > 500*time.Millisecond {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		wait *= 2
	}
}
