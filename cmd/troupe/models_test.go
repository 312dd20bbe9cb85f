//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// local is a bench with a server of the user's own: an address, no key and no
// model.
func local(t *testing.T, models ...string) *bench {
	t.Helper()
	b := newBench(t, 1)
	b.provider = troupetest.NewProvider(t, troupetest.Models(models...))
	b.set("OPENAI_BASE_URL="+b.provider.URL()+"/v1", "OPENAI_API_KEY=")
	return b
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("model-%02d:8b", i))
	}
	return names
}

// Who has named a server and no model is told what it offers.
func TestOnlyAnAddress(t *testing.T) {
	for _, tt := range []struct {
		name      string
		models    []string
		says, not string
	}{
		{"few", []string{"qwen3-coder", "org/llama:70b"}, "it offers org/llama:70b, qwen3-coder", "more"},
		{"just enough", numbered(mostOffered), "model-19:8b", "more"},
		{"many", numbered(mostOffered + 5), "model-19:8b and 5 more (troupe models list shows all)", "model-20"},
		{"none", nil, "it says that it offers none", "more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := local(t, tt.models...)
			cmd, _ := b.command(t, "go")
			code, out, notes := finish(t, cmd)
			checkFailure(t, code, exitUse, out+notes, []string{"OPENAI_BASE_URL", "--model openai/NAME", tt.says})
			if strings.Contains(notes, tt.not) {
				t.Errorf("%s", notes)
			}
		})
	}
	t.Run("none, listed", func(t *testing.T) {
		b := local(t)
		cmd, _ := b.command(t)
		cmd = exec.Command(cmd.Path, "models", "list")
		cmd.Dir, cmd.Env = b.dir, b.env
		if code, _, notes := finish(t, cmd); code != 0 || notes != "troupe: the server of OPENAI_BASE_URL says that it offers no model\n" {
			t.Errorf("code %d, %s", code, notes)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		b := local(t)
		b.provider.Close()
		cmd, _ := b.command(t, "go")
		code, out, notes := finish(t, cmd)
		checkFailure(t, code, exitUse, out+notes, []string{"--model openai/NAME", "connection refused", "start the server"})
	})
}

// Any server that speaks the protocol will do, and everything behind the
// provider's name is the model's.
func TestServersOfOnesOwn(t *testing.T) {
	for _, tt := range []struct{ model, name, variable, path string }{
		{"openai/org/llama:70b", "org/llama:70b", "OPENAI_BASE_URL", "/v1"},
		{"ollama/qwen3:8b", "qwen3:8b", "OLLAMA_HOST", ""},
		{"ollama/hf.co/org/m-GGUF:Q4_K_M", "hf.co/org/m-GGUF:Q4_K_M", "OLLAMA_HOST", "/"},
	} {
		t.Run(tt.model, func(t *testing.T) {
			b := local(t, tt.name)
			b.set("OPENAI_BASE_URL=", tt.variable+"="+b.provider.URL()+tt.path)
			b.provider.Say("hello")
			cmd, _ := b.command(t, "go", "--model", tt.model)
			if code, out, notes := finish(t, cmd); code != 0 || out != "hello\n" {
				t.Errorf("code %d, %s%s", code, out, notes)
			}
			if r := b.provider.Last(); r.Model != tt.name || r.Header.Get("Authorization") != "" {
				t.Errorf("asked for %q with %q", r.Model, r.Header.Get("Authorization"))
			}

			cmd = exec.Command(cmd.Path, "models", "list")
			cmd.Dir, cmd.Env = b.dir, b.env
			code, out, notes := finish(t, cmd)
			provider, _, _ := strings.Cut(tt.model, "/")
			if want := provider + "/" + tt.name; code != 0 || notes != "" || !strings.Contains(out, want+" ") || !strings.Contains(out, " server ") || strings.Contains(out, "gpt-") {
				t.Errorf("listed: code %d, %s%s", code, out, notes)
			}
		})
	}
}
