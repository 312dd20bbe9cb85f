package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/troupe-sh/troupe/internal/statefile"
)

// DefaultLongest is how many bytes of a task's output are kept.
const DefaultLongest = 64 << 20

// ErrReplaced reports that an output file is not the one that was made.
var ErrReplaced = errors.New("the output file was replaced by something else")

func outputName(id string, turn int) string {
	if turn > 1 {
		id += "-" + strconv.Itoa(turn)
	}
	return id + ".output"
}

// An output is the file in which a task leaves what it prints. It takes and
// drops what is too much, so that the task runs on. It is open only once there
// is something to write: most of many agents have nothing to say for long.
type output struct {
	path    string
	longest int64
	made    os.FileInfo

	mu     sync.Mutex
	file   *os.File
	closed bool
	size   int64
	err    error // the first
}

// newOutput makes the file, in a private directory. Nothing that was there
// before, a link least of all, is ever written to.
func newOutput(dir, name string, longest int64) (*output, error) {
	if longest == 0 {
		longest = DefaultLongest
	}
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	o := &output{path: filepath.Join(dir, name), longest: longest}
	f, err := os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the output file of a task: %w", statefile.Explain(err))
	}
	o.made, err = f.Stat()
	return o, errors.Join(err, f.Close())
}

// privateDir makes dir, or makes sure that it is a directory of our own.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the output files: %w", statefile.Explain(err))
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the directory of the output files: %w", statefile.Explain(err))
	}
	if !info.IsDir() || !isPrivate(info) {
		return fmt.Errorf("%s must be a directory that is yours alone; make it so with: chmod 700 %s", dir, dir)
	}
	return nil
}

// Write implements [io.Writer]. It never fails: what went wrong shows at the end.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.closed || o.size > o.longest {
		return len(p), nil
	}
	if o.file == nil {
		if o.file, o.err = openSame(o.path, o.made); o.err != nil {
			return len(p), nil
		}
	}
	part := p[:min(int64(len(p)), o.longest-o.size)]
	_, o.err = o.file.Write(part)
	if o.size += int64(len(part)); o.err == nil && len(part) < len(p) {
		_, o.err = fmt.Fprintf(o.file, "\n[the output was longer than %d bytes; the rest was not kept]\n", o.longest)
		o.size = o.longest + 1
	}
	return len(p), nil
}

// openSame opens the file that was made, or fails if another has its name.
func openSame(path string, made os.FileInfo) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|noFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("%w (%s): %w", ErrReplaced, path, err)
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, made) {
		err = fmt.Errorf("%w: %s", ErrReplaced, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.file == nil {
		return o.err
	}
	err := errors.Join(o.err, o.file.Close())
	o.file = nil
	return err
}

// ReadOutput returns at most most bytes of an output file from offset on, and the
// offset to go on from. A link in its place is an error, and not followed.
func ReadOutput(path string, offset int64, most int) (text []byte, next int64, err error) {
	f, _, err := openOutput(path)
	if err != nil {
		return nil, offset, err
	}
	defer f.Close()
	text, err = readAt(f, offset, most)
	return text, offset + int64(len(text)), err
}

// Tail returns the last bytes of an output file, most of them at most, and how many
// it has.
func Tail(path string, most int) (text []byte, size int64, err error) {
	f, size, err := openOutput(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	text, err = readAt(f, max(0, size-int64(most)), most)
	return text, size, err
}

// openOutput opens an output file, and returns its size.
func openOutput(path string) (*os.File, int64, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s", ErrReplaced, path)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the output: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("read the output: %w", err)
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, 0, errors.Join(fmt.Errorf("read the output: %w: %s", ErrReplaced, path), err, f.Close())
	}
	return f, info.Size(), nil
}

func readAt(f *os.File, offset int64, most int) ([]byte, error) {
	text := make([]byte, most)
	n, err := f.ReadAt(text, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the output: %w", err)
	}
	return text[:n], nil
}
