package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteKeepsLineEndsAndMark(t *testing.T) {
	for _, test := range []struct{ name, before, content, want string }{
		{"plain", "a\n", "x\ny\n", "x\ny\n"},
		{"CRLF", "a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"},
		{"CRLF sent", "a\r\nb\r\n", "x\r\ny\r\n", "x\r\ny\r\n"},
		{"CRLF sent for plain", "a\nb\n", "x\r\ny\r\n", "x\r\ny\r\n"},
		{"mostly CRLF", "a\r\nb\r\nc\n", "x\ny\n", "x\r\ny\r\n"},
		{"mark", "\ufeffa\n", "x\n", "\ufeffx\n"},
		{"mark sent", "\ufeffa\n", "\ufeffx\n", "\ufeffx\n"},
		{"mark sent for plain", "a\n", "\ufeffx\n", "\ufeffx\n"},
		{"mark and CRLF", "\ufeffa\r\n", "x\ny", "\ufeffx\r\ny"},
		{"Latin-1", "caf\xe9\r\n", "x\n", "x\n"},
		{"to nothing", "a\r\n", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.txt", test.before)
			d.must(d.read("a.txt"))
			d.must(d.write("a.txt", test.content))
			d.has("a.txt", test.want)
		})
	}
}

func TestWriteResult(t *testing.T) {
	d := newDesk(t)
	path := filepath.Join(d.dir, "sub", "a.txt")
	for _, step := range []struct {
		content, text string
		data          map[string]any
	}{
		{"a\nb\n", "Made " + path + " (2 lines).", map[string]any{
			"type": "create", "filePath": path, "content": "a\nb\n", "structuredPatch": []any{},
		}},
		{"a", "Replaced the content of " + path + " (1 line).", map[string]any{
			"type": "update", "filePath": path, "content": "a", "originalFile": "a\nb\n",
			"structuredPatch": []any{map[string]any{
				"oldStart": 1.0, "oldLines": 2.0, "newStart": 1.0, "newLines": 1.0,
				"lines": []any{"-a", "-b", "+a", `\ No newline at end of file`},
			}},
		}},
	} {
		res, err := d.call(Write{Files: d.files}, args{"file_path": "sub/a.txt", "content": step.content})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Content.Text(); got != step.text {
			t.Errorf("text %q, want %q", got, step.text)
		}
		var got map[string]any
		if err := json.Unmarshal(res.Data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.data, got); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
	}
	d.has("sub/a.txt", "a")
}

func TestWriteReplacesNamedBinary(t *testing.T) {
	d := newDesk(t)
	d.put("a.bin", "\x00\x01\x02")
	_, err := d.write("a.bin", "text\n")
	wantErr(t, err, ErrNotRead)
	d.must(d.read("a.bin"))
	d.must(d.write("a.bin", "text\n"))
	d.has("a.bin", "text\n")
}

// The same content is no change: the file is left alone.
func TestWriteSameContent(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "one\n")
	path := filepath.Join(d.dir, "a.txt")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.write("a.txt", "one\n")
	wantErr(t, err, ErrNotRead) // the rule is the same
	d.must(d.read("a.txt"))
	d.must(d.write("a.txt", "one\n"))
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was written (%v)", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	d := newDesk(t)
	d.put("file", "a\n")
	for _, test := range []struct {
		in    args
		words []string
	}{
		{args{"content": "x"}, []string{`"file_path"`}},
		{args{"file_path": "a"}, []string{`"content"`}},
		{args{"file_path": "", "content": "x"}, []string{"file_path"}},
		{args{"file_path": "file/below", "content": "x"}, []string{"write", "file/below"}},
		{args{"file_path": ".", "content": "x"}, []string{"directory"}},
	} {
		_, err := d.call(Write{Files: d.files}, test.in)
		wantErr(t, err, nil, test.words...)
	}
	d.has("file", "a\n")
}
