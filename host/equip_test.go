package host_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/troupetest"
)

func rule(effect troupe.Effect, text string) func(*host.Options) {
	return func(o *host.Options) {
		o.Config.Rules = append(o.Config.Rules, config.RuleText{Text: text, Effect: effect, Source: "settings.json", Root: o.Config.Dir})
	}
}

func bypass(o *host.Options) { o.Mode = permission.Bypass }

// The keys of providers are for requests alone: no program gets them, no file
// holds them; also if the one who opened the session did not think of it.
func TestKeysStayHere(t *testing.T) {
	p := newPlace(t)
	p.env = append(p.env, "OPENROUTER_API_KEY="+key, "anthropic_auth_token="+key, "TOKEN="+key)
	s := p.open(t, bypass, func(o *host.Options) { o.Secrets = []string{"TOKEN"} })
	res := p.call(t, s, "Bash", map[string]any{"command": "env; cat /proc/$$/environ 2>/dev/null | tr '\\0' '\\n'"})
	has(t, res.Content.Text(), "MARK=seen")
	hasNot(t, res.Content.Text(), key, "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TOKEN")
	has(t, res.Content.Text(), "ANTHROPIC_BASE_URL")
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": "look"}))},
		troupetest.Reply{Message: troupetest.Use(use("e", "Bash", map[string]any{"command": "env"}))}, troupetest.Reply{Message: troupetest.Say("x")}, troupetest.Reply{Message: troupetest.Say("x")})
	ask(t, s, "let one look")
	closed(t, s)
	files := 0
	for path, text := range tree(t, p.home) {
		files++
		if strings.Contains(text, key) {
			t.Errorf("%s holds the key", path)
		}
	}
	if files < 4 {
		t.Errorf("only %d files", files)
	}
}

