package host_test

import (
	"bytes"
	"errors"
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
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// A session that is taken up again sends what it sent before, byte for byte,
// and goes on after it; what is recorded is what was sent.
func TestResumeSendsTheSameBytes(t *testing.T) {
	for dialect, model := range names {
		t.Run(string(dialect), func(t *testing.T) {
			p := newPlace(t)
			p.model = model
			p.write(t, "a.txt", "alpha <&> \u2028\n")
			s := p.open(t)
			p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("c1", "Read", map[string]any{"file_path": "a.txt"}))}, troupetest.Reply{Message: troupetest.Say("noted")})
			ask(t, s, "remember blue")
			closed(t, s)
			for _, prompt := range []string{"which colour?", "sure?"} {
				again := p.open(t, resume(t, s))
				p.provider.Say("blue")
				if end := ask(t, again, prompt); end.Text != "blue" || end.Turns != 1 {
					t.Errorf("%+v", end)
				}
				closed(t, again)
			}
			sent := p.provider.Requests()
			if len(sent) != 4 {
				t.Fatalf("%d requests", len(sent))
			}
			for i, r := range sent[1:] {
				before := sent[i].Unmarked
				if end := messagesEnd(t, before); !bytes.HasPrefix(r.Unmarked, before[:end]) {
					t.Errorf("request %d does not begin with the one before it:\n%s\n%s", i+2, before, r.Unmarked)
				}
			}
			var recorded [][]byte
			for r, err := range session.Requests(s.Path(), session.Lead) {
				if err != nil {
					t.Fatal(err)
				}
				recorded = append(recorded, slices.Clone(r.Body))
			}
			for i, r := range sent {
				if i >= len(recorded) || !bytes.Equal(recorded[i], r.Body) {
					t.Errorf("request %d is not recorded as it was sent", i+1)
				}
			}
		})
	}
}

// A log in which something is broken opens, tells what was skipped, and makes a
// request that both kinds of providers take.
func TestResumeDamaged(t *testing.T) {
	cut := func(lines [][]byte, from, to int) [][]byte { return slices.Delete(slices.Clone(lines), from, to) }
	broken := func(lines [][]byte, n int) [][]byte {
		out := slices.Clone(lines)
		out[n] = append([]byte("\x00{broken"), out[n][20:]...)
		return out
	}
	type lines = [][]byte
	damages := map[string]struct {
		harm func(lines) lines
		told string // "" is no warning
	}{
		"first line broken": {func(l lines) lines { return broken(l, 0) }, "skipped: 1;"},
		"first line lost":   {func(l lines) lines { return cut(l, 0, 1) }, ""},
		"prompt broken":     {func(l lines) lines { return broken(l, 1) }, "skipped: 1;"},
		"call broken":       {func(l lines) lines { return broken(l, 2) }, "skipped: 1;"},
		"result broken":     {func(l lines) lines { return broken(l, 5) }, "skipped: 1;"},
		"two broken":        {func(l lines) lines { return broken(broken(l, 1), 4) }, "skipped: 2;"},
		"torn tail":         {func(l lines) lines { return append(l[:len(l)-2:len(l)-2], l[len(l)-2][:30]) }, "skipped: 1;"},
		"torn in a call":    {func(l lines) lines { return append(l[:3:3], l[3][:30]) }, "skipped: 1;"},
		"cut in a call":     {func(l lines) lines { return l[:3] }, ""},
		"all but the end":   {func(l lines) lines { return l[len(l)-1:] }, ""},
		"nothing is left":   {func(lines) lines { return nil }, ""},
	}
	for dialect, model := range names {
		for name, c := range damages {
			t.Run(string(dialect)+" "+name, func(t *testing.T) {
				p := newPlace(t)
				p.model = model
				p.write(t, "a.txt", "alpha\n")
				s := p.open(t)
				p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("c1", "Read", map[string]any{"file_path": "a.txt"}))}, troupetest.Reply{Message: troupetest.Say("noted")})
				ask(t, s, "remember blue")
				closed(t, s)
				path := session.LogPath(s.Path(), session.Lead)
				// Started, Received, Replied, ToolStarted, Decided, ToolEnded, Replied, Ended
				whole := bytes.SplitAfter(read(t, path), []byte("\n"))
				if whole = whole[:len(whole)-1]; len(whole) != 8 {
					t.Fatalf("%d records", len(whole))
				}
				if err := os.WriteFile(path, bytes.Join(c.harm(whole), nil), 0o600); err != nil {
					t.Fatal(err)
				}
				again := p.open(t, resume(t, s), func(o *host.Options) { o.Model = model })
				if told := strings.Join(again.Warnings, "\n"); (c.told == "") != (told == "") || !strings.Contains(told, c.told) {
					t.Errorf("warnings: %q, want %q", told, c.told)
				}
				p.provider.Say("blue")
				if end := ask(t, again, "which colour?"); end.Text != "blue" {
					t.Errorf("%+v", end)
				}
				last := p.provider.Last()
				if last.System == "" || len(last.Tools) != len(host.Tools()) || last.LastUser() == "" {
					t.Errorf("the request lost its beginning: %.200s", last.Body)
				}
				closed(t, again)
				// It is mended for good: what was skipped is skipped again, and nothing else.
				third := p.open(t, resume(t, s))
				p.provider.Say("blue")
				if end := ask(t, third, "sure?"); end.Text != "blue" {
					t.Errorf("%+v", end)
				}
			})
		}
	}
}

