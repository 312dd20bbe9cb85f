package tool

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-sh/troupe/internal/gitignore"
)

// A walk finds the files below a directory, several directories at a time.
//
// It leaves out what git ignores, what a file called .ignore names, names with
// a dot in front, and always ".git". The ignore files of the directories above
// count up to the top of the repository, but the directory walked is walked
// even if they ignore it. It follows no link.
type walk struct {
	root  string                 // absolute
	hide  func(path string) bool // leaves out a path of any kind; nil hides none
	depth int                    // levels below root; 0 is all
	dots  bool                   // take names with a dot in front too

	// judge outranks the ignore files and the dot. nil has nothing to say. It
	// and the next two are called from many goroutines.
	judge func(rel string, isDir bool) gitignore.Verdict
	// kind is asked of files that were not left out, or only for their dot; a
	// file it takes is taken in spite of the dot. nil takes what is there.
	kind func(name string) bool
	// take decides on a file, or a link to something, when all else agrees.
	take func(rel string, mode fs.FileMode) bool
}

// A level is one directory on the way.
type level struct {
	rel      string // with a slash at the end; "" is the root
	depth    int
	git, dot *gitignore.Chain // rules of .gitignore and of .ignore
}

// maxIgnoreFile is how many bytes of an ignore file are read.
const maxIgnoreFile = 1 << 20

// files returns the paths of the files relative to the root, with slashes, in
// no order, and how many directories could not be read. It fails if the root
// can not be read or ctx ends.
func (w *walk) files(ctx context.Context) (found []string, unread int, err error) {
	var (
		mu     sync.Mutex
		more   = sync.NewCond(&mu)
		todo   = []level{w.top()}
		active int
		wg     sync.WaitGroup
	)
	worker := func() {
		mu.Lock()
		defer mu.Unlock()
		for {
			for len(todo) == 0 && active > 0 {
				more.Wait()
			}
			if len(todo) == 0 {
				more.Broadcast()
				return
			}
			l := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			active++
			mu.Unlock()
			files, below, readErr := w.list(ctx, l)
			mu.Lock()
			active--
			found = append(found, files...)
			todo = append(todo, below...)
			switch {
			case ctx.Err() != nil:
				todo, err = nil, ctx.Err()
			case readErr != nil && l.rel == "":
				err = readErr
			case readErr != nil:
				unread++
			}
			more.Broadcast()
		}
	}
	for range max(2, runtime.GOMAXPROCS(0)) {
		wg.Go(worker)
	}
	wg.Wait()
	return found, unread, err
}

// list reads one directory.
func (w *walk) list(ctx context.Context, l level) (files []string, below []level, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(w.root, filepath.FromSlash(l.rel))
	d, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	entries, err := d.ReadDir(-1)
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	l = l.withOwnRules(dir, entries)
	for _, e := range entries {
		name := e.Name()
		if !w.wants(l, name, e.Type()) {
			continue
		}
		if w.hide != nil && w.hide(filepath.Join(dir, name)) {
			continue
		}
		rel := l.rel + name
		switch {
		case !e.IsDir():
			if w.take == nil || w.take(rel, e.Type()) {
				files = append(files, rel)
			}
		case w.depth == 0 || l.depth+1 < w.depth:
			below = append(below, level{rel: rel + "/", depth: l.depth + 1, git: l.git.Enter(name), dot: l.dot.Enter(name)})
		}
	}
	return files, below, err
}

// wants tells whether a name is neither ignored nor of a kind that is not
// looked for.
func (w *walk) wants(l level, name string, mode fs.FileMode) bool {
	isDir := mode.IsDir()
	if name == ".git" || !isDir && !mode.IsRegular() && mode&fs.ModeSymlink == 0 {
		return false
	}
	v := gitignore.Unmentioned
	if w.judge != nil {
		v = w.judge(l.rel+name, isDir)
	}
	if v == gitignore.Unmentioned {
		v = l.dot.Match(name, isDir)
	}
	if v == gitignore.Unmentioned {
		v = l.git.Match(name, isDir)
	}
	if v == gitignore.Ignored {
		return false
	}
	if w.kind != nil && !isDir {
		return w.kind(name)
	}
	return v == gitignore.Included || w.dots || name[0] != '.'
}

