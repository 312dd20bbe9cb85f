package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-sh/troupe"
)

//go:embed glob.md
var globDoc string

// maxGlob is how many files a result of Glob names.
const maxGlob = 100

// Glob is the tool that finds files by a pattern of their path.
type Glob struct {
	// Hide tells that a path, absolute, may not be seen; it is called from
	// many goroutines. nil hides none.
	Hide func(path string) bool
}

type globInput struct {
	Pattern string `json:"pattern" jsonschema:"the pattern, like **/*.go"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to look in, absolute or from the working directory"`
}

type globData struct {
	NumFiles  int      `json:"numFiles"`
	Filenames []string `json:"filenames"`
	Truncated bool     `json:"truncated"`
}

var globSpec = sync.OnceValue(func() troupe.ToolSpec { return define[globInput]("Glob", globDoc) })

// Spec implements [troupe.Tool].
func (g *Glob) Spec() troupe.ToolSpec { return globSpec() }

// Call implements [troupe.Tool].
func (g *Glob) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[globInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	root, pattern, err := globRoot(c.Place, in)
	if err != nil {
		return troupe.Result{}, err
	}
	found, err := g.find(ctx, root, pattern)
	if err != nil {
		return troupe.Result{}, err
	}
	// Newest first; the path decides between files of one moment.
	slices.SortFunc(found, func(a, b globFile) int {
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), strings.Compare(a.path, b.path))
	})
	data := globData{Filenames: []string{}, Truncated: len(found) > maxGlob}
	var text strings.Builder
	for _, f := range found[:min(len(found), maxGlob)] {
		name := shown(c.Place.Dir, f.path)
		data.Filenames = append(data.Filenames, name)
		text.WriteString(onOneLine(name) + "\n")
	}
	data.NumFiles = len(data.Filenames)
	switch {
	case len(found) == 0:
		text.WriteString("No files found")
	case data.Truncated:
		fmt.Fprintf(&text, "(%d of %d files, those changed last. Use a narrower pattern or path to see others.)", maxGlob, len(found))
	}
	raw, err := troupe.Encode(data)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("data of Glob: %w", err)
	}
	r := troupe.Answer(strings.TrimSuffix(text.String(), "\n"))
	r.Data = raw
	return r, nil
}

// globRoot divides a pattern into the directory where wildcards begin,
// absolute, and the rest. A pattern without any names one file: the rest is
// its name.
func globRoot(p troupe.Place, in globInput) (root, pattern string, err error) {
	pattern = in.Pattern
	if filepath.Separator == '\\' && filepath.IsAbs(pattern) {
		pattern = filepath.ToSlash(pattern)
	}
	if pattern == "" {
		return "", "", errors.New("the pattern is empty; ** finds every file")
	}
	if !doublestar.ValidatePattern(pattern) {
		return "", "", fmt.Errorf("the pattern %q is not complete: look for an open [ or { or a \\ at the end", pattern)
	}
	base, pattern := doublestar.SplitPattern(pattern)
	base = filepath.FromSlash(base)
	if filepath.IsAbs(base) {
		return filepath.Clean(base), pattern, nil
	}
	start := resolve(p, in.Path)
	if info, err := os.Stat(start); err != nil {
		return "", "", fmt.Errorf("look for files in %s: %w", start, cause(err))
	} else if !info.IsDir() {
		return "", "", fmt.Errorf("look for files in %s: it is a file; path has to be a directory", start)
	}
	return filepath.Join(start, base), pattern, nil
}

type globFile struct {
	path string
	info fs.FileInfo
}

// find returns the files below root that the pattern matches. That there is no
// root, and so no file, is not an error.
func (g *Glob) find(ctx context.Context, root, pattern string) ([]globFile, error) {
	hide, hidden := hideBoth(g.Hide, root)
	if hidden {
		return nil, nil
	}
	if !hasMeta(pattern) {
		return named(filepath.Join(root, unescaped(pattern)), hide), nil
	}
	var mu sync.Mutex
	var found []globFile
	w := walk{root: root, hide: hide, dots: namesDot(pattern)}
	if !strings.Contains(pattern, "**") && !strings.Contains(pattern, "{") {
		w.depth = strings.Count(pattern, "/") + 1
	}
	w.take = func(rel string, mode fs.FileMode) bool {
		if !doublestar.MatchUnvalidated(pattern, rel) {
			return false
		}
		full := filepath.Join(root, filepath.FromSlash(rel))
		info, err := os.Lstat(full)
		if err == nil && mode&fs.ModeSymlink != 0 {
			info, err = os.Stat(full)
		}
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, globFile{full, info})
		return false // found keeps it, with its time
	}
	_, _, err := w.files(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for files in %s: %w", root, cause(err))
	}
	return found, nil
}

// named finds a file that is called by its full name: ignored or not, it is
// what the caller asks for.
func named(file string, hide func(string) bool) []globFile {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || hide != nil && hide(file) {
		return nil
	}
	return []globFile{{file, info}}
}

func hasMeta(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '[', '{':
			return true
		case '\\':
			i++
		}
	}
	return false
}

// unescaped takes the backslashes out of a pattern without wildcards.
func unescaped(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		out.WriteByte(pattern[i])
	}
	return filepath.FromSlash(path.Clean(out.String()))
}

// namesDot tells whether a part of the pattern begins with a dot, which says
// that names with a dot in front are meant too.
func namesDot(pattern string) bool {
	for i := range len(pattern) {
		if pattern[i] == '.' && (i == 0 || strings.IndexByte("/{,", pattern[i-1]) >= 0) {
			return true
		}
	}
	return false
}
