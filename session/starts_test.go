package session_test

import (
	"testing"
	"time"

	"github.com/troupe-sh/troupe/session"
)

// A session is in use while a process has it open, and looking does not change that.
func TestInUse(t *testing.T) {
	root := t.TempDir()
	f, err := session.Create(root, t.TempDir(), "s1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if used, err := session.InUse(f.Dir); !used || err != nil {
			t.Errorf("open: %v, %v", used, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if used, err := session.InUse(f.Dir); used || err != nil {
		t.Errorf("closed: %v, %v", used, err)
	}
	again, err := session.Open(f.Dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
