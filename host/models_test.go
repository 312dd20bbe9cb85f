package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/model"
)

func modelsWith(dir string, aliases map[string]string, env ...string) *host.Models {
	return host.NewModels(lookupIn(env), aliases, dir, time.Now, func() float64 { return 0 })
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	if err := os.WriteFile(path, []byte(`{"rules": [{"reply": {"content": [{"text": "x"}]}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	aliases := map[string]string{"fast": "openai/quick", "play": "script/s.json", "sonnet-mine": "anthropic/mine", "lost": "nobody/x"}
	all := modelsWith(dir, aliases, "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k", "OPENROUTER_API_KEY=k")
	few := modelsWith(dir, map[string]string{"haiku": "openai/quick"}, "OPENAI_API_KEY=k")
	for _, c := range []struct {
		models             *host.Models
		name, parent, want string
		err                error
	}{
		{all, "", "openai/p", "openai/p", nil},
		{all, "inherit", "openai/p", "openai/p", nil},
		{all, "Inherit", "openai/p", "openai/p", nil},
		{all, "fast", "anthropic/p", "openai/quick", nil},
		{all, "openai/any-name/at-all", "", "openai/any-name/at-all", nil},
		{all, "play", "", "script/" + path, nil},
		{all, "script/s.json", "", "script/" + path, nil},
		{all, "script/" + path, "", "script/" + path, nil},
		{all, "sonnet-mine", "openai/p", "anthropic/mine", nil},
		// Families under another provider are sizes.
		{all, "sonnet", "openai/p", "openai/p", nil},
		{all, "Opus", "openai/p", "openai/p", nil},
		{all, "haiku", "script/" + path, "script/" + path, nil},
		// … unless the user has named something so.
		{few, "haiku", "openai/p", "openai/quick", nil},
		{all, "nobody/x", "", "", model.ErrUnknown},
		{all, "lost", "", "", model.ErrUnknown},
		{all, "no-such-model", "", "", model.ErrUnknown},
		{few, "anthropic/x", "", "", model.ErrNoKey},
		{all, "script/none.json", "", "", os.ErrNotExist},
	} {
		got, err := c.models.Resolve(c.name, c.parent)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q under %q: %q, %v; want %q, %v", c.name, c.parent, got, err, c.want, c.err)
		}
	}
	for family, prefix := range map[string]string{"sonnet": "anthropic/claude-sonnet", "opus": "anthropic/claude-opus", "haiku": "anthropic/claude-haiku"} {
		for _, parent := range []string{"", "anthropic/p"} {
			if got, err := all.Resolve(family, parent); err != nil || !strings.HasPrefix(got, prefix) {
				t.Errorf("%s under %q: %q, %v", family, parent, got, err)
			}
		}
	}
	if got, err := all.Resolve("haiku", "openai/p"); err != nil || got == "openai/p" || !strings.HasPrefix(got, "openai/") {
		t.Errorf("haiku under openai: %q, %v", got, err)
	}
	if _, err := few.Resolve("anthropic/x", ""); err == nil || !strings.Contains(err.Error(), "set ANTHROPIC_API_KEY") {
		t.Errorf("no remedy: %v", err)
	}
}

func TestChoose(t *testing.T) {
	m := modelsWith(t.TempDir(), map[string]string{"fast": "openai/quick"}, "OPENAI_API_KEY=k")
	for _, c := range []struct {
		wanted []string
		want   string
	}{
		{[]string{"", "fast", "openai/x"}, "openai/quick"},
		{[]string{"openai/x", "fast"}, "openai/x"},
	} {
		if got, err := m.Choose(c.wanted...); got != c.want || err != nil {
			t.Errorf("%q: %q, %v", c.wanted, got, err)
		}
	}
	if got, err := m.Choose("", ""); err != nil || !strings.HasPrefix(got, "openai/") {
		t.Errorf("the default: %q, %v", got, err)
	}
	if _, err := modelsWith("", nil).Choose(); !errors.Is(err, model.ErrNoModel) {
		t.Errorf("without a key: %v", err)
	}
}

func TestKeyNameAndPrice(t *testing.T) {
	m := modelsWith("", nil, "ANTHROPIC_AUTH_TOKEN=k", "OPENAI_BASE_URL=http://localhost")
	for name, want := range map[string]string{"anthropic/x": "ANTHROPIC_AUTH_TOKEN", "openai/x": "none", "ollama/x": "none", "script/x": "none", "nobody/x": "none"} {
		if got := m.KeyName(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	u := troupe.Usage{Input: 1000, Output: 1000}
	haiku, err := m.Resolve("haiku", "")
	if err != nil {
		t.Fatal(err)
	}
	if d, known := m.Price(haiku, u); !known || d <= 0 {
		t.Errorf("%s: %v, %v", haiku, d, known)
	}
	for _, name := range []string{"openai/nobody-knows", "script/x", "", "x"} {
		if d, known := m.Price(name, u); known || d != 0 {
			t.Errorf("%q: %v, %v", name, d, known)
		}
	}
	for _, key := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY"} {
		if !slices.Contains(m.Secrets(), key) {
			t.Errorf("%s is no secret", key)
		}
	}
}

// A request for a model that is not there is an error of that request.
func TestStreamOfAModelThatIsNotThere(t *testing.T) {
	m := modelsWith("", nil)
	n := 0
	for c, err := range m.Stream(t.Context(), &troupe.Request{Model: "openai/x"}) {
		n++
		if c != nil || !errors.Is(err, model.ErrNoKey) {
			t.Errorf("%v, %v", c, err)
		}
	}
	if n != 1 {
		t.Errorf("%d chunks", n)
	}
}
