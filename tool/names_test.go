package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// oddNames are names that some program somewhere could not stand.
func oddNames() []string {
	return []string{
		"with space", " lead", "trail ", "-flag", "--", "a'b\"c`d", "$HOME", "a;b&c|d", "a*b?[c]{d,e}", `back\slash`, "#x", "~", "!", "a\tb", "a\nb", "a\r\nb",
		"größe", "gro\u0308ße", "中文 文件", "かな", "ملف", "עברית", "файл", "हिन्दी", "😀👩‍👧", "\u202eabc", "\u200b", "…", strings.Repeat("é", 120), "%20", "a:b", "CON",
	}
}

// Each file tool takes and gives every name as it is.
func TestFileToolsTakeAnyName(t *testing.T) {
	for _, name := range oddNames() {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			if err := os.Mkdir(filepath.Join(d.dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(name, name+".txt")
			if len(name) > 200 {
				file = filepath.Join(name, "x.txt")
			}
			d.must(d.write(file, "needle\n"))
			d.must(d.edit(file, "needle", "needle two"))
			if err := os.WriteFile(filepath.Join(d.dir, file), []byte("needle three\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if text := d.must(d.read(file)); text != "     1\tneedle three\n" {
				t.Errorf("read %q", text)
			}
			d.must(d.edit(filepath.Join(d.dir, file), "three", "four"))
			d.has(file, "needle four\n")

			for _, tool := range []troupe.Tool{&Glob{}, &Grep{}} {
				for _, at := range []string{"", name, filepath.Join(d.dir, name)} {
					in := args{"pattern": "**/*.txt"}
					if tool.Spec().Name == "Grep" {
						in = args{"pattern": "needle"}
					}
					if at != "" {
						in["path"] = at
					}
					res, err := d.call(tool, in)
					if err != nil {
						t.Fatal(err)
					}
					var data struct{ Filenames []string }
					if err := json.Unmarshal(res.Data, &data); err != nil {
						t.Fatal(err)
					}
					if len(data.Filenames) != 1 || !slices.Contains([]string{file, filepath.Join(d.dir, file)}, filepath.FromSlash(data.Filenames[0])) {
						t.Errorf("%s in %q: %q, want %q", tool.Spec().Name, at, data.Filenames, file)
					}
				}
			}
			notebook := filepath.Join(name, "n.ipynb")
			d.must(d.write(notebook, jupyter))
			if _, err := d.call(NotebookEdit{Files: d.files}, args{"notebook_path": notebook, "cell_id": "calc", "new_source": "x"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is not UTF-8 is never encoded anew: an edit is refused and the bytes
// stay.
func TestOtherEncodingsStay(t *testing.T) {
	for name, content := range map[string]string{
		"Latin-1": "caf\xe9 one\n", "UTF-16": "\xff\xfeo\x00n\x00e\x00\n\x00", "UTF-16 big": "\xfe\xff\x00o\x00n\x00e", "Shift JIS": "\x93\xfa\x96{ one\n", "a byte": strings.Repeat("one \n", 30_000) + "\x80",
		"half a character": "one é"[:len("one é")-1], "surrogate": "one \xed\xa0\x80", "too long form": "one \xc0\xaf",
	} {
		d := newDesk(t)
		d.put("a.txt", content)
		d.must(d.read("a.txt"))
		_, err := d.edit("a.txt", "one", "two")
		wantErr(t, err, nil, "not UTF-8")
		d.has("a.txt", content)
		if _, err := d.call(&Grep{}, args{"pattern": "one", "output_mode": "content"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		d.has("a.txt", content)
	}
}

// A notebook keeps mode, links and byte order mark, as other files do.
func TestNotebookEditKeepsTheFile(t *testing.T) {
	d := newDesk(t)
	d.put("real.ipynb", "\ufeff"+jupyter)
	if err := os.Chmod(filepath.Join(d.dir, "real.ipynb"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.ipynb", filepath.Join(d.dir, "n.ipynb")); err != nil {
		t.Fatal(err)
	}
	d.must(d.read("n.ipynb"))
	d.must(d.notebook(args{"cell_id": "calc", "new_source": "x"}))
	d.has("real.ipynb", "\ufeff"+strings.Replace(jupyter, "print(2+2)", "x", 1))
	info, err := os.Lstat(filepath.Join(d.dir, "n.ipynb"))
	if err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is %v (%v)", info.Mode(), err)
	}
	if info, err = os.Stat(filepath.Join(d.dir, "n.ipynb")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	in := troupe.ToolUse{Input: json.RawMessage(`{"notebook_path":"n.ipynb","cell_id":"x","new_source":""}`)}
	if got, want := (NotebookEdit{}).Lane(&troupe.Call{ToolUse: in, Place: troupe.Place{Dir: d.dir}}), "file:"+filepath.Join(d.dir, "real.ipynb"); got != want {
		t.Errorf("lane %q, want %q", got, want)
	}
}

// Of files of gigabytes no more is read than is needed.
func TestHugeFilesOfAllKinds(t *testing.T) {
	d := newDesk(t)
	for name, start := range map[string]string{"a.ipynb": jupyter + strings.Repeat(" \n", 20_000), "a.png": drawn(t, "png", 3, 3), "a.txt": "needle\n" + strings.Repeat("x", 100_000), "a.bin": "\x00"} {
		d.put(name, start)
		if err := os.Truncate(filepath.Join(d.dir, name), 5<<30); err != nil {
			t.Fatal(err)
		}
	}
	if text := d.must(d.read("a.ipynb")); !strings.Contains(text, "cannot be shown as a notebook: larger than 64 MB") || !strings.Contains(text, "go on with offset") {
		t.Errorf("notebook: %.300q", text)
	}
	_, err := d.read("a.png")
	wantErr(t, err, nil, "the image has 5.0 GB")
	_, err = d.call(NotebookEdit{Files: d.files}, args{"notebook_path": "a.ipynb", "cell_id": "x", "new_source": ""})
	wantErr(t, err, errTooLarge)
	if res, err := d.call(&Grep{}, args{"pattern": "needle"}); err != nil || strings.Contains(res.Content.Text(), "a.bin") {
		t.Errorf("Grep: %v %q", err, res.Content.Text())
	}
}
