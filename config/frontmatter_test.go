package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// only loads one definition, written as it would be in a file.
func only(t *testing.T, data string) (*Config, *world) {
	t.Helper()
	w := newWorld(t, "")
	w.src.Trusted = func(string) bool { return true }
	w.write(t, "home/repo/.claude/agents/a.md", data)
	return w.load(t), w
}

// S108: a colon or an example in a description makes no agent vanish, and one
// bad file disables no other.
func TestS108SloppyDescriptions(t *testing.T) {
	const example = "<example>\nContext: the user has written a function\nuser: \"is this right?\"\nassistant: \"I will look: at once\"\n</example>"
	for name, tc := range map[string]struct{ data, want string }{
		"colon":              {"---\nname: x\ndescription: Use this: a, b\nmodel: opus\n---\nP", "Use this: a, b"},
		"quoted":             {"---\nname: x\ndescription: \"Use this: a, b\"\nmodel: opus\n---\nP", "Use this: a, b"},
		"example":            {"---\nname: x\ndescription: Use it. Examples:\n" + example + "\nmodel: opus\n---\nP", "Use it. Examples:\n" + example},
		"example, no colon":  {"---\nname: x\ndescription: Use it.\n" + example + "\nmodel: opus\n---\nP", "Use it.\n" + example},
		"blank lines":        {"---\nname: x\ndescription: Use it:\n\n" + example + "\n\nmodel: opus\n---\nP", "Use it:\n\n" + example},
		"dialogue as fields": {"---\nname: x\ndescription: Use it.\nContext: foo\nuser: bar\nmodel: opus\n---\nP", "Use it.\nContext: foo\nuser: bar"},
		"key in example": {"---\nname: x\ndescription: Use: it\n<example>\nname: Bob\nmodel: none\n</example>\nmodel: opus\n---\nP",
			"Use: it\n<example>\nname: Bob\nmodel: none\n</example>"},
		"open example":            {"---\nname: x\ndescription: Use: it\n<example>\nuser: foo\nmodel: opus\n---\nP", "Use: it\n<example>\nuser: foo"},
		"folded":                  {"---\nname: x\ndescription: >\n  Use this\n  now: and then\nmodel: opus\n---\nP", "Use this now: and then"},
		"folded, other field bad": {"---\nname: x\ninitialPrompt: a: b\ndescription: >\n  Use this\n  now\nmodel: opus\n---\nP", "Use this now"},
		"anchor":                  {"---\nname: x\ndescription: Use it\nmodel: &m opus\n---\nP", "Use it"},
		"literal":                 {"---\nname: x\ndescription: |\n  Use this\n  now: and then\nmodel: opus\n---\nP", "Use this\nnow: and then"},
		"bad block":               {"---\nname: x\ndescription: |\n\tUse this:\n\t  now\nmodel: opus\n---\nP", "Use this:\n  now"},
		"indented":                {"---\nname: x\ndescription:\n  Use this\n  now\nmodel: opus\n---\nP", "Use this now"},
		"tab":                     {"---\nname:\tx\ndescription:\tUse this:\ta\nmodel: opus\n---\nP", "Use this:\ta"},
		"inner quotes":            {"---\nname: x\ndescription: \"Say \"hi\": now\\nthen\"\nmodel: opus\n---\nP", "Say \"hi\": now\nthen"},
		"starts quoted":           {"---\nname: x\ndescription: \"Hi\" is said: often\nmodel: opus\n---\nP", "\"Hi\" is said: often"},
		"reserved sign":           {"---\nname: x\ndescription: @all of it\nmodel: opus\n---\nP", "@all of it"},
		"bracket":                 {"---\nname: x\ndescription: [beta] does it\nmodel: opus\n---\nP", "[beta] does it"},
		"BOM and CRLF":            {"\ufeff---\r\nname: x\r\ndescription: Use this: a\r\nmodel: opus\r\n---\r\nP\r\n", "Use this: a"},
		"blank first line":        {"\n\n--- \nname: x\ndescription: Use: it\nmodel: opus\n---  \nP", "Use: it"},
		"all indented":            {"---\n  name: x\n  description: Use: it\n  model: opus\n---\nP", "Use: it"},
		"dots":                    {"---\nname: x\ndescription: Use it\nmodel: opus\n...\nP", "Use it"},
		"alias bomb": {"---\nname: x\nz: &z [a, a]\ny: [*z, *z]\ndescription: Use it\nmodel: opus\n---\nP",
			"Use it"},
		"deep":       {"---\nname: x\nz: " + strings.Repeat("- ", 7_000) + "\ndescription: Use it\nmodel: opus\n---\nP", "Use it"},
		"not closed": {"---\nname: x\ndescription: Use: it\n<example>\nuser: y\n</example>\n\nmodel: opus\n\nP", "Use: it\n<example>\nuser: y\n</example>"},
		"not closed, heading": {"---\nname: x\ndescription: Use it\nmodel: opus\n# Role\nname: is Bob\n\ntools: none\n",
			"Use it"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, w := only(t, tc.data)
			i := slices.IndexFunc(cfg.Definitions, func(d troupe.Definition) bool { return d.Name == "x" })
			if i < 0 {
				t.Fatalf("the agent has vanished: %q", w.problems(cfg))
			}
			d := cfg.Definitions[i]
			if d.Description != tc.want {
				t.Errorf("description %q, want %q", d.Description, tc.want)
			}
			if d.Model != "opus" {
				t.Errorf("model %q, want opus: the field after the description is lost", d.Model)
			}
			if strings.HasPrefix(name, "not closed") {
				wantOne(t, "problems", w.problems(cfg), "a.md:", "no line --- ends the fields")
			} else if d.Prompt != "P" {
				t.Errorf("prompt %q, want P", d.Prompt)
			}
		})
	}
}

