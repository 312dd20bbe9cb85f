package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

func find(t *testing.T, cfg *Config, name string) troupe.Definition {
	t.Helper()
	for _, d := range cfg.Definitions {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no definition %q; problems: %v", name, cfg.Problems)
	return troupe.Definition{}
}

func agent(name, prompt string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: d\n---\n%s\n", name, prompt)
}

func TestAllFields(t *testing.T) {
	cfg, w := only(t, `---
name: 研究员
description: looks into things
tools: Read, Task(x)
disallowedTools: [Bash]
model: Inherit
effort: HIGH
permissionMode: manual
maxTurns: 7
initialPrompt: begin
omitClaudeMd: true
color: red
background: true
isolation: worktree
memory: project
skills: [a]
mcpServers: {}
hooks:
  Stop: []
someday: new
---
You look.

Twice.
`)
	want := troupe.Definition{
		Name: "研究员", Description: "looks into things", Prompt: "You look.\n\nTwice.", Model: "inherit", Effort: "high",
		Tools: []string{"Read", "Agent(x)"}, Disallowed: []string{"Bash"}, Mode: "default", MaxTurns: 7, Background: true, First: "begin",
		OmitContextFiles: true, Source: w.path("home/repo/.claude/agents/a.md"),
	}
	if diff := cmp.Diff(want, find(t, cfg, "研究员")); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	wantNone(t, "problems", w.problems(cfg))
	if len(cfg.Unused) != 4 {
		t.Errorf("%d unused fields, want 4: %q", len(cfg.Unused), cfg.Unused)
	}
	for _, key := range []string{"isolation", "memory", "skills", "hooks"} {
		wantOne(t, "unused", cfg.Unused, "a.md: "+key+" is not used by this version")
	}
}

func TestWrongFieldsRefuseTheDefinition(t *testing.T) {
	for field, want := range map[string]string{
		"effort: huge":               `:4: effort "huge"`,
		"effort: 0":                  `:4: effort "0"`,
		"effort: -5":                 `:4: effort "-5"`,
		"maxTurns: 0":                `:4: maxTurns "0"`,
		"maxTurns: many":             `:4: maxTurns "many"`,
		"maxTurns: 1.5":              `:4: maxTurns "1.5"`,
		"permissionMode: plann":      `:4: permissionMode: unknown permission mode "plann"`,
		"model: [a]":                 ":4: model must be a text, not a list",
		"tools: [{a: b}]":            ":4: an entry of tools must be a text",
		"tools: {a: b}":              ":4: tools must be a text",
		"omitContextFiles: perhaps":  ":4: omitContextFiles must be true or false",
		"name: y":                    ":4: name is given twice",
		"description: [a, b]\nx: y":  ":4: description is given twice",
		"disallowedTools: {Bash: 1}": ":4: disallowedTools must be a text",
	} {
		cfg, w := only(t, "---\nname: x\ndescription: d\n"+field+"\n---\nP")
		if len(cfg.Definitions) != 4 {
			t.Errorf("%s: the definition loads", field)
		}
		wantOne(t, field, w.problems(cfg), "a.md"+want)
	}
	cfg, _ := only(t, "---\nname: x\ndescription: d\neffort: 2000\nmodel:\nmaxTurns:\n---\nP")
	if d := find(t, cfg, "x"); d.Effort != "2000" || d.Model != "" || d.MaxTurns != 0 {
		t.Errorf("effort %q, model %q, maxTurns %d", d.Effort, d.Model, d.MaxTurns)
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"工程师": true, "🙂": true, "a b": true, "Übersetzer": true, "été": true, "123": true,
		"-x": false, "a:b": false, "a/b": false, `a\b`: false, "..": false, ".": false, "a\u202eb": false, "a\u0085b": false,
		strings.Repeat("x", maxName): true, strings.Repeat("x", maxName+1): false,
	} {
		cfg, w := only(t, agent("'"+name+"'", "P"))
		if loaded := len(cfg.Definitions) == 5; loaded != ok || loaded == (len(cfg.Problems) > 0) {
			t.Errorf("name %q: loaded %v, want %v; problems %q", name, loaded, ok, w.problems(cfg))
		}
	}
}

// S109: unknown tool names are told, and never turn into all tools.
func TestS109UnknownTools(t *testing.T) {
	for _, tc := range []struct {
		fields   string
		tools    []string
		denied   []string
		problems []string
	}{
		{"tools: [Reed, Grpe]", []string{"Reed", "Grpe"}, nil, []string{`:4: agent "x": tools names "Reed"`, `:4: agent "x": tools names "Grpe"`}},
		{"tools: []", []string{}, nil, nil},
		{"tools:", []string{}, nil, nil},
		{"tools: ''", []string{}, nil, nil},
		{"tools: [Read, mcp__absent__x]", []string{"Read", "mcp__absent__x"}, nil, nil},
		{"disallowedTools: [Bsh]", nil, []string{"Bsh"}, []string{`:4: agent "x": disallowedTools names "Bsh"`}},
		{"tools: read", []string{"read"}, nil, []string{`"read", and there is no such tool (there is "Read")`}},
		{"tools: '*'", nil, nil, nil},
		{"tools: *", nil, nil, nil},
		{"tools: Task(a)", []string{"Agent(a)"}, nil, nil},
		{"tools: Bash(git *)", []string{"Bash(git *)"}, nil, []string{`a pattern of calls belongs into the rules`}},
		{"model: opus", nil, nil, nil},
	} {
		w := newWorld(t, "")
		w.src.Tools = []string{"Read", "Bash", "Agent", "Edit", "Write", "NotebookEdit"}
		w.write(t, "home/repo/.claude/agents/a.md", "---\nname: x\ndescription: d\n"+tc.fields+"\n---\nP")
		cfg := w.load(t)
		d := find(t, cfg, "x")
		if diff := cmp.Diff(tc.tools, d.Tools); diff != "" { // tells nil from empty
			t.Errorf("%s: tools (-want +got):\n%s", tc.fields, diff)
		}
		if diff := cmp.Diff(tc.denied, d.Disallowed); diff != "" {
			t.Errorf("%s: disallowed (-want +got):\n%s", tc.fields, diff)
		}
		if len(cfg.Problems) != len(tc.problems) {
			t.Errorf("%s: problems %q, want %q", tc.fields, w.problems(cfg), tc.problems)
		}
		for _, p := range tc.problems {
			wantOne(t, tc.fields, w.problems(cfg), "a.md", p)
		}
	}
}

// S110, as far as a definition goes: the model of a file is kept as it is
// written, also one that nobody knows, for the order is decided elsewhere.
func TestS110ModelStaysAsWritten(t *testing.T) {
	for written, want := range map[string]string{
		"opus": "opus", "INHERIT": "inherit", "openai/gpt-x": "openai/gpt-x", "sonnet[1m]": "sonnet[1m]", "''": "",
	} {
		cfg, _ := only(t, "---\nname: x\ndescription: d\nmodel: "+written+"\n---\nP")
		if got := find(t, cfg, "x").Model; got != want {
			t.Errorf("model %s is read as %q", written, got)
		}
	}
}

func TestSourcesByPriority(t *testing.T) {
	w := newWorld(t, "")
	w.src.Dir = w.path("home/repo/sub")
	w.src.AddDirs = []string{"../../more"}
	places := []string{
		"home/.claude/agents/", "home/.troupe/agents/", "home/repo/.claude/agents/", "home/repo/.troupe/agents/deep/er/",
		"home/repo/sub/.claude/agents/", "home/repo/sub/.troupe/agents/", "home/more/.claude/agents/", "home/more/.troupe/agents/",
	}
	for i, place := range places {
		for j := range places[:i+1] {
			// Agent aj is defined in the places up to j from the end, so each place wins one.
			w.write(t, fmt.Sprintf("%sa%d.md", place, j), agent(fmt.Sprintf("a%d", len(places)-1-i+j), places[i]))
		}
	}
	w.write(t, "home/other/.claude/agents/x.md", agent("elsewhere", "P"))
	w.src.Agents = `{"a7": {"description": "d", "prompt": "flag"}, "EXPLORE": {"description": "d", "prompt": "flag"}}`
	cfg := w.load(t)
	for i, place := range places {
		name := fmt.Sprintf("a%d", i)
		want := lastWith(places, i)
		if name == "a7" {
			want = "flag"
		}
		if got := find(t, cfg, name).Prompt; got != want {
			t.Errorf("%s is from %q, want %q (%s)", name, got, want, place)
		}
	}
	if got := find(t, cfg, "EXPLORE").Source; got != CommandLine {
		t.Errorf("source of EXPLORE is %q", got)
	}
	if len(cfg.Definitions) != 4+len(places) {
		t.Errorf("%d definitions: a name is there twice, or one came from elsewhere", len(cfg.Definitions))
	}
	if got := find(t, cfg, "Plan").Source; got != BuiltIn {
		t.Errorf("source of Plan is %q", got)
	}
	wantNone(t, "problems", w.problems(cfg))
}

// lastWith returns the strongest place that defines agent i: place k defines
// the agents from len-1-k up.
func lastWith(places []string, i int) string {
	for k := len(places) - 1; k >= 0; k-- {
		if i >= len(places)-1-k && i <= len(places)-1 {
			return places[k]
		}
	}
	return ""
}

func TestDuplicatesInOneTree(t *testing.T) {
	w := newWorld(t, "")
	w.write(t, "home/repo/.claude/agents/a.md", agent("Été", "first"))
	w.write(t, "home/repo/.claude/agents/b/c.md", agent("ÉTÉ", "second"))
	cfg := w.load(t)
	if got := find(t, cfg, "Été").Prompt; got != "first" {
		t.Errorf("prompt %q", got)
	}
	wantOne(t, "problems", w.problems(cfg), "b/c.md:2:", `"ÉTÉ" is already defined in home/repo/.claude/agents/a.md`)
}

func TestLinkedDefinitions(t *testing.T) {
	w := newWorld(t, "")
	w.write(t, "home/shared/one.md", agent("one", "P"))
	w.write(t, "home/single/two.md", agent("two", "P"))
	w.link(t, "home/repo/.claude/agents", w.path("home/shared"))
	w.link(t, "home/repo/.troupe/agents/2.md", w.path("home/single/two.md"))
	cfg := w.load(t)
	find(t, cfg, "one")
	find(t, cfg, "two")
	wantNone(t, "problems", w.problems(cfg))
}

func TestHomeAgentsAreReadOnce(t *testing.T) {
	w := newWorld(t, "")
	w.src.Dir = w.home
	w.write(t, "home/.claude/agents/a.md", "---\nname: x\ndescription: d\npermissionMode: acceptEdits\nskills: a\n---\nP")
	cfg := w.load(t)
	if got := find(t, cfg, "x").Mode; got != "acceptEdits" || len(cfg.Unused) != 1 {
		t.Errorf("mode %q, unused %q", got, cfg.Unused)
	}
}

func TestUntrustedDefinitionsWidenNothing(t *testing.T) {
	w := newWorld(t, "")
	w.write(t, "home/repo/.claude/agents/a.md", "---\nname: x\ndescription: d\npermissionMode: bypassPermissions\nmodel: openai/dear\n---\nP")
	w.write(t, "home/repo/.claude/agents/b.md", "---\nname: y\ndescription: d\npermissionMode: plan\n---\nP")
	cfg := w.load(t)
	if x, y := find(t, cfg, "x").Mode, find(t, cfg, "y").Mode; x != "" || y != "plan" {
		t.Errorf("modes %q and %q, want none and plan", x, y)
	}
	wantOne(t, "warnings", cfg.Warnings, "troupe trust", "a.md: permissionMode bypassPermissions", "a.md: model openai/dear")
	for _, d := range cfg.Definitions {
		if d.Name == "x" && d.Model != "" {
			t.Errorf("a stranger's definition chooses the model %s", d.Model)
		}
	}
	w.trust(t)
	if got := find(t, w.load(t), "x").Mode; got != "bypassPermissions" {
		t.Errorf("mode %q in a trusted folder", got)
	}
}

func TestTooManyFiles(t *testing.T) {
	w := newWorld(t, "")
	w.write(t, "home/repo/.claude/agents/0.md", agent("x", "P"))
	for i := range maxEntries {
		if err := os.WriteFile(filepath.Join(w.repo, ".claude", "agents", fmt.Sprintf("f%d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := w.load(t)
	find(t, cfg, "x")
	wantOne(t, "problems", w.problems(cfg), ".claude/agents: more than")
}

func TestAgentsFlag(t *testing.T) {
	w := newWorld(t, "")
	w.src.Agents = `{"x": {"description": "d", "prompt": "p", "tools": ["Read"], "maxTurns": 3, "effort": "low", "name": "y", "memory": "user"}}`
	cfg := w.load(t)
	want := troupe.Definition{Name: "x", Description: "d", Prompt: "p", Tools: []string{"Read"}, MaxTurns: 3, Effort: "low", Source: CommandLine}
	if diff := cmp.Diff(want, find(t, cfg, "x")); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	wantOne(t, "unused", cfg.Unused, "--agents: memory")
	for value, want := range map[string]string{
		`[]`:                          "--agents:1:1: the value must be an object",
		`{"x": `:                      "--agents:1:",
		`{"x": "p"}`:                  `agent "x" must be an object`,
		`{"x": {"prompt": "p"}}`:      `agent "x" has no description`,
		`{"x": {"description": "d"}}`: `agent "x" has no prompt`,
		`{"-x": {"description": "d", "prompt": "p"}}`:                                    "starts with a dash",
		`{"x": {"description": "d", "prompt": "p", "maxTurns": 0}}`:                      "maxTurns",
		`{"x": {"description":"d","prompt":"p"}, "X": {"description":"d","prompt":"p"}}`: "given twice",
	} {
		w.src.Agents = value
		_, err := Load(w.src)
		if !errors.Is(err, ErrFlag) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("--agents %s: %v, want ErrFlag with %q", value, err, want)
		}
	}
}

func TestBuiltInDefinitions(t *testing.T) {
	w := newWorld(t, "")
	w.src.Tools = []string{"Agent", "Edit", "Write", "NotebookEdit"}
	cfg := w.load(t)
	wantNone(t, "problems", w.problems(cfg))
	changing := []string{"Agent", "Edit", "Write", "NotebookEdit"}
	for name, want := range map[string]struct {
		model    string
		readOnly bool
		omit     bool
		tools    []string
	}{
		"general-purpose": {tools: []string{"*", "Agent"}}, "Explore": {"haiku", true, true, nil}, "Plan": {"", true, true, nil},
		"verification": {"", true, false, nil},
	} {
		d := find(t, cfg, name)
		if d.Source != BuiltIn || !slices.Equal(d.Tools, want.tools) || d.Model != want.model || d.OmitContextFiles != want.omit || d.Mode != "" {
			t.Errorf("%s: %+v", name, d)
		}
		if got := slices.Equal(d.Disallowed, changing); got != want.readOnly {
			t.Errorf("%s: disallowed %q", name, d.Disallowed)
		}
		if len(d.Prompt) < 500 || len(d.Prompt) > 4000 || len(d.Description) < 100 {
			t.Errorf("%s: prompt of %d bytes, description of %d", name, len(d.Prompt), len(d.Description))
		}
	}
}
