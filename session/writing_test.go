//go:build unix

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
)

func pipeLog(t *testing.T) (l *Log, w *os.File) {
	t.Helper()
	f, err := Create(t.TempDir(), "/p", "a1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if l, err = f.Log(Lead); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	file := l.f
	l.f = w
	t.Cleanup(func() { l.f = file })
	return l, w
}

// A pipe takes what is written, but cannot be synced: so it shows what is.
func TestRequestsAndEndsAreSynced(t *testing.T) {
	l, _ := pipeLog(t)
	if err := l.Append(troupe.Moved{}); err != nil {
		t.Fatal(err)
	}
	for _, ev := range []troupe.Event{troupe.Sent{Body: []byte("{}")}, troupe.Ended{Reason: troupe.Done}} {
		if err := l.Append(ev); !errors.Is(err, ErrLog) {
			t.Errorf("%T did not sync the log: %v", ev, err)
		}
	}
}

func TestHalfARecordIsNotJoinedByTheNext(t *testing.T) {
	l, w := pipeLog(t)
	if err := w.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	big := troupe.Received{ID: "1", From: "user", Message: troupe.Say(troupe.User, strings.Repeat("x", 1<<20))}
	if err := l.Append(big); !errors.Is(err, ErrLog) || l.size == 0 || !l.torn {
		t.Errorf("%v after %d bytes, torn: %v", err, l.size, l.torn)
	}
}

func TestARequestAfterOneThatCouldNotBeWrittenIsWhole(t *testing.T) {
	s := &sentFile{path: filepath.Join(t.TempDir(), "x.sent.jsonl")}
	if err := s.add(time.Now(), []byte("one")); err != nil {
		t.Fatal(err)
	}
	_ = s.f.Close()
	if err := s.add(time.Now(), []byte("one two")); err == nil {
		t.Fatal("a closed file was written")
	}
	s.f = nil
	if err := s.add(time.Now(), []byte("one two three")); err != nil {
		t.Fatal(err)
	}
	_ = s.close()
	raw, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	var last sentLine
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || last.Keep != 0 {
		t.Errorf("it builds on what may not be there: %s, %v", raw, err)
	}
}
