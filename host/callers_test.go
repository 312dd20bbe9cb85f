package host_test

import (
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
// below it is told that is to make them; a number comes after both. Who is told
// resting has nothing to do yet.
const (
	task    = "have it done"
	acting  = "act as number "
	resting = "say nothing yet"
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
		"background sub-agent":                   by(fresh, "+"),
		"sub-agent of a background one":          by(fresh, "+", ""),
		"resumed sub-agent":                      by(fresh, "~"),
		"sub-agent of a resumed one":             by(fresh, "~", ""),
		"fork":                                   by(fresh, "fork"),
		"resumed fork":                           by(fresh, "~fork"),
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
// chain of sub-agents of these types. A + before a type has the agent work in the
// background, a ~ has it end before it gets its task.
func by(open func(*testing.T, setting) *host.Session, types ...string) troupetest.Caller[setting] {
	return func(t *testing.T, set setting, calls ...troupe.ToolUse) map[string]troupetest.Made {
		t.Helper()
		set.p.write(t, ".claude/agents/wide.md", "---\nname: wide\ndescription: may all\npermissionMode: bypassPermissions\n---\nYou act.\n")
		var starts []stage
		for i, kind := range types {
			prompt := fmt.Sprintf("%s %d", task, i+1)
			if i == len(types)-1 {
				prompt = acting + "1"
			}
			starts = append(starts, starting(i, kind, prompt))
		}
		return set.play(t, open(t, set), starts, calls)
	}
}

// sideBySide has two sub-agents share the calls, at the same time.
func sideBySide(t *testing.T, set setting, calls ...troupe.ToolUse) map[string]troupetest.Made {
	t.Helper()
	both := starting(1, "", acting+"1")
	both[0] = append(both[0], starting(2, "", acting+"2")[0]...)
	return set.play(t, fresh(t, set), []stage{both}, calls)
}

// A stage is how one agent has others begin: the calls of each of its replies.
type stage [][]troupe.ToolUse

// starting is the stage, with number n, that starts an agent of a type.
func starting(n int, kind, prompt string) stage {
	kind, background := strings.CutPrefix(kind, "+")
	kind, again := strings.CutPrefix(kind, "~")
	in := startInput(kind)
	in["prompt"], in["run_in_background"] = prompt, background
	start := fmt.Sprintf("start%d", n)
	if !again {
		return stage{{use(start, "Agent", in)}}
	}
	in["prompt"], in["name"] = resting, "old"
	st := stage{{use(start, "Agent", in)}}
	if kind == delegate.Fork { // it works in the background, and is to end first
		st = append(st, []troupe.ToolUse{use(start+"wait", "TaskOutput", map[string]any{"task_id": "old"})})
	}
	return append(st, []troupe.ToolUse{use(start+"again", "SendMessage", map[string]any{"to": "old", "message": prompt})})
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
func (s setting) play(t *testing.T, opened *host.Session, starts []stage, calls []troupe.ToolUse) map[string]troupetest.Made {
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
		level, actor, done := position(r)
		switch {
		case isSummary(r):
			summary := "SUMMARY"
			if actor != "" && level == acts { // the summary says what matters
				summary += ": " + acting + actor
			}
			return troupetest.Reply{Message: troupetest.Say(summary)}
		case level == idle, len(starts) > 0 && level >= 0 && done >= len(starts[level]):
			return troupetest.Reply{Message: troupetest.Say("so it is")}
		case len(starts) > 0 && level >= 0:
			return troupetest.Reply{Message: troupetest.Use(starts[level][done]...)}
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

// What position says of the level of an agent that has nobody begin.
const (
	acts = -1
	idle = -2
)

// position tells of the agent that makes a request how deep it is if it is to have
// the task done; the number of one that acts; and how many replies it has made by
// which others begin. What it was told last counts: a fork has heard what its parent
// was told.
func position(r *troupetest.Request) (level int, actor string, done int) {
	level = acts
	for _, m := range r.Messages {
		starts := false
		for _, b := range m.Content {
			switch b := b.(type) {
			case troupe.Text:
				if m.Role == troupe.User && orders(string(b), &level, &actor) {
					done = 0
				}
			case troupe.ToolUse:
				starts = starts || strings.HasPrefix(b.ID, "start")
			}
		}
		if starts {
			done++
		}
	}
	return level, actor, done
}

// orders takes in what an agent is told, and reports whether it is told anything.
func orders(text string, level *int, actor *string) bool {
	last, at := "", -1
	for _, order := range []string{task, acting, resting} {
		if i := strings.LastIndex(text, order); i > at {
			last, at = order, i
		}
	}
	if at < 0 {
		return false
	}
	switch rest := text[at+len(last):]; last {
	case task:
		*level = 0
		_, _ = fmt.Sscan(rest, level) // the lead has none
	case acting:
		*level, *actor = acts, rest[:1]
	case resting:
		*level = idle
	}
	return true
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
