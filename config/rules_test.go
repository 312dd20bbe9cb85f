package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/permission"
)

// What is in a file stays as it was written, but for the rules.
func TestAddRulesKeepsWhatIsThere(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"none":      {"", "{\"permissions\": {\"allow\": [\"Bash(go test *)\"]}}\n"},
		"blank":     {" \n", "{\"permissions\": {\"allow\": [\"Bash(go test *)\"]}}\n"},
		"empty":     {"{}", `{"permissions":{"allow":["Bash(go test *)"]}}`},
		"others":    {`{"model": "x", "permissions": {"deny": ["Read(.env)"]}}`, `{"model": "x", "permissions": {"deny": ["Read(.env)"],"allow":["Bash(go test *)"]}}`},
		"null":      {`{"permissions": null}`, `{"permissions": {"allow":["Bash(go test *)"]}}`},
		"two":       {"{\"permissions\": {\"allow\": [\n  \"Read\"\n]}}", "{\"permissions\": {\"allow\": [\n  \"Read\",\n  \"Bash(go test *)\"\n]}}"},
		"same line": {`{"permissions": {"allow": ["Read"]}}`, `{"permissions": {"allow": ["Read", "Bash(go test *)"]}}`},
		"there":     {`{"permissions": {"allow": ["Bash(go test *)"]}}`, `{"permissions": {"allow": ["Bash(go test *)"]}}`},
		"comments": {"{\n\t// mine\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Read\", // all of it\n\t\t\t\"Edit(docs/**)\" // and this\n\t\t],\n\t},\n}\n",
			"{\n\t// mine\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"Read\", // all of it\n\t\t\t\"Edit(docs/**)\", // and this\n\t\t\t\"Bash(go test *)\"\n\t\t],\n\t},\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := LocalSettings(dir)
			if name != "none" {
				write(t, path, c.before)
			}
			if err := AddRules(t.Context(), filepath.Join(dir, "home"), path, troupe.Allow, "Bash(go test *)"); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != c.after {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.after)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is not understood is left alone, byte for byte, and a rule that nobody
// could read again is not written.
func TestAddRulesRefuses(t *testing.T) {
	for _, text := range []string{`{"permissions": `, `[]`, `{"permissions": []}`, `{"permissions": {"allow": "Read"}}`, strings.Repeat(" ", maxSettings+1)} {
		dir := t.TempDir()
		path := LocalSettings(dir)
		write(t, path, text)
		if err := AddRules(t.Context(), dir, path, troupe.Allow, "Read"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%.40s: %v", text, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%.40s became %.80s (%v)", text, got, err)
		}
	}
	path := LocalSettings(t.TempDir())
	if err := AddRules(t.Context(), t.TempDir(), path, troupe.Deny, "Bash(rm"); !errors.Is(err, permission.ErrRule) {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made for a rule that is none")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := AddRules(ctx, t.TempDir(), path, troupe.Allow, "Read"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A link in a repository says nothing about where rules are to go.
func TestAddRulesFollowsNoLink(t *testing.T) {
	for _, at := range []string{".troupe", ".troupe/settings.local.json"} {
		dir, other := t.TempDir(), t.TempDir()
		target := filepath.Join(other, filepath.Base(at))
		if at == ".troupe" {
			target = other
		} else {
			write(t, target, "{}")
			write(t, filepath.Join(dir, ".troupe", "x"), "")
		}
		if err := os.Symlink(target, filepath.Join(dir, at)); err != nil {
			t.Fatal(err)
		}
		if err := AddRules(t.Context(), dir, LocalSettings(dir), troupe.Allow, "Read"); err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("%s: %v", at, err)
		}
		if raw, _ := os.ReadFile(filepath.Join(other, "settings.local.json")); len(raw) > 2 {
			t.Errorf("%s: the rules went to another place: %s", at, raw)
		}
	}
}

// Writers do not lose each other's rules, the next Load finds them, and the
// file is the user's own.
func TestAddRulesByManyAtOnce(t *testing.T) {
	w := newWorld(t, "-- home/repo/.git/x --\n")
	w.trust(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := AddRules(t.Context(), w.src.Home, LocalSettings(w.repo), troupe.Allow, fmt.Sprintf("Bash(tool%d *)", i), "Read(//shared/**)"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c, err := Load(w.src)
	if err != nil || len(c.Problems) > 0 {
		t.Fatal(err, c.Problems)
	}
	for i := range 8 {
		if !slices.ContainsFunc(c.Rules, func(r RuleText) bool {
			return r.Effect == troupe.Allow && r.Text == fmt.Sprintf("Bash(tool%d *)", i) && r.Source == LocalSettings(w.repo)
		}) {
			t.Errorf("rule %d is lost", i)
		}
	}
	if n := len(c.Rules); n != 9 {
		t.Errorf("%d rules, want 9", n)
	}
	if runtime.GOOS == "windows" { // has no such rights
		return
	}
	for path, want := range map[string]os.FileMode{LocalSettings(w.repo): 0o600, filepath.Dir(LocalSettings(w.repo)): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
}
