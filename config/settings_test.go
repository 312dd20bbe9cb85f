package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rules returns the rules of cfg as "effect text source".
func (w *world) rules(cfg *Config) []string {
	var out []string
	for _, r := range cfg.Rules {
		out = append(out, fmt.Sprintf("%s %s %s", r.Effect, r.Text, w.short(r.Source)))
	}
	return out
}

const layered = `
-- home/.claude/settings.json --
{"model": "opus", "models": {"fast": "haiku", "big": "opus"}, "permissions": {"defaultMode": "manual", "deny": ["D1"], "allow": ["A1"]}}
-- home/.troupe/settings.json --
// comments and trailing commas are welcome
{"permissions": {"ask": ["Q2"],}, "model": "m2",}
-- home/repo/.claude/settings.json --
{"permissions": {"deny": ["D3"], "allow": ["A3"], "additionalDirectories": ["../other", "~/x"]}, "model": "m3"}
-- home/repo/.troupe/settings.json --
{"permissions": {"ask": ["Q4"], "defaultMode": "plan"}, "models": {"fast": "m4"}}
-- home/repo/.claude/settings.local.json --
{"permissions": {"allow": ["A5"], "defaultMode": "acceptEdits"}}
-- home/repo/.troupe/settings.local.json --
{"permissions": {"deny": ["D6"]}}
-- home/repo/sub/.claude/settings.json --
{"permissions": {"deny": ["not of the root"]}}
-- managed.json --
{"permissions": {"deny": ["D8"]}, "model": "m8"}
`

