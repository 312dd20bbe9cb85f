package gitignore

import (
	"strings"
	"testing"
)

// FuzzAgainstGit gives git and us the same ignore files, of any content, and
// the same paths, one a line: both must ignore the same ones.
func FuzzAgainstGit(f *testing.F) {
	paths := "a/b/c\na/b.o\nfoo\nb/foo/x\n"
	for _, seed := range [][3]string{
		{"*.o\n!keep.o\n", "", ""}, {"a/**/c\n", "!c\n", "foo/"}, {"/a/*\n!/a/b\n", "b/\n", "[!a]"}, {"**/foo\\\n", "\\!x", "***"},
		{"[[:alpha:]]\n[a-\n[]-a]\n", "x \\ \n", "# no\n\\# yes"}, {"\ufeffa\r\n", "b\t", "\xff?"}, {"{a,b}\n", "?", "a\x00b"},
	} {
		f.Add(seed[0], seed[1], seed[2], paths)
	}
	dir := gitRepository(f)
	f.Fuzz(func(t *testing.T, top, inner, excluded, lines string) {
		tr := tree{files: map[string]string{"": top, exclude: excluded}}
		for p := range strings.SplitSeq(lines, "\n") {
			if name := strings.TrimSuffix(p, "/"); possible(name) && !conflicts(name, files(tr.paths)) {
				tr.paths = append(tr.paths, p)
			}
		}
		if len(tr.paths) == 0 || len(top)+len(inner)+len(excluded) > 1<<10 {
			return
		}
		first, _, deep := strings.Cut(tr.paths[0], "/")
		if deep {
			tr.files[first] = inner
		}
		clearTree(t, dir)
		tr.write(t, dir)
		want, got := tr.gitIgnored(t, dir), tr.ignored()
		for _, p := range tr.paths {
			if want[p] != got[p] {
				t.Errorf("%q with %q: git says ignored %v, we say %v", p, tr.files, want[p], got[p])
			}
		}
	})
}

// files are paths without the mark of directories.
func files(paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, strings.TrimSuffix(p, "/"))
	}
	return out
}

// possible reports whether there can be a file of this name in every
// repository, beside its ignore files.
func possible(path string) bool {
	if len(path) > 200 || strings.ContainsRune(path, 0) {
		return false
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || strings.HasPrefix(strings.ToLower(name), ".git") {
			return false
		}
	}
	return true
}
