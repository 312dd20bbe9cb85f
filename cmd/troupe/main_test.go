package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model/script"
	"github.com/troupe-sh/troupe/troupetest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"troupe": main})
}

// The dialects that every script is played in: the same prompt, the same
// answers, and a provider that refuses what the real one would.
var dialects = []struct{ name, model, base, key, path string }{
	{"anthropic", "anthropic/claude-sonnet-4-6", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", ""},
	{"openai", "openai/gpt-4.1", "OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"},
}

// key is what the provider takes; no file and no output may ever hold it.
const key = "sk-test-0f6b1c2d3e4f5a69"

// TestScripts plays testdata/script with the command as users run it. A script
// brings model.json, the answers of the model; $MODEL names it. A model of a
// scripts's own is found under script/model.json.
func TestScripts(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Dir: "testdata/script",
				Setup: func(e *testscript.Env) error {
					p := troupetest.NewProvider(e.T().(testing.TB), troupetest.Key(key))
					p.Respond(scripted(filepath.Join(e.WorkDir, "model.json")))
					e.Values["provider"], e.Values["env"] = p, e
					home := filepath.Join(e.WorkDir, ".home")
					e.Setenv("HOME", home)
					e.Setenv("USERPROFILE", home)
					e.Setenv("MODEL", d.model)
					provider, name, _ := strings.Cut(d.model, "/")
					e.Setenv("PROVIDER", provider)
					e.Setenv("PARENT", `"model":"`+name+`"`)
					e.Setenv("AGENTS", agentsOfScripts)
					e.Setenv("ALIASES", `{"models": {"own": "`+provider+`/own-1", "told": "`+provider+`/told-2"}}`)
					e.Setenv("KEY", key)
					e.Setenv("FAST", `{"model": "fast", "models": {"fast": "`+provider+`/from-alias"}}`)
					e.Setenv(d.base, p.URL()+d.path)
					e.Setenv(d.key, key)
					e.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(e.WorkDir, ".gitconfig"))
					e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
					e.Setenv("GORACE", noExitSleep)
					e.Defer(func() { noKey(e.T().(testing.TB), home) })
					return os.MkdirAll(home, 0o700)
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"requests": requests, "sent": sent, "field": field, "largest": largest, "agentsent": agentSent, "damage": damage, "exits": exits, "dialogue": dialogue, "tasks": tasks, "adds": adds},
			})
		})
	}
}

// noExitSleep has a command with the race detector end when it is done, and not a
// second later: https://go.dev/doc/articles/race_detector#Options.
const noExitSleep = "atexit_sleep_ms=0"

// agentsOfScripts are definitions for --agents.
const agentsOfScripts = `{
	"bold": {"description": "d", "prompt": "You are bold.", "permissionMode": "bypassPermissions"},
	"shy": {"description": "d", "prompt": "You are shy.", "permissionMode": "plan"},
	"planner": {"description": "d", "prompt": "You plan.", "permissionMode": "plan"},
	"same": {"description": "d", "prompt": "You are the same.", "tools": "Agent"},
	"misspelt": {"description": "d", "prompt": "You read.", "tools": ["Reed", "Grpe"]}
}`

// scripted answers as a script file says.
func scripted(path string) func(*troupetest.Request) troupetest.Reply {
	open := sync.OnceValues(func() (*script.Model, error) { return script.Open(path) })
	return func(r *troupetest.Request) troupetest.Reply {
		m, err := open()
		if err != nil {
			return troupetest.Reply{Message: troupetest.Say("the script cannot be played: " + err.Error())}
		}
		for c, err := range m.Stream(context.Background(), &r.Request) {
			if err != nil {
				return troupetest.Reply{Fault: troupetest.Fault{Status: 400}, Message: troupetest.Say(err.Error())}
			}
			if reply, ok := c.(troupe.Reply); ok {
				return troupetest.Reply{Message: reply.Message}
			}
		}
		return troupetest.Reply{}
	}
}

