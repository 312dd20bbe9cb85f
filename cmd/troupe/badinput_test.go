//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// What cannot be begun is said in one line with the remedy, before anything is
// sent or written.
func TestWhatCannotBegin(t *testing.T) {
	for dialect, d := range dialects {
		for _, tt := range []struct {
			name  string
			lay   map[string]string // files to make, by their path in the bench
			env   []string
			args  []string
			stdin string
			code  int
			says  []string
		}{
			{"no key", nil, []string{d.key + "=", d.base + "="}, []string{"go", "--model", d.model}, "", exitUse, []string{"no key for", "set " + d.key}},
			{"nothing set up", nil, []string{d.key + "=", d.base + "="}, []string{"go"}, "", exitUse, []string{"no model to use", "ANTHROPIC_API_KEY or OPENAI_API_KEY"}},
			{"unknown model", nil, nil, []string{"go", "--model", "no-such"}, "", exitUse, []string{`unknown model: "no-such"`, "openai/no-such"}},
			{"unknown provider", nil, nil, []string{"go", "--model", "nobody/m"}, "", exitUse, []string{`unknown model: "nobody/m"`, "name its provider"}},
			{"no model in a provider", nil, nil, []string{"go", "--model", d.name + "/"}, "", exitUse, []string{"unknown model"}},
			{"a URL that is none", nil, []string{d.base + "=not a url"}, []string{"go", "--model", d.model}, "", exitUse, []string{d.base, "no address of a server", "https://HOST"}},
			{"settings that are no JSON", map[string]string{".home/.troupe/settings.json": `{"permissions": {"deny": [`}, nil, []string{"go", "--model", d.model}, "", exitUse, []string{"settings.json"}},
			{"unknown agent", nil, nil, []string{"go", "--model", d.model, "--agent", "nobody"}, "", exitUse, []string{`no agent "nobody"`, "general-purpose"}},
			{"a prompt without end", nil, nil, []string{"--model", d.model}, strings.Repeat("x", 17<<20), exitUse, []string{"longer than 16 MB", "in which file"}},
			{"an empty prompt", nil, nil, []string{" \n", "--model", d.model}, "\t", exitUse, []string{"prompt is empty"}},
			{"a file for a home", map[string]string{"taken": ""}, []string{"TROUPE_HOME=taken"}, []string{"go", "--model", d.model}, "", exitUse, []string{"taken", "set TROUPE_HOME to a directory you can write"}},
			{"a file for the sessions", map[string]string{"home/sessions": ""}, []string{"TROUPE_HOME=home"}, []string{"go", "--model", d.model}, "", exitUse, []string{"home/sessions", "TROUPE_HOME"}},
			{"the same, to go on", map[string]string{"home/sessions": ""}, []string{"TROUPE_HOME=home"}, []string{"go", "--continue"}, "", exitUse, []string{"list sessions", "home/sessions", "TROUPE_HOME"}},
			{"the same, by its ID", map[string]string{"home/sessions": ""}, []string{"TROUPE_HOME=home"}, []string{"go", "--resume", "abc"}, "", exitUse, []string{"list sessions", "home/sessions", "TROUPE_HOME"}},
		} {
			t.Run(d.name+"/"+tt.name, func(t *testing.T) {
				b := newBench(t, dialect)
				b.lay(t, tt.lay)
				b.set(tt.env...)
				before := b.files(t)
				cmd, _ := b.command(t, tt.args...)
				cmd.Stdin = strings.NewReader(tt.stdin)
				code, out, notes := finish(t, cmd)
				checkFailure(t, code, tt.code, out+notes, tt.says)
				if n := len(b.provider.Requests()); n > 0 {
					t.Errorf("%d requests were sent", n)
				}
				if after := b.files(t); !slices.Equal(before, after) {
					t.Errorf("it has written: before %q, after %q", before, after)
				}
			})
		}
	}
}

