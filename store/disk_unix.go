//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
)

// syncDir makes the names in a directory last.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// noLinks reports whether a file system has no second names for files. The
// system says "not permitted" of that.
func noLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission)
}
