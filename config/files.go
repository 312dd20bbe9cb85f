package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// readFile returns at most limit bytes of a regular file, and the size that
// it has. Anything else than a file, such as a pipe that would never end, is
// an error. [fs.ErrNotExist] means that there is nothing of this name: a link
// that leads nowhere is another error, for somebody relies on its content.
func readFile(path string, limit int64) (data []byte, size int64, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, 0, fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(path); lerr == nil {
			return nil, 0, errors.New("the link leads nowhere")
		}
	}
	if err != nil {
		return nil, 0, reason(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, reason(err)
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, 0, reason(err)
	}
	return data, info.Size(), nil
}

// readWhole is readFile for files that make no sense in part.
func readWhole(path string, limit int64) ([]byte, error) {
	data, _, err := readFile(path, limit+1)
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d KB", limit>>10)
	}
	return data, err
}

// reason takes the operation and the path off an error of package os: whoever
// reports it names the file himself.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// repositoryRoot returns the nearest directory at or above dir that has a
// .git, be it a directory or the file of a worktree; dir if there is none.
func repositoryRoot(dir string) string {
	for d := range upwards(dir) {
		if hasGit(d) {
			return d
		}
	}
	return dir
}

// upwards yields dir and its parents up to the root of the file system.
func upwards(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(dir) {
			parent := filepath.Dir(dir)
			if parent == dir {
				return
			}
			dir = parent
		}
	}
}

// downTo returns the directories from top down to dir, both included; dir
// alone if it is not below top.
func downTo(top, dir string) []string {
	if !inside(top, dir) {
		return []string{dir}
	}
	var out []string
	for d := range upwards(dir) {
		out = append([]string{d}, out...)
		if d == top {
			break
		}
	}
	return out
}

func hasGit(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// below returns path as seen from dir if it lies below dir or is dir.
func below(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

func inside(dir, path string) bool {
	_, ok := below(dir, path)
	return dir != "" && ok
}

// realPath resolves the links of path; what is not there stays as it is.
func realPath(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// absolute makes a path that a user wrote absolute: "~" is the home
// directory, anything relative starts at base.
func (l *loader) absolute(base, path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && l.src.UserHome != "" {
		if rest == "" || rest[0] == '/' || os.IsPathSeparator(rest[0]) {
			return filepath.Join(l.src.UserHome, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}
