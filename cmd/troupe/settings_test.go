package main

import (
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
)

// What the machine's owner sets is above the command line, the environment and
// what a session had.
func TestManagedSettingsAreAboveFlags(t *testing.T) {
	owner := "/etc/managed-settings.json"
	c := &config.Config{Model: config.Value{Text: "openai/gpt-4.1", Source: owner}, Managed: []string{owner}}
	p := &program{env: []string{"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "TROUPE_MODEL=anthropic/claude-sonnet-4-6"}}
	for _, o := range []*host.Options{{Config: c}, {Config: c, Resume: &session.Info{Model: "anthropic/claude-sonnet-4-6"}}} {
		if name, err := p.model(t.Context(), &flags{}, o, p.models(c)); err != nil || name != "openai/gpt-4.1" {
			t.Errorf("the model is %q, %v", name, err)
		}
	}
	if _, err := p.model(t.Context(), &flags{model: "sonnet"}, &host.Options{Config: c}, p.models(c)); err == nil || !strings.Contains(err.Error(), owner) {
		t.Errorf("--model: %v", err)
	}
	c.Managed = nil
	if name, err := p.model(t.Context(), &flags{}, &host.Options{Config: c}, p.models(c)); err != nil || name != "anthropic/claude-sonnet-4-6" {
		t.Errorf("without an owner the model is %q, %v", name, err)
	}
}

// An address may hold a password, and a variable anything.
func TestSettingsAreShownWithoutSecrets(t *testing.T) {
	for _, tt := range []struct{ key, text, want string }{
		{"env.DB", "hunter2", "(7 characters, not shown)"},
		{"env.OPENAI_BASE_URL", "https://u:hunter2@host/v1", "https://[password]@host/v1"},
		{"network.proxy", "http://u:hunter2@host:1", "http://[password]@host:1"},
		{"permissions.deny", "Read(//etc/a@b)", "Read(//etc/a@b)"},
	} {
		if got := shown(config.Entry{Key: tt.key, Text: tt.text}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.key, got, tt.want)
		}
	}
}
