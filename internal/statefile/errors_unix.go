//go:build unix

package statefile

import (
	"errors"
	"syscall"
)

// busy reports whether another program is in the way: here none can be.
func busy(error) bool { return false }

// full reports whether the disk or a quota has no room.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// tooLong reports whether a file would be longer than the process may write.
func tooLong(err error) bool { return errors.Is(err, syscall.EFBIG) }

// forbidden reports whether the place is not one to write in: a file system
// that is read-only, or a file where a directory should be.
func forbidden(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR)
}
