package permission

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// evasionRules are what a careful user allows and denies.
func evasionRules() []string {
	return []string{
		"allow Bash(git *)", "allow Bash(ls *)", "allow Bash(echo:*)", "allow Bash(find *)", "allow Bash(sed *)", "allow Bash(awk *)", "allow Bash(sort *)", "allow Bash(rg *)", "allow Bash(tar *)",
		"allow Bash(man *)", "allow Bash(xargs *)", "allow Bash(env *)", "allow Bash(timeout *)", "allow Bash(watch *)", "allow Bash(go test *)", "allow Bash(bash *)", "allow Bash(test *)", "allow Bash(printf *)",
		"deny Bash(rm *)", "deny Bash(git push *)", "deny Read(.env)", "deny Edit(//locked/**)",
	}
}

// wideRules are what a careless user allows besides.
func wideRules() []string {
	var out []string
	for _, name := range []string{"zip", "split", "less", "vim", "ed", "sqlite3", "make", "curl", "wget", "ssh", "scp", "gcc", "npm run", "gdb", "strace", "script", "flock", "setsid", "sh", "read", "nice", "nohup", "declare", "unset", "wait", "exec"} {
		out = append(out, "allow Bash("+name+" *)")
	}
	return out
}

// A mischief is what an evasion does.
type mischief int

const (
	makes   mischief = iota // a file whose name begins with pwned
	reads                   // shows what is in .env
	removes                 // the file victim
	plants                  // as makes, where edits are not free in any mode
)

// An evasion is one way around the rules.
type evasion struct {
	how     string
	command string
	kind    mischief
	need    string // program that is not everywhere
	tty     bool   // works at a terminal only
}

// secret is what stands in .env.
const secret = "canary-5f1c"

func evasions() []evasion {
	all := slices.Concat(evasionsInLists(), evasionsNested(), evasionsInExpansions(), evasionsAgain(), evasionsByName(), evasionsByWrappers(), evasionsByOptions(), evasionsByGit())
	for kind, more := range map[mischief][]evasion{reads: slices.Concat(evasionsThatRead(), evasionsBySearch(), evasionsByReaders()), removes: evasionsThatRemove(), plants: evasionsThatPlant()} {
		for _, e := range more {
			e.kind = kind
			all = append(all, e)
		}
	}
	return all
}

// An arena is a place for evasions, with files that an evasion may use.
type arena struct{ work, outside string }

