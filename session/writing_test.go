//go:build unix

package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

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
	if err := s.add(time.Now(), troupe.Sent{Body: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	_ = s.f.Close()
	if err := s.add(time.Now(), troupe.Sent{Body: []byte("one two")}); err == nil {
		t.Fatal("a closed file was written")
	}
	s.f = nil
	if err := s.add(time.Now(), troupe.Sent{Body: []byte("one two three")}); err != nil {
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

// Bodies that share their beginning with the one before are written as what is
// new in them, whoever tells how much that is; what is read is what was sent.
func TestBodiesOfASeriesComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "sent")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := sentFile{path: sentPath(LogPath(dir, Lead))}
		var want [][]byte
		var last [2][]byte // by series
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			series := rapid.IntRange(0, 1).Draw(t, "series")
			before := last[series]
			same := rapid.IntRange(0, len(before)).Draw(t, "same")
			for same > 0 && same < len(before) && !utf8.RuneStart(before[same]) {
				same--
			}
			body := append(slices.Clone(before[:same]), rapid.SliceOfN(rapid.SampledFrom([]byte("abcd")), 0, 1500).Draw(t, "rest")...)
			if rapid.IntRange(0, 5).Draw(t, "long") == 0 {
				body = append(body, bytes.Repeat([]byte("öö日本語"), window/8)...)
			}
			sent := troupe.Sent{Body: body}
			if rapid.Bool().Draw(t, "told") {
				sent.Series, sent.Same = series, same
			}
			if rapid.IntRange(0, 4).Draw(t, "reopened") == 0 {
				if err := s.close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.add(time.Unix(0, 0), sent); err != nil {
				t.Fatal(err)
			}
			if sent.Series != nil && len(s.last) > 2*window+utf8.UTFMax {
				t.Fatalf("%d bytes of a body of %d are kept", len(s.last), len(body))
			}
			want = append(want, body)
			last[series] = body
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		i := 0
		for r, err := range Requests(dir, Lead) {
			if err != nil || !bytes.Equal(r.Body, want[i]) {
				t.Fatalf("request %d: %v", i, err)
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("%d of %d requests are there", i, len(want))
		}
	})
}

// A session that goes on does not write its whole conversation once more.
func TestReopenedBodiesAreNotWrittenAgain(t *testing.T) {
	s := sentFile{path: filepath.Join(t.TempDir(), "x.sent.jsonl")}
	body := []byte(strings.Repeat("what was said before ", 5000))
	size := func() int64 {
		info, err := os.Stat(s.path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	add := func(text string) {
		t.Helper()
		body = append(body, text...)
		if err := s.add(time.Unix(0, 0), troupe.Sent{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	add("one")
	add("two")
	before := size()
	for range 20 {
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		add(" and more")
	}
	if grown := size() - before; grown > int64(len(body))/2 {
		t.Errorf("20 requests of 9 bytes more each took %d bytes, of a conversation of %d", grown, len(body))
	}
	// A body that begins otherwise is written whole, and so is one after a torn line.
	_ = s.close()
	other := []byte(strings.Replace(string(body), "said", "SAID", 1))
	if err := s.add(time.Unix(0, 0), troupe.Sent{Body: other}); err != nil {
		t.Fatal(err)
	}
	_ = s.close()
	if err := os.Truncate(s.path, size()-3); err != nil {
		t.Fatal(err)
	}
	if err := s.add(time.Unix(0, 0), troupe.Sent{Body: other}); err != nil {
		t.Fatal(err)
	}
	_ = s.close()
	raw, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), `"Keep":0`); n != 3 {
		t.Errorf("%d bodies stand for themselves, want 3", n)
	}
}