// noKey fails if a file of the session holds the key: logs and recordings are
// read by others.
func noKey(t testing.TB, dir string) {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), key) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// requests N checks how many requests the provider has had so far.
func requests(ts *testscript.TestScript, neg bool, args []string) {
	got := len(ts.Value("provider").(*troupetest.Provider).Requests())
	if want := args[0]; (want == itoa(got)) == neg {
		ts.Fatalf("%d requests, want %s", got, want)
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// sent N TEXT checks that the body of the Nth request has a text in it; 0 is
// the last one.
func sent(ts *testscript.TestScript, neg bool, args []string) {
	all := ts.Value("provider").(*troupetest.Provider).Requests()
	n := len(all)
	if args[0] != "0" {
		for n = range len(all) + 1 {
			if itoa(n) == args[0] {
				break
			}
		}
	}
	if n == 0 || n > len(all) {
		ts.Fatalf("there is no request %s of %d", args[0], len(all))
	}
	if strings.Contains(string(all[n-1].Body), args[1]) == neg {
		ts.Fatalf("request %d: %s", n, all[n-1].Body)
	}
}

// agentsent SYSTEM TEXT checks that the first request of the agent whose system
// prompt has SYSTEM in it holds TEXT.
func agentSent(ts *testscript.TestScript, neg bool, args []string) {
	for _, r := range ts.Value("provider").(*troupetest.Provider).Requests() {
		if strings.Contains(r.System, args[0]) {
			if strings.Contains(string(r.Body), args[1]) == neg {
				ts.Fatalf("the request is %s", r.Body)
			}
			return
		}
	}
	ts.Fatalf("no agent with %q in its system prompt sent anything", args[0])
}

// largest N checks that no text in any request so far has more than N characters:
// what a model is sent of a result has a limit.
func largest(ts *testscript.TestScript, _ bool, args []string) {
	var limit int
	ts.Check(json.Unmarshal([]byte(args[0]), &limit))
	for _, r := range ts.Value("provider").(*troupetest.Provider).Requests() {
		for _, res := range r.Results() {
			if n := len([]rune(res.Content.Text())); n > limit {
				ts.Fatalf("request %d has a result of %d characters", r.Number, n)
			}
		}
	}
}

// damage does to the log of the only session what disks and crashes do: break
// the record in a LINE, tear the last one, or make it one of a newer version.
// "damage same" checks that what was done last is still in the file.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	paths, err := filepath.Glob(filepath.Join(ts.Getenv("HOME"), ".troupe", "sessions", "*", "*", "lead.jsonl"))
	ts.Check(err)
	if len(paths) != 1 {
		ts.Fatalf("there are %d sessions", len(paths))
	}
	raw, err := os.ReadFile(paths[0])
	ts.Check(err)
	lines := strings.SplitAfter(string(raw), "\n")
	switch args[0] {
	case "break":
		for n := range lines {
			if itoa(n+1) == args[1] {
				lines[n] = "{\"Time\":\x00 broken\n"
			}
		}
	case "tear":
		last := len(lines) - 2
		lines[last], lines[last+1] = lines[last][:len(lines[last])/2], ""
	case "newer":
		lines = append([]string{"{\"V\":99}\n"}, lines...)
	case "same":
		if before := ts.ReadFile("damaged"); !strings.HasPrefix(string(raw), before) {
			ts.Fatalf("the log was rewritten: it was\n%s\nand is\n%s", before, raw)
		}
		return
	}
	text := strings.Join(lines, "")
	ts.Check(os.WriteFile(paths[0], []byte(text), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("damaged"), []byte(text), 0o600))
}

// exits CODE PROGRAM ARGS... runs a program that must end with this exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// field PATH VALUE checks a field, as in usage.input_tokens, of the last JSON
// object on stdout. Values are compared as JSON.
func field(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	var v any
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &v))
	for name := range strings.SplitSeq(args[0], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			v = nil
			for i := range in {
				if itoa(i) == name {
					v = in[i]
					break
				}
			}
		}
	}
	got, err := json.Marshal(v)
	ts.Check(err)
	if (string(got) == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}
