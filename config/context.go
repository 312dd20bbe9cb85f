package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Limits of context files, in bytes. Every request pays for them.
const (
	maxContextFile = 64 << 10
	maxContext     = 256 << 10

	maxContextFiles = 100
	maxImports      = 5 // within each other
)

// A scope is what the context files of one owner may import from.
type scope struct {
	roots   []string // real paths of directories
	trusted bool     // of the user, or trusted: also the home directory is open
}

// A contextReader collects context files, each text once.
type contextReader struct {
	l       *loader
	files   []fs.FileInfo
	texts   map[string]bool
	refused map[string]bool // paths, and "" for all beyond the limit
	left    int             // bytes
}

// loadContext reads the user's own context files, then those of the
// repository from its root down to Dir. Without a repository it starts at the
// home directory, if Dir lies in it: anywhere else a directory above, such as
// that of all temporary files, may belong to anybody.
func (l *loader) loadContext() {
	r := &contextReader{l: l, texts: map[string]bool{}, refused: map[string]bool{}, left: maxContext}
	own := scope{roots: []string{realPath(l.src.Home), l.cfg.Root}, trusted: true}
	if l.src.UserHome != "" {
		r.add(filepath.Join(l.src.UserHome, ".claude", "CLAUDE.md"), own, 0)
	}
	if l.src.Home != "" {
		r.add(filepath.Join(l.src.Home, "AGENTS.md"), own, 0)
	}
	for _, dir := range l.contextDirs() {
		from := scope{roots: []string{dir, l.cfg.Root}, trusted: l.cfg.Trusted || l.ofUser(dir)}
		for _, name := range []string{"CLAUDE.md", "AGENTS.md", filepath.Join(".claude", "CLAUDE.md"), "CLAUDE.local.md"} {
			r.add(filepath.Join(dir, name), from, 0)
		}
	}
}

func (l *loader) contextDirs() []string {
	top := l.cfg.Root
	if !hasGit(top) {
		top = l.userHome
	}
	return downTo(top, l.cfg.Dir) // which is Dir alone outside of the home directory
}

// add reads a file and then what it imports.
func (r *contextReader) add(path string, from scope, depth int) {
	info, err := os.Stat(path)
	if depth > 0 && (err != nil || !info.Mode().IsRegular()) {
		return // not every word with an @ before it names a file
	}
	if isOneOf(info, r.files) || info != nil && !r.open(path, from) {
		return
	}
	if info != nil && len(r.files) == maxContextFiles {
		r.refuse("", "there are more than %d context files; %s and those after it are not read", maxContextFiles, r.l.show(path))
		return
	}
	data, size, err := readFile(path, maxContextFile+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		r.l.problem(Problem{File: path, Reason: err.Error()})
		return
	}
	r.files = append(r.files, info)
	text, ok := r.cut(path, data, size)
	if !ok {
		return
	}
	r.l.cfg.Context = append(r.l.cfg.Context, ContextFile{path, text})
	if depth < maxImports {
		for _, name := range imports(text) {
			r.add(r.l.absolute(filepath.Dir(path), name), from, depth+1)
		}
	}
}

// open says whether files of this scope may be the one at path, wherever its
// links lead.
func (r *contextReader) open(path string, from scope) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for _, root := range from.roots {
		if inside(root, real) {
			return true
		}
	}
	if !inside(r.l.userHome, real) {
		r.refuse(path, "%s is not read: it lies outside of the repository and of the home directory", r.l.show(path))
		return false
	}
	if !from.trusted && !r.refused[path] {
		r.refused[path] = true
		r.l.withhold(path, "context from outside of the repository")
	}
	return from.trusted
}

// refuse warns that something is not read, once for each cause.
func (r *contextReader) refuse(cause, format string, args ...any) {
	if !r.refused[cause] {
		r.refused[cause] = true
		r.l.warn(format, args...)
	}
}

// cut makes the text of a file, as much of it as there is room for. It is not
// ok if there is nothing new in it. size is that of the file, data the start.
func (r *contextReader) cut(path string, data []byte, size int64) (text string, ok bool) {
	whole := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	room := min(maxContextFile, r.left)
	if int64(len(data)) < size {
		room = min(room, len(whole)-1) // the last character may be half of one
	}
	short := prefix(whole, room)
	if !utf8.ValidString(short) || strings.ContainsRune(short, 0) {
		r.l.problem(Problem{File: path, Reason: "the file is not UTF-8 text"})
		return "", false
	}
	text = strings.TrimSpace(short)
	if strings.TrimSpace(whole) == "" || r.texts[text] && text != "" {
		return "", false
	}
	r.texts[text] = true
	r.left -= len(short)
	if len(short) < len(whole) {
		r.l.warn("%s: only the first %d of %d bytes are read; context files may have %d KB each and %d KB in all",
			r.l.show(path), len(short), size, maxContextFile>>10, maxContext>>10)
		text += fmt.Sprintf("\n\n[The rest of this file is left out: it has %d bytes, these were the first %d.]", size, len(short))
	}
	return text, short != ""
}

// prefix returns at most n bytes of s, up to the end of a line or at least of
// a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s[:n], '\n'); i > 0 {
		return s[:i]
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// imports returns the paths that a text names as @path, outside of code.
func imports(text string) []string {
	var out []string
	fence := ""
	for line := range strings.Lines(text) {
		if mark := fenceMark(line); mark != "" {
			switch {
			case fence == "":
				fence = mark
			case strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark:
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		for _, word := range strings.Fields(withoutCode(line)) {
			if path, ok := strings.CutPrefix(word, "@"); ok {
				if path = strings.TrimRight(path, ".,;:!?)\"'"); path != "" {
					out = append(out, path)
				}
			}
		}
	}
	return out
}

// fenceMark returns the signs with which a line opens or closes a block of
// code; "" if it does not.
func fenceMark(line string) string {
	line = strings.TrimSpace(line)
	for _, sign := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, sign)
		if n := len(line) - len(rest); n >= 3 && !(sign == "`" && strings.Contains(rest, "`")) {
			return line[:n]
		}
	}
	return ""
}

// withoutCode takes the code spans out of a line.
func withoutCode(line string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			out.WriteString(line)
			return out.String()
		}
		rest := strings.TrimLeft(line[i:], "`")
		mark := line[i : len(line)-len(rest)]
		end := strings.Index(rest, mark)
		if end < 0 { // a lone sign opens nothing
			out.WriteString(line[:i])
			line = rest
			continue
		}
		out.WriteString(line[:i] + " ")
		line = rest[end+len(mark):]
	}
}
