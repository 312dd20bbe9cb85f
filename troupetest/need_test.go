package troupetest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// stopped is a testing.TB that records how Need ends.
type stopped struct {
	testing.TB
	skip, fail string
}

func (s *stopped) Helper()                   {}
func (s *stopped) Name() string              { return "TestX" }
func (s *stopped) Skip(args ...any)          { s.skip, _ = args[0].(string) }
func (s *stopped) Fatalf(f string, a ...any) { s.fail, _ = a[0].(string) }

func TestNeed(t *testing.T) {
	dir := t.TempDir()
	name := "program"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(strictVariable, "")
	told := filepath.Join(dir, "told")
	t.Setenv(skipsVariable, told)
	if got := Need(t, "program"); got != path {
		t.Errorf("got %q, want %q", got, path)
	}
	for _, missing := range []string{"absent", "directory"} {
		s := &stopped{TB: t}
		Need(s, missing)
		if want := "skipped: TestX needs " + missing; s.skip != want || s.fail != "" {
			t.Errorf("got %q and %q, want %q", s.skip, s.fail, want)
		}
	}
	lines, err := os.ReadFile(told)
	if want := "skipped: TestX needs absent\nskipped: TestX needs directory\n"; err != nil || string(lines) != want {
		t.Errorf("told %q, %v; want %q", lines, err, want)
	}
	t.Setenv(strictVariable, "1")
	s := &stopped{TB: t}
	Need(s, "absent")
	if !strings.Contains(s.fail, "needs absent") {
		t.Errorf("strict: got %q", s.fail)
	}
}
