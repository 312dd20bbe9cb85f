package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// maxFileSize is the size in bytes up to which a file can be changed, since
// for that its whole content has to be seen and compared.
const maxFileSize = 64 << 20

// errTooLarge says that a file is larger than maxFileSize.
var errTooLarge = fmt.Errorf("larger than %d MB", maxFileSize>>20)

// errReadOnly says that nobody has the right to write a file.
var errReadOnly = errors.New("the file is read-only; change its mode first if it is meant to be written")

// A digest stands for the content of a file.
type digest = [sha256.Size]byte

// openRegular opens a regular file for reading. Anything else is refused
// before it is opened: to open a device can have effects and to open a pipe
// can wait for ever. What was opened is looked at again, as the name may have
// come to mean another thing.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, cause(err)
	}
	if err := regular(info); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, cause(err)
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, cause(err)
	}
	return f, info, nil
}

// Reasons for which a file of the system's own cannot be read to its end.
var (
	errWaits   = errors.New("what comes next in it would have to be waited for")
	errEndless = fmt.Errorf("it calls itself empty and has more than %d MB", maxSystemFile>>20)
)

// maxSystemFile is the size in bytes up to which a file is read that calls
// itself empty.
const maxSystemFile = 8 << 20

// unwaiting reads f without ever waiting. Some files of the system call
// themselves regular and empty, and hold up their reader like a pipe
// (/proc/kmsg) or go on for terabytes (/proc/self/pagemap). Of those comes an
// error, errWaits or errEndless.
func unwaiting(f *os.File, info fs.FileInfo) io.Reader {
	if info.Size() > 0 {
		return f
	}
	return &systemFile{file: promptFile{f}}
}

// A systemFile reads a file of which the size is not known.
type systemFile struct {
	file   promptFile
	passed int64
}

// Read implements [io.Reader].
func (s *systemFile) Read(p []byte) (int, error) {
	if s.passed > maxSystemFile {
		return 0, errEndless
	}
	n, err := s.file.Read(p)
	s.passed += int64(n)
	return n, err
}

// errDirectory says that a file was wanted and a directory found.
var errDirectory = errors.New("is a directory")

func regular(info fs.FileInfo) error {
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return errDirectory
	case m&fs.ModeNamedPipe != 0:
		return errors.New("is a named pipe, not a regular file")
	case m&fs.ModeSocket != 0:
		return errors.New("is a socket, not a regular file")
	case m&fs.ModeDevice != 0:
		return errors.New("is a device, not a regular file")
	}
	return errors.New("is not a regular file")
}

// cause is what err says without the path, which the caller names in its own
// words.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}

// realPath is path with all links resolved. What does not exist yet is left
// as it is, so a link that leads nowhere gives the place where it leads.
func realPath(path string) (string, error) {
	for range 40 { // as many links as Linux follows
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		dir, base := filepath.Dir(path), filepath.Base(path)
		if !errors.Is(err, fs.ErrNotExist) || dir == path {
			return "", cause(err)
		}
		dir, err = realPath(dir)
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, base)
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link: something that can be created
		}
		if !filepath.IsAbs(target) {
			target = dir + string(filepath.Separator) + target
		}
		path = target
	}
	return "", errors.New("too many links")
}

// A snapshot is the whole content of a file at one moment.
type snapshot struct {
	content []byte
	digest  digest
	info    fs.FileInfo // nil: there is no file
}

// takeSnapshot reads the file at path. That there is none is not an error.
func takeSnapshot(path string) (snapshot, error) {
	f, info, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return snapshot{}, nil
	}
	if err != nil {
		return snapshot{}, err
	}
	defer f.Close()
	if info.Size() > maxFileSize {
		return snapshot{}, errTooLarge
	}
	var content bytes.Buffer
	content.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := content.ReadFrom(io.LimitReader(unwaiting(f, info), maxFileSize+1)); err != nil {
		return snapshot{}, cause(err)
	}
	if content.Len() > maxFileSize { // it has grown
		return snapshot{}, errTooLarge
	}
	return snapshot{content.Bytes(), sha256.Sum256(content.Bytes()), info}, nil
}

