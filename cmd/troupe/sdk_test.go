//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// sdkAt is where `.ci/sdk` installs the published SDK, from this directory.
const sdkAt = "../../bin/sdk/node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs"

// driven is what testdata/sdk/drive.mjs prints.
type driven struct {
	Types   []string
	Results []struct {
		Subtype, Result string
		Denials         int
	}
	Partial string
	Init    struct{ Mode, Model string }
	Asked   []struct {
		Name        string
		Input       map[string]any
		Suggestions int
		Use         bool
	}
	Seen [][]any
	Took int
	Same bool
}

// drive plays a scene with the SDK, and the answers of the model.
func drive(t *testing.T, scene string, answer func(*troupetest.Request) troupetest.Reply) (driven, *bench) {
	t.Helper()
	node := troupetest.Need(t, "node")
	sdk, err := filepath.Abs(sdkAt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(sdk); err != nil {
		troupetest.Need(t, "the agent SDK, which .ci/sdk installs")
	}
	troupe, err := exec.LookPath("troupe")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/sdk/drive.mjs")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, 0)
	b.provider.Respond(answer)
	cmd := exec.CommandContext(t.Context(), node, script, sdk, troupe, b.model, scene)
	cmd.Dir, cmd.Env = b.dir, b.env
	notes := new(strings.Builder)
	cmd.Stderr = notes
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, notes)
	}
	var d driven
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return d, b
}

func says(text string) troupetest.Reply { return troupetest.Reply{Message: troupetest.Say(text)} }

// calls answers with calls first, then with what follows.
func calls(then string, uses ...string) func(*troupetest.Request) troupetest.Reply {
	return func(r *troupetest.Request) troupetest.Reply {
		if strings.Contains(string(r.Body), `"tool_result"`) {
			return says(then)
		}
		m := troupetest.Use()
		for i, use := range uses {
			name, input, _ := strings.Cut(use, " ")
			m.Content = append(m.Content, call("c"+itoa(i), name, input))
		}
		return troupetest.Reply{Message: m}
	}
}

func TestSDKPrompt(t *testing.T) {
	d, b := drive(t, "prompt", func(*troupetest.Request) troupetest.Reply { return says("Hello yourself.") })
	if len(d.Results) != 1 || d.Results[0].Subtype != "success" || d.Results[0].Result != "Hello yourself." || d.Partial != "Hello yourself." || d.Init.Model != b.model {
		t.Errorf("%+v", d)
	}
	if !slices.Contains(d.Types, "assistant") {
		t.Errorf("%v", d.Types)
	}
}

func TestSDKApproval(t *testing.T) {
	d, b := drive(t, "approval", calls("done", `Write {"file_path":"yes.txt","content":"x"}`, `Write {"file_path":"no.txt","content":"x"}`))
	if len(d.Asked) != 2 || d.Asked[0].Name != "Write" || d.Asked[0].Suggestions == 0 || !d.Asked[0].Use || len(d.Results) != 1 || d.Results[0].Denials != 1 {
		t.Errorf("%+v", d)
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "yes.txt")); err != nil || string(text) != "as the user wants it\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "no.txt")); err == nil {
		t.Error("what was denied was written")
	}
	if body := string(b.provider.Last().Body); !strings.Contains(body, "not this one") {
		t.Errorf("the model does not know why: %s", body)
	}
}

func TestSDKHooks(t *testing.T) {
	d, b := drive(t, "hook", calls("done", `Read {"file_path":"a.txt"}`))
	want := `[["UserPromptSubmit","read it"],["PreToolUse","Read",true],["Stop",false],["Stop",true]]`
	if got, err := json.Marshal(d.Seen); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	body := string(b.provider.Last().Body)
	for _, text := range []string{"It rains.", "house rule", "one more thing"} {
		if !strings.Contains(body, text) {
			t.Errorf("the model does not know %q", text)
		}
	}
}

func TestSDKInterrupt(t *testing.T) {
	d, b := drive(t, "interrupt", func(r *troupetest.Request) troupetest.Reply {
		if strings.Contains(string(r.Body), `hello`) {
			return says("Hello yourself.")
		}
		return calls("", `Bash {"command":"echo $$ > pid; exec sleep 1000"}`)(r)
	})
	if len(d.Results) != 2 || d.Results[0].Subtype != "error_during_execution" || d.Results[1].Result != "Hello yourself." || d.Init.Mode != "plan" {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(string(b.provider.Last().Body), "interrupted") {
		t.Error("the model does not know that its call was interrupted")
	}
	t.Logf("the turn ended %d ms after the interrupt", d.Took)
}

func TestSDKResume(t *testing.T) {
	d, b := drive(t, "resume", func(*troupetest.Request) troupetest.Reply { return says("blue") })
	if !d.Same || len(d.Results) != 1 || d.Results[0].Result != "blue" {
		t.Errorf("%+v", d)
	}
	if body := string(b.provider.Last().Body); !strings.Contains(body, "remember blue") || !strings.Contains(body, "which colour?") {
		t.Errorf("%s", body)
	}
}
