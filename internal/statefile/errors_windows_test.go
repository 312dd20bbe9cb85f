package statefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var errNoSpace, errTooLong, errReadOnly, errInFile error = diskFull, handleDiskFull, writeProtected, badDirectoryName

// private cannot be told of the mode here: a file takes its rights from its directory.
func private(fs.FileInfo) bool { return true }

// A file that another has open for a moment is removed and replaced all the same.
func TestOpenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for name, change := range map[string]func() error{
		"remove":  func() error { return Remove(path) },
		"replace": func() error { return Replace(path, []byte("new"), 0o600, Owner{}) },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(50*time.Millisecond, func() { f.Close() })
			defer timer.Stop()
			if err := change(); err != nil {
				t.Error(err)
			}
		})
	}
}

const tooLongSays = "make room" // there is no limit of sizes
