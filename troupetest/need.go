package troupetest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// strictVariable, set to 1, makes a missing program fail the test that needs
// it: where every program is installed nothing may be skipped unseen.
const strictVariable = "TROUPE_TEST_STRICT"

// Need returns the path of an optional program such as tmux, node or rg. If
// there is none in PATH the test is skipped with the line
// "skipped: TEST needs PROGRAM"; with TROUPE_TEST_STRICT=1 it fails.
func Need(t testing.TB, program string) string {
	t.Helper()
	if path := find(program, filepath.SplitList(os.Getenv("PATH"))); path != "" {
		return path
	}
	line := fmt.Sprintf("skipped: %s needs %s", t.Name(), program)
	if os.Getenv(strictVariable) == "1" {
		t.Fatalf("%s, and %s=1 allows no skips", line, strictVariable)
	}
	record(line)
	t.Skip(line)
	return ""
}

// skipsVariable names a file that collects the lines of what was skipped, as
// go test shows them only with -v.
const skipsVariable = "TROUPE_TEST_SKIPS"

func record(line string) {
	path := os.Getenv(skipsVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return // the skip is told by go test -v all the same
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

// find looks a program up as a shell would. It is here because os/exec has
// one importer, package proc.
func find(program string, dirs []string) string {
	endings := []string{""}
	if runtime.GOOS == "windows" {
		endings = strings.Split(strings.ToLower(os.Getenv("PATHEXT")), ";")
	}
	for _, dir := range dirs {
		for _, ending := range endings {
			path := filepath.Join(dir, program+ending)
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if runtime.GOOS == "windows" || info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}
