package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// context returns the paths of the context files of cfg.
func (w *world) context(cfg *Config) []string {
	var out []string
	for _, f := range cfg.Context {
		out = append(out, w.short(f.Path))
	}
	return out
}

func (w *world) wantContext(t *testing.T, cfg *Config, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.context(cfg)); diff != "" {
		t.Errorf("context files (-want +got):\n%s", diff)
	}
}

const contextFiles = `
-- home/.claude/CLAUDE.md --
1
-- home/.troupe/AGENTS.md --
2
-- home/CLAUDE.md --
above the repository
-- home/repo/CLAUDE.md --
3
-- home/repo/AGENTS.md --
4
-- home/repo/.claude/CLAUDE.md --
5
-- home/repo/CLAUDE.local.md --
6
-- home/repo/sub/CLAUDE.md --
7
-- home/repo/other/CLAUDE.md --
not above
-- home/repo/sub/x --
`

func TestContextFromHomeAndRootToDir(t *testing.T) {
	w := newWorld(t, contextFiles)
	w.src.Dir = w.path("home/repo/sub")
	cfg := w.load(t)
	w.wantContext(t, cfg, "home/.claude/CLAUDE.md", "home/.troupe/AGENTS.md", "home/repo/CLAUDE.md", "home/repo/AGENTS.md",
		"home/repo/.claude/CLAUDE.md", "home/repo/CLAUDE.local.md", "home/repo/sub/CLAUDE.md")
	for i, f := range cfg.Context {
		if f.Text != fmt.Sprint(i+1) {
			t.Errorf("text of %s is %q", w.short(f.Path), f.Text)
		}
	}
	wantNone(t, "warnings", cfg.Warnings)
}

func TestContextWithoutRepository(t *testing.T) {
	w := newWorld(t, contextFiles+"-- home/plain/AGENTS.md --\n8\n-- home/plain/deep/CLAUDE.md --\n9\n-- outside/CLAUDE.md --\n10\n-- outside/deep/CLAUDE.md --\n11\n")
	w.src.Dir = w.path("home/plain/deep")
	w.wantContext(t, w.load(t), "home/.claude/CLAUDE.md", "home/.troupe/AGENTS.md", "home/CLAUDE.md",
		"home/plain/AGENTS.md", "home/plain/deep/CLAUDE.md")
	w.src.Dir = w.path("outside/deep")
	w.wantContext(t, w.load(t), "home/.claude/CLAUDE.md", "home/.troupe/AGENTS.md", "outside/deep/CLAUDE.md")
}

func TestOneTextOnce(t *testing.T) {
	w := newWorld(t, "-- home/repo/CLAUDE.md --\nsame\n-- home/repo/AGENTS.md --\n\nsame\r\n\n-- home/repo/real.md --\nlinked @CLAUDE.md\n-- home/repo/.claude/x --\n-- home/repo/sub/CLAUDE.md --\n \n")
	w.link(t, "home/repo/CLAUDE.local.md", "real.md")
	w.link(t, "home/repo/.claude/CLAUDE.md", w.path("home/repo/real.md"))
	w.src.Dir = w.path("home/repo/sub")
	w.wantContext(t, w.load(t), "home/repo/CLAUDE.md", "home/repo/.claude/CLAUDE.md")
}

func TestImports(t *testing.T) {
	w := newWorld(t, `
-- home/repo/CLAUDE.md --
See @docs/a.md, @docs/b.md. Write to me@docs/no.md or @nobody; not `+"`see @docs/no.md now` or ``a ` @docs/no.md``"+`.
`+"```sh\n@docs/no.md\n~~~\n```"+`
~~~~
@docs/no.md
~~~
@docs/no.md
~~~~
(after a lone `+"`"+` sign) @docs/c.md @docs
-- home/repo/docs/a.md --
a @sub/d.md
-- home/repo/docs/sub/d.md --
d @../../CLAUDE.md @d.md
-- home/repo/docs/b.md --
b
-- home/repo/docs/c.md --
c
-- home/repo/docs/no.md --
no
`)
	cfg := w.load(t)
	w.wantContext(t, cfg, "home/repo/CLAUDE.md", "home/repo/docs/a.md", "home/repo/docs/sub/d.md", "home/repo/docs/b.md", "home/repo/docs/c.md")
	wantNone(t, "problems", w.problems(cfg))
	wantNone(t, "warnings", cfg.Warnings)
}

func TestImportsEndAtDepthFive(t *testing.T) {
	w := newWorld(t, "-- home/repo/CLAUDE.md --\n@1.md\n")
	for i := 1; i < 9; i++ {
		w.write(t, fmt.Sprintf("home/repo/%d.md", i), fmt.Sprintf("%d @%d.md", i, i+1))
	}
	w.wantContext(t, w.load(t), "home/repo/CLAUDE.md", "home/repo/1.md", "home/repo/2.md", "home/repo/3.md", "home/repo/4.md", "home/repo/5.md")
}

