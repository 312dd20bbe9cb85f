package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// eyes are one inotify descriptor and the goroutine that reads it.
type eyes struct {
	f    *os.File
	tell *notifier
	done chan struct{}

	mu   sync.Mutex
	dirs map[int32][]string // the paths that lead to a directory
}

const (
	changes = syscall.IN_CREATE | syscall.IN_MOVED_TO | syscall.IN_MOVED_FROM | syscall.IN_DELETE | syscall.IN_CLOSE_WRITE | syscall.IN_ONLYDIR
	ofDirs  = syscall.IN_ISDIR | syscall.IN_IGNORED
)

// openEyes returns nil if there is no descriptor to be had.
func openEyes(tell *notifier) *eyes {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	e := &eyes{f: os.NewFile(uintptr(fd), "inotify"), tell: tell, done: make(chan struct{}), dirs: map[int32][]string{}}
	go e.read()
	return e
}

func (e *eyes) close() {
	if e != nil {
		_ = e.f.Close() // that is what ends read
		<-e.done
	}
}

// watch reports whether the kernel will tell of changes in dir.
func (e *eyes) watch(dir string) bool {
	if e == nil {
		return false
	}
	c, err := e.f.SyscallConn()
	if err != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	wd := -1
	cerr := c.Control(func(fd uintptr) { wd, err = syscall.InotifyAddWatch(int(fd), dir, changes) })
	if errors.Is(err, fs.ErrNotExist) {
		return true // nothing to see yet
	}
	if err != nil || cerr != nil {
		return false
	}
	if paths := e.dirs[int32(wd)]; !slices.Contains(paths, dir) {
		e.dirs[int32(wd)] = append(paths, dir)
	}
	return true
}

func (e *eyes) read() {
	defer close(e.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := e.f.Read(buf)
		if err != nil {
			return // closed
		}
		for b := buf[:n]; len(b) >= syscall.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(b))
			mask := binary.NativeEndian.Uint32(b[4:])
			size := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name := string(bytes.TrimRight(b[syscall.SizeofInotifyEvent:size], "\x00"))
			e.pass(wd, mask, name)
			b = b[size:]
		}
	}
}

func (e *eyes) pass(wd int32, mask uint32, name string) {
	if mask&syscall.IN_Q_OVERFLOW != 0 {
		e.tell.tellAll()
		return
	}
	e.mu.Lock()
	dirs := e.dirs[wd]
	if mask&syscall.IN_IGNORED != 0 {
		delete(e.dirs, wd)
	}
	e.mu.Unlock()
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); mask&ofDirs != 0 {
			e.tell.tellDir(path)
		} else {
			e.tell.tell(path)
		}
	}
}

// ring has the kernel tell of a file that was locked: of a lock it does not.
func ring(path string) {
	_ = os.WriteFile(path, nil, 0o600) // who is not told looks for himself
}
