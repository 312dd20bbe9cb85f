//go:build unix

package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// limit bounds the size of files that this process writes until the test ends.
func limit(t *testing.T, bytes uint64) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	now := was
	now.Cur = bytes
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
	})
}

// What there is no room for leaves no half of a record behind, neither in the
// log nor among the requests, and the error says what to do.
func TestNoRoomLeavesNoHalf(t *testing.T) {
	f, err := Create(t.TempDir(), "/p", "a1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := f.Log(Lead)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 10_000)
	said := func(text string) troupe.Event {
		return troupe.Received{ID: text[:1], From: "user", Message: troupe.Say(troupe.User, text)}
	}
	for _, ev := range []troupe.Event{said("1"), troupe.Sent{Body: []byte("one")}} {
		if err := l.Append(ev); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("full", func(t *testing.T) {
		limit(t, 5_000)
		for _, ev := range []troupe.Event{said("2" + long), troupe.Sent{Body: []byte("two" + long)}} {
			if err := l.Append(ev); !errors.Is(err, ErrLog) || !errors.Is(err, statefile.ErrFull) || !strings.Contains(err.Error(), f.Dir) {
				t.Errorf("%v", err)
			}
		}
	})
	for _, ev := range []troupe.Event{said("3"), troupe.Sent{Body: []byte("one three")}} {
		if err := l.Append(ev); err != nil {
			t.Fatal(err)
		}
	}
	s, bad, err := Load(LogPath(f.Dir, Lead))
	if err != nil || bad != nil || len(s.Request.Messages) != 2 {
		t.Errorf("%d messages, damage %v, %v", len(s.Request.Messages), bad, err)
	}
	n := 0
	for r, err := range Requests(f.Dir, Lead) {
		if n++; err != nil {
			t.Errorf("request %d: %q, %v", n, r.Body, err)
		}
	}
	if n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	if raw, err := os.ReadFile(filepath.Join(f.Dir, "lead.jsonl")); err != nil || strings.Contains(string(raw), "xxx") {
		t.Errorf("half of it stayed: %d bytes, %v", len(raw), err)
	}
}