// A later change of the model or the place is no beginning.
func TestResumeWithoutBeginningButChanges(t *testing.T) {
	p := newPlace(t)
	s := p.once(t)
	p.provider.Say("ok")
	again := p.open(t, resume(t, s), func(o *host.Options) { o.Model = names[troupetest.OpenAI]; o.Also = []string{p.user} })
	ask(t, again, "go on")
	closed(t, again)
	path := session.LogPath(s.Path(), session.Lead)
	_, rest, _ := bytes.Cut(read(t, path), []byte("\n"))
	if err := os.WriteFile(path, rest, 0o600); err != nil {
		t.Fatal(err)
	}
	third := p.open(t, resume(t, s))
	p.provider.Say("ok")
	ask(t, third, "and on")
	if last := p.provider.Last(); last.System == "" || len(last.Tools) == 0 || last.Dialect != troupetest.OpenAI {
		t.Errorf("%.300s", last.Body)
	}
}

func TestResumeWithoutAModel(t *testing.T) {
	p := newPlace(t)
	s := p.once(t)
	if err := os.WriteFile(session.LogPath(s.Path(), session.Lead), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := p.options(t)
	resume(t, s)(&o)
	if _, err := host.Open(t.Context(), o); !errors.Is(err, host.ErrUse) {
		t.Errorf("error %v", err)
	}
	o.Model = p.model
	again, err := host.Open(t.Context(), o) // the refusal has left no lock
	if err != nil {
		t.Fatal(err)
	}
	closed(t, again)
}

// Modes that are wide or narrow for one run are not taken up again; others are.
func TestModeAfterResume(t *testing.T) {
	for _, c := range []struct{ was, asked, settings, want permission.Mode }{
		{permission.Plan, "", "", permission.Default},
		{permission.Bypass, "", "", permission.Default},
		{permission.Bypass, "", permission.AcceptEdits, permission.AcceptEdits},
		{permission.AcceptEdits, "", "", permission.AcceptEdits},
		{permission.DontAsk, "", "", permission.DontAsk},
		{permission.DontAsk, "", permission.AcceptEdits, permission.DontAsk},
		{permission.Default, "", permission.AcceptEdits, permission.Default},
		{permission.AcceptEdits, permission.Default, "", permission.Default},
		{permission.Default, permission.Bypass, "", permission.Bypass},
		{permission.Plan, permission.Plan, "", permission.Plan},
	} {
		p := newPlace(t)
		s := p.once(t, func(o *host.Options) { o.Mode = c.was })
		again := p.open(t, resume(t, s), func(o *host.Options) {
			o.Mode, o.Config.Mode = c.asked, config.Value{Text: string(c.settings)}
		})
		if got := again.Begun().Mode; got != string(c.want) {
			t.Errorf("%+v: mode %s", c, got)
		}
		if got := again.Begun().Request.Model; got != p.model {
			t.Errorf("%+v: model %s", c, got)
		}
		// The guard and the sub-agents go by it.
		target := filepath.Join(p.dir, "new.txt")
		p.provider.Queue(
			troupetest.Reply{Message: troupetest.Use(use("a", "Agent", map[string]any{"description": "d", "prompt": "write"}))},
			troupetest.Reply{Message: troupetest.Use(use("w", "Write", map[string]any{"file_path": target, "content": "x"}))},
			troupetest.Reply{Message: troupetest.Say("done")}, troupetest.Reply{Message: troupetest.Say("done")})
		ask(t, again, "have it written")
		_, err := os.Stat(target)
		if wrote := err == nil; wrote != (c.want == permission.AcceptEdits || c.want == permission.Bypass) {
			t.Errorf("%+v: a sub-agent wrote: %v", c, wrote)
		}
	}
}

// A model is kept until another is asked for, in whatever dialect it is.
func TestModelAfterResume(t *testing.T) {
	p := newPlace(t)
	s := p.once(t)
	for _, want := range []string{names[troupetest.OpenAI], ""} {
		again := p.open(t, resume(t, s), func(o *host.Options) { o.Model = want })
		p.provider.Say("blue")
		ask(t, again, "which colour?")
		if got := again.Begun().Request.Model; got != names[troupetest.OpenAI] || p.provider.Last().Dialect != troupetest.OpenAI {
			t.Errorf("model %s, dialect %s", got, p.provider.Last().Dialect)
		}
		closed(t, again)
	}
}

// The directories are those of today: what settings or flags gave once is not
// given for ever.
func TestDirectoriesAfterResume(t *testing.T) {
	p := newPlace(t)
	one, two := t.TempDir(), t.TempDir()
	s := p.once(t, func(o *host.Options) { o.Also = []string{one} })
	for _, c := range []struct {
		also, want []string
		records    int
	}{
		{[]string{one}, []string{one}, 0},
		{nil, nil, 1},
		{nil, nil, 0},
		{[]string{two, one}, []string{two, one}, 1},
		{[]string{two, one}, []string{two, one}, 0},
	} {
		before := bytes.Count(read(t, session.LogPath(s.Path(), session.Lead)), []byte("\n"))
		again := p.open(t, resume(t, s), func(o *host.Options) { o.Also = c.also })
		if diff := cmp.Diff(troupe.Place{Dir: p.dir, Also: c.want}, again.Begun().Place); diff != "" {
			t.Errorf("%v: %s", c.also, diff)
		}
		closed(t, again)
		if got := bytes.Count(read(t, session.LogPath(s.Path(), session.Lead)), []byte("\n")) - before; got != c.records {
			t.Errorf("%v: %d new records, want %d", c.also, got, c.records)
		}
	}
}

// tree is every file below dir with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out[path] = string(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFork(t *testing.T) {
	p := newPlace(t)
	s := p.once(t)
	before := tree(t, s.Path())
	other := p.open(t, resume(t, s)) // the original may even be in use
	fork := p.open(t, resume(t, s), func(o *host.Options) { o.Fork = true })
	if fork.ID == s.ID || filepath.Dir(fork.Path()) != filepath.Dir(s.Path()) {
		t.Errorf("the copy is %s", fork.Path())
	}
	closed(t, other)
	p.provider.Say("blue")
	ask(t, fork, "which colour?")
	has(t, string(p.provider.Last().Body), "remember blue")
	if diff := cmp.Diff(before, tree(t, s.Path())); diff != "" {
		t.Errorf("the original is not what it was: %s", diff)
	}
	if log := read(t, session.LogPath(fork.Path(), session.Lead)); !strings.HasPrefix(string(log), before[session.LogPath(s.Path(), session.Lead)]) {
		t.Error("the copy does not begin as the original")
	}
}

