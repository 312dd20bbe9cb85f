//go:build unix

package tool

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe without a writer would hold up whoever opens it.
func TestSearchOpensNoPipe(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{".git/HEAD": "", "a": "needle\n", "d/b": "needle\n"})
	for _, name := range []string{"pipe", "d/.gitignore", ".ignore", ".git/info"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := searchCall(t, &Grep{}, dir, map[string]any{"pattern": "needle"}); got != "a\nd/b" {
		t.Errorf("Grep: %q", got)
	}
	if got, _ := searchCall(t, &Grep{}, dir, map[string]any{"pattern": "needle", "path": "pipe"}); !strings.Contains(got, "named pipe") {
		t.Errorf("Grep of the pipe: %q", got)
	}
	if got, _ := searchCall(t, &Glob{}, dir, map[string]any{"pattern": "p*"}); got != "No files found" {
		t.Errorf("Glob: %q", got)
	}
	// One that takes the place of a file after the walk has seen the file.
	if _, _, err := openFound(filepath.Join(dir, "pipe")); err == nil || errors.Is(err, syscall.ENXIO) {
		t.Errorf("opened: %v", err)
	}
}
