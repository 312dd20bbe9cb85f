package gitignore

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A tree is ignore files by their directory ("" is the top, "exclude" stands
// for .git/info/exclude) and paths; a path with a slash at the end is a
// directory.
type tree struct {
	files map[string]string
	paths []string
}

const exclude = ".git/info/exclude"

// write makes the tree in dir, which is a repository.
func (tr tree) write(t testing.TB, dir string) {
	t.Helper()
	for _, p := range tr.paths {
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(p, "/") {
			err = os.MkdirAll(full, 0o700)
		} else {
			err = os.WriteFile(full, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range tr.files {
		file := filepath.Join(dir, name)
		if name != exclude {
			file = filepath.Join(file, ".gitignore")
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ignored is what a walk with a Chain makes of the tree.
func (tr tree) ignored() map[string]bool {
	out := make(map[string]bool)
	for _, p := range tr.paths {
		here := Root(Parse([]byte(tr.files[exclude]))).With(Parse([]byte(tr.files[""])))
		names := strings.Split(strings.TrimSuffix(p, "/"), "/")
		for i, name := range names {
			isDir := i < len(names)-1 || strings.HasSuffix(p, "/")
			if here.Match(name, isDir) == Ignored {
				out[p] = true
				break
			}
			here = here.Enter(name).With(Parse([]byte(tr.files[strings.Join(names[:i+1], "/")])))
		}
	}
	return out
}

// gitRepository returns an empty repository, without anything that this machine's
// settings would add.
func gitRepository(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	runGit(t, dir, "", "init", "-q")
	return dir
}

func runGit(t testing.TB, dir, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "XDG_CONFIG_HOME="+dir)
	cmd.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	// check-ignore exits with 1 when nothing is ignored.
	if err != nil && stderr.Len() > 0 {
		t.Fatalf("git %s: %v: %s", args[0], err, stderr.String())
	}
	return string(out)
}

// gitIgnored asks git about the tree.
func (tr tree) gitIgnored(t testing.TB, dir string) map[string]bool {
	t.Helper()
	var in strings.Builder
	for _, p := range tr.paths {
		in.WriteString(strings.TrimSuffix(p, "/") + "\x00")
	}
	names := make(map[string]bool)
	for name := range strings.SplitSeq(runGit(t, dir, in.String(), "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
		names[name] = true
	}
	out := make(map[string]bool)
	for _, p := range tr.paths {
		if names[strings.TrimSuffix(p, "/")] {
			out[p] = true
		}
	}
	return out
}

func (tr tree) compare(t testing.TB) {
	t.Helper()
	dir := gitRepository(t)
	tr.write(t, dir)
	want, got := tr.gitIgnored(t, dir), tr.ignored()
	for _, p := range tr.paths {
		if want[p] != got[p] {
			t.Errorf("%q with %q: git says ignored %v, we say %v", p, tr.files, want[p], got[p])
		}
	}
}

func TestAgreesWithGit(t *testing.T) {
	paths := func(p ...string) []string { return p }
	for name, tr := range map[string]tree{
		"plain name at any depth":      {map[string]string{"": "foo\n"}, paths("foo", "a/foo", "a/foobar", "b/foo/x", "xfoo")},
		"directory only":               {map[string]string{"": "out/\n"}, paths("out/", "a/out", "b/out/x")},
		"anchored by a slash in front": {map[string]string{"": "/foo\n"}, paths("foo", "a/foo")},
		"anchored by a slash inside":   {map[string]string{"": "a/foo\n"}, paths("a/foo", "b/a/foo")},
		"anchored directory":           {map[string]string{"": "/a/foo/\n"}, paths("a/foo/", "a/foobar/", "b/a/foo/")},
		"endings":                      {map[string]string{"": "*.o\n*.tar.gz\n!keep.o\n*~\n"}, paths("a.o", "d/b.o", "keep.o", "x.tar.gz", "x.gz", ".o", "a~")},
		"order decides":                {map[string]string{"": "!a.o\n*.o\nb.x\n!b.*\n!*.y\nq.y\n"}, paths("a.o", "b.x", "z.y", "q.y")},
		"stars":                        {map[string]string{"": "a*c\nd/*/e\nf/*\n!f/keep\n"}, paths("abc", "ac", "x/abbc", "d/1/e", "d/1/2/e", "f/x", "f/keep", "f/d/x")},
		"question mark":                {map[string]string{"": "a?c\n/d?e\n"}, paths("abc", "ac", "d/e", "dxe", "aéc")},
		"two stars in front":           {map[string]string{"": "**/foo/bar\n"}, paths("foo/bar", "a/foo/bar", "a/b/foo/bar", "a/foo/x/bar")},
		"two stars behind":             {map[string]string{"": "abc/**\n"}, paths("abc/", "abc/x", "abc/d/x", "z/abc/x")},
		"two stars in the middle":      {map[string]string{"": "a/**/b\n"}, paths("a/b", "a/x/b", "a/x/y/b", "ab", "z/a/b")},
		"two stars behind a name":      {map[string]string{"": "foo**/bar\nx**y\n"}, paths("foo/bar", "fooxyz/bar", "foo/a/bar", "xzy", "x/y", "foobar")},
		"two stars in a name":          {map[string]string{"": "a/b**c/d\n"}, paths("a/bc/d", "a/bxc/d", "a/bx/c/d", "a/b/c/d")},
		"three stars":                  {map[string]string{"": "a/***/b\n***\n!*.k\n"}, paths("a/x/b", "q", "z.k")},
		"escaped star":                 {map[string]string{"": "a\\*b\n\\!c\n\\#d\n#e\n"}, paths("a*b", "axb", "!c", "#d", "#e")},
		"backslash at the end":         {map[string]string{"": "foo\\\nbar\\/\n"}, paths("foo", "foo\\", "bar", "bar\\/")},
		"spaces":                       {map[string]string{"": "a \nb\\ \nc\\ d  \n e\nf\\  \n"}, paths("a", "a ", "b ", "b", "c d", " e", "f ", "f  ")},
		"tab at the end":               {map[string]string{"": "a\t\n"}, paths("a", "a\t")},
		"classes":                      {map[string]string{"": "[a-c]1\n[!a-c]2\n[^x]3\n[]]4\n[a]-c]5\n[\\]]6\n"}, paths("a1", "d1", "a2", "d2", "x3", "y3", "]4", "a]5", "a-c]5", "]6")},
		"odd ranges":                   {map[string]string{"": "[a-]1\n[-a]2\n[c-a]3\n[a-c-e]4\n[\\a-\\c]5\n[!-a]6\n"}, paths("a1", "-1", "-2", "b3", "-4", "d4", "b5", "-6", "b6")},
		"named classes":                {map[string]string{"": "x[[:digit:]]\ny[[:alpha:][:digit:]_]\nz[![:upper:]]\nw[[:bogus:]]\nv[[:xdigit:]-f]\nu[[:punct:][:space:]]\n"}, paths("x1", "xa", "y_", "y9", "y-", "zA", "za", "w:", "wb", "v-", "v0", "u!", "u ", "ua")},
		"not quite named classes":      {map[string]string{"": "x[[:digit]\ny[[:digit]]\nz[[:]\nq[:alpha:]\n"}, paths("x[", "xd", "x1", "yd]", "y1", "z:", "z[", "qa", "qz")},
		"open class":                   {map[string]string{"": "a[bc\n[\n!["}, paths("ab", "a[bc", "[")},
		"class and slash":              {map[string]string{"": "a[/]b\nc[^x]d\n/e[!x]f\n"}, paths("a/b", "c/d", "e/f", "cyd")},
		"below an ignored directory":   {map[string]string{"": "build/\n!build/keep\n!keep\n", "build": "!keep\n"}, paths("build/keep", "build/d/keep")},
		"re-included directory":        {map[string]string{"": "/*\n!/a\n/a/*\n!/a/b\n"}, paths("a/b", "a/c", "x", "y/a/b")},
		"nested files":                 {map[string]string{"": "*.log\n", "a": "!x.log\n/y\n", "a/b": "x.log\n"}, paths("x.log", "a/x.log", "a/b/x.log", "a/c/x.log", "a/y", "a/b/y", "y")},
		"exclude file":                 {map[string]string{exclude: "*.tmp\n/top\n", "": "!a.tmp\n"}, paths("a.tmp", "b.tmp", "d/b.tmp", "top", "d/top")},
		"letter case":                  {map[string]string{"": "Foo\n*.TXT\n"}, paths("foo", "Foo", "a.txt", "b.TXT")},
		"line ends":                    {map[string]string{"": "a\r\nb\r\r\n\r\n\nc\r"}, paths("a", "b", "b\r", "c", "c\r", "\r")},
		"byte order mark":              {map[string]string{"": "\xef\xbb\xbfa\n"}, paths("a")},
		"lone signs":                   {map[string]string{"": "!\n/\n//\n!/\n"}, paths("a", "b/")},
		"double slash":                 {map[string]string{"": "a//\nb//c\n//d\n"}, paths("a/", "b/c", "d")},
		"any script":                   {map[string]string{"": "日本*\n/é/\n"}, paths("日本語", "a/日本", "é/x")},
		"line feed in a name":          {map[string]string{"": "a?b\n"}, paths("a\nb")},
		"everything but":               {map[string]string{"": "*\n!*/\n!*.go\n"}, paths("a.go", "a.txt", "d/b.go", "d/e/c.txt")},
		"dot":                          {map[string]string{"": ".*\n!.keep\n./x\n"}, paths(".a", ".keep", "x", "d/.b")},
	} {
		t.Run(name, func(t *testing.T) { tr.compare(t) })
	}
}

// Short patterns and paths over a small alphabet meet in every odd way.
func TestAgreesWithGitOnAnything(t *testing.T) {
	dir := gitRepository(t)
	part := rapid.SampledFrom([]string{"a", "b", "c", "-", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "[[:alpha:]]", "\\", " ", "!", "]", "[", ".a"})
	line := rapid.Map(rapid.SliceOfN(part, 1, 7), func(p []string) string { return strings.Join(p, "") })
	file := rapid.Map(rapid.SliceOfN(line, 0, 5), func(l []string) string { return strings.Join(l, "\n") + "\n" })
	name := rapid.StringMatching(`[abc]{1,3}|[ab]\.a| a|a-b|b `)
	path := rapid.Map(rapid.SliceOfN(name, 1, 4), func(n []string) string { return strings.Join(n, "/") })
	rapid.Check(t, func(rt *rapid.T) {
		var paths []string
		dirs := map[string]bool{}
		for _, p := range rapid.SliceOfN(path, 1, 12).Draw(rt, "paths") {
			if !dirs[p+"/"] && !conflicts(p, paths) {
				paths = append(paths, p)
			}
		}
		for _, p := range paths {
			for i := range len(p) {
				if p[i] == '/' && !dirs[p[:i+1]] {
					dirs[p[:i+1]] = true
				}
			}
		}
		for d := range dirs {
			paths = append(paths, d)
		}
		tr := tree{files: map[string]string{exclude: file.Draw(rt, "exclude"), "": file.Draw(rt, "top")}, paths: paths}
		for d := range dirs {
			if d == "a/" || d == "b/" || d == "a/b/" {
				tr.files[strings.TrimSuffix(d, "/")] = file.Draw(rt, d)
			}
		}
		clearTree(t, dir)
		tr.write(t, dir)
		want, got := tr.gitIgnored(t, dir), tr.ignored()
		for _, p := range tr.paths {
			if want[p] != got[p] {
				rt.Fatalf("%q with %q: git says ignored %v, we say %v", p, tr.files, want[p], got[p])
			}
		}
	})
}

// conflicts tells whether p can not be a file beside paths: one of the two
// would have to be a directory.
func conflicts(p string, paths []string) bool {
	for _, q := range paths {
		if p == q || strings.HasPrefix(p, q+"/") || strings.HasPrefix(q, p+"/") {
			return true
		}
	}
	return false
}

func clearTree(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}
