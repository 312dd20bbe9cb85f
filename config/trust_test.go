package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestTrustCoversARepositoryAndNoOther(t *testing.T) {
	w := newWorld(t, "-- home/repo/a/b/x --\n-- home/repo/vendor/clone/.git/x --\n-- home/repo/vendor/clone/c/x --\n-- home/repo2/.git/x --\n-- home/plain/sub/x --\n-- home/plain/clone/.git/x --\n")
	w.src.Dir = w.path("home/repo/a")
	w.trust(t)
	w.src.Dir = w.path("home/plain")
	w.trust(t)
	w.link(t, "home/link", w.repo)
	for dir, want := range map[string]bool{
		"home/repo": true, "home/repo/a/b": true, "home/link": true, "home/link/a": true,
		"home/repo/vendor": true, "home/repo/vendor/clone": false, "home/repo/vendor/clone/c": false,
		"home/repo2": false, "home": false, "home/absent": false,
		"home/plain": true, "home/plain/sub": true, "home/plain/clone": false,
	} {
		if got := Trusted(w.src.Home, w.path(dir)); got != want {
			t.Errorf("Trusted(%s) = %v, want %v", dir, got, want)
		}
	}
	if Trusted(w.src.Home, "repo") {
		t.Error("a relative directory is trusted")
	}
	if Trusted("", w.repo) {
		t.Error("without a data directory something is trusted")
	}
}

func TestUntrust(t *testing.T) {
	w := newWorld(t, "-- home/repo/a/x --\n")
	w.trust(t)
	roots, err := Untrust(t.Context(), w.src.Home, w.path("home/repo/a"))
	if err != nil || len(roots) != 1 || roots[0] != w.repo {
		t.Errorf("Untrust = %v, %v; want the repository", roots, err)
	}
	if Trusted(w.src.Home, w.repo) {
		t.Error("still trusted")
	}
	if roots, err := Untrust(t.Context(), w.src.Home, w.repo); err != nil || len(roots) != 0 {
		t.Errorf("Untrust of what is not trusted = %v, %v", roots, err)
	}
}

func TestTrustStoreIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no permission bits there
	}
	w := newWorld(t, "")
	w.trust(t)
	for name, want := range map[string]os.FileMode{"": 0o700, "trust.json": 0o600, "trust.json.lock": 0o600} {
		info, err := os.Stat(filepath.Join(w.src.Home, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.src.Home, ".trust-*")); len(left) > 0 {
		t.Errorf("files left behind: %v", left)
	}
}

func TestDamagedTrustStoreTrustsNothing(t *testing.T) {
	w := newWorld(t, "")
	for name, data := range map[string]string{
		"broken": `{"version":1,"roots":["` + w.repo,
		"newer":  `{"version":2,"roots":["` + w.repo + `"]}`,
		"empty":  "",
	} {
		w.write(t, "home/.troupe/trust.json", data)
		if Trusted(w.src.Home, w.repo) {
			t.Errorf("%s: trusted", name)
		}
		if _, err := Trust(t.Context(), w.src.Home, w.repo); err == nil || !strings.Contains(err.Error(), "trust.json") {
			t.Errorf("%s: Trust overwrites it: %v", name, err)
		}
		if got, _ := os.ReadFile(w.path("home/.troupe/trust.json")); string(got) != data {
			t.Errorf("%s: changed to %q", name, got)
		}
	}
}

func TestConcurrentTrustLosesNothing(t *testing.T) {
	w := newWorld(t, "")
	const n = 20
	var wg sync.WaitGroup
	for i := range n {
		dir := w.path(fmt.Sprintf("home/p%d", i))
		mkdir(t, dir)
		wg.Go(func() {
			if _, err := Trust(t.Context(), w.src.Home, dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		if !Trusted(w.src.Home, w.path(fmt.Sprintf("home/p%d", i))) {
			t.Errorf("p%d is lost", i)
		}
	}
}

func TestSourcesMayDecideTrust(t *testing.T) {
	w := newWorld(t, layered)
	var asked string
	w.src.Trusted = func(dir string) bool { asked = dir; return true }
	if cfg := w.load(t); !cfg.Trusted || len(cfg.Dirs) == 0 || asked != w.repo {
		t.Errorf("trusted %v, directories %v, asked for %q", cfg.Trusted, cfg.Dirs, asked)
	}
}

func TestOffer(t *testing.T) {
	w := newWorld(t, "-- home/repo/.claude/settings.json --\n{\"permissions\": {\"allow\": [\"A\"]}, \"env\": {\"X\": \"y\"}}\n")
	broken := errors.New("the terminal is gone")
	for _, tt := range []struct {
		answer string
		err    error
		want   bool
	}{{"", nil, false}, {"no\n", nil, false}, {"y\n", nil, false}, {"yes", broken, false}, {" Yes \n", nil, true}} {
		question := ""
		got, err := Offer(t.Context(), w.src.Home, w.load(t), func(q string) (string, error) { question = q; return tt.answer, tt.err })
		if got != tt.want || !errors.Is(err, tt.err) || w.load(t).Trusted != tt.want {
			t.Errorf("answer %q: %v, %v; trusted: %v", tt.answer, got, err, w.load(t).Trusted)
		}
		if !strings.Contains(question, w.repo) || !strings.Contains(question, "1 allow rule(s)") || !strings.Contains(question, "1 variable(s) of env") {
			t.Errorf("the question does not say what it is about: %q", question)
		}
	}
	never := func(string) (string, error) { t.Error("asked in vain"); return "yes", nil }
	if got, err := Offer(t.Context(), w.src.Home, w.load(t), never); got || err != nil {
		t.Errorf("of a folder that is trusted: %v, %v", got, err)
	}
	w = newWorld(t, "-- home/repo/.claude/settings.json --\n{\"permissions\": {\"deny\": [\"A\"]}}\n")
	if got, err := Offer(t.Context(), w.src.Home, w.load(t), never); got || err != nil {
		t.Errorf("of a folder that asks for nothing: %v, %v", got, err)
	}
}
