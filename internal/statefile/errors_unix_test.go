//go:build unix

package statefile

import (
	"io/fs"
	"syscall"
)

var errNoSpace, errTooLong, errReadOnly, errInFile error = syscall.ENOSPC, syscall.EFBIG, syscall.EROFS, syscall.ENOTDIR

func private(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

const tooLongSays = "ulimit -f"
