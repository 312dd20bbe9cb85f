//go:build unix

package tool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// openFlags make an open return at once, whatever the path has become, and
// fail if it has become a link: paths are opened when their links are resolved.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// A promptFile reads a file that was opened with openFlags past the runtime's
// poller, which would wait for data.
type promptFile struct{ file *os.File }

// Read implements [io.Reader].
func (p promptFile) Read(buf []byte) (n int, err error) {
	c, err := p.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	control := c.Read(func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), buf)
			if err != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case control != nil:
		return 0, control
	case errors.Is(err, syscall.EAGAIN):
		return 0, errWaits
	case err != nil:
		return 0, err
	case n == 0 && len(buf) > 0:
		return 0, io.EOF
	}
	return n, nil
}

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