func TestSettingsLayers(t *testing.T) {
	w := newWorld(t, layered)
	w.src.Dir = w.path("home/repo/sub")
	w.src.AddDirs = []string{"../flag"}
	w.src.Settings = `{"permissions": {"allow": ["A7"]}, "model": "m7"}`
	w.src.Managed = w.path("managed.json")
	w.trust(t)
	cfg := w.load(t)

	if diff := cmp.Diff([]string{
		"deny D1 home/.claude/settings.json", "allow A1 home/.claude/settings.json", "ask Q2 home/.troupe/settings.json",
		"deny D3 home/repo/.claude/settings.json", "allow A3 home/repo/.claude/settings.json",
		"ask Q4 home/repo/.troupe/settings.json", "allow A5 home/repo/.claude/settings.local.json",
		"deny D6 home/repo/.troupe/settings.local.json", "allow A7 command line", "deny D8 managed.json",
	}, w.rules(cfg)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for what, v := range map[string][3]string{
		"mode":  {"acceptEdits", "home/repo/.claude/settings.local.json", cfg.Mode.Text + " " + cfg.Mode.Source},
		"model": {"m8", "managed.json", cfg.Model.Text + " " + cfg.Model.Source},
		"fast":  {"m4", "home/repo/.troupe/settings.json", cfg.Aliases["fast"].Text + " " + cfg.Aliases["fast"].Source},
		"big":   {"opus", "home/.claude/settings.json", cfg.Aliases["big"].Text + " " + cfg.Aliases["big"].Source},
	} {
		if got := w.short(v[2]); got != v[0]+" "+v[1] {
			t.Errorf("%s is %q, want %q from %s", what, got, v[0], v[1])
		}
	}
	var dirs []string
	for _, d := range cfg.Dirs {
		dirs = append(dirs, w.short(d.Text))
	}
	if diff := cmp.Diff([]string{"home/repo/flag", "home/other", "home/x"}, dirs); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
	wantNone(t, "warnings", cfg.Warnings)
	wantNone(t, "problems", w.problems(cfg))
}

func TestRuleRoots(t *testing.T) {
	w := newWorld(t, layered)
	w.trust(t)
	w.src.Settings = `{"permissions": {"allow": ["A7"]}}`
	for _, r := range w.load(t).Rules {
		want := map[string]string{"D1": "home/.claude", "Q2": "home/.troupe", "D3": "home/repo", "D6": "home/repo", "A7": "home/repo"}[r.Text]
		if want != "" && r.Root != w.path(want) {
			t.Errorf("root of %s is %s, want %s", r.Text, r.Root, want)
		}
	}
}

func TestUntrustedProjectOnlyTakesAway(t *testing.T) {
	w := newWorld(t, layered)
	cfg := w.load(t)
	for _, r := range w.rules(cfg) {
		if strings.HasPrefix(r, "allow") && strings.Contains(r, "repo") {
			t.Errorf("a rule of an untrusted project allows: %s", r)
		}
	}
	for _, want := range []string{"deny D3", "ask Q4", "deny D6", "allow A1"} {
		if !slices.ContainsFunc(w.rules(cfg), func(r string) bool { return strings.HasPrefix(r, want+" ") }) {
			t.Errorf("%s is lost", want)
		}
	}
	if cfg.Mode.Text != "plan" || len(cfg.Dirs) != 0 {
		t.Errorf("mode %q, directories %v; want plan and none", cfg.Mode.Text, cfg.Dirs)
	}
	if len(cfg.Warnings) != 1 {
		t.Errorf("%d warnings, want one: %q", len(cfg.Warnings), cfg.Warnings)
	}
	wantOne(t, "warnings", cfg.Warnings, "troupe trust", ".claude/settings.json: 1 allow rule", "additionalDirectories",
		".claude/settings.local.json: 1 allow rule", "defaultMode acceptEdits")
}

func TestHomeAsProjectIsTheUsersOwn(t *testing.T) {
	w := newWorld(t, layered)
	w.src.Dir = w.home
	cfg := w.load(t)
	if diff := cmp.Diff([]string{
		"deny D1 home/.claude/settings.json", "allow A1 home/.claude/settings.json", "ask Q2 home/.troupe/settings.json",
	}, w.rules(cfg)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	wantNone(t, "warnings", cfg.Warnings)
}

func TestLostRulesRefuseTheStart(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"broken":             {"{\"permissions\": {\n  \"deny\": [\"A\" \"B\"]}}", ":2:16: "},
		"half":               {`{"permissions": {"deny": ["A"`, ":1:"},
		"no object":          {`["deny"]`, ":1:1: "},
		"permissions":        {`{"permissions": ["deny"]}`, ":1:17: permissions must be an object, not a list"},
		"deny is text":       {`{"permissions": {"deny": "A"}}`, ":1:26: deny must be a list, not a text"},
		"ask has a number":   {`{"permissions": {"ask": ["A", 1]}}`, ":1:31: an entry of ask must be a text, not a number"},
		"deny has an object": {`{"permissions": {"deny": [{}]}}`, ":1:27: "},
		"too large":          {strings.Repeat(" ", maxSettings+1), ": larger than"},
		"too deep":           {`{"x":` + strings.Repeat("[", maxBrackets+1), ": too many brackets"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, layered)
			w.write(t, "home/repo/.claude/settings.json", tc.data)
			cfg, err := Load(w.src)
			if !errors.Is(err, ErrRules) {
				t.Fatalf("Load: %v, want ErrRules", err)
			}
			wantOne(t, "error", []string{w.short(err.Error())}, "home/repo/.claude/settings.json"+tc.want)
			if !slices.Contains(w.rules(cfg), "deny D6 home/repo/.troupe/settings.local.json") {
				t.Error("the other layers did not load")
			}
		})
	}
}

func TestUnreadableSettingsRefuseTheStart(t *testing.T) {
	w := newWorld(t, "-- home/repo/.claude/settings.json/a-directory --\n")
	if _, err := Load(w.src); !errors.Is(err, ErrRules) {
		t.Errorf("a directory in place of settings: %v", err)
	}
	w = newWorld(t, "")
	w.link(t, "home/.claude/settings.json", w.path("home/nowhere"))
	if _, err := Load(w.src); !errors.Is(err, ErrRules) {
		t.Errorf("a link that leads nowhere in place of settings: %v", err)
	}
	w = newWorld(t, "-- home/repo/.claude --\na file where others have a directory\n-- home/.claude/settings.json --\n \n")
	if _, err := Load(w.src); err != nil {
		t.Errorf("no settings at all: %v", err)
	}
}

func TestSettingsOfAWindowsEditor(t *testing.T) {
	w := newWorld(t, "")
	w.write(t, "home/repo/.claude/settings.json", "\ufeff{\r\n\t\"permissions\": {\"deny\": [\"A\"]}\r\n}\r\n")
	if got := w.rules(w.load(t)); len(got) != 1 {
		t.Errorf("rules %q, want one", got)
	}
}

