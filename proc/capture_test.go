package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCapture(t *testing.T) {
	for name, tt := range map[string]struct {
		writes     []string
		head, tail string
		missing    int64
		file       string // content; "" if there is none
		cut        bool
	}{
		"nothing":       {},
		"fits":          {writes: []string{"abc", "def"}, head: "abcd", tail: "ef"},
		"fits exactly":  {writes: []string{"abcdefgh"}, head: "abcd", tail: "efgh"},
		"one too many":  {writes: []string{"abcdefgh", "i"}, head: "abcd", tail: "fghi", missing: 1, file: "abcdefghi"},
		"at once":       {writes: []string{"abcdefghijkl"}, head: "abcd", tail: "ijkl", missing: 4, file: "abcdefghijkl"},
		"limit":         {writes: []string{"abcdefghijkl", "mnop"}, head: "abcd", tail: "mnop", missing: 8, file: "abcdefghijklmnop"},
		"over limit":    {writes: []string{"abcdefghijkl", "mnopq", "r"}, head: "abcd", tail: "opqr", missing: 10, file: "abcdefghijklmnop" + fmt.Sprintf(cutMark, 16), cut: true},
		"one over limi": {writes: []string{"abcdefghijklmnop", "q"}, head: "abcd", tail: "nopq", missing: 9, file: "abcdefghijklmnop" + fmt.Sprintf(cutMark, 16), cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "output")
			c := &Capture{Dir: dir, Memory: 8, Limit: 16}
			for _, w := range tt.writes {
				if n, err := c.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			err := c.Close()
			if err != nil {
				t.Fatal(err)
			}
			got := c.Output()
			size := int64(len(strings.Join(tt.writes, "")))
			if string(got.Head) != tt.head || string(got.Tail) != tt.tail || got.Missing != tt.missing || got.Size != size || got.Cut != tt.cut {
				t.Errorf("got %+v (%q, %q)", got, got.Head, got.Tail)
			}
			if tt.file == "" {
				if files, _ := os.ReadDir(dir); got.Path != "" || len(files) > 0 {
					t.Errorf("a file was left: %s, %v", got.Path, files)
				}
				return
			}
			data, err := os.ReadFile(got.Path)
			if err != nil || string(data) != tt.file {
				t.Errorf("the file has %q, %v; want %q", data, err, tt.file)
			}
			if st, err := os.Stat(got.Path); err == nil && st.Mode().Perm()&0o077 != 0 {
				t.Errorf("the file has mode %v", st.Mode())
			}
		})
	}
}

func TestCaptureOnDemand(t *testing.T) {
	c := &Capture{Dir: t.TempDir()}
	_, _ = c.Write([]byte("a"))
	if err := c.File(); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("b"))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("too late"))
	got := c.Output()
	if data, err := os.ReadFile(got.Path); err != nil || string(data) != "ab" {
		t.Errorf("the file has %q, %v", data, err)
	}
	if err := c.Close(); err != nil || got.Size != 2 {
		t.Errorf("second Close: %v; output %+v", err, got)
	}
}

// A file that cannot be written costs the file, not the command.
func TestCaptureWithoutAFile(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Capture{Dir: blocked, Memory: 8}
	for range 3 {
		if n, err := c.Write([]byte("0123456789")); n != 10 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	err, got := c.Close(), c.Output()
	if err == nil || got.Path != "" || string(got.Head)+string(got.Tail) != "01236789" || got.Missing != 22 {
		t.Errorf("Close = %+v, %v", got, err)
	}
}

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		memory := rapid.IntRange(1, 40).Draw(t, "memory")
		writes := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 60)).Draw(t, "writes")
		c := &Capture{Memory: memory, Dir: dir}
		for _, w := range writes {
			_, _ = c.Write(w)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		got := c.Output()
		all := bytes.Join(writes, nil)
		if !bytes.HasPrefix(all, got.Head) || !bytes.HasSuffix(all, got.Tail) {
			t.Fatalf("head %q and tail %q of %q", got.Head, got.Tail, all)
		}
		if kept := min(memory, len(all)); len(got.Head)+len(got.Tail) != kept || got.Missing != int64(len(all)-kept) {
			t.Fatalf("kept %d+%d bytes, missing %d, of %d", len(got.Head), len(got.Tail), got.Missing, len(all))
		}
		if got.Path != "" {
			if data, err := os.ReadFile(got.Path); err != nil || !bytes.Equal(data, all) {
				t.Fatalf("the file has %q, %v; want %q", data, err, all)
			}
			_ = os.Remove(got.Path)
		}
	})
}
