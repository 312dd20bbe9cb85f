package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The examples of the documentation load, and all they say counts; and every
// key that counts is in the table.
func TestDocumentationOfSettings(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "doc", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllStringSubmatch(string(raw), -1)
	if len(examples) != 6 {
		t.Errorf("%d examples, want 6", len(examples))
	}
	said := map[string]bool{}
	for _, e := range examples {
		w := newWorld(t, "")
		w.write(t, "home/.claude/settings.json", e[1])
		cfg := w.load(t)
		for _, lines := range [][]string{w.problems(cfg), cfg.Warnings, cfg.Unused, cfg.Elsewhere} {
			wantNone(t, "of an example", lines)
		}
		for _, entry := range cfg.Entries() {
			top, below, _ := strings.Cut(entry.Key, ".")
			said[top] = true
			if top == "permissions" {
				said[below] = true
			}
		}
	}
	for _, key := range settingsKeys() {
		if !said[key] {
			t.Errorf("no example shows %s", key)
		}
		if key != "permissions" && key != "network" && !strings.Contains(string(raw), "| `"+key+"` |") {
			t.Errorf("%s is not in the table", key)
		}
	}
	for _, key := range permissionKeys() {
		if !strings.Contains(string(raw), "`permissions."+key+"`") {
			t.Errorf("permissions.%s is not in the table", key)
		}
	}
}