// S124: all that a session writes is for its user alone.
func TestPrivate(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, bypass)
	p.call(t, s, "Bash", map[string]any{"command": "yes line | head -n 20000"})
	err := filepath.WalkDir(host.Sessions(p.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Of troupe's own directory an agent may read the results that were too long
// for it, and nothing else, whatever signs its path has.
func TestWhatMayBeReadOfHome(t *testing.T) {
	p := newPlace(t)
	p.home = filepath.Join(p.user, "we[i]rd {x,y} (z)")
	if os.PathSeparator == '/' {
		p.home += ` a\b ?*`
	}
	p.src.Home = p.home
	if err := os.Mkdir(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	s := p.open(t)
	for _, c := range []struct {
		name string
		may  bool
	}{{"results/r.txt", true}, {"output/o.txt", true}, {"lead.jsonl", false}, {"../secret", false}, {"resultsx/r.txt", false}, {"results/../lead.jsonl", false}} {
		path := filepath.Join(s.Path(), filepath.FromSlash(c.name))
		if _, err := os.Stat(path); err != nil {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("text of it\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		res := p.call(t, s, "Read", map[string]any{"file_path": s.Path() + "/" + c.name})
		if may := !res.IsError && !strings.Contains(res.Content.Text(), "Permission denied"); may != c.may {
			t.Errorf("%s: %v: %.300s", c.name, may, res.Content.Text())
		}
		if res := p.call(t, s, "Edit", map[string]any{"file_path": path, "old_string": "text", "new_string": "x"}); !res.IsError {
			t.Errorf("%s was changed", c.name)
		}
	}
}

// A rule that forbids and cannot be understood stops everything, one that allows is told.
func TestRulesThatCannotBeRead(t *testing.T) {
	for _, effect := range []troupe.Effect{troupe.Deny, troupe.Ask} {
		p := newPlace(t)
		o := p.options(t)
		rule(effect, "Bash(")(&o)
		if _, err := host.Open(t.Context(), o); !errors.Is(err, permission.ErrRule) || !strings.Contains(err.Error(), "settings.json") {
			t.Errorf("%s: %v", effect, err)
		}
		if got := tree(t, p.home); len(got) > 0 {
			t.Errorf("%s: there are files of a session that did not begin: %v", effect, got)
		}
	}
	p := newPlace(t)
	s := p.open(t, rule(troupe.Allow, "Bash("))
	if told := strings.Join(s.Warnings, "\n"); !strings.Contains(told, "settings.json") || !strings.Contains(told, "Bash(") {
		t.Errorf("warnings %q", told)
	}
	if res := p.call(t, s, "Bash", map[string]any{"command": "touch x"}); !res.IsError {
		t.Error("it allowed something")
	}
}

func offered(s *host.Session) (names []string) {
	for _, t := range s.Begun().Request.Tools {
		names = append(names, t.Name)
	}
	return names
}

func TestToolsOffered(t *testing.T) {
	for text, without := range map[string][]string{
		"Bash": {"Bash"}, "Bash(*)": {"Bash"}, "Agent": {"Agent"}, "Write": {"Write"},
		"Bash(rm *)": nil, "Edit(a.txt)": nil,
	} {
		p := newPlace(t)
		s := p.open(t, bypass, rule(troupe.Deny, text))
		want := slices.DeleteFunc(host.Tools(), func(n string) bool { return slices.Contains(without, n) })
		if diff := cmp.Diff(want, offered(s)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		for _, name := range without { // not offered is not there
			if res := p.call(t, s, name, map[string]any{"command": "true"}); !res.IsError {
				t.Errorf("%s ran", name)
			}
		}
	}
	p := newPlace(t)
	s := p.open(t)
	p.provider.Say("x")
	ask(t, s, "x")
	if diff := cmp.Diff(host.Tools(), p.provider.Last().ToolNames()); diff != "" {
		t.Error(diff)
	}
	if !slices.IsSorted(host.Tools()) {
		t.Error("not in order")
	}
}

func TestWrongUse(t *testing.T) {
	p := newPlace(t)
	p.write(t, ".claude/agents/reader.md", "---\nname: reader\ndescription: reads\ntools: Read\n---\nYou read.\n")
	for name, change := range map[string]func(*host.Options){
		"no such agent": func(o *host.Options) { o.Agent = "nobody" },
		"no model":      func(o *host.Options) { o.Model = "" },
	} {
		o := p.options(t)
		change(&o)
		if _, err := host.Open(t.Context(), o); !errors.Is(err, host.ErrUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := tree(t, p.home); len(got) > 0 {
		t.Errorf("there are files: %v", got)
	}
}

// What is over the limit of turns is not done; a definition can set it, a user's word counts more.
func TestTurns(t *testing.T) {
	p := newPlace(t)
	p.write(t, ".claude/agents/short.md", "---\nname: short\ndescription: d\nmaxTurns: 2\n---\nYou are short.\n")
	for _, c := range []struct {
		turns int
		agent string
		want  int
	}{{3, "", 3}, {0, "short", 2}, {1, "short", 1}} {
		s := p.open(t, func(o *host.Options) { o.Turns, o.Agent = c.turns, c.agent })
		for i := range c.want {
			p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use(fmt.Sprintf("c%d", i), "Glob", map[string]any{"pattern": "*"}))})
		}
		if err := s.Send(t.Context(), "go on"); err != nil {
			t.Fatal(err)
		}
		end, err := s.Run(t.Context())
		if !errors.Is(err, troupe.ErrMaxTurns) || end.Reason != troupe.OutOfTurns || end.Turns != c.want {
			t.Errorf("%+v: %+v, %v", c, end, err)
		}
	}
}

// A mode of another tool in the settings is told, and is none of ours: less runs
// without it.
func TestAModeOfAnotherToolIsTold(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, func(o *host.Options) { o.Config.Mode = config.Value{Text: "dreamy", Source: "settings.json"} })
	defer closed(t, s)
	if got := s.Begun().Mode; got != "default" {
		t.Errorf("mode %s", got)
	}
	if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "settings.json") && strings.Contains(w, "dreamy") }) {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// What the rules are written in is not changed under the rules, wherever it is.
func TestTheHomeIsProtected(t *testing.T) {
	p := newPlace(t)
	home := filepath.Join(p.dir, "cache")
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(
		troupe.ToolUse{ID: "a", Name: "Write", Input: []byte(`{"file_path":"cache/settings.json","content":"{}"}`)},
		troupe.ToolUse{ID: "b", Name: "Write", Input: []byte(`{"file_path":"other.txt","content":"x"}`)})})
	p.provider.Say("done")
	s := p.open(t, func(o *host.Options) { o.Home, o.Mode = home, permission.AcceptEdits })
	defer closed(t, s)
	ask(t, s, "write")
	if _, err := os.Stat(filepath.Join(home, "settings.json")); err == nil {
		t.Error("an agent has written its own rules")
	}
	if _, err := os.Stat(filepath.Join(p.dir, "other.txt")); err != nil {
		t.Error(err)
	}
}

// Mode auto without a sandbox says once that it is narrower than one may think.
func TestAutoWithoutASandboxIsTold(t *testing.T) {
	p := newPlace(t)
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(
		troupe.ToolUse{ID: "a", Name: "Write", Input: []byte(`{"file_path":"a.txt","content":"x"}`)},
		troupe.ToolUse{ID: "b", Name: "Bash", Input: []byte(`{"command":"touch b.txt"}`)})})
	p.provider.Say("done")
	s := p.open(t, func(o *host.Options) { o.Mode = permission.Auto })
	defer closed(t, s)
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "acceptEdits") {
		t.Errorf("warnings %q", s.Warnings)
	}
	if err := s.Send(t.Context(), "go on"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a.txt": true, "b.txt": false} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
