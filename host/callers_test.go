package host_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// A setting is where a caller runs, what is set there and what is said there. A
// caller does all of it, so that a test says it once for all of them.
type setting struct {
	p       *place
	change  []func(*host.Options)
	last    []func(*host.Options)           // for the session that acts alone, not for one that it goes on from
	refused func(error)                     // why that session cannot be opened; nil fails the test
	run     func(*testing.T, *host.Session) // the turn of the calls; nil is one that is let end
	// says is what the agent that acts answers to its requests, which turn counts
	// from 0; nil are the calls, one after another. Where several act each has its own.
	says func(r *troupetest.Request, turn int) troupetest.Reply
}

// task is what the lead is told in the turn of the calls, and acting what an agent
// below it is told that is to make them; a number comes after both.
const (
	task   = "have it done"
	acting = "act as number "
)

// callers starts an agent of a session in each way there is.
func callers() troupetest.Callers[setting] {
	reopen := func(fork bool) func(*testing.T, setting) *host.Session {
		return func(t *testing.T, s setting) *host.Session {
			old := s.p.once(t, s.change...)
			return s.open(t, resume(t, old), func(o *host.Options) { o.Fork = fork })
		}
	}
	defined := func(t *testing.T, s setting) *host.Session {
		s.p.write(t, ".claude/agents/boss.md", "---\nname: boss\ndescription: leads\n---\nYou lead.\n")
		return s.open(t, func(o *host.Options) { o.Agent = "boss" })
	}
	return troupetest.Callers[setting]{
		"lead":                                   by(fresh),
		"lead with a definition":                 by(defined),
		"resumed lead":                           by(reopen(false)),
		"fork of a session":                      by(reopen(true)),
		"sub-agent":                              by(fresh, ""),
		"sub-agent with a wider mode of its own": by(fresh, "wide"),
		"sub-agents side by side":                sideBySide,
		"nested sub-agent":                       by(fresh, "", "", ""),
		"sub-agent of a resumed lead":            by(reopen(false), ""),
		"sub-agent of a fork":                    by(reopen(true), ""),
		"sub-agent of a lead with a definition":  by(defined, ""),
		"background sub-agent":                   staged(begin("", true)),
		"sub-agent of a background one":          staged(begin("", true), begin("", false)),
		"resumed sub-agent":                      staged(again("")),
		"sub-agent of a resumed one":             staged(again(""), begin("", false)),
		"fork":                                   staged(begin("fork", false)),
		"resumed fork":                           staged(again("fork")),
	}
}

func fresh(t *testing.T, s setting) *host.Session { return s.open(t) }

// open opens the session that acts. It returns nil if that is refused and the
// setting has somebody who is to know.
func (s setting) open(t *testing.T, first ...func(*host.Options)) *host.Session {
	t.Helper()
	o := s.p.options(t)
	for _, f := range slices.Concat(first, s.change, s.last) {
		f(&o)
	}
	opened, err := host.Open(t.Context(), o)
	switch {
	case err == nil:
		t.Cleanup(func() { _ = opened.Close() })
		return opened
	case s.refused == nil:
		t.Fatal(err)
	}
	s.refused(err)
	return nil
}

// by opens a session and has an agent make the calls: its lead, or the last in a
// chain of sub-agents of these types.
func by(open func(*testing.T, setting) *host.Session, types ...string) troupetest.Caller[setting] {
	return func(t *testing.T, set setting, calls ...troupe.ToolUse) map[string]troupetest.Made {
		t.Helper()
		set.p.write(t, ".claude/agents/wide.md", "---\nname: wide\ndescription: may all\npermissionMode: bypassPermissions\n---\nYou act.\n")
		var starts [][]troupe.ToolUse
		for i, kind := range types {
			prompt := fmt.Sprintf("%s %d", task, i+1)
			if i == len(types)-1 {
				prompt = acting + "1"
			}
			starts = append(starts, []troupe.ToolUse{starting(i, kind, prompt)})
		}
		return set.play(t, open(t, set), starts, calls)
	}
}

// sideBySide has two sub-agents share the calls, at the same time.
func sideBySide(t *testing.T, set setting, calls ...troupe.ToolUse) map[string]troupetest.Made {
	t.Helper()
	return set.play(t, fresh(t, set), [][]troupe.ToolUse{{starting(1, "", acting+"1"), starting(2, "", acting+"2")}}, calls)
}

// starting is the call with number n that starts an agent.
func starting(n int, kind, prompt string) troupe.ToolUse {
	in := startInput(kind)
	in["prompt"] = prompt
	return use(fmt.Sprintf("start%d", n), "Agent", in)
}

func startInput(kind string) map[string]any {
	in := map[string]any{"description": "act", "prompt": "act"}
	if kind != "" {
		in["subagent_type"] = kind
	}
	return in
}

