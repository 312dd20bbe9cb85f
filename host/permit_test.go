package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
)

func update(kind, destination string, behavior troupe.Effect, rules ...host.RuleValue) host.PermissionUpdate {
	return host.PermissionUpdate{Type: kind, Rules: rules, Behavior: behavior, Destination: destination}
}

func ofBash(spec string) host.RuleValue { return host.RuleValue{Tool: "Bash", Spec: spec} }

func (p *place) permit(t *testing.T, s *host.Session, us ...host.PermissionUpdate) {
	t.Helper()
	for _, u := range us {
		if err := s.Permit(t.Context(), u); err != nil {
			t.Fatalf("%+v: %v", u, err)
		}
	}
}

// runs reports whether a command may run.
func (p *place) runs(t *testing.T, s *host.Session, command string) bool {
	t.Helper()
	return !p.call(t, s, "Bash", map[string]any{"command": command}).IsError
}

func TestPermitChangesRules(t *testing.T) {
	const old = "{\n  // mine\n  \"permissions\": {\"allow\": [\"Bash(touch old)\"], \"deny\": [\"Bash(touch never)\"]}\n}\n"
	for _, destination := range []string{"session", "localSettings", "projectSettings", "userSettings"} {
		t.Run(destination, func(t *testing.T) {
			p := newPlace(t)
			files := map[string]string{"localSettings": ".troupe/settings.local.json", "projectSettings": ".claude/settings.json"}
			if name := files[destination]; name != "" {
				p.write(t, name, old)
			} else if destination == "userSettings" {
				if err := os.WriteFile(filepath.Join(p.home, "settings.json"), []byte(old), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := p.open(t)
			if p.runs(t, s, "touch new") {
				t.Fatal("it needs no leave")
			}
			p.permit(t, s, update("addRules", destination, troupe.Allow, ofBash("touch *")))
			if !p.runs(t, s, "touch new") {
				t.Error("the rule does not count")
			}
			if destination != "session" && p.runs(t, s, "touch never") {
				t.Error("a deny rule does not count any more")
			}
			p.permit(t, s, update("removeRules", destination, troupe.Allow, ofBash("touch *")))
			if p.runs(t, s, "touch new2") || destination != "session" && !p.runs(t, s, "touch old") {
				t.Error("not just this rule was removed")
			}
			p.permit(t, s, update("replaceRules", destination, troupe.Allow, ofBash("touch c")))
			if !p.runs(t, s, "touch c") || p.runs(t, s, "touch old") {
				t.Error("the rules were not replaced")
			}
			closed(t, s)
			// What was written is what counts the next time.
			again := p.open(t)
			if got := p.runs(t, again, "touch c"); got != (destination != "session") {
				t.Errorf("kept: %v", got)
			}
			if p.runs(t, again, "touch old") {
				t.Error("a rule that was replaced is back")
			}
		})
	}
}

func TestPermitKeepsComments(t *testing.T) {
	p := newPlace(t)
	p.write(t, ".claude/settings.local.json", "{\n  // mine\n  \"permissions\": {\"allow\": [\"Read\", \"Bash(touch a)\"]}\n}\n")
	s := p.open(t)
	p.permit(t, s, update("removeRules", "localSettings", troupe.Allow, ofBash("touch a")))
	if text := string(read(t, filepath.Join(p.dir, ".claude/settings.local.json"))); !strings.Contains(text, "// mine") || strings.Contains(text, "touch a") || !strings.Contains(text, "Read") {
		t.Error(text)
	}
	p.permit(t, s, update("removeRules", "localSettings", troupe.Allow)) // none is none
	if text := string(read(t, filepath.Join(p.dir, ".claude/settings.local.json"))); !strings.Contains(text, "Read") {
		t.Error(text)
	}
}

func TestPermitDirectoriesAndModes(t *testing.T) {
	p := newPlace(t)
	other := filepath.Join(filepath.Dir(p.dir), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	s := p.open(t)
	write := func(name string) bool {
		return !p.call(t, s, "Write", map[string]any{"file_path": filepath.Join(other, name), "content": "x"}).IsError
	}
	p.permit(t, s, host.PermissionUpdate{Type: "setMode", Mode: "acceptEdits", Destination: "session"})
	if write("a") {
		t.Error("it is not a directory to work in")
	}
	p.permit(t, s, host.PermissionUpdate{Type: "addDirectories", Directories: []string{other}, Destination: "localSettings"})
	if !write("b") {
		t.Error("the directory does not count")
	}
	if text := string(read(t, config.LocalSettings(p.dir))); !strings.Contains(text, "other") {
		t.Error(text)
	}
	p.permit(t, s, host.PermissionUpdate{Type: "removeDirectories", Directories: []string{other}, Destination: "localSettings"})
	if write("c") {
		t.Error("the directory counts still")
	}
	if text := string(read(t, config.LocalSettings(p.dir))); strings.Contains(text, "other") {
		t.Error(text)
	}
	if _, mode := s.Next(); mode != "acceptEdits" {
		t.Error(mode)
	}
}

func TestPermitRefuses(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	for name, u := range map[string]host.PermissionUpdate{
		"a rule that is none": update("addRules", "session", troupe.Allow, host.RuleValue{Tool: "B(ash"}),
		"another effect":      update("addRules", "session", "perhaps", ofBash("touch a")),
		"another place":       update("addRules", "policySettings", troupe.Allow, ofBash("touch a")),
		"another kind":        update("forgetRules", "session", troupe.Allow, ofBash("touch a")),
		"another mode":        {Type: "setMode", Mode: "yolo", Destination: "session"},
	} {
		if err := s.Permit(t.Context(), u); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	p.write(t, ".troupe/settings.local.json", "{broken")
	if err := s.Permit(t.Context(), update("addRules", "localSettings", troupe.Allow, ofBash("touch a"))); err == nil {
		t.Error("a file that is not understood was changed")
	}
	if p.runs(t, s, "touch a") {
		t.Error("the rule counts though it could not be written")
	}
}

// A directory that was given is not forgotten before it is in the log.
func TestAMoveThatIsNotLoggedIsNotForgotten(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	p.permit(t, s, host.PermissionUpdate{Type: "addDirectories", Directories: []string{p.user}, Destination: "session"})
	var told []troupe.Event
	for _, taken := range []bool{false, true, true} {
		s.MoveOn(func(ev troupe.Event, _ error) bool {
			told = append(told, ev)
			return taken
		})
	}
	want := troupe.Moved{Place: troupe.Place{Dir: s.Dir, Also: []string{p.user}}}
	if diff := cmp.Diff([]troupe.Event{want, want}, told); diff != "" {
		t.Error(diff)
	}
}