// withOwnRules adds the ignore files that stand in the directory itself.
func (l level) withOwnRules(dir string, entries []fs.DirEntry) level {
	var git, own, dot bool
	for _, e := range entries {
		switch e.Name() {
		case ".git":
			git = true
		case ".gitignore":
			own = e.Type().IsRegular()
		case ".ignore":
			dot = e.Type().IsRegular()
		}
	}
	// A repository in a repository starts anew.
	if git {
		l.git = gitignore.Root(excluded(dir))
	}
	if own && l.git != nil {
		l.git = l.git.With(ignoreRules(filepath.Join(dir, ".gitignore")))
	}
	if dot {
		l.dot = l.dot.With(ignoreRules(filepath.Join(dir, ".ignore")))
	}
	return l
}

// top is the root with the rules of the directories above it.
func (w *walk) top() level {
	above, names := filepath.Dir(w.root), []string{filepath.Base(w.root)}
	if above == w.root {
		return level{}
	}
	for !exists(filepath.Join(above, ".git")) {
		next := filepath.Dir(above)
		if next == above {
			return level{} // no repository, no rules
		}
		names = append(names, filepath.Base(above))
		above = next
	}
	l := level{git: gitignore.Root(excluded(above))}
	for i := len(names) - 1; i >= 0; i-- {
		l.git = l.git.With(ignoreRules(filepath.Join(above, ".gitignore"))).Enter(names[i])
		if l.dot = l.dot.With(ignoreRules(filepath.Join(above, ".ignore"))); l.dot != nil {
			l.dot = l.dot.Enter(names[i])
		}
		above = filepath.Join(above, names[i])
	}
	return l
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// excluded reads info/exclude of the repository whose working tree is dir. In
// a linked working tree .git is a file that names the place.
func excluded(dir string) *gitignore.Rules {
	git := filepath.Join(dir, ".git")
	if text, err := readStart(git); err == nil {
		to, ok := strings.CutPrefix(string(text), "gitdir:")
		if !ok {
			return nil
		}
		git = startingAt(dir, strings.TrimSpace(to))
		if common, err := readStart(filepath.Join(git, "commondir")); err == nil {
			git = startingAt(git, strings.TrimSpace(string(common)))
		}
	}
	return ignoreRules(filepath.Join(git, "info", "exclude"))
}

func startingAt(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// ignoreRules reads an ignore file. One that is not there or can not be read has no
// rules: a walk goes on without it, as git does.
func ignoreRules(path string) *gitignore.Rules {
	text, err := readStart(path)
	if err != nil {
		return nil
	}
	return gitignore.Parse(text)
}

func readStart(path string) ([]byte, error) {
	f, info, err := openFound(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(unwaiting(f, info), maxIgnoreFile))
}

// openFound opens a file that a walk has found, for reading. What stands at
// path by now may be another thing than the walk saw: a link is refused, and a
// pipe, which could wait for a writer, is not waited for.
func openFound(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// hideBoth makes hide see each path below root also by its real name, if a
// link leads to the root: a link is no way around a rule. It reports whether
// the root itself, or a directory above it, is hidden.
func hideBoth(hide func(string) bool, root string) (both func(string) bool, hidden bool) {
	if hide == nil {
		return nil, false
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil || real == root {
		return hide, hidesAbove(hide, root)
	}
	both = func(path string) bool {
		if hide(path) {
			return true
		}
		rel, ok := strings.CutPrefix(path, root)
		return ok && hide(filepath.Join(real, rel))
	}
	return both, hidesAbove(hide, root) || hidesAbove(hide, real)
}

// hidesAbove tells whether path or a directory above it is hidden.
func hidesAbove(hide func(string) bool, path string) bool {
	for {
		if hide(path) {
			return true
		}
		up := filepath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// shown is how a path is named to the model: relative to dir if it is below
// it. Slashes divide it on every system.
func shown(dir, path string) string {
	below := strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	return filepath.ToSlash(strings.TrimPrefix(path, below))
}

// onOneLine is name as it stands in a list: in quotes, with escapes, if it has
// characters that would tear the list apart.
func onOneLine(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	return name
}