func TestInUse(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	before := tree(t, s.Path())
	o := p.options(t)
	resume(t, s)(&o)
	if _, err := host.Open(t.Context(), o); !errors.Is(err, session.ErrInUse) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(before, tree(t, s.Path())); diff != "" {
		t.Error(diff)
	}
	closed(t, s)
	again := p.open(t, resume(t, s))
	closed(t, again)
}

// The rules of one directory are none for another.
func TestResumeWithTheConfigurationOfAnotherDirectory(t *testing.T) {
	p := newPlace(t)
	s := p.once(t)
	p.src.Dir = p.user
	o := p.options(t)
	resume(t, s)(&o)
	if _, err := host.Open(t.Context(), o); !errors.Is(err, host.ErrUse) {
		t.Errorf("error %v", err)
	}
}

// Who began with few tools does not go on with more, whatever is configured now.
func TestToolsAfterResume(t *testing.T) {
	p := newPlace(t)
	p.write(t, ".claude/agents/reader.md", "---\nname: reader\ndescription: reads\ntools: Read\n---\nYou read.\n")
	s := p.once(t, func(o *host.Options) { o.Agent = "reader" })
	again := p.open(t, resume(t, s), func(o *host.Options) { o.Mode = permission.Bypass })
	res := p.call(t, again, "Write", map[string]any{"file_path": filepath.Join(p.dir, "x"), "content": "x"})
	has(t, res.Content.Text(), `There is no tool "Write"`, "The tools are: Read.")
	has(t, p.provider.Last().System, "You read.")
	closed(t, again)
	for name, change := range map[string]func(*host.Options){
		"as another agent":     func(o *host.Options) { o.Agent = "general-purpose" },
		"as one that was lost": func(o *host.Options) { o.Config.Definitions = nil },
	} {
		o := p.options(t)
		resume(t, s)(&o)
		change(&o)
		if _, err := host.Open(t.Context(), o); !errors.Is(err, host.ErrUse) {
			t.Errorf("%s: %v", name, err)
		}
	}
	closed(t, p.open(t, resume(t, s), func(o *host.Options) { o.Agent = "reader" }))
}

