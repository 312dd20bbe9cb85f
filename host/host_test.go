package host

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/permission"
)

func TestFamiliesUnderAnotherProvider(t *testing.T) {
	key := func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}[name]
	}
	m := NewModels(key, nil, t.TempDir(), time.Now, nil)
	small := "openai/" + m.catalogue.Small("openai")
	for name, want := range map[string]string{"haiku": small, "sonnet": "openai/gpt-4.1", "inherit": "openai/gpt-4.1"} {
		if got, err := m.Resolve(name, "openai/gpt-4.1"); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", name, got, err, want)
		}
	}
}

func TestDenyRulesThatCannotBeReadRefuseTheStart(t *testing.T) {
	for effect, ok := range map[troupe.Effect]bool{troupe.Allow: true, troupe.Ask: false, troupe.Deny: false} {
		c := &config.Config{Rules: []config.RuleText{{Text: "Bash(", Effect: effect, Source: "x"}}}
		s := &Session{opts: Options{Config: c, Mode: permission.Default}, path: t.TempDir()}
		if _, err := s.policy(); (err == nil) != ok || ok != (len(s.Warnings) == 1) {
			t.Errorf("%s: %v, %v", effect, err, s.Warnings)
		}
	}
}

func TestKnownToolsAreThoseAndMore(t *testing.T) {
	for _, name := range append(Tools(), "AskUserQuestion", "WebFetch") {
		if !slices.Contains(Known(), name) {
			t.Errorf("%s is not known", name)
		}
	}
}
