package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// workspace makes a working directory with a few files, and links out of it.
func workspace(t testing.TB) troupe.Place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "work")
	for _, f := range []string{"main.go", "README.md", ".env", ".env.example", "src/a.go", "src/b.go", "secrets/key", ".git/config", "../outside/file"} {
		f = filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"link.txt": ".env", "here": ".", "out": "../outside", "dangling": "../outside/new", "loop": "loop", "up": "src/..", "deep": "secrets",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return troupe.Place{Dir: dir}
}

// policy makes a policy of rules written as "allow Bash(ls *)".
func policy(t testing.TB, mode Mode, rules ...string) Policy {
	t.Helper()
	p := Policy{Mode: mode, Home: "/home/user"}
	for _, r := range rules {
		effect, text, _ := strings.Cut(r, " ")
		rule, err := ParseRule(troupe.Effect(effect), text, Origin{Source: "settings.json", Root: "/project", Home: "/home/user"})
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// call makes a call of a tool; fields are names and values in turn.
func call(place troupe.Place, tool string, fields ...string) *troupe.Call {
	in := map[string]string{}
	for i := 0; i < len(fields); i += 2 {
		in[fields[i]] = fields[i+1]
	}
	raw, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return &troupe.Call{ToolUse: troupe.ToolUse{ID: "u1", Name: tool, Input: raw}, Place: place}
}

func shell(place troupe.Place, command string) *troupe.Call {
	return call(place, "Bash", "command", command)
}