// play gives the lead its prompt and returns what became of all calls. starts are
// the calls by which each agent between it and those that act starts the next.
func (s setting) play(t *testing.T, opened *host.Session, starts [][]troupe.ToolUse, calls []troupe.ToolUse) map[string]troupetest.Made {
	t.Helper()
	if opened == nil {
		return nil
	}
	says := s.says
	if says == nil {
		says = inTurn(calls)
	}
	var mu sync.Mutex
	turns := map[string]int{}
	s.p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		level, actor, heard := position(r)
		switch {
		case isSummary(r):
			return troupetest.Reply{Message: troupetest.Say("SUMMARY")}
		case len(starts) > 0 && heard:
			return troupetest.Reply{Message: troupetest.Say("so it is")}
		case len(starts) > 0 && level >= 0:
			return troupetest.Reply{Message: troupetest.Use(starts[level]...)}
		}
		mu.Lock()
		turn := turns[actor]
		turns[actor]++
		mu.Unlock()
		return says(r, turn)
	})
	return asked(t, s, opened)
}

// inTurn makes the calls one after another, whoever comes, and then has no more to
// say.
func inTurn(calls []troupe.ToolUse) func(*troupetest.Request, int) troupetest.Reply {
	var mu sync.Mutex
	return func(*troupetest.Request, int) troupetest.Reply {
		mu.Lock()
		defer mu.Unlock()
		if len(calls) == 0 {
			return troupetest.Reply{}
		}
		next := calls[0]
		calls = calls[1:]
		return troupetest.Reply{Message: troupetest.Use(next)}
	}
}

// position tells of the agent that makes a request how deep it is if it is to have
// the task done, or -1; the number of one that acts; and whether it has heard of
// those it started.
func position(r *troupetest.Request) (level int, actor string, heard bool) {
	level = -1
	for _, m := range r.Messages {
		for _, b := range m.Content {
			switch b := b.(type) {
			case troupe.Text:
				if _, number, ok := strings.Cut(string(b), task); ok && m.Role == troupe.User {
					level, heard = 0, false
					_, _ = fmt.Sscan(number, &level) // the lead has none
				}
				if _, number, ok := strings.Cut(string(b), acting); ok && m.Role == troupe.User {
					actor = number[:1]
				}
			case troupe.ToolResult:
				heard = heard || strings.HasPrefix(b.ID, "start")
			}
		}
	}
	return level, actor, heard
}

// A stage is how one agent has the next begin: the calls that it makes before its
// part is done. The next knows by its orders how deep it is.
type stage []troupe.ToolUse

func begin(kind string, background bool) stage {
	in := startInput(kind)
	if background {
		in["run_in_background"] = true
	}
	return stage{use("begin", "Agent", in)}
}

// again starts an agent, lets it end, and has it go on.
func again(kind string) stage {
	in := startInput(kind)
	in["name"] = "old"
	return stage{use("begin", "Agent", in), use("again", "SendMessage", map[string]any{"to": "old"})}
}

// staged opens a session in which agents begin one another as the stages say. What
// runs in the background asks the model while others do, so each request is answered
// by what it says, and not in the order in which they come.
func staged(stages ...stage) troupetest.Caller[setting] {
	return func(t *testing.T, set setting, calls ...troupe.ToolUse) map[string]troupetest.Made {
		t.Helper()
		s := set.p.open(t, set.change...)
		play := make([]stage, 0, len(stages)+1)
		var turns atomic.Int64 // of the agent that acts
		for depth, st := range stages {
			var uses stage
			for i, u := range st {
				order := "prompt"
				if u.Name == "SendMessage" {
					order = "message"
				}
				word := fmt.Sprintf("order-%d", depth+1)
				if i < len(st)-1 {
					word = "say nothing yet"
				}
				uses = append(uses, withField(t, u, fmt.Sprintf("%s%d", u.ID, depth), order, word))
			}
			play = append(play, uses)
		}
		play = append(play, calls)
		set.p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
			depth, said := 0, 0
			for _, m := range r.Messages {
				if m.Role == troupe.Assistant {
					said++
				}
				for d := range play {
					if m.Role == troupe.User && strings.Contains(onlyText(m), fmt.Sprintf("order-%d", d)) {
						depth, said = d, 0
					}
				}
			}
			switch last := r.Messages[len(r.Messages)-1]; {
			case strings.Contains(onlyText(last), "say nothing yet"):
				return troupetest.Reply{Message: troupetest.Say("so be it")}
			case depth == len(stages) && set.says != nil:
				return set.says(r, int(turns.Add(1)-1))
			case said >= len(play[depth]):
				return troupetest.Reply{Message: troupetest.Say("so be it")}
			}
			return troupetest.Reply{Message: troupetest.Use(play[depth][said])}
		})
		return asked(t, set, s)
	}
}

