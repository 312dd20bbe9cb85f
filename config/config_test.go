package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// A world is a user's home directory and, in it, a repository to work in.
type world struct {
	top  string
	home string // of the user
	repo string
	src  Sources
}

// newWorld lays out files, given as txtar: home/... and home/repo/... There is
// always a home/repo/.git.
func newWorld(t *testing.T, files string) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{top: top, home: filepath.Join(top, "home"), repo: filepath.Join(top, "home", "repo")}
	w.src = Sources{Home: filepath.Join(w.home, ".troupe"), UserHome: w.home, Dir: w.repo}
	mkdir(t, filepath.Join(w.repo, ".git"))
	for _, f := range txtar.Parse([]byte(files)).Files {
		w.write(t, f.Name, string(f.Data))
	}
	return w
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.top, filepath.FromSlash(name)) }

func (w *world) write(t *testing.T, name, data string) {
	t.Helper()
	mkdir(t, filepath.Dir(w.path(name)))
	if err := os.WriteFile(w.path(name), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) link(t *testing.T, name, target string) {
	t.Helper()
	mkdir(t, filepath.Dir(w.path(name)))
	if err := os.Symlink(target, w.path(name)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) trust(t *testing.T) {
	t.Helper()
	if _, err := Trust(t.Context(), w.src.Home, w.src.Dir); err != nil {
		t.Fatal(err)
	}
}

func (w *world) load(t *testing.T) *Config {
	t.Helper()
	cfg, err := Load(w.src)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return cfg
}

// short makes a text independent of where the test runs.
func (w *world) short(s string) string {
	return filepath.ToSlash(strings.ReplaceAll(s, w.top+string(filepath.Separator), ""))
}

// problems returns the problems of cfg as text.
func (w *world) problems(cfg *Config) []string {
	var out []string
	for _, p := range cfg.Problems {
		out = append(out, w.short(p.Error()))
	}
	return out
}

// wantOne checks that exactly one of lines holds all of parts.
func wantOne(t *testing.T, what string, lines []string, parts ...string) {
	t.Helper()
	n := 0
	for _, l := range lines {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(l, p)
		}
		if all {
			n++
		}
		if strings.Contains(l, "\n") {
			t.Errorf("%s: more than one line: %q", what, l)
		}
	}
	if n != 1 {
		t.Errorf("%s: %d lines with %q, want 1, in:\n%s", what, n, parts, strings.Join(lines, "\n"))
	}
}

func wantNone(t *testing.T, what string, lines []string) {
	t.Helper()
	if len(lines) > 0 {
		t.Errorf("%s: want none, got:\n%s", what, strings.Join(lines, "\n"))
	}
}

func TestLoadNeedsItsDirectory(t *testing.T) {
	w := newWorld(t, "")
	w.src.Dir = filepath.Join(w.repo, "absent")
	if _, err := Load(w.src); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("Load of an absent directory: %v", err)
	}
	w.src.Dir = "repo"
	if _, err := Load(w.src); err == nil {
		t.Error("Load of a relative directory: no error")
	}
}

func TestLoadOfNothing(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(Sources{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Root != dir || cfg.Trusted || len(cfg.Rules)+len(cfg.Problems)+len(cfg.Warnings)+len(cfg.Unused)+len(cfg.Context) > 0 {
		t.Errorf("something comes out of nothing: %+v", cfg)
	}
	if len(cfg.Definitions) != 4 {
		t.Errorf("%d built-in definitions, want 4", len(cfg.Definitions))
	}
}

func TestRootIsTheNearestRepository(t *testing.T) {
	w := newWorld(t, "-- home/repo/a/b/x --\n-- home/repo/sub/.git --\ngitdir: elsewhere\n-- home/repo/sub/c/x --\n")
	for dir, root := range map[string]string{
		"home/repo": "home/repo", "home/repo/a/b": "home/repo", "home/repo/sub/c": "home/repo/sub", "home": "home",
	} {
		w.src.Dir = w.path(dir)
		if got := w.load(t).Root; got != w.path(root) {
			t.Errorf("root of %s is %s, want %s", dir, w.short(got), root)
		}
	}
}
