package permission

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

func TestParseRuleErrors(t *testing.T) {
	full := Origin{Source: "settings.json", Root: "/project", Home: "/home/user"}
	for _, c := range []struct {
		effect troupe.Effect
		text   string
		from   Origin
		says   string
	}{
		{troupe.Allow, "", full, "name of a tool"},
		{troupe.Allow, "(ls)", full, "name of a tool"},
		{troupe.Allow, "Bash ls", full, "name of a tool"},
		{troupe.Allow, "Bash(ls", full, "closing parenthesis"},
		{troupe.Allow, "Bash(ls) x", full, "closing parenthesis"},
		{troupe.Allow, "Bash()", full, "nothing in the parentheses"},
		{troupe.Allow, "Bash(a\nb)", full, "one line"},
		{troupe.Allow, "*", full, "must name its tool"},
		{troupe.Allow, "Ba*", full, "must name its tool"},
		{troupe.Deny, "mcp__*(x)", full, "full name"},
		{troupe.Allow, "Write(x)", full, "Edit(x)"},
		{troupe.Allow, "Grep(x)", full, "Read(x)"},
		{troupe.Allow, "mcp__a__b(x:y)", full, "takes no pattern"},
		{troupe.Allow, "WebFetch(example.com)", full, "domain:HOST"},
		{troupe.Allow, "Read(!x)", full, "negated"},
		{troupe.Allow, "Read(../x)", full, "leaves the directory"},
		{troupe.Allow, "Read([x)", full, "not a valid pattern"},
		{troupe.Allow, "Read(/x)", Origin{Source: "--allowed-tools"}, "//"},
		{troupe.Allow, "Read(~/x)", Origin{Source: "--allowed-tools"}, "home"},
		{"maybe", "Bash", full, "effect"},
	} {
		_, err := ParseRule(c.effect, c.text, c.from)
		if err == nil || !errors.Is(err, ErrRule) {
			t.Errorf("%s %q: %v", c.effect, c.text, err)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, c.says) || !strings.Contains(msg, c.from.Source) || strings.Contains(msg, "\n") {
			t.Errorf("%s %q: %v does not tell of %q and %q", c.effect, c.text, err, c.says, c.from.Source)
		}
	}
}

// A rule that forbids never loses its force by the way it is written: it is read
// as one that forbids at least as much.
func TestWhatForbidsIsReadWidely(t *testing.T) {
	from := Origin{Source: "settings.json", Root: "/project", Home: "/home/user"}
	place := troupe.Place{Dir: "/project"}
	for _, effect := range []troupe.Effect{troupe.Deny, troupe.Ask} {
		for _, c := range []struct {
			rule, tool, field, value string
			hit                      bool
		}{
			{"Write(a.txt)", "Edit", "file_path", "a.txt", true}, {"Write(a.txt)", "Edit", "file_path", "b.txt", false},
			{"NotebookEdit(a.txt)", "Write", "file_path", "a.txt", true}, {"Grep(*.env)", "Read", "file_path", "x.env", true},
			{"Glob(*.env)", "Read", "file_path", "x.txt", false}, {"Skill(x)", "Skill", "skill", "y", true}, {"Cd(/x)", "Cd", "path", "/y", true},
			{"Skill(x)", "TodoWrite", "todos", "y", false},
		} {
			r, err := ParseRule(effect, c.rule, from)
			if err != nil {
				t.Errorf("%s %s: %v", effect, c.rule, err)
				continue
			}
			v := Policy{Mode: Bypass, Rules: []Rule{r}}.Decide(call(place, c.tool, c.field, c.value))
			if (v.Effect == effect) != c.hit {
				t.Errorf("%s %s: %s %s is %+v", effect, c.rule, c.tool, c.value, v)
			}
		}
	}
}

func TestRuleKeepsItsSource(t *testing.T) {
	from := Origin{Source: "settings.json", Root: "/project", Home: "/home/user"}
	r, err := ParseRule(troupe.Deny, " Task(Explore) ", from)
	if err != nil {
		t.Fatal(err)
	}
	if r.Tool() != "Agent" || r.Spec() != "Explore" || r.Effect() != troupe.Deny || r.Origin() != from || r.String() != "Task(Explore)" {
		t.Errorf("%+v", r)
	}
	v := Policy{Rules: []Rule{r}}.Decide(call(troupe.Place{Dir: "/x"}, "Agent", "subagent_type", "Explore"))
	if v.By != "rule" || !strings.Contains(v.Reason, "Task(Explore)") || !strings.Contains(v.Reason, "settings.json") {
		t.Errorf("%+v", v)
	}
}