// still fails with ErrChanged unless path has the content of old.
func (old snapshot) still(path string) error {
	now, err := takeSnapshot(path)
	if err != nil {
		return err
	}
	if (now.info == nil) != (old.info == nil) || now.digest != old.digest {
		return ErrChanged
	}
	return nil
}

// replaceFile gives the file at path, of which old is known, a new content,
// in one step: who reads it sees the one or the other. It keeps mode and
// owner; extended attributes are lost. If the file does not have the content
// of old any more nothing is changed and the error is ErrChanged.
//
// The content is compared right before the step. Against writers that do not
// take the journal's lock (other programs) a moment of microseconds remains,
// as no system offers to compare and replace at once.
func replaceFile(ctx context.Context, path string, old snapshot, content []byte, self statefile.Owner) error {
	if old.info == nil {
		return createFile(path, content, self)
	}
	// A rename would not ask whether the file may be written: it needs only
	// the right to write the directory.
	if old.info.Mode()&0o222 == 0 {
		return errReadOnly
	}
	if err := mayWrite(path); err != nil {
		return err
	}
	if hardLinks(old.info) > 1 {
		return overwriteFile(path, old, content)
	}
	temp, err := writeTemp(self.Temporary(filepath.Dir(path)), 0o600, content)
	if errors.Is(err, fs.ErrPermission) {
		return overwriteFile(path, old, content) // the file may be ours in a directory that is not
	}
	if err != nil {
		return err
	}
	defer statefile.Remove(temp) // fails when it has become the file
	if err := keepOwner(temp, old.info); err != nil {
		return overwriteFile(path, old, content)
	}
	if err := os.Chmod(temp, old.info.Mode()); err != nil {
		return cause(err)
	}
	return cause(statefile.Retry(func() error { // an editor or an indexer may have it open
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := old.still(path); err != nil {
			return err
		}
		err := os.Rename(temp, path)
		failpoint.Here(failpoint.FileReplaced)
		return err
	}))
}

// createFile makes a new file at path and the directories above it. It never
// replaces a file that has come into being meanwhile.
func createFile(path string, content []byte, self statefile.Owner) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := writeTemp(self.Temporary(filepath.Dir(path)), 0o644, content)
	if err != nil {
		return err
	}
	defer statefile.Remove(temp)
	err = os.Link(temp, path)
	if err == nil {
		failpoint.Here(failpoint.FileReplaced)
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return ErrChanged
	}
	// Some file systems have no hard links: look, then rename.
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	}
	return cause(statefile.Rename(temp, path))
}

// writeTemp writes content to a new file, name, down to the disk.
func writeTemp(name string, mode fs.FileMode, content []byte) (_ string, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", fmt.Errorf("temporary file beside it: %w", cause(err))
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = statefile.Remove(name) // the first error is the one to tell
		return "", fmt.Errorf("temporary file beside it: %w", cause(err))
	}
	failpoint.Here(failpoint.FileTemporary)
	return name, nil
}

// overwriteFile writes into the file itself. That is for files which a rename
// would harm: one with several names (hard links) would lose the others, one
// of another owner its owner. It is not atomic; if it fails half way the old
// content is put back as far as that is possible.
func overwriteFile(path string, old snapshot, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|openFlags, 0)
	if err != nil {
		return cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return cause(err)
	}
	if !os.SameFile(info, old.info) {
		return ErrChanged
	}
	if err := old.still(path); err != nil {
		return err
	}
	if err := fill(f, content); err != nil {
		if back := fill(f, old.content); back != nil {
			return fmt.Errorf("%w; the file is damaged, its old content could not be put back: %w", cause(err), cause(back))
		}
		return cause(err)
	}
	return nil
}

// fill makes content the content of f.
func fill(f *os.File, content []byte) error {
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		return err
	}
	return f.Sync()
}