// Also if a rule is gone that kept a tool away.
func TestRuleGoneAfterResume(t *testing.T) {
	p := newPlace(t)
	s := p.once(t, rule(troupe.Deny, "Write"))
	again := p.open(t, resume(t, s), bypass)
	res := p.call(t, again, "Write", map[string]any{"file_path": filepath.Join(p.dir, "x"), "content": "x"})
	has(t, res.Content.Text(), `There is no tool "Write"`)
}

// Nor does it start agents that it could not start before, or beyond its turns.
func TestDefinitionAfterResume(t *testing.T) {
	p := newPlace(t)
	p.write(t, ".claude/agents/boss.md", "---\nname: boss\ndescription: d\ntools: Read, Agent(Explore)\nmaxTurns: 1\n---\nYou lead.\n")
	s := p.once(t, func(o *host.Options) { o.Agent = "boss" })
	again := p.open(t, resume(t, s))
	if diff := cmp.Diff([]string{"Explore"}, again.Agents()); diff != "" {
		t.Error(diff)
	}
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use("r", "Read", map[string]any{"file_path": "x"}))})
	if err := again.Send(t.Context(), "go on"); err != nil {
		t.Fatal(err)
	}
	if end, err := again.Run(t.Context()); !errors.Is(err, troupe.ErrMaxTurns) {
		t.Errorf("%+v, %v", end, err)
	}
}

func TestLatest(t *testing.T) {
	p := newPlace(t)
	if _, err := host.Latest(p.home, p.dir); !errors.Is(err, session.ErrNotFound) || !strings.Contains(err.Error(), "troupe -p") {
		t.Errorf("error %v", err)
	}
	p.once(t)
	newer := p.once(t)
	if info, err := host.Latest(p.home, p.dir); err != nil || info.ID != newer.ID {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := host.Latest(p.home, p.user); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another directory: %v", err)
	}
}