// lay makes files of the bench, and the directories above them.
func (b *bench) lay(t *testing.T, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// files are the paths of all files of the bench.
func (b *bench) files(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A model that the provider does not have is named, with nothing asked twice.
func TestAModelThatTheProviderDoesNotHave(t *testing.T) {
	for dialect, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, dialect, troupetest.RefusalsExpected(), troupetest.Models("something-else"))
			cmd, _ := b.command(t, "go", "--model", d.model)
			code, out, notes := finish(t, cmd)
			_, name, _ := strings.Cut(d.model, "/")
			checkFailure(t, code, exitFailed, out+notes, []string{"404", name, "--model"})
			if n := len(b.provider.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// What a model gets wrong in a call is told to it, and the run goes on: no tool
// runs with half an input, and nothing of it makes the next request invalid.
func TestCallsThatMakeNoSense(t *testing.T) {
	calls := []struct{ name, input, says string }{
		{"Bash", `{"command":`, "input"},
		{"Bash", `[]`, "input"},
		{"Bash", `null`, "input"},
		{"Bash", `{"command":7}`, "command"},
		{"Bash", `{}`, "command"},
		{"Read", `{"file_path":["a"]}`, "file_path"},
		{"Edit", `"text"`, "input"},
		{"Agent", `{"prompt":{}}`, "prompt"},
		{"NoSuchTool", `{}`, "There is no tool"},
		{"bash", `{"command":"touch ran"}`, "There is no tool"},
		{"", `{}`, "There is no tool"},
	}
	for dialect, d := range dialects {
		for i, c := range calls {
			t.Run(d.name+"/"+strconv.Itoa(i), func(t *testing.T) {
				b := newBench(t, dialect)
				b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", c.name, c.input))})
				b.provider.Say("I see")
				cmd, _ := b.command(t, "go", "--model", d.model)
				if code, out, notes := finish(t, cmd); code != exitDone || out != "I see\n" {
					t.Fatalf("code %d, %s%s", code, out, notes)
				}
				results := b.provider.Last().Results()
				if len(results) != 1 || d.name == "anthropic" && !results[0].IsError || !strings.Contains(results[0].Content.Text(), c.says) {
					t.Errorf("the model is told %+v, want an error with %q", results, c.says)
				}
				if found, _ := filepath.Glob(filepath.Join(b.dir, "ran")); found != nil {
					t.Error("it has run")
				}
				b.provider.Say("and on")
				cmd, _ = b.command(t, "again", "--continue")
				if code, out, notes := finish(t, cmd); code != exitDone || out != "and on\n" {
					t.Errorf("going on: code %d, %s%s", code, out, notes)
				}
			})
		}
	}
}

// Results of any size and content: the model gets text of a bounded length, the
// log can be read, a terminal is sent nothing it would act on, and the session
// goes on.
func TestResultsOfAnySizeAndContent(t *testing.T) {
	const most = 45_000 // characters that a result may have
	big, binary := strings.Repeat("0123456789\n", 50_000_000/11), strings.Repeat("\x00\x1b\xff\x80", 100_000)
	for i, tt := range []struct {
		name string
		lay  map[string]string
		call troupe.ToolUse
	}{
		{"50 MB of lines", nil, call("c1", "Bash", `{"command":"yes 0123456789 | head -c 50000000"}`)},
		{"50 MB in one line", nil, call("c1", "Bash", `{"command":"head -c 50000000 /dev/zero | tr '\\0' x"}`)},
		{"50 MB binary", nil, call("c1", "Bash", `{"command":"head -c 50000000 /dev/urandom"}`)},
		{"50 MB of errors", nil, call("c1", "Bash", `{"command":"head -c 50000000 /dev/urandom >&2; exit 3"}`)},
		{"zeros", nil, call("c1", "Bash", `{"command":"head -c 100000 /dev/zero"}`)},
		{"controls", nil, call("c1", "Bash", `{"command":"printf '\\033[2J\\033]0;title\\007\\033[31mred\\033[0m\\rback\\b\\b\\x9b31m'"}`)},
		{"no UTF-8", nil, call("c1", "Bash", `{"command":"printf '\\xff\\xfe\\xc3(\\xe2\\x82'; exit 3"}`)},
		{"a file of 50 MB", map[string]string{"big": big}, call("c1", "Read", `{"file_path":"big"}`)},
		{"a binary file", map[string]string{"binary": binary}, call("c1", "Read", `{"file_path":"binary"}`)},
		{"a search in 50 MB", map[string]string{"big": big}, call("c1", "Grep", `{"pattern":"5","path":"big","output_mode":"content"}`)},
		{"a search in binary", map[string]string{"binary": binary}, call("c1", "Grep", `{"pattern":".","path":"binary","output_mode":"content"}`)},
		{"controls as an argument", nil, call("c1", "Bash", `{"command":"echo \u001b[2J\u0007\u009b"}`)},
		{"nothing", nil, call("c1", "Bash", `{"command":"true"}`)},
	} {
		dialect := i % len(dialects)
		t.Run(dialects[dialect].name+"/"+tt.name, func(t *testing.T) {
			b := newBench(t, dialect)
			b.lay(t, tt.lay)
			b.provider.Queue(troupetest.Reply{Message: troupetest.Use(tt.call)})
			b.provider.Say("done")
			cmd, _ := b.command(t, "go", "--model", b.model, "--verbose")
			code, out, notes := finish(t, cmd)
			if code != exitDone || out != "done\n" || strings.ContainsAny(notes, "\x1b\x07\u009b\x00") || !utf8.ValidString(notes) {
				t.Fatalf("code %d, %q, %.2000q", code, out, notes)
			}
			res := b.provider.Last().Results()
			if len(res) != 1 || utf8.RuneCountInString(res[0].Content.Text()) > most {
				t.Fatalf("the model gets %d results, the first of %d characters", len(res), utf8.RuneCountInString(res[0].Content.Text()))
			}
			b.provider.Say("and on")
			cmd, _ = b.command(t, "again", "--continue")
			if code, out, notes := finish(t, cmd); code != exitDone || out != "and on\n" || strings.Contains(notes, "skipped") {
				t.Errorf("going on: code %d, %s%s", code, out, notes)
			}
		})
	}
}

// A prompt of 5 MB comes in whole, on stdin, also when a session goes on.
func TestALongPrompt(t *testing.T) {
	prompt := strings.Repeat("0123456789abcdef", 5<<20/16)
	for dialect, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, dialect)
			for i, args := range [][]string{{"--model", d.model}, {"--continue", "and now?"}} {
				if i > 0 && dialect > 0 { // once is enough: the provider reads each byte several times
					break
				}
				if i > 0 { // both together are more than a model takes: the first is summed up
					b.provider.Say("a long prompt")
				}
				b.provider.Say("read")
				cmd, _ := b.command(t, args...)
				cmd.Stdin = strings.NewReader(prompt)
				if code, out, notes := finish(t, cmd); code != exitDone || out != "read\n" {
					t.Fatalf("code %d, %.300s%.300s", code, out, notes)
				}
				if !strings.Contains(string(b.provider.Last().Body), prompt) {
					t.Errorf("the provider got %d bytes, and not the prompt", len(b.provider.Last().Body))
				}
				prompt = "x" + prompt // another, in full
			}
		})
	}
}

