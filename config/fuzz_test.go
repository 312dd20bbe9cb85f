package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/permission"
)

// FuzzDefinition holds that any file at all is either no definition, a problem
// of one line, or a definition with all that one needs.
func FuzzDefinition(f *testing.F) {
	for _, s := range []string{
		"", "---", "---\n---\n", "---\nname: x\ndescription: Use this: a, b\ntools: [a, b(c, d)]\n---\nP",
		"---\nname: x\ndescription: Use. Examples:\n<example>\nuser: a\n</example>\nmodel: y\n\nP",
		"\ufeff---\r\nname: x\r\ndescription: |\r\n\ta\r\n", "---\nname: &a x\ndescription: *a\n<<: *a\n? [b]: c\n--- !!str\n...",
		"---\nname: x\ndescription: \"a\nmaxTurns: 1e9\neffort: 0x10\n---\n\x00", "---\n- a\n- b\n---\nP", "---\n{name: x, description: {}}\n---\nP",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := readDefinition("a.md", data)
		if err != nil {
			if p, ok := err.(Problem); !ok || p.File != "a.md" || p.Reason == "" {
				t.Errorf("not a problem with a place: %#v", err)
			}
			return
		}
		if d != nil {
			wantWhole(t, d.def)
		}
	})
}

// wantWhole checks what holds for every definition that loads.
func wantWhole(t *testing.T, d troupe.Definition) {
	t.Helper()
	if d.Name == "" || d.Description == "" || d.Prompt == "" {
		t.Errorf("not whole: %+v", d)
	}
	if strings.HasPrefix(d.Name, "-") || strings.ContainsAny(d.Name, ":/\\\n\x00") || !utf8.ValidString(d.Name+d.Description+d.Prompt) {
		t.Errorf("bad name or text: %+v", d)
	}
	if _, err := permission.ParseMode(d.Mode); d.Mode != "" && err != nil || d.MaxTurns < 0 {
		t.Errorf("bad value: %+v", d)
	}
	for _, w := range append(d.Tools, d.Disallowed...) {
		if strings.TrimSpace(w) == "" {
			t.Errorf("empty tool: %+v", d)
		}
	}
}

// FuzzSettings holds that of any settings file at all either every deny and ask
// rule comes out or the start is refused.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"", "{}", "[]", "null", `{"permissions":{"deny":["a"],"ask":["b"],"allow":["c"],"defaultMode":"auto"}}`,
		"{ // c\n\"permissions\":{\"deny\":[\"a\",],},}", `{"permissions":{"deny":[[1]]}}`, `{"models":{"a":1,"a":"b"}}`, "\ufeff{}", `{"a":"\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &loader{cfg: &Config{Dir: dir, Root: dir, Aliases: map[string]Value{}}}
		r := &settingsReader{l: l}
		r.merge(layer{source: "s.json", root: dir, project: true}, data)
		for _, p := range append(r.lost, r.problems...) {
			if p.File != "s.json" || p.Reason == "" {
				t.Errorf("not a problem with a place: %#v", p)
			}
		}
		for _, rule := range l.cfg.Rules {
			if rule.Effect == troupe.Allow {
				t.Errorf("an untrusted file allows: %+v", rule)
			}
		}
		if permission.Mode(l.cfg.Mode.Text).Wider(permission.Default) || len(l.cfg.Dirs) > 0 {
			t.Errorf("an untrusted file widens: %+v", l.cfg)
		}
	})
}

// FuzzImports holds that finding imports ends for any text.
func FuzzImports(f *testing.F) {
	f.Add("a @b.md `@c` ``d`\n```\n@e\n```\n@f")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range imports(text) {
			if p == "" || strings.ContainsAny(p, " \n") {
				t.Errorf("path %q", p)
			}
		}
	})
}

// Any description of one line, in any script, written without quotes as people
// write it, is read back as it is, unless YAML gives it another meaning.
func TestDescriptionsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringMatching(`[A-Za-zäöü工][A-Za-z0-9 :;,.'"()\[\]{}<>@&*!?%|/äöü工-]{0,60}[a-z.]`).Draw(t, "description")
		data := "---\nname: x\ndescription: " + want + "\nmodel: opus\n---\nP"
		d, err := readDefinition("a.md", []byte(data))
		if err != nil || d == nil {
			t.Fatalf("%q: %v", want, err)
		}
		if d.def.Description != want || d.def.Model != "opus" {
			t.Errorf("%q is read as %q, model %q", want, d.def.Description, d.def.Model)
		}
	})
}

// Whatever layers hold, a deny rule in any of them comes out.
func TestDenyRulesAlwaysCount(t *testing.T) {
	top := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(top, "w")
		if err != nil {
			rt.Fatal(err)
		}
		home, repo := filepath.Join(dir, "home"), filepath.Join(dir, "repo")
		files := []string{
			filepath.Join(home, ".claude", "settings.json"), filepath.Join(home, ".troupe", "settings.json"),
			filepath.Join(repo, ".claude", "settings.json"), filepath.Join(repo, ".troupe", "settings.json"),
			filepath.Join(repo, ".claude", "settings.local.json"), filepath.Join(repo, ".troupe", "settings.local.json"),
		}
		want := 0
		for _, f := range files {
			if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
				rt.Fatal(err)
			}
			data := rapid.SampledFrom([]string{
				`{"permissions": {"allow": ["Bash"], "deny": ["D"]}}`, `{"permissions": {"deny": ["D"], "defaultMode": 5}, "model": []}`, `{}`, ``,
			}).Draw(rt, filepath.Base(f))
			want += strings.Count(data, `"D"`)
			if err := os.WriteFile(f, []byte(data), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		cfg, err := Load(Sources{Home: filepath.Join(home, ".troupe"), UserHome: home, Dir: repo})
		if err != nil {
			rt.Fatal(err)
		}
		got := 0
		for _, r := range cfg.Rules {
			if r.Effect == troupe.Deny {
				got++
			}
		}
		if got != want {
			rt.Errorf("%d deny rules, want %d", got, want)
		}
	})
}