// A repository must not bring the user's secrets, or anybody's, to the model.
func TestContextStaysInTheRepository(t *testing.T) {
	w := newWorld(t, "-- home/.ssh/key --\nsecret\n-- home/secret2 --\nsecret2\n-- outside/x.md --\nsecret3\n-- outside/y.md --\nsecret4\n-- home/repo/sub/x --\n")
	w.write(t, "home/repo/CLAUDE.md", "@~/.ssh/key @../.ssh/key @"+w.path("home/.ssh/key")+" @"+w.path("outside/x.md")+" @link.md text")
	w.link(t, "home/repo/link.md", w.path("outside/y.md"))
	w.link(t, "home/repo/AGENTS.md", w.path("home/secret2"))
	cfg := w.load(t)
	w.wantContext(t, cfg, "home/repo/CLAUDE.md")
	wantOne(t, "warnings", cfg.Warnings, "troupe trust", "context from outside of the repository", ".ssh")
	wantOne(t, "warnings", cfg.Warnings, "x.md is not read: it lies outside")
	wantOne(t, "warnings", cfg.Warnings, "link.md is not read: it lies outside")

	w.trust(t)
	cfg = w.load(t)
	w.wantContext(t, cfg, "home/repo/CLAUDE.md", "home/.ssh/key", "home/repo/AGENTS.md")
	if len(cfg.Warnings) != 2 {
		t.Errorf("warnings %q, want the two of outside", cfg.Warnings)
	}
}

func TestUsersContextMayImportFromHome(t *testing.T) {
	w := newWorld(t, "-- home/.claude/CLAUDE.md --\nme @~/style.md\n-- home/style.md --\nstyle\n")
	w.wantContext(t, w.load(t), "home/.claude/CLAUDE.md", "home/style.md")
}

func TestContextLimits(t *testing.T) {
	w := newWorld(t, "-- home/repo/sub/x --\n")
	line := strings.Repeat("é", 50) + "\r\n"
	for i, name := range []string{"CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "sub/CLAUDE.md", "sub/AGENTS.md"} {
		w.write(t, "home/repo/"+name, fmt.Sprint(i)+strings.Repeat(line, 1000))
	}
	w.link(t, "home/repo/sub/CLAUDE.local.md", "CLAUDE.md") // which is cut elsewhere now, and still the same
	w.src.Dir = w.path("home/repo/sub")
	cfg := w.load(t)
	all := 0
	for _, f := range cfg.Context {
		text, _, cut := strings.Cut(f.Text, "\n\n[The rest of this file is left out: it has 102001 bytes")
		if !cut {
			t.Errorf("%s: no notice", f.Path)
		}
		if len(text) > maxContextFile || !strings.HasSuffix(text, "é") {
			t.Errorf("%s: %d bytes, end %q", f.Path, len(text), text[len(text)-5:])
		}
		all += len(text)
	}
	if all > maxContext || all < maxContext-maxContextFile {
		t.Errorf("%d bytes in all", all)
	}
	if slices.ContainsFunc(cfg.Warnings, func(s string) bool { return strings.Contains(s, "CLAUDE.local.md: only the first 0") }) {
		t.Errorf("one file is read twice: %q", cfg.Warnings)
	}
	for _, name := range []string{"CLAUDE.md: only", "AGENTS.md: only", "sub" + string(filepath.Separator) + "AGENTS.md: only"} {
		if !slices.ContainsFunc(cfg.Warnings, func(s string) bool { return strings.HasPrefix(s, name) }) {
			t.Errorf("no warning for %s: %q", name, cfg.Warnings)
		}
	}
}

func TestContextOfOneLongLine(t *testing.T) {
	w := newWorld(t, "")
	w.write(t, "home/repo/CLAUDE.md", "x"+strings.Repeat("é", maxContextFile))
	cfg := w.load(t)
	text, _, _ := strings.Cut(cfg.Context[0].Text, "\n\n[")
	if n := len(text); n != maxContextFile-1 || !strings.HasSuffix(text, "é") {
		t.Errorf("%d bytes, want all whole signs in %d", n, maxContextFile)
	}
}

func TestContextThatIsNoText(t *testing.T) {
	w := newWorld(t, "-- home/repo/CLAUDE.local.md --\ngood\n-- home/repo/.claude/CLAUDE.md/x --\n")
	w.write(t, "home/repo/CLAUDE.md", "a\x00b")
	w.link(t, "home/repo/AGENTS.md", w.path("nowhere"))
	cfg := w.load(t)
	w.wantContext(t, cfg, "home/repo/CLAUDE.local.md")
	got := w.problems(cfg)
	wantOne(t, "problems", got, "CLAUDE.md: the file is not UTF-8 text")
	wantOne(t, "problems", got, "AGENTS.md: the link leads nowhere")
	wantOne(t, "problems", got, ".claude/CLAUDE.md: not a regular file")
}

func TestTooManyContextFiles(t *testing.T) {
	w := newWorld(t, "")
	var all strings.Builder
	for i := range maxContextFiles + 5 {
		name := fmt.Sprintf("f%d.md", i)
		fmt.Fprintf(&all, "@%s\n", name)
		if err := os.WriteFile(filepath.Join(w.repo, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, "home/repo/CLAUDE.md", all.String())
	cfg := w.load(t)
	if n := len(cfg.Context); n != maxContextFiles {
		t.Errorf("%d files, want %d", n, maxContextFiles)
	}
	wantOne(t, "warnings", cfg.Warnings, "more than 100 context files")
}
