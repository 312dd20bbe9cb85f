package statefile

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
)

// An Owner is a process that writes new contents beside the files that they are
// for. Its name stands in the names of those temporary files, so that what it
// leaves behind when it is killed can be told from what another one is writing.
// The zero Owner leaves what nobody sweeps.
type Owner struct {
	Name string // of letters, digits and dots
	// Gone reports whether the process of this name is known to be dead. What it
	// does not know it takes for alive; it is asked about names that anybody made up.
	Gone func(name string) bool
}

const temporary, temporaryEnd = ".troupe-", ".tmp"

// Temporary is a path in dir for a file of o's that is about to be written.
func (o Owner) Temporary(dir string) string {
	return filepath.Join(dir, temporary+o.Name+"-"+rand.Text()+temporaryEnd)
}

// Sweep removes the temporary files in dir whose owner is dead, and nothing else.
// What cannot be looked at or removed stays.
func (o Owner) Sweep(dir string) {
	if o.Gone == nil {
		return
	}
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(-1) // what it could read is looked at
	_ = d.Close()
	for _, name := range names {
		of, ok := owner(name)
		if !ok || !o.Gone(of) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			_ = Remove(path)
		}
	}
}

// owner is whose temporary file has this name, if it is one.
func owner(name string) (of string, ok bool) {
	of, begins := strings.CutPrefix(name, temporary)
	of, ends := strings.CutSuffix(of, temporaryEnd)
	at := len(of) - len(rand.Text()) - 1
	if !begins || !ends || at <= 0 || of[at] != '-' {
		return "", false
	}
	return of[:at], true
}
