package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// A place that cannot be looked into may hold sessions: it is told, and does
// not look empty.
func TestAPlaceThatCannotBeReadIsNotEmpty(t *testing.T) {
	f := create(t)
	add(t, lead(t, f), troupe.Ended{Reason: troupe.Done})
	closed(t, f)
	project := filepath.Dir(f.Dir)
	root := filepath.Dir(project)
	// A link to a file lies where a project should be.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(root, "broken")); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Find(root, "0"); err == nil || errors.Is(err, session.ErrNotFound) || !strings.Contains(err.Error(), "broken") {
		t.Errorf("find: %v", err)
	}
	if info, err := session.Find(root, f.ID); err != nil || info.ID != f.ID {
		t.Errorf("one that is there: %v, %v", info, err)
	}
	all, err := session.List(root, "")
	if len(all) > 1 || err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("list: %v, %v", all, err)
	}
	if _, err := session.List(file, "/p"); err == nil {
		t.Error("a file for the root is an empty list")
	}
	if all, err := session.List(filepath.Join(root, "none"), ""); err != nil || all != nil {
		t.Errorf("a root that is not there: %v, %v", all, err)
	}
}

// Where its directory cannot be renamed a session is removed in place.
func TestRemoveInPlace(t *testing.T) {
	f := create(t)
	lead(t, f)
	closed(t, f)
	// What has the name already keeps the directory from being renamed.
	if err := os.MkdirAll(filepath.Join(filepath.Dir(f.Dir), ".removed-"+f.ID, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := session.Remove(f.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
