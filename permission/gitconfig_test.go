package permission

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-sh/troupe"
)

// While a repository is not trusted, git runs without leave only if nothing in
// the repository's configuration can make it start a program.
func TestConfigurationThatStartsPrograms(t *testing.T) {
	plain := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = x\n[branch \"main\"]\n\tremote = origin\n"
	for config, want := range map[string]troupe.Effect{
		plain: troupe.Allow,
		"":    troupe.Allow,
		plain + "[filter \"x\"]\n\tclean = touch y\n":       troupe.Ask,
		plain + "[diff]\n\texternal = touch\n":              troupe.Ask,
		plain + "[DIFF \"x\"]\n\ttextconv = touch\n":        troupe.Ask,
		"[core]\n\tfsmonitor = touch y\n":                   troupe.Ask,
		"[core]\n\tFSMonitor=touch y\n":                     troupe.Ask,
		"[core] fsmonitor = touch y\n":                      troupe.Ask,
		"[core]\n\tpager = touch y\n":                       troupe.Ask,
		plain + "[include]\n\tpath = ../x\n":                troupe.Ask,
		plain + "[includeIf \"gitdir:/\"]\n\tpath = ../x\n": troupe.Ask,
		plain + "[alias]\n\tstatus = !touch y\n":            troupe.Ask,
		"[core]\n\tfilemode = \\\ntrue\n":                   troupe.Ask,
		"[core\n\tfsmonitor = x\n":                          troupe.Ask,
	} {
		for name, lay := range map[string]func(t *testing.T) string{
			"checkout": func(t *testing.T) string {
				dir := t.TempDir()
				put(t, filepath.Join(dir, ".git", "config"), config)
				return dir
			},
			"below it": func(t *testing.T) string {
				dir := t.TempDir()
				put(t, filepath.Join(dir, ".git", "config"), config)
				put(t, filepath.Join(dir, "sub", "x"), "")
				return filepath.Join(dir, "sub")
			},
			"linked": func(t *testing.T) string {
				dir := t.TempDir()
				put(t, filepath.Join(dir, "main", ".git", "config"), config)
				put(t, filepath.Join(dir, "main", ".git", "worktrees", "w", "commondir"), "../..\n")
				put(t, filepath.Join(dir, "w", ".git"), "gitdir: "+filepath.Join(dir, "main", ".git", "worktrees", "w")+"\n")
				return filepath.Join(dir, "w")
			},
			"bare": func(t *testing.T) string {
				dir := t.TempDir()
				for _, name := range []string{"HEAD", "objects/x", "refs/x"} {
					put(t, filepath.Join(dir, filepath.FromSlash(name)), "")
				}
				put(t, filepath.Join(dir, "config"), config)
				return dir
			},
		} {
			place := troupe.Place{Dir: lay(t)}
			for _, command := range []string{"git status", "git diff", "git log -p", "git show", "git blame x"} {
				if v := (Policy{Untrusted: true}).Decide(call(place, "Bash", "command", command)); v.Effect != want {
					t.Errorf("%s: %q: %s is %+v", name, config, command, v)
				}
				if v := (Policy{}).Decide(call(place, "Bash", "command", command)); v.Effect != troupe.Allow {
					t.Errorf("%s: %q, trusted: %s is %+v", name, config, command, v)
				}
			}
			if v := (Policy{Untrusted: true, Mode: Plan}).Decide(call(place, "Bash", "command", "git status")); want != troupe.Allow && v.Effect == troupe.Allow {
				t.Errorf("%s: %q: plan allows git status", name, config)
			}
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
