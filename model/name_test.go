package model_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/model"
)

func TestParse(t *testing.T) {
	c := model.NewCatalogue()
	aliases := map[string]string{"fast": "openai/gpt-5.6-luna", "mine": "claude-opus-4-1-20250805", "haiku": "ollama/small", "loop": "loop"}
	for _, tt := range []struct{ in, want, fails string }{
		{in: "anthropic/claude-x", want: "anthropic/claude-x"},
		{in: " openai/org/name:1 ", want: "openai/org/name:1"},
		{in: "ollama/qwen3:8b", want: "ollama/qwen3:8b"},
		{in: "script/testdata/a/b.script", want: "script/testdata/a/b.script"},
		{in: "openrouter/moonshotai/kimi-of-tomorrow", want: "openrouter/moonshotai/kimi-of-tomorrow"},
		{in: "fast", want: "openai/gpt-5.6-luna"},
		{in: "mine", want: "anthropic/claude-opus-4-1-20250805"},
		{in: "opus", want: "anthropic/claude-opus-5"},
		{in: "Sonnet", want: "anthropic/claude-sonnet-5"},
		{in: "haiku", want: "ollama/small"}, // an alias comes first
		{in: "claude-opus-4-6", want: "anthropic/claude-opus-4-6"},
		{in: "GPT-5.5", want: "openai/gpt-5.5"},
		{in: "deepseek-v4-pro", fails: "deepseek/deepseek-v4-pro"}, // sold by several
		{in: "claude-opus-4-66", fails: "anthropic/claude-opus-4-6"},
		{in: "qwen3:8b", fails: "as in openai/qwen3:8b"},
		{in: "nobody/model", fails: "unknown model"},
		{in: "anthropic/", fails: "unknown model"},
		{in: "", fails: "provider/name"},
		{in: "loop", fails: "unknown model"},
	} {
		got, err := c.Parse(tt.in, aliases)
		if tt.fails != "" {
			if !errors.Is(err, model.ErrUnknown) || !strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Parse(%q) = %v, %v; want an error with %q", tt.in, got, err, tt.fails)
			}
			continue
		}
		if err != nil || got.String() != tt.want {
			t.Errorf("Parse(%q) = %v, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}

func lookup(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestChoose(t *testing.T) {
	c := model.NewCatalogue()
	for _, tt := range []struct {
		name        string
		env         map[string]string
		want, fails string
	}{
		{"anthropic first", map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b"}, "anthropic/" + c.Default("anthropic"), ""},
		{"a token counts", map[string]string{"ANTHROPIC_AUTH_TOKEN": "a"}, "anthropic/" + c.Default("anthropic"), ""},
		{"then openai", map[string]string{"OPENAI_API_KEY": "b", "XAI_API_KEY": "c"}, "openai/" + c.Default("openai"), ""},
		{"then others", map[string]string{"DEEPSEEK_API_KEY": "c"}, "deepseek/" + c.Default("deepseek"), ""},
		{"a server alone has no model", map[string]string{"OPENAI_BASE_URL": "http://x/v1", "XAI_API_KEY": "c"}, "", "--model openai/NAME"},
		{"a key for other things is no wish", map[string]string{"HF_TOKEN": "h", "SCW_SECRET_KEY": "s"}, "", "ANTHROPIC_API_KEY"},
		{"nothing", nil, "", "ANTHROPIC_API_KEY"},
	} {
		got, err := c.Choose(lookup(tt.env))
		if tt.fails != "" {
			if !errors.Is(err, model.ErrNoModel) || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: %v, %v; want an error with %q", tt.name, got, err, tt.fails)
			}
		} else if err != nil || got.String() != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}
