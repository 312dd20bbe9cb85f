package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, want := range []string{"one", "two, longer", ""} {
		if err := Replace(path, []byte(want), 0o600, Owner{}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || !private(info) {
		t.Errorf("others can read it: %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What could not be put in place leaves the old content and nothing beside it.
func TestReplaceThatFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil { // nothing can take its place
		t.Fatal(err)
	}
	if err := Replace(path, []byte("x"), 0o600, Owner{}); err == nil {
		t.Error("a directory was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRenameAndRemove(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.MkdirAll(filepath.Join(a, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Rename(a, b); err != nil {
		t.Fatal(err)
	}
	if err := Remove(b); err == nil {
		t.Error("removed a directory with something in it")
	}
	if err := RemoveAll(b); err != nil {
		t.Fatal(err)
	}
	if err := Remove(b); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// What another program holds is tried again for about a second, with waits
// that grow; anything else is told at once.
func TestRetry(t *testing.T) {
	errBusy, errOther := errors.New("busy"), errors.New("other")
	isBusy := func(err error) bool { return errors.Is(err, errBusy) }
	for name, tt := range map[string]struct {
		fails int   // how often
		with  error // how
		calls int
		want  error
		least time.Duration
		most  time.Duration
	}{
		"at once":     {0, nil, 1, nil, 0, 0},
		"free again":  {3, errBusy, 4, nil, 35 * time.Millisecond, 35 * time.Millisecond},
		"never free":  {1000, errBusy, 9, errBusy, time.Second, 1500 * time.Millisecond},
		"other error": {1000, errOther, 1, errOther, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				err := retry(isBusy, func() error {
					if calls++; calls <= tt.fails {
						return fmt.Errorf("rename: %w", tt.with)
					}
					return nil
				})
				if took := time.Since(start); !errors.Is(err, tt.want) || calls != tt.calls || took < tt.least || took > tt.most {
					t.Errorf("%v after %d calls and %v", err, calls, took)
				}
			})
		})
	}
}

func TestExplain(t *testing.T) {
	unknown := errors.New("unknown")
	if err := Explain(nil); err != nil {
		t.Error(err)
	}
	if err := Explain(unknown); err != unknown {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		err  error
		says string
		full bool
	}{
		"disk":      {errNoSpace, "make room", true},
		"limit":     {errTooLong, tooLongSays, true},
		"read-only": {errReadOnly, "set TROUPE_HOME", false},
		"forbidden": {fs.ErrPermission, "set TROUPE_HOME", false},
		"in a file": {errInFile, "set TROUPE_HOME", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Explain(&fs.PathError{Op: "write", Path: "/p", Err: tt.err})
			if !strings.Contains(err.Error(), "/p") || strings.Count(err.Error(), tt.says) != 1 || errors.Is(err, ErrFull) != tt.full || !errors.Is(err, tt.err) {
				t.Errorf("%v", err)
			}
			if again := Explain(fmt.Errorf("more: %w", err)); tt.full && strings.Count(again.Error(), tt.says) != 1 {
				t.Errorf("said twice: %v", again)
			}
		})
	}
}

// Who reads while the file is replaced sees one content or the other.
func TestReplaceIsOneStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	contents := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 200_000)}
	if err := Replace(path, contents[0], 0o600, Owner{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for i := range 50 {
			if err := Replace(path, contents[i%2], 0o600, Owner{}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