// onlyText is the text of a message without that of results.
func onlyText(m troupe.Message) (text string) {
	for _, b := range m.Content {
		if t, ok := b.(troupe.Text); ok {
			text += string(t)
		}
	}
	return text
}

func withField(t *testing.T, u troupe.ToolUse, id, name, value string) troupe.ToolUse {
	t.Helper()
	var in map[string]any
	if err := json.Unmarshal(u.Input, &in); err != nil {
		t.Fatal(err)
	}
	in[name] = value
	return use(id, u.Name, in)
}

// asked gives the lead its prompt and returns what became of all calls.
func asked(t *testing.T, set setting, s *host.Session) map[string]troupetest.Made {
	t.Helper()
	if set.run == nil {
		set.run = func(t *testing.T, s *host.Session) { ask(t, s, task) }
	}
	set.run(t, s)
	made := map[string]troupetest.Made{}
	for _, log := range logs(t, s) {
		made := func(use string, change func(*troupetest.Made)) {
			m := made[use]
			change(&m)
			made[use] = m
		}
		agent, definition := strings.TrimSuffix(filepath.Base(log), ".jsonl"), ""
		state := new(troupe.State)
		for r, err := range session.Read(log) {
			if err != nil {
				t.Fatal(err)
			}
			state.Apply(r.Event)
			switch ev := r.Event.(type) {
			case troupe.Started:
				definition = ev.Definition
			case troupe.Decided:
				made(ev.Use, func(m *troupetest.Made) {
					m.Agent, m.Definition, m.Mode, m.Verdict = agent, definition, state.Mode, ev.Verdict
				})
			case troupe.ToolEnded:
				made(ev.Use, func(m *troupetest.Made) { m.Agent, m.Definition, m.Result = agent, definition, ev.Result })
			}
		}
	}
	return made
}

// with is a setting of a new place in which files are, and what is set.
func with(t *testing.T, change ...func(*host.Options)) setting {
	t.Helper()
	p := newPlace(t)
	for name, text := range map[string]string{"main.go": "package main\n", ".env": "SECRET=canary\n", ".env.example": "SECRET=\n", "a/b.txt": "b\n"} {
		p.write(t, name, text)
	}
	for link, to := range map[string]string{"link.txt": ".env", "d": "."} {
		if err := os.Symlink(to, filepath.Join(p.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return setting{p: p, change: change}
}

func inMode(m permission.Mode) func(*host.Options) { return func(o *host.Options) { o.Mode = m } }

func bash(id, command string) troupe.ToolUse {
	return use(id, "Bash", map[string]any{"command": command})
}

// made is whether there is a file in the directory of the session.
func (p *place) made(name string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, name))
	return err == nil
}

// The input of the Agent tool starts agents in no way that is not in the table. Who
// adds a field by which an agent runs otherwise adds a way and then the field here.
func TestWaysOfTheAgentTool(t *testing.T) {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[delegate.Input]()) {
		fields = append(fields, f.Name)
	}
	if diff := cmp.Diff([]string{"Description", "Prompt", "Type", "Model", "Effort", "Name", "Background"}, fields); diff != "" {
		t.Error(diff)
	}
}

// reports are the numbers of the failures seen elsewhere that could befall each
// caller by itself. A test of each runs over the whole table, and is named by it.
var reports = []int{44, 46, 48, 49, 76, 77, 78, 79, 80, 81, 82, 83, 87, 88, 89, 90, 91, 92, 93, 96, 97, 99, 100, 103, 104, 124, 125, 126, 127, 128, 129, 130}

func TestReportsHaveTestsOverTheTable(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	over := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || !overTheTable(f) {
				continue
			}
			for _, number := range regexp.MustCompile(`S\d+`).FindAllString(f.Name.Name, -1) {
				over[number] = true
			}
		}
	}
	for _, n := range reports {
		if !over[fmt.Sprintf("S%d", n)] {
			t.Errorf("no test named S%d calls callers().Each", n)
		}
	}
}

// overTheTable reports whether a function calls callers().Each.
func overTheTable(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if each, ok := n.(*ast.SelectorExpr); ok && each.Sel.Name == "Each" {
			if table, ok := each.X.(*ast.CallExpr); ok {
				name, ok := table.Fun.(*ast.Ident)
				found = found || ok && name.Name == "callers"
			}
		}
		return true
	})
	return found
}

// Each caller makes its calls as the agent that it is for.
func TestCallersAreWhatTheySay(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t)
		got := call(t, set, use("one1", "Glob", map[string]any{"pattern": "*.go"}), use("two2", "Glob", map[string]any{"pattern": "*.go"}))
		for _, id := range []string{"one1", "two2"} {
			m := got[id]
			if lead := m.Agent == session.Lead; m.Verdict.Effect != troupe.Allow || lead != way.Lead() || m.Mode != "default" {
				t.Errorf("%s: %+v", id, m)
			}
		}
	})
}
