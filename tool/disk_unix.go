//go:build unix

package tool

import (
	"context"
	"io/fs"
	"os"
	"syscall"
)

// openFlags make an open return at once, whatever the path has become, and
// fail if it has become a link: paths are opened when their links are resolved.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// mayWrite fails if the system would not let this process write the file.
func mayWrite(path string) error {
	const write = 2 // W_OK of access(2)
	return syscall.Access(path, write)
}

// hardLinks is the number of names the file has.
func hardLinks(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// keepOwner gives the file at path the owner and group of info.
func keepOwner(path string, info fs.FileInfo) error {
	now, err := os.Lstat(path)
	if err != nil {
		return err
	}
	have, ok := now.Sys().(*syscall.Stat_t)
	want, ok2 := info.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	return os.Lchown(path, int(want.Uid), int(want.Gid))
}

// moveOver renames temp to path if check still allows it.
func moveOver(_ context.Context, temp, path string, check func() error) error {
	if err := check(); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