func TestKeysGivenTwiceLoseNoRule(t *testing.T) {
	w := newWorld(t, `
-- home/repo/.claude/settings.json --
{"permissions": {"deny": ["A"], "deny": ["B"]}, "permissions": {"deny": []}}
`)
	if diff := cmp.Diff([]string{"deny A home/repo/.claude/settings.json", "deny B home/repo/.claude/settings.json"},
		w.rules(w.load(t))); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestWrongTypesCostTheirValueOnly(t *testing.T) {
	w := newWorld(t, `
-- home/.claude/settings.json --
{
  "model": 3,
  "models": {"fast": [], "big": "opus"},
  "permissions": {
    "defaultMode": "acceptedits",
    "allow": ["A", 5],
    "additionalDirectories": "x",
    "deny": ["D"]
  },
  "somebody": {"else": 1}
}
`)
	cfg := w.load(t)
	got := w.problems(cfg)
	for _, want := range []string{
		":2:12: model must be a text, not a number", ":3:22: fast must be a text, not a list",
		`:5:20: defaultMode: unknown permission mode "acceptedits"`, ":6:20: an entry of allow must be a text", ":7:30: additionalDirectories must be a list",
	} {
		wantOne(t, "problems", got, "home/.claude/settings.json"+want)
	}
	if len(got) != 5 {
		t.Errorf("%d problems, want 5: %q", len(got), got)
	}
	if len(cfg.Rules) != 2 || cfg.Aliases["big"].Text != "opus" || cfg.Mode.Text != "" || cfg.Model.Text != "" {
		t.Errorf("what is right did not load: %+v", cfg)
	}
}

func TestUnusedSettingsAreNamed(t *testing.T) {
	w := newWorld(t, `
-- home/.claude/settings.json --
{"hooks": {}, "sandbox": {"network": {"allowedDomains": ["x"]}}, "theme": "dark", "permissions": {"disableAutoMode": "disable"}}
-- home/repo/.claude/settings.json --
{"hooks": {"Stop": []}, "mcpServers": {"a": {}}, "enabledPlugins": {"p": true}}
-- home/repo/.mcp.json --
{}
`)
	cfg := w.load(t)
	if len(cfg.Elsewhere) != 1 || filepath.ToSlash(cfg.Elsewhere[0]) != "~/.claude/settings.json: theme" {
		t.Errorf("keys of other tools: %q", cfg.Elsewhere)
	}
	wantNone(t, "warnings", cfg.Warnings)
	got := cfg.Unused
	for i := range got {
		got[i] = filepath.ToSlash(got[i])
	}
	if diff := cmp.Diff([]string{
		"~/.claude/settings.json: sandbox.network.allowedDomains is not enforced by this version",
		"~/.claude/settings.json: permissions.disableAutoMode is not enforced by this version",
		".claude/settings.json: hooks are not run by this version",
		".claude/settings.json: mcpServers are not started by this version",
		".claude/settings.json: enabledPlugins are not loaded by this version",
		".mcp.json: its servers are not started by this version",
	}, got); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}

func TestSettingsFlag(t *testing.T) {
	w := newWorld(t, "-- home/repo/my.json --\n{\"permissions\": {\"allow\": [\"A\"]}}\n")
	w.src.Settings = "my.json"
	if diff := cmp.Diff([]string{"allow A home/repo/my.json"}, w.rules(w.load(t))); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	for _, value := range []string{"absent.json", `{"model": `, `{"model": 3}`, `{"permissions": {"deny": 1}}`, `[]`} {
		w.src.Settings = value
		_, err := Load(w.src)
		if !errors.Is(err, ErrFlag) || !strings.Contains(err.Error(), "--settings") {
			t.Errorf("--settings %s: %v, want ErrFlag", value, err)
		}
	}
}

func TestSettingsFlagMayNameAnUntrustedFile(t *testing.T) {
	w := newWorld(t, "-- home/repo/.claude/settings.json --\n{\"permissions\": {\"allow\": [\"A\"]}}\n")
	w.src.Settings = ".claude/settings.json"
	if got := w.rules(w.load(t)); len(got) != 1 {
		t.Errorf("rules %q, want the one that the user named", got)
	}
}
