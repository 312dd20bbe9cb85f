package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

func numberedLines(from, to int) string {
	var out strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&out, "%6d\tline %d\n", i, i)
	}
	return out.String()
}

func plainLines(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "line %d\n", i+1)
	}
	return out.String()
}

func TestReadShows(t *testing.T) {
	long := strings.Repeat("é", 2500)
	cut := "     1\t" + strings.Repeat("é", 2000) + " [line cut: 500 more characters]\n"
	notUTF8 := "[the file is not UTF-8 (perhaps Latin-1): what could not be shown is \uFFFD, and Edit refuses it]\n"
	isUTF16 := "[the file is UTF-16, not UTF-8; Edit refuses it]\n"
	for _, test := range []struct {
		name, content string
		offset, limit int
		want          string
	}{
		{"whole", plainLines(3), 0, 0, numberedLines(1, 3)},
		{"no line end at the end", "a\n\nb", 0, 0, "     1\ta\n     2\t\n     3\tb\n"},
		{"2000 lines", plainLines(2000), 0, 0, numberedLines(1, 2000)},
		{"more lines", plainLines(2001), 0, 0, numberedLines(1, 2000) + "[lines 1-2000 of 2001; go on with offset 2001]\n"},
		{"the rest", plainLines(2001), 2001, 0, numberedLines(2001, 2001)},
		{"a part", plainLines(20), 5, 3, numberedLines(5, 7) + "[lines 5-7 of 20; go on with offset 8]\n"},
		{"the last part", plainLines(20), 18, 3, numberedLines(18, 20)},
		{"CRLF and mark", "\ufeffa\r\nb\r\n", 0, 0, "     1\ta\n     2\tb\n"},
		{"lone CR", "a\rb\n", 0, 0, "     1\ta\rb\n"},
		{"long line", long + "\nb\n", 0, 0, cut + "     2\tb\n"},
		{"long line with CRLF", long[:4000] + "\r\nb\r\n", 0, 0, "     1\t" + long[:4000] + "\n     2\tb\n"},
		{"longer than all buffers", strings.Repeat("x", 300_000), 0, 0, "     1\t" + strings.Repeat("x", 2000) + " [line cut: 298000 more characters]\n"},
		{"Latin-1", "caf\xe9\nok\n", 0, 0, "     1\tcaf\uFFFD\n     2\tok\n" + notUTF8},
		{"Latin-1 far behind", strings.Repeat("ok\n", 40000) + "caf\xe9\n", 1, 1, "     1\tok\n[lines 1-1 of 40001; go on with offset 2]\n" + notUTF8},
		{"UTF-16 little", "\xff\xfea\x00\n\x00\xac\x20\x3d\xd8\x00\xde\n\x00", 0, 0, "     1\ta\n     2\t€😀\n" + isUTF16},
		{"UTF-16 big", "\xfe\xff\x00a\x00\r\x00\n\xd8\x3d\x00x", 0, 0, "     1\ta\n     2\t\uFFFDx\n" + isUTF16},
		{"NUL far behind", strings.Repeat("ok\n", 3000) + "a\x00b\n", 3001, 0, "  3001\ta\uFFFDb\n"},
		{"words of formats", "BM is no picture, ID3 no sound\n", 0, 0, "     1\tBM is no picture, ID3 no sound\n"},
		{"escapes", "\x1b[1mbold\x1b[0m\n", 0, 0, "     1\t\x1b[1mbold\x1b[0m\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.txt", test.content)
			in := args{"file_path": "a.txt"}
			if test.offset != 0 {
				in["offset"] = test.offset
			}
			if test.limit != 0 {
				in["limit"] = test.limit
			}
			res, err := d.call(Read{Files: d.files, Limit: 100_000}, in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, res.Content.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A character of several bytes that lies across the pieces in which a file is
// read is neither damaged nor taken for an error.
func TestReadCharacterAcrossBuffers(t *testing.T) {
	for shift := range 4 {
		d := newDesk(t)
		d.put("a.txt", strings.Repeat("x", shift)+strings.Repeat("😀", 50_000)+"\nend\n")
		text := d.must(d.read("a.txt"))
		if !utf8.ValidString(text) || strings.Contains(text, "\uFFFD") || strings.Contains(text, "UTF-8") {
			t.Errorf("shift %d: %.100q … %q", shift, text, text[len(text)-200:])
		}
		want := fmt.Sprintf(" [line cut: %d more characters]\n     2\tend\n", 50_000+shift-2000)
		if !strings.HasSuffix(text, want) {
			t.Errorf("shift %d: ends with %q, want %q", shift, text[len(text)-80:], want)
		}
	}
}

func TestReadNamesBinary(t *testing.T) {
	for name, test := range map[string]struct{ content, kind string }{
		"BMP":      {"BM\x00\x00" + strings.Repeat("\x00", 2044), "image/bmp, 2.0 KB"},
		"PDF":      {"%PDF-1.7\nall words here\n", "application/pdf, 24 bytes"},
		"MIDI":     {"MThd\x00\x00\x00\x06\xf0\xf1", "audio/midi, 10 bytes"},
		"program":  {"\x7fELF\x02\x01\x01\x00\x00", "application/octet-stream, 9 bytes"},
		"text+NUL": {"words\x00words", "application/octet-stream, 11 bytes"},
		"control":  {"a\x01\x02\x03\x04b", "application/octet-stream, 6 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.bin", test.content)
			text := d.must(d.read("a.bin"))
			if want := filepath.Join(d.dir, "a.bin") + " is a binary file (" + test.kind + "); its content is not shown."; text != want {
				t.Errorf("got  %q\nwant %q", text, want)
			}
		})
	}
}

func TestReadEmpty(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "")
	if text := d.must(d.read("a.txt")); text != filepath.Join(d.dir, "a.txt")+" is empty." {
		t.Errorf("got %q", text)
	}
}

