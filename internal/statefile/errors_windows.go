package statefile

import (
	"errors"
	"syscall"
)

// Errors of Windows for which package syscall has no name.
const (
	sharingViolation = syscall.Errno(32)
	lockViolation    = syscall.Errno(33)
	handleDiskFull   = syscall.Errno(39)
	diskFull         = syscall.Errno(112)
	writeProtected   = syscall.Errno(19)
	badDirectoryName = syscall.Errno(267)
)

// busy reports whether another program has the file open. Windows says "access
// denied" of a file that is about to be removed, too.
func busy(err error) bool {
	return errors.Is(err, syscall.ERROR_ACCESS_DENIED) || errors.Is(err, sharingViolation) || errors.Is(err, lockViolation)
}

// full reports whether the disk has no room.
func full(err error) bool { return errors.Is(err, diskFull) || errors.Is(err, handleDiskFull) }

// tooLong reports whether a file would be longer than the process may write:
// there is no such limit here.
func tooLong(error) bool { return false }

// forbidden reports whether the place is not one to write in: a disk that is
// write-protected, or a file where a directory should be.
func forbidden(err error) bool {
	return errors.Is(err, writeProtected) || errors.Is(err, badDirectoryName) || errors.Is(err, syscall.ERROR_PATH_NOT_FOUND)
}