// Nothing needs a repository, or git.
func TestNoRepository(t *testing.T) {
	for dialect, d := range dialects {
		for name, lay := range map[string]map[string]string{
			"none":            nil,
			"broken":          {".git/HEAD": "nonsense"},
			"a file for .git": {".git": "gitdir: /none/such"},
		} {
			for _, path := range []string{os.Getenv("PATH"), "/none"} {
				t.Run(d.name+"/"+name+"/git "+strconv.FormatBool(path != "/none"), func(t *testing.T) {
					b := newBench(t, dialect)
					b.lay(t, lay)
					b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Write", `{"file_path":"a.txt","content":"a"}`), call("c2", "Glob", `{"pattern":"*"}`))})
					b.provider.Say("done")
					cmd, _ := b.command(t, "go", "--model", d.model)
					cmd.Env = append(slices.Clone(b.env), "PATH="+path)
					if code, out, notes := finish(t, cmd); code != exitDone || out != "done\n" || strings.Count(notes, "\n") != 1 {
						t.Errorf("code %d, %s%s", code, out, notes)
					}
					if got, err := os.ReadFile(filepath.Join(b.dir, "a.txt")); err != nil || string(got) != "a" {
						t.Errorf("the file is %q, %v", got, err)
					}
				})
			}
		}
	}
}

// An output that takes nothing makes the run fail, in any format.
func TestAnOutputThatIsFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("there is no /dev/full here; TestClosedOutput is about the same")
		return
	}
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			b := newBench(t, 0)
			b.provider.Respond(func(*troupetest.Request) troupetest.Reply { return troupetest.Reply{Message: troupetest.Say("hello")} })
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			cmd, notes := b.command(t, "go", "--model", b.model, "--output-format", format)
			cmd.Stdout = full
			err = cmd.Run()
			checkFailure(t, cmd.ProcessState.ExitCode(), exitFailed, notes.String(), []string{"write", "no space left"})
			if err == nil {
				t.Error("it has ended well")
			}
		})
	}
}

// A file where the notes of running commands should be: that is told with the
// remedy, and costs the shell alone.
func TestNoPlaceForNotes(t *testing.T) {
	b := newBench(t, 0)
	b.lay(t, map[string]string{".home/.troupe/run": ""})
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Bash", `{"command":"touch ran"}`), call("c2", "Write", `{"file_path":"a.txt","content":"a"}`))})
	b.provider.Say("done")
	cmd, _ := b.command(t, "go", "--model", b.model)
	code, out, notes := finish(t, cmd)
	first, _, _ := strings.Cut(notes, "\n")
	if code != exitDone || out != "done\n" || !strings.Contains(first, ".troupe/run") || !strings.Contains(first, "set TROUPE_HOME to a directory you can write") {
		t.Errorf("code %d, %s%s", code, out, notes)
	}
	res := b.provider.Last().Results()
	if len(res) != 2 || !res[0].IsError || !strings.Contains(res[0].Content.Text(), "note the command") || res[1].IsError {
		t.Errorf("the model is told %+v", res)
	}
}

// What cannot be trusted for want of a place to write it down is an error.
func TestTrustThatCannotBeKept(t *testing.T) {
	b := newBench(t, 0)
	b.lay(t, map[string]string{"taken": ""})
	b.set("TROUPE_HOME=taken")
	cmd, _ := b.command(t)
	cmd.Args = []string{cmd.Path, "trust"}
	code, out, notes := finish(t, cmd)
	checkFailure(t, code, exitFailed, out+notes, []string{"taken", "set TROUPE_HOME to a directory you can write"})
}
