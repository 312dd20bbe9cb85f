package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files makes a world of settings files, which are told by their directory.
func sandboxOf(t *testing.T, trusted bool, user, project string) (*world, *Config, error) {
	t.Helper()
	w := newWorld(t, "\n-- home/.troupe/settings.json --\n"+user+"\n-- home/repo/.troupe/settings.json --\n"+project+"\n-- home/repo/.git/HEAD --\n")
	w.src.Dir = w.path("home/repo")
	if trusted {
		w.trust(t)
	}
	cfg, err := Load(w.src)
	return w, cfg, err
}

func TestSandboxMode(t *testing.T) {
	for _, c := range []struct {
		user, project     string
		trusted, stranger string // the mode, if the project is trusted and if not
	}{
		{`{}`, `{}`, "", ""},
		{`{"sandbox": {"enabled": true}}`, `{}`, "on", "on"},
		{`{"sandbox": {"failIfUnavailable": true, "enabled": true}}`, `{}`, "required", "required"},
		{`{"sandbox": {"failIfUnavailable": true}}`, `{}`, "", ""},
		{`{"sandbox": {"mode": "required"}}`, `{"sandbox": {"enabled": true}}`, "on", "required"},
		{`{"sandbox": {"mode": "required"}}`, `{"sandbox": {"failIfUnavailable": false}}`, "on", "required"},
		{`{"sandbox": {"mode": "on"}}`, `{"sandbox": {"mode": "off"}}`, "off", "on"},
		{`{"sandbox": {"mode": "on"}}`, `{"sandbox": {"failIfUnavailable": true}}`, "required", "required"},
		{`{"sandbox": {"mode": "off", "enabled": true}}`, `{}`, "off", "off"},
		{`{}`, `{"sandbox": {"mode": "required"}}`, "required", "required"},
		{`{"sandbox": null}`, `{"sandbox": {"enabled": false}}`, "off", "off"},
	} {
		for _, trusted := range []bool{true, false} {
			want := map[bool]string{true: c.trusted, false: c.stranger}[trusted]
			_, cfg, err := sandboxOf(t, trusted, c.user, c.project)
			if err != nil || cfg.Sandbox.Mode.Text != want || len(cfg.Problems)+len(cfg.Unused) > 0 {
				t.Errorf("%s, %s, trusted %v: %+v, %v, want %q", c.user, c.project, trusted, cfg.Sandbox.Mode, err, want)
			}
		}
	}
}

// Lists join. What gives something counts only of a trusted file.
func TestSandboxKeys(t *testing.T) {
	const user = `{"sandbox": {"filesystem": {"allowWrite": ["~/cache", "/data/**", "rel"], "denyWrite": ["~/cache/x"]}, "excludedCommands": ["docker *"]}}`
	const project = `{"sandbox": {
		"filesystem": {"allowWrite": ["./build", "//abs"], "denyWrite": ["gen/*.go"], "denyRead": ["~/.ssh", "*.pem"], "allowRead": ["~/.ssh/known_hosts"]},
		"excludedCommands": ["podman *"], "autoAllowBashIfSandboxed": true,
		"network": {"deniedDomains": ["*"], "allowUnixSockets": ["/run/x.sock"], "allowAllUnixSockets": true}}}`
	for _, trusted := range []bool{true, false} {
		w, cfg, err := sandboxOf(t, trusted, user, project)
		if err != nil {
			t.Fatal(err)
		}
		s, list := cfg.Sandbox, func(values []Value) (out []string) {
			for _, v := range values {
				out = append(out, w.short(v.Text))
			}
			return out
		}
		want := map[string][]string{
			"write":    {"home/cache", "/data", "home/.troupe/rel", "home/repo/build", "/abs"},
			"no write": {"home/cache/x", "home/repo/gen"},
			"no read":  {"home/.ssh", "home/repo"},
			"read":     {"home/.ssh/known_hosts"},
			"excluded": {"docker *", "podman *"},
			"sockets":  {"/run/x.sock"},
		}
		if !trusted {
			want["write"], want["excluded"], want["read"], want["sockets"] = want["write"][:3], want["excluded"][:1], nil, nil
		}
		got := map[string][]string{"write": list(s.Write), "no write": list(s.NoWrite), "no read": list(s.NoRead), "read": list(s.Read),
			"excluded": list(s.Excluded), "sockets": list(s.Sockets)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("trusted %v (-want +got):\n%s", trusted, diff)
		}
		if len(cfg.Problems) != 2 || !strings.Contains(cfg.Problems[0].Error(), "gen/*.go") {
			t.Errorf("%v", cfg.Problems)
		}
		if !s.NoNetwork || s.Trusted != trusted || s.AllSockets != trusted {
			t.Errorf("trusted %v: %+v", trusted, s)
		}
		withheld := slices.ContainsFunc(cfg.Warnings, func(line string) bool {
			return strings.Contains(line, "sandbox.allowWrite") && strings.Contains(line, "sandbox.autoAllowBashIfSandboxed")
		})
		if withheld == trusted {
			t.Errorf("trusted %v: %q", trusted, cfg.Warnings)
		}
	}
}

// What would have forbidden something and cannot be read stops the start; what
// would have given something costs itself alone. Keys without effect are told.
func TestSandboxMistakes(t *testing.T) {
	for text, stops := range map[string]bool{
		`{"sandbox": []}`:                                               true,
		`{"sandbox": {"mode": "strict"}}`:                               true,
		`{"sandbox": {"mode": true}}`:                                   true,
		`{"sandbox": {"enabled": "yes"}}`:                               true,
		`{"sandbox": {"filesystem": "x"}}`:                              true,
		`{"sandbox": {"filesystem": {"denyWrite": "x"}}}`:               true,
		`{"sandbox": {"filesystem": {"denyRead": [1]}}}`:                true,
		`{"sandbox": {"network": {"deniedDomains": "*"}}}`:              true,
		`{"sandbox": {"filesystem": {"allowWrite": ["src/*.go"]}}}`:     false,
		`{"sandbox": {"filesystem": {"allowWrite": "x"}}}`:              false,
		`{"sandbox": {"autoAllowBashIfSandboxed": 1}}`:                  false,
		`{"sandbox": {"excludedCommands": [{}]}}`:                       false,
		`{"sandbox": {"allowUnsandboxedCommands": true}}`:               false,
		`{"sandbox": {"network": {"deniedDomains": ["example.com"]}}}`:  false,
		`{"sandbox": {"network": {"allowedDomains": ["example.com"]}}}`: false,
		`{"sandbox": {"credentials": {"files": ["x"]}}}`:                false,
		`{"sandbox": {"network": {"httpProxyPort": 8080}}}`:             false,
		`{"sandbox": {"enableWeakerNestedSandbox": true}}`:              false,
	} {
		_, cfg, err := sandboxOf(t, true, text, "{}")
		if errors.Is(err, ErrRules) != stops || !stops && len(cfg.Problems)+len(cfg.Unused) != 1 {
			t.Errorf("%s: %v, %v, %v", text, err, cfg.Problems, cfg.Unused)
		}
		if len(cfg.Sandbox.Write) > 0 {
			t.Errorf("%s: %v", text, cfg.Sandbox)
		}
	}
	if _, cfg, _ := sandboxOf(t, true, `{"sandbox": {"allowUnsandboxedCommands": false, "network": {"allowLocalBinding": false}}}`, "{}"); len(cfg.Unused) > 0 {
		t.Errorf("%q", cfg.Unused)
	}
}