// newArena makes one. HOME is the working directory.
func newArena(t *testing.T) arena {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := arena{filepath.Join(base, "work"), filepath.Join(base, "outside")}
	evil := "#!/bin/sh\n: > \"$ARENA/pwned\"\ncat\n"
	for name, text := range map[string]string{
		"main.go": "package main\n", "README.md": "x\n", ".env": secret + " word\n", "victim": "x\n", "src/a.go": "package src\n", "src/a_test.go": "package src\n\nimport \"testing\"\n\nfunc TestX(*testing.T) {}\n", "go.mod": "module x\n\ngo 1.24\n",
		"../outside/file": "x\n", "evil": evil, "bin/git": evil, "bin/git-evil": evil, "bin/git-credential-evil": evil, "bin/.gitconfig": "[alias]\n\tx = !touch pwned\n", "hooks/pre-commit": evil, "template/hooks/post-checkout": evil,
		"evil.config": "[alias]\n\tx = !touch pwned\n", "evil.sed": "1e touch pwned\n", "evil.awk": "BEGIN{system(\"touch pwned\")}\n", "list": "pwned\n", "evil.mk": "$(shell touch pwned)\n", "names": ".env\n", "x.c": "int x;\n", "Makefile": "x:\n\t@true\n\t@:;\n",
		"package.json": `{"scripts":{"x":"true"}}`, ".gitattributes": "*.go filter=x diff=x\n",
	} {
		put(t, filepath.Join(a.work, name), text)
	}
	for _, name := range []string{"evil", "bin/git", "bin/git-evil", "bin/git-credential-evil", "hooks/pre-commit", "template/hooks/post-checkout"} {
		if err := os.Chmod(filepath.Join(a.work, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link.txt": ".env", "here": ".", "out": "../outside", "dangling": "../outside/pwned", "up": "src/..", "ls": "/usr/bin/touch"} {
		if err := os.Symlink(to, filepath.Join(a.work, link)); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// commit makes a repository of an arena, with another one in it.
func (a arena) commit(t *testing.T) arena {
	t.Helper()
	out := a.bash(t, evasion{command: `set -e; git config --global user.name x; git config --global user.email x@x; git config --global init.defaultBranch main; git config --global protocol.file.allow always
		git init -q --template= other; git -C other commit -q --allow-empty -m o
		git init -q --template= .; mkdir -p .git/hooks; git add main.go README.md .env; git commit -qm 1; git submodule --quiet add ./other sub; git commit -qm 2; echo '// y' >> main.go; git commit -qam 3
		git -C other config core.fsmonitor "$PWD/evil"; for r in . other; do git -C $r gc -q; rm -rf $r/.git/logs $r/.git/info; done; git config core.logAllRefUpdates true; echo set up`})
	if !strings.HasSuffix(out, "set up\n") {
		t.Fatal(out)
	}
	return a
}

// copy makes another arena like a.
func (a arena) copy(t *testing.T) arena {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(base, "arena"), os.DirFS(filepath.Dir(a.work))); err != nil {
		t.Fatal(err)
	}
	return arena{filepath.Join(base, "arena", "work"), filepath.Join(base, "arena", "outside")}
}

// bash runs an evasion and returns what it shows.
func (a arena) bash(t *testing.T, e evasion) string {
	t.Helper()
	args := []string{"bash", "-c", e.command}
	if e.tty {
		args = []string{troupetest.Need(t, "script"), "-qec", "bash -c " + quoteWords([]word{{text: e.command}}), "/dev/null"}
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = a.work
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.work, "ARENA=" + a.work, "GOCACHE=" + goCache(), "GOTOOLCHAIN=local", "TERM=dumb"}
	out, _ := cmd.CombinedOutput() // most of them fail, and do what they are for
	return string(out)
}

// goCache is where go keeps what it has compiled.
func goCache() string {
	dir, err := os.UserCacheDir()
	return cmp.Or(os.Getenv("GOCACHE"), map[bool]string{true: filepath.Join(dir, "go-build")}[err == nil])
}

// did runs an evasion and reports whether it did its mischief.
func (a arena) did(t *testing.T, e evasion) (done bool, out string) {
	t.Helper()
	out = a.bash(t, e)
	switch e.kind {
	case removes:
		_, err := os.Stat(filepath.Join(a.work, "victim"))
		return errors.Is(err, fs.ErrNotExist), out
	case reads:
		return strings.Contains(out, secret), out
	}
	err := filepath.WalkDir(filepath.Dir(a.work), func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), "pwned") {
			done = true
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return done, out
}

// modes are those in which an evasion must not get through.
func (e evasion) modes() []Mode {
	narrow := []Mode{Plan, DontAsk, Default}
	if e.kind == makes { // which is an edit, and one in the working directory
		return narrow
	}
	return append(narrow, AcceptEdits)
}

// No way around the rules gets through. One that is allowed is run in a shell,
// and so is each of them where nothing guards, to see that it is a way at all.
func TestEvasions(t *testing.T) {
	all := evasions()
	if len(all) < 200 {
		t.Errorf("there are only %d evasions", len(all))
	}
	bare, seen := newArena(t), map[string]bool{}
	repository := bare.copy(t).commit(t)
	for _, e := range all {
		if seen[e.command] {
			t.Errorf("%s is there twice", e.how)
		}
		seen[e.command] = true
		t.Run(strings.ReplaceAll(e.how, "/", "|"), func(t *testing.T) {
			if e.need != "" {
				troupetest.Need(t, e.need)
			}
			a := bare
			if strings.Contains(e.command, "git") {
				a = repository
			}
			a = a.copy(t)
			p := policy(t, Default, slices.Concat(evasionRules(), wideRules())...)
			p.Home = a.work
			for _, p.Mode = range e.modes() {
				v := p.Decide(shell(troupe.Place{Dir: a.work}, e.command))
				if v.Effect != troupe.Allow {
					continue
				}
				t.Errorf("%s: %q is allowed (%s: %s)", p.Mode, e.command, v.By, v.Reason)
			}
			if done, out := a.did(t, e); !done {
				t.Errorf("%q is no evasion; it only says %.300q", e.command, out)
			}
		})
	}
}
