package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const valued = `
-- home/.claude/settings.json --
{
  "env": {"A": "user", "B": "user", "N": 3, "T": true, "NOT": null, "ANTHROPIC_BASE_URL": "https://mine"},
  "network": {"proxy": "http://user:1", "noProxy": "a,b", "caFile": "ca.pem"},
  "catalogue": {"openai/own": {"window": 1000, "maxOutput": 10, "price": {"input": 1, "output": 2}}},
  "passKeys": ["OPENAI_API_KEY"]
}
-- home/repo/.troupe/settings.json --
{
  "env": {"B": "project", "ANTHROPIC_BASE_URL": "https://theirs"},
  "network": {"proxy": "http://project:1", "caFile": "certs/ca.pem"},
  "catalogue": {"openai/own": {"window": 2000}, "ollama/x": {"price": {"input": 0, "output": 0, "cacheRead": 0.5, "cacheWrite": 3}}},
  "passKeys": ["ANTHROPIC_API_KEY"]
}
`

func reaches(name string) bool { return strings.HasPrefix(name, "ANTHROPIC_") }

func (w *world) value(v Value) string { return w.short(v.Text) + " " + w.short(v.Source) }

// What a project says of the environment, of the network, of prices and of keys
// counts only once it is trusted; then its user is told first that it decides
// how models are reached.
func TestValuesOfAProjectCountWithTrust(t *testing.T) {
	w := newWorld(t, valued)
	w.src.Reaches = reaches
	cfg := w.load(t)
	user := func(v string) string { return v + " home/.claude/settings.json" }
	for what, got := range map[string]string{
		user("user"):                      w.value(cfg.Env["B"]),
		user("https://mine"):              w.value(cfg.Env["ANTHROPIC_BASE_URL"]),
		user("http://user:1"):             w.value(cfg.Proxy),
		user("home/.claude/ca.pem"):       w.value(cfg.CAFile),
		user("OPENAI_API_KEY"):            w.value(cfg.PassKeys[0]),
		"1000 home/.claude/settings.json": w.value(Value{"1000", cfg.Catalogue["openai/own"].Source}),
	} {
		if got != what {
			t.Errorf("without trust: got %q, want %q", got, what)
		}
	}
	if len(cfg.PassKeys) != 1 || cfg.Catalogue["openai/own"].Window != 1000 || len(cfg.Catalogue) != 1 || len(cfg.Reach) != 0 {
		t.Errorf("without trust: %+v", cfg)
	}
	if len(cfg.Warnings) != 1 || len(cfg.Withheld) != 4 {
		t.Errorf("warnings %q, withheld %q; want one of four things", cfg.Warnings, cfg.Withheld)
	}
	wantOne(t, "warnings", cfg.Warnings, "troupe trust", "2 variable(s) of env", "network", "catalogue", "passKeys")

	w.trust(t)
	cfg = w.load(t)
	project := func(v string) string { return v + " home/repo/.troupe/settings.json" }
	for want, got := range map[string]string{
		user("user"):                      w.value(cfg.Env["A"]),
		project("project"):                w.value(cfg.Env["B"]),
		project("https://theirs"):         w.value(cfg.Env["ANTHROPIC_BASE_URL"]),
		project("http://project:1"):       w.value(cfg.Proxy),
		user("a,b"):                       w.value(cfg.NoProxy),
		project("home/repo/certs/ca.pem"): w.value(cfg.CAFile),
		project("ANTHROPIC_API_KEY"):      w.value(cfg.PassKeys[1]),
	} {
		if got != want {
			t.Errorf("with trust: got %q, want %q", got, want)
		}
	}
	own := cfg.Catalogue["openai/own"]
	own.Source = w.short(own.Source)
	if diff := cmp.Diff(ModelFacts{"openai", "own", 2000, 10, &Price{1, 2, 1, 1}, "home/repo/.troupe/settings.json"}, own); diff != "" {
		t.Errorf("the model (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&Price{0, 0, 0.5, 3}, cfg.Catalogue["ollama/x"].Price); diff != "" {
		t.Errorf("the price (-want +got):\n%s", diff)
	}
	if len(cfg.Warnings) != 1 || !strings.HasPrefix(cfg.Warnings[0], "this project, which you trust, decides how models are reached: ") {
		t.Fatalf("warnings %q", cfg.Warnings)
	}
	for i, what := range []string{"env.ANTHROPIC_BASE_URL", "network.proxy", "network.caFile"} {
		if want := filepath.Join(".troupe", "settings.json") + ": " + what; len(cfg.Reach) != 3 || cfg.Reach[i] != want {
			t.Errorf("told of %q, want %s", cfg.Reach, want)
		}
	}
	wantNone(t, "problems", w.problems(cfg))
}

func TestEnviron(t *testing.T) {
	w := newWorld(t, valued)
	env := []string{"A=process", "C=process", "=odd", "B=one", "B=two"}
	was := slices.Clone(env)
	got := w.load(t).Environ(env)
	if diff := cmp.Diff([]string{"C=process", "=odd", "A=user", "ANTHROPIC_BASE_URL=https://mine", "B=user", "N=3", "T=true"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(env, was) {
		t.Error("what was given is changed")
	}
}

func TestWrongValuesCostThemselvesAlone(t *testing.T) {
	w := newWorld(t, `
-- home/.claude/settings.json --
{
  "env": {"L": ["x"], "A=B": "x", "": "x", "NUL": "\u0000", "TROUPE_HOME": "/x", "GOOD": "y"},
  "network": {"proxy": 3},
  "catalogue": {
    "short": {}, "a/b": 3,
    "p/window": {"window": "big", "maxOutput": 1.5, "price": {"input": 1}},
    "p/price": {"window": 0, "price": {"input": -1, "output": 2}},
    "p/good": {"window": 7}
  },
  "passKeys": "ALL"
}
-- home/.troupe/settings.json --
{"env": [], "network": "x", "catalogue": 1}
`)
	cfg := w.load(t)
	got := w.problems(cfg)
	for _, want := range []string{
		"settings.json:2:16: env.L must be a text, not a list", `:2:30: env: "A=B" is no name`, `:2:39: env: "" is no name`, ":2:51: env.NUL", "env.TROUPE_HOME comes too late",
		":3:24: proxy must be a text, not a number", `:5:14: catalogue: "short" is not the whole name of a model, as in openai/short`, ":5:25: a/b must be an object",
		":6:28: window must be a number, not a text", ":6:48: maxOutput cannot be 1.5", ":6:62: price needs input and output",
		":7:27: window cannot be 0", ":7:49: input cannot be -1", ":7:39: price needs input and output", ":10:15: passKeys must be a list, not a text",
		"home/.troupe/settings.json:1:9: env must be an object", "home/.troupe/settings.json:1:24: network must be an object", "home/.troupe/settings.json:1:42: catalogue must be an object",
	} {
		wantOne(t, "problems", got, want)
	}
	if len(got) != 18 || len(cfg.Env) != 1 || cfg.Env["GOOD"].Text != "y" || cfg.Catalogue["p/good"].Window != 7 || cfg.Catalogue["p/price"].Price != nil {
		t.Errorf("%d problems, %+v", len(got), cfg)
	}
}

func TestUnknownKeysWarn(t *testing.T) {
	w := newWorld(t, `
-- home/.claude/settings.json --
{"$schema": "x",
 "premissions": {}, "Model": "x", "somethingNew": 1,
 "permissions": {"alow": []}, "network": {"porxy": "x"}, "catalogue": {"a/b": {"windo": 1, "price": {"input": 1, "output": 1, "cache": 1}}}}
`)
	got := w.load(t).Warnings
	for i := range got {
		got[i] = filepath.ToSlash(got[i])
	}
	for _, want := range []string{
		`~/.claude/settings.json:2:2: the key "premissions" is not known and has no effect; is "permissions" meant?`,
		`:2:21: the key "Model" is not known and has no effect; is "model" meant?`,
		`:2:35: the key "somethingNew" is not known and has no effect`,
		`"permissions.alow" is not known and has no effect; is "allow" meant?`,
		`"network.porxy" is not known and has no effect; is "proxy" meant?`,
		`"catalogue.a/b.windo" is not known and has no effect; is "window" meant?`, `"price.cache" is not known`,
	} {
		wantOne(t, "warnings", got, want)
	}
	if len(got) != 7 {
		t.Errorf("%d warnings, want 7: %q", len(got), got)
	}
	w.src.Settings = `{"premissions": {}}`
	if _, err := Load(w.src); err != nil {
		t.Errorf("an unknown key of a flag: %v", err)
	}
}

func TestManagedSettingsOfADirectory(t *testing.T) {
	w := newWorld(t, `
-- etc/managed-settings.json --
{"model": "base", "permissions": {"deny": ["D0"], "disableBypassPermissionsMode": "disable"}}
-- etc/managed-settings.d/20-b.json --
{"model": "b", "permissions": {"deny": ["D2"]}}
-- etc/managed-settings.d/10-a.json --
{"model": "a", "permissions": {"deny": ["D1"]}}
-- etc/managed-settings.d/.hidden.json --
{"permissions": {"deny": ["H"]}}
-- etc/managed-settings.d/notes.txt --
not settings
`)
	w.src.Managed = w.path("etc/managed-settings.json")
	w.src.Settings = `{"model": "flag"}`
	cfg := w.load(t)
	if diff := cmp.Diff([]string{"deny D0 etc/managed-settings.json", "deny D1 etc/managed-settings.d/10-a.json", "deny D2 etc/managed-settings.d/20-b.json"}, w.rules(cfg)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if cfg.Model.Text != "b" || len(cfg.Managed) != 3 || !cfg.IsManaged(cfg.Model) || cfg.IsManaged(Value{"x", CommandLine}) || cfg.NoBypass.Text == "" {
		t.Errorf("model %+v, managed %q, bypass %+v", cfg.Model, cfg.Managed, cfg.NoBypass)
	}
	w.write(t, "etc/managed-settings.d/30-c.json", "{")
	if _, err := Load(w.src); !errors.Is(err, ErrRules) {
		t.Errorf("a broken file of the machine's owner: %v", err)
	}
	w = newWorld(t, "-- etc/managed-settings.d --\na file in place of the directory\n")
	w.src.Managed = w.path("etc/managed-settings.json")
	if _, err := Load(w.src); !errors.Is(err, ErrRules) {
		t.Errorf("a directory that cannot be read: %v", err)
	}
}

// Whoever is not trusted may forbid bypassPermissions, too. A word for it that
// is not understood stops the start.
func TestAnybodyMayForbidBypass(t *testing.T) {
	w := newWorld(t, "-- home/repo/.claude/settings.json --\n{\"permissions\": {\"disableBypassPermissionsMode\": \"disable\"}}\n")
	if cfg := w.load(t); w.short(cfg.NoBypass.Source) != "home/repo/.claude/settings.json" {
		t.Errorf("got %+v", cfg.NoBypass)
	}
	w.write(t, "home/repo/.claude/settings.json", `{"permissions": {"disableBypassPermissionsMode": true}}`)
	if _, err := Load(w.src); !errors.Is(err, ErrRules) {
		t.Errorf("not understood: %v", err)
	}
}

func TestSettingSources(t *testing.T) {
	w := newWorld(t, layered)
	w.trust(t)
	w.src.Managed = w.path("managed.json")
	w.src.Settings = `{"permissions": {"allow": ["A7"]}}`
	for names, want := range map[string]string{
		"user": "D1 A1 Q2 A7 D8", "project": "D3 A3 Q4 A7 D8", "local": "A5 D6 A7 D8", "user,local": "D1 A1 Q2 A5 D6 A7 D8", "": "A7 D8",
	} {
		w.src.Layers = strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
		if w.src.Layers == nil {
			w.src.Layers = []string{}
		}
		var got []string
		for _, r := range w.load(t).Rules {
			got = append(got, r.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("sources %q: rules %q, want %s", names, got, want)
		}
	}
	w.src.Layers = []string{"usr"}
	if _, err := Load(w.src); !errors.Is(err, ErrFlag) || !strings.Contains(err.Error(), "--setting-sources") || !strings.Contains(err.Error(), "user, project, local") {
		t.Errorf("a name that there is not: %v", err)
	}
}
