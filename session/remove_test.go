package session_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

func TestDamagedRequestsAreTold(t *testing.T) {
	f := create(t)
	add(t, lead(t, f), troupe.Sent{Body: []byte("first")}, troupe.Sent{Body: []byte("first and second")})
	closed(t, f)
	path := filepath.Join(f.Dir, "lead.sent.jsonl")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, []byte("first"), []byte("worst"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for r, err := range session.Requests(f.Dir, session.Lead) {
		if err == nil {
			t.Errorf("took %q for what was sent", r.Body)
		}
	}
}

func TestANewerSessionIsListed(t *testing.T) {
	f := create(t)
	closed(t, f)
	if err := os.WriteFile(session.LogPath(f.Dir, session.Lead), []byte(`{"V":2}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := session.List(filepath.Dir(filepath.Dir(f.Dir)), "")
	if err != nil || len(all) != 1 || !strings.Contains(all[0].Prompt, "newer") {
		t.Errorf("listed %v, %v", all, err)
	}
}

// While it is removed a session is nobody's.
func TestASessionThatIsBeingRemovedIsInUse(t *testing.T) {
	const n = 5000
	f := create(t)
	for i := range n {
		if err := os.WriteFile(filepath.Join(f.Dir, "agents", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What is removed after the agents, so that the lock is still wanted then.
	for i := range n {
		if err := os.WriteFile(filepath.Join(f.Dir, "z"+fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, f)
	done := make(chan error, 1)
	go func() { done <- session.Remove(f.Dir) }()
	for _, sign := range []string{"agents", "owner"} {
		for {
			if _, err := os.Stat(filepath.Join(f.Dir, sign)); err != nil {
				break
			}
		}
		if got, err := session.Open(f.Dir, still); err == nil {
			t.Errorf("opened after %s was removed", sign)
			_ = got.Close()
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.Dir); err == nil {
		t.Error("it is still there")
	}
}