func TestS108BadFilesCostThemselvesAlone(t *testing.T) {
	w := newWorld(t, `
-- home/repo/.claude/agents/good.md --
---
name: good
description: d
---
P
-- home/repo/.claude/agents/empty.md --
-- home/repo/.claude/agents/README.md --
# How to write agents
---
name: not this
-- home/repo/.claude/agents/rule.md --
---
title: a page with fields of its own
---
text
-- home/repo/.claude/agents/noname.md --
---
description: d
---
P
-- home/repo/.claude/agents/nodescription.md --
---
name: n1
model: opus
---
P
-- home/repo/.claude/agents/noprompt.md --
---
name: n2
description: d
---

-- home/repo/.claude/agents/emptydescription.md --
---
name: n3
description:
---
P
-- home/repo/.claude/agents/notes.txt --
---
name: text
description: d
---
P
-- home/repo/.claude/agents/folder.md/inner.MD --
---
name: inner
description: d
---
P
`)
	w.write(t, "home/repo/.claude/agents/junk.md", "\x00\x01\xff\xfe junk")
	w.write(t, "home/repo/.claude/agents/latin.md", "---\nname: l\ndescription: caf\xe9\n---\nP")
	w.write(t, "home/repo/.claude/agents/huge.md", "---\nname: h\ndescription: d\n---\n"+strings.Repeat("x", maxDefinition))
	w.write(t, "home/repo/.claude/agents/header.md", "---\nname: h2\ndescription: "+strings.Repeat("x", maxHeader)+"\n---\nP")
	w.link(t, "home/repo/.claude/agents/nowhere.md", w.path("absent"))
	w.link(t, "home/repo/.claude/agents/loop", w.path("home/repo/.claude"))
	cfg := w.load(t)
	for _, name := range []string{"good", "inner"} {
		find(t, cfg, name)
	}
	if len(cfg.Definitions) != 4+2 {
		t.Errorf("%d definitions, want the 4 built-in and 2", len(cfg.Definitions))
	}
	got := w.problems(cfg)
	for _, want := range []string{
		"noname.md:1: there is a description and no name", `nodescription.md:1: agent "n1" has no description`,
		`noprompt.md:5: agent "n2" has no prompt`, `emptydescription.md:3: agent "n3" has no description`,
		"latin.md:1: the file is not UTF-8 text", "huge.md: larger than 1024 KB", "header.md:1: the front matter has more",
		"nowhere.md: the link leads nowhere",
	} {
		wantOne(t, "problems", got, "home/repo/.claude/agents/"+want)
	}
	if len(got) != 8 {
		t.Errorf("%d problems, want 8:\n%s", len(got), strings.Join(got, "\n"))
	}
}

func TestUnquotedLists(t *testing.T) {
	for name, tools := range map[string]string{
		"commas":   "tools: Read, Agent(a,b) , Bash\n",
		"flow":     "tools: [Read, Agent(a, b), \"Bash\"]\n",
		"block":    "tools:\n  - Read\n  - Agent(a, b)\n  - 'Bash'\n",
		"tabs":     "tools:\n\t- Read\n\t- Agent(a, b)\n\t- 'Bash'\n",
		"no space": "tools:Read, Task(a, b), Bash\n",
		"open":     "tools: [Read, Task(a, b), Bash\n",
		"lines":    "tools: Read,\nAgent(a, b),\nBash\n",
	} {
		for _, description := range []string{"description: d\n", "description: Use this: d\n"} {
			cfg, w := only(t, "---\nname: x\n"+tools+description+"---\nP")
			if len(cfg.Problems) > 0 {
				t.Fatalf("%s: %q", name, w.problems(cfg))
			}
			if got := find(t, cfg, "x").Tools; !slices.Equal(got, []string{"Read", "Agent(a, b)", "Bash"}) {
				t.Errorf("%s: tools %q", name, got)
			}
		}
	}
}

func TestYAMLAliasesAreNotFollowed(t *testing.T) {
	cfg, _ := only(t, "---\nname: x\ncolor: &c Read\ntools: *c\ndescription: d\n---\nP")
	if got := find(t, cfg, "x").Tools; !slices.Equal(got, []string{"*c"}) {
		t.Errorf("tools %q, want the text as written", got)
	}
}

// The time of the YAML parser grows by the square of the depth.
func TestDeepYAMLIsNotParsed(t *testing.T) {
	for _, open := range []string{"- ", "[", "{a: ", "? "} {
		lines := []string{"a: " + strings.Repeat(open, maxNesting+1) + strings.Repeat("]", maxNesting+1)}
		if strings.HasPrefix(open, "-") {
			lines = []string{"a:", " " + strings.Repeat(open, maxNesting+1) + "b"}
		}
		if _, ok := strictFields(lines, 1); ok {
			t.Errorf("%d times %q is parsed", maxNesting+1, open)
		}
	}
}
