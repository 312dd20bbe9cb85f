package tool

import (
	"io/fs"
	"os"
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
