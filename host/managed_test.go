package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	asking "github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
)

// What the machine's owner sets is above every way to another mode or model: the
// options, a switch, and what a session had before the owner said so.
func TestTheMachinesOwnerIsAboveAll(t *testing.T) {
	p := newPlace(t)
	before := p.once(t, func(o *host.Options) { o.Mode = permission.AcceptEdits })
	p.src.Managed = filepath.Join(t.TempDir(), "managed.json")
	if err := os.WriteFile(p.src.Managed, []byte(`{"model": "anthropic/claude-sonnet-4-6", "permissions": {"defaultMode": "default"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(err error) bool {
		return errors.Is(err, host.ErrUse) && strings.Contains(err.Error(), p.src.Managed)
	}
	for _, mode := range permission.Modes() {
		o := p.options(t)
		o.Mode, o.Model = mode, "anthropic/claude-sonnet-4-6"
		s, err := host.Open(t.Context(), o)
		if wide := mode.Wider(permission.Default); wide != refused(err) || !wide && err != nil {
			t.Errorf("mode %s: %v", mode, err)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s := p.open(t, resume(t, before), func(o *host.Options) { o.Model = "anthropic/claude-sonnet-4-6" })
	if s.Begun().Mode != "default" {
		t.Errorf("the old session goes on in mode %s", s.Begun().Mode)
	}
	for _, to := range []troupe.Switched{{Mode: "acceptEdits"}, {Mode: "bypassPermissions", Chosen: true}, {Model: "openai/gpt-4.1"}} {
		if err := s.Switch(to); !refused(err) {
			t.Errorf("a switch to %+v: %v", to, err)
		}
	}
	if err := s.Permit(t.Context(), host.PermissionUpdate{Type: "setMode", Mode: "acceptEdits"}); !refused(err) {
		t.Errorf("a change of permissions: %v", err)
	}
	if err := s.Switch(troupe.Switched{Mode: "plan", Model: "anthropic/claude-sonnet-4-6"}); err != nil {
		t.Error(err)
	}
	o := p.options(t)
	o.Model, o.Fallback = "anthropic/claude-sonnet-4-6", []string{"openai/gpt-4.1"}
	if other, err := host.Open(t.Context(), o); !refused(err) {
		t.Errorf("another model as fallback: %v, %v", other, err)
	}
}

// Who is kept in plan mode by the machine's owner does not leave it with a plan.
func TestAPlanIsNoWayAroundTheOwner(t *testing.T) {
	p := newPlace(t)
	p.src.Managed = filepath.Join(t.TempDir(), "managed.json")
	if err := os.WriteFile(p.src.Managed, []byte(`{"permissions": {"defaultMode": "plan"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	yes := desk(t, func(asking.Question) asking.Answer {
		return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}}
	})
	got := turns(t, p, p.open(t, yes), use("out", "ExitPlanMode", map[string]any{"plan": "write it"}), writing("w", "one"))
	if !got["out"].Result.IsError || !got["w"].Denied() || p.made("one") {
		t.Errorf("%+v, %+v", got["out"], got["w"])
	}
}
