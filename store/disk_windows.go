package store

import (
	"errors"
	"syscall"
)

// syncDir does nothing: the system writes the names of files by itself, in order.
func syncDir(string) error { return nil }

// noLinks reports whether a file system has no second names for files.
func noLinks(err error) bool {
	const invalidFunction = syscall.Errno(1)
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, invalidFunction)
}