func TestReadRefuses(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"main.go", "main_test.go", "maine.go", "mail.go", "README.md", "config.yaml"} {
		d.put(name, "a\nb\n")
	}
	for _, test := range []struct {
		in    args
		kind  error
		words []string
	}{
		{args{"file_path": "Main.go"}, fs.ErrNotExist, []string{"near names: ", "main.go"}},
		{args{"file_path": "config.yml"}, fs.ErrNotExist, []string{filepath.Join(d.dir, "config.yaml")}},
		{args{"file_path": "no/such/dir"}, fs.ErrNotExist, []string{"nor does its directory"}},
		{args{"file_path": "zzz"}, fs.ErrNotExist, []string{"zzz"}},
		{args{"file_path": "."}, errDirectory, []string{"Glob"}},
		{args{"file_path": ""}, nil, []string{"file_path"}},
		{args{}, nil, []string{"file_path"}},
		{args{"file_path": "main.go", "offset": 3}, nil, []string{"2 lines", "offset 3"}},
		{args{"file_path": "main.go", "offset": -1}, nil, []string{"offset"}},
		{args{"file_path": "main.go", "limit": -1}, nil, []string{"limit"}},
		{args{"file_path": "main.go/x"}, nil, []string{"main.go"}},
		{args{"file_path": "a\x00b"}, nil, []string{"read"}},
	} {
		res, err := d.call(Read{Files: d.files}, test.in)
		if err == nil {
			t.Errorf("%v: no error but %q", test.in, res.Content.Text())
			continue
		}
		wantErr(t, err, test.kind, test.words...)
	}
	_, err := d.read("main.goo")
	if n := strings.Count(err.Error(), d.dir) - 1; n != 3 {
		t.Errorf("%d near names in %q, want 3", n, err)
	}
}

