package tool

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

func walked(t *testing.T, w walk) string {
	t.Helper()
	files, unread, err := w.files(context.Background())
	if err != nil || unread != 0 {
		t.Fatalf("walk: %d unread, %v", unread, err)
	}
	slices.Sort(files)
	return strings.Join(files, " ")
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

// info/exclude of a repository holds in its linked working trees too.
func TestWalkInLinkedWorkingTree(t *testing.T) {
	main, linked := filepath.Join(t.TempDir(), "main"), filepath.Join(t.TempDir(), "linked")
	writeTree(t, main, map[string]string{"seen": "", "below/seen": ""})
	git(t, main, "init", "-q")
	git(t, main, "add", "-A")
	git(t, main, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x")
	git(t, main, "worktree", "add", "-q", linked)
	writeTree(t, main, map[string]string{".git/info/exclude": "*.out\n"})
	writeTree(t, linked, map[string]string{"x.out": "", "below/y.out": ""})
	if got := walked(t, walk{root: linked}); got != "below/seen seen" {
		t.Errorf("found %s", got)
	}
	if got := walked(t, walk{root: filepath.Join(linked, "below")}); got != "seen" {
		t.Errorf("below: found %s", got)
	}
}

// Without a repository .gitignore says nothing, .ignore does.
func TestWalkWithoutRepository(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{".gitignore": "a\n", ".ignore": "b\n", "a": "", "b": "", "c": "", "d/b": ""})
	if got := walked(t, walk{root: dir}); got != "a c" {
		t.Errorf("found %s", got)
	}
}

// What .ignore brings back stays, whatever a nearer .gitignore says.
func TestWalkRanks(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{".git/HEAD": "", ".ignore": "!kept\n", "d/.gitignore": "kept\nother\n", "d/kept": "", "d/other": "", "d/third": ""})
	if got := walked(t, walk{root: dir}); got != "d/kept d/third" {
		t.Errorf("found %s", got)
	}
}

func TestWalkFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"real/file": "needle\n", "top": "needle\n"})
	for link, to := range map[string]string{"loop": ".", "dir": "real", "file": "top", "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := searchCall(t, &Grep{}, dir, map[string]any{"pattern": "needle"}); got != "real/file\ntop" {
		t.Errorf("Grep found %q", got)
	}
	// A link that is asked for by its name is.
	for _, path := range []string{"file", "dir"} {
		if got, _ := searchCall(t, &Grep{}, dir, map[string]any{"pattern": "needle", "path": path}); !strings.HasPrefix(got, path) {
			t.Errorf("Grep in %s found %q", path, got)
		}
	}
	// Glob names a link to a file, as it can be read.
	got, _ := searchCall(t, &Glob{}, dir, map[string]any{"pattern": "**"})
	names := strings.Split(got, "\n")
	slices.Sort(names)
	if diff := cmp.Diff([]string{"file", "real/file", "top"}, names); diff != "" {
		t.Errorf("Glob: want -, got +:\n%s", diff)
	}
}

// What may not be read is not seen, by whatever name.
func TestHide(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeTree(t, dir, map[string]string{"secret/deep/key": "needle\n", "env": "needle\n", "open": "needle\n"})
	if err := os.Symlink(".", filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("env", filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	hide := func(path string) bool {
		return path == filepath.Join(dir, "env") || path == filepath.Join(dir, "secret")
	}
	type in = map[string]any
	for name, c := range map[string]struct {
		tool troupe.Tool
		in   in
		want string
	}{
		"Grep":                   {&Grep{Hide: hide}, in{"pattern": "needle"}, "open"},
		"Grep through a link":    {&Grep{Hide: hide}, in{"pattern": "needle", "path": "self"}, "self/open"},
		"Grep the file":          {&Grep{Hide: hide}, in{"pattern": "needle", "path": "env"}, "No matches found"},
		"Grep a link to it":      {&Grep{Hide: hide}, in{"pattern": "needle", "path": "other"}, "No matches found"},
		"Grep the directory":     {&Grep{Hide: hide}, in{"pattern": "needle", "path": "secret"}, "No matches found"},
		"Grep with a glob":       {&Grep{Hide: hide}, in{"pattern": "needle", "glob": "secret/**"}, "No matches found"},
		"Glob":                   {&Glob{Hide: hide}, in{"pattern": "*e*/**/*"}, "No files found"},
		"Glob all":               {&Glob{Hide: hide}, in{"pattern": "[oe][pn]*"}, "open"},
		"Glob through a link":    {&Glob{Hide: hide}, in{"pattern": "self/[oe][pn]*"}, "self/open"},
		"Glob the file":          {&Glob{Hide: hide}, in{"pattern": "env"}, "No files found"},
		"Glob the file by link":  {&Glob{Hide: hide}, in{"pattern": "self/env"}, "No files found"},
		"Glob in the directory":  {&Glob{Hide: hide}, in{"pattern": "secret/**"}, "No files found"},
		"Glob deep in it":        {&Glob{Hide: hide}, in{"pattern": "**/key", "path": "secret/deep"}, "No files found"},
		"Grep deep in it":        {&Grep{Hide: hide}, in{"pattern": "needle", "path": "secret/deep"}, "No matches found"},
		"Grep deep in it, named": {&Grep{Hide: hide}, in{"pattern": "needle", "path": "secret/deep/key"}, "No matches found"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := searchCall(t, c.tool, dir, c.in)
			got, _, _ = strings.Cut(got, "\n(")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