func TestCommandPattern(t *testing.T) {
	for _, c := range []struct {
		rule, command string
		covers        bool
	}{
		{"ls *", "ls", true}, {"ls *", "ls -la", true}, {"ls *", "lsof", false}, {"ls*", "lsof", true}, {"ls:*", "ls", true}, {"ls:*", "ls -la", true}, {"ls:*", "lsof", false},
		{"git diff:*", "git diff HEAD", true}, {"git diff:*", "git difftool", false}, {"git * main", "git checkout main", true}, {"git * main", "git checkout mainx", false},
		{"* --version", "node --version", true}, {"npm run test", "npm run test", true}, {"npm run test", "npm run test x", false}, {"a:*b", "a:xb", true}, {"a:*b", "ab", false}, {"ls", "ls -l", false},
		{"make", "make install", false}, {"*", "anything at all", true},
	} {
		p := policy(t, DontAsk, "allow Bash("+c.rule+")")
		p.Rules[0].effect = troupe.Deny // shows the pattern alone
		v := p.Decide(shell(troupe.Place{Dir: "/x"}, c.command))
		if (v.By == "rule") != c.covers {
			t.Errorf("Bash(%s) on %q: %+v", c.rule, c.command, v)
		}
	}
}

func TestToolNames(t *testing.T) {
	for _, c := range []struct {
		rule, tool string
		covers     bool
	}{
		{"Bash", "Bash", true}, {"Bash", "BashOutput", false}, {"Bash(*)", "Bash", true}, {"mcp__db", "mcp__db__drop", true}, {"mcp__db", "mcp__db2__drop", false}, {"mcp__db__*", "mcp__db__drop", true},
		{"mcp__*", "mcp__x__y", true}, {"mcp__*", "Bash", false}, {"mcp__db__drop", "mcp__db__drop", true}, {"mcp__db__drop", "mcp__db__drop2", false}, {"*", "Read", true}, {"Task", "Agent", true}, {"Agent", "Task", true},
		{"Notebook*", "NotebookEdit", true}, {"bash", "Bash", false},
	} {
		v := policy(t, Bypass, "deny "+c.rule).Decide(call(workspace(t), c.tool, "command", "ls", "file_path", "x", "notebook_path", "x"))
		if (v.Effect == troupe.Deny && v.By == "rule") != c.covers {
			t.Errorf("%s on %s: %+v", c.rule, c.tool, v)
		}
	}
	if v := policy(t, DontAsk, "allow mcp__db__*").Decide(call(workspace(t), "mcp__db__list")); v.Effect != troupe.Allow {
		t.Errorf("allow mcp__db__*: %+v", v)
	}
	if v := policy(t, Plan, "allow mcp__db__*").Decide(call(workspace(t), "mcp__db__list")); v.Effect != troupe.Deny {
		t.Errorf("a tool that may change things runs in plan mode: %+v", v)
	}
}

func TestParameterRules(t *testing.T) {
	place := workspace(t)
	for _, c := range []struct {
		rule   string
		call   *troupe.Call
		covers bool
	}{
		{"Agent(model:opus)", call(place, "Agent", "model", "opus"), true},
		{"Agent(model:opus)", call(place, "Agent", "model", "haiku"), false},
		{"Agent(model:op*)", call(place, "Agent", "model", "opus"), true},
		{"Agent(model:*)", call(place, "Agent"), false},
		{"Agent(model:opus)", call(place, "Agent", "MODEL", "opus"), true},
		{"mcp__db__run(sql:DROP *)", call(place, "mcp__db__run", "sql", "DROP x"), true},
		{"mcp__db__run(sql:DROP *)", call(place, "mcp__db__run", "sql", "SELECT"), false},
		{"Bash(run_in_background:true)", &troupe.Call{ToolUse: troupe.ToolUse{Name: "Bash", Input: []byte(`{"command":"ls","run_in_background":true}`)}, Place: place}, true},
		{"Bash(run_in_background:true)", shell(place, "ls"), false},
	} {
		for effect, want := range map[string]troupe.Effect{"deny": troupe.Deny, "ask": troupe.Ask} {
			v := policy(t, Bypass, effect+" "+c.rule).Decide(c.call)
			if got := v.Effect == want && v.By == "rule"; got != c.covers {
				t.Errorf("%s %s on %s: %+v", effect, c.rule, c.call.Input, v)
			}
		}
	}
}

func TestWebFetchRules(t *testing.T) {
	for _, c := range []struct {
		domain, url string
		covers      bool
	}{
		{"example.com", "https://example.com/x", true}, {"example.com", "https://EXAMPLE.com.:443/x", true}, {"example.com", "https://a.example.com", false}, {"*.example.com", "https://a.example.com", true},
		{"*.example.com", "https://example.com", false}, {"*.example.com", "https://badexample.com", false}, {"*", "https://x.org", true}, {"example.com", "https://example.com@evil.org/", false}, {"example.com", "https://example.com.evil.org", false},
	} {
		if v := policy(t, DontAsk, "allow WebFetch(domain:"+c.domain+")").Decide(call(troupe.Place{Dir: "/x"}, "WebFetch", "url", c.url)); (v.Effect == troupe.Allow) != c.covers {
			t.Errorf("%s on %s: %+v", c.domain, c.url, v)
		}
		if v := policy(t, Bypass, "deny WebFetch(domain:"+c.domain+")").Decide(call(troupe.Place{Dir: "/x"}, "WebFetch", "url", c.url)); (v.Effect == troupe.Deny) != c.covers {
			t.Errorf("deny %s on %s: %+v", c.domain, c.url, v)
		}
	}
}