// No part of a file gives more than the limit, and following the notices from
// part to part shows each line once.
func TestReadStaysBelowLimit(t *testing.T) {
	d := newDesk(t)
	var content strings.Builder
	for i := range 300 {
		fmt.Fprintf(&content, "%d %s\n", i, strings.Repeat("ü", i))
	}
	content.WriteString(strings.Repeat("y", 5000) + "\n")
	d.put("a.txt", content.String())
	for _, limit := range []int{1000, 5000, DefaultLimit} {
		lines, offset := 0, 1
		for offset > 0 {
			res, err := d.call(Read{Files: d.files, Limit: limit}, args{"file_path": "a.txt", "offset": offset})
			if err != nil {
				t.Fatal(err)
			}
			text := res.Content.Text()
			if n := utf8.RuneCountInString(text); n > limit {
				t.Fatalf("limit %d: %d characters", limit, n)
			}
			offset = 0
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "[lines") {
					if _, err := fmt.Sscanf(line[strings.Index(line, "offset"):], "offset %d", &offset); err != nil {
						t.Fatal(err)
					}
					continue
				}
				lines++
				if want := fmt.Sprintf("%6d\t", lines); !strings.HasPrefix(line, want) {
					t.Fatalf("line %.30q, want %q", line, want)
				}
			}
		}
		if lines != 301 {
			t.Errorf("limit %d: %d lines seen, want 301", limit, lines)
		}
	}
}

// S126: a large file is never loaded, only streamed, and the huge one is not
// even streamed behind what is shown.
func TestReadLargeFiles(t *testing.T) {
	for name, test := range map[string]struct {
		size int64
		last string
		huge bool
	}{
		"50 MB": {50 << 20, "of 500002; go on with offset 3]\n", false},
		"5 GB":  {5 << 30, "[a file of more than 64 MB can only be read in parts; Write and Edit refuse it]\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			path := filepath.Join(d.dir, "big.txt")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(strings.Repeat(strings.Repeat("x", 99)+"\n", 500_000)); err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(test.size); err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte("\nlast"), test.size-5); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res, err := d.call(Read{Files: d.files}, args{"file_path": "big.txt", "limit": 2})
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
				t.Errorf("%d MB allocated", used>>20)
			}
			if text := res.Content.Text(); !strings.HasSuffix(text, test.last) {
				t.Errorf("got %q, want it to end with %q", text, test.last)
			}
			_, err = d.edit("big.txt", "nowhere", "x")
			if !test.huge {
				wantErr(t, err, nil, "not in the file") // it was looked for
				return
			}
			wantErr(t, err, errTooLarge, "64 MB")
			_, err = d.write("big.txt", "x")
			wantErr(t, err, errTooLarge)
		})
	}
}

// Of a file too large to be changed no more is read than is shown.
func TestReadLeavesTheRestOfHugeFiles(t *testing.T) {
	d := newDesk(t)
	d.put("big.txt", plainLines(20_000))
	path := filepath.Join(d.dir, "big.txt")
	if err := os.Truncate(path, maxFileSize+1); err != nil {
		t.Fatal(err)
	}
	f, info, err := openRegular(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := openSource(f, info)
	if err != nil {
		t.Fatal(err)
	}
	v := newView(10, 5, 0)
	if err := v.fill(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, whole := s.digest(); whole || v.shown != 5 || s.passed > 1<<20 {
		t.Errorf("%d lines shown, %d bytes read, hash of all %v", v.shown, s.passed, whole)
	}
	// Read to the end, it has no hash either.
	if err := newView(1<<30, 0, 0).fill(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if _, whole := s.digest(); whole || !s.ended {
		t.Errorf("ended %v, hash of all %v", s.ended, whole)
	}
}

// Neither reading nor waiting for another agent's change outlasts the ctx, and
// nothing is changed after it.
func TestCallsEndWithContext(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", plainLines(10))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	d.must(d.read("a.txt"))
	path := filepath.Join(d.dir, "a.txt")
	call := func(tool troupe.Tool) {
		t.Helper()
		raw, err := json.Marshal(args{"file_path": "a.txt", "content": "x", "old_string": "line 1\n", "new_string": "x"})
		if err != nil {
			t.Fatal(err)
		}
		c := &troupe.Call{ToolUse: troupe.ToolUse{Input: raw}, Place: troupe.Place{Dir: d.dir}}
		if _, err := tool.Call(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: error %v, want %v", tool, err, context.Canceled)
		}
	}
	call(Read{Files: d.files})
	call(Write{Files: d.files})
	unlock, err := d.files.journal.lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	call(Edit{Files: d.files})
	unlock()
	d.has("a.txt", plainLines(10))
	if n := len(d.files.journal.locks); n != 0 {
		t.Errorf("%d locks left", n)
	}
}
