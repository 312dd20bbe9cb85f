package tool

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSubstitute(t *testing.T) {
	for _, test := range []struct {
		name, content, old, new string
		all                     bool
		want                    string
	}{
		{"one", "a\nb\nc\n", "b", "x", false, "a\nx\nc\n"},
		{"delete", "a\nb\nc\n", "b\n", "", false, "a\nc\n"},
		{"all", "a b a\n", "a", "xx", true, "xx b xx\n"},
		{"all, overlapping", "aaaaa", "aa", "b", true, "bba"},
		{"all in another direction", "aXaXa", "aXa", "b", true, "bXa"},
		{"no line end at the end", "a\nb", "b", "x", false, "a\nx"},
		{"CRLF, \\n sent", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n"},
		{"CRLF, CRLF sent", "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n"},
		{"LF, CRLF sent", "a\nb\n", "a\r\nb", "x\r\ny", false, "x\ny\n"},
		{"CRLF, a line put in", "a\r\nb\r\n", "a", "a\nx", false, "a\r\nx\r\nb\r\n"},
		{"line end itself", "a\r\nb\r\n", "\nb", " b", false, "a b\r\n"},
		{"mark", "\ufeffa\nb\n", "a", "x", false, "\ufeffx\nb\n"},
		{"mark and CRLF", "\ufeffa\r\nb\r\n", "a\n", "x\ny\n", false, "\ufeffx\r\ny\r\nb\r\n"},
		{"mixed, LF part", "a\r\nb\r\nc\nd\n", "c\nd", "x\ny", false, "a\r\nb\r\nx\ny\n"},
		{"mixed, CRLF part", "a\nb\nc\nd\r\ne\r\nf\n", "d\ne", "x\ny", false, "a\nb\nc\nx\r\ny\r\nf\n"},
		{"mixed, new line", "a\nb\nc\r\n", "c", "x\ny", false, "a\nb\nx\ny\r\n"},
		{"lone CR", "a\rb\r\nc\r\r\n", "c", "x", false, "a\rb\r\nx\r\r\n"},
		{"other scripts", "日本\n語\n", "本", "x", false, "日x\n語\n"},
		{"no expression", "a.c abc\n", "a.c", "$0", false, "$0 abc\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.txt", test.content)
			d.must(d.read("a.txt"))
			in := args{"file_path": "a.txt", "old_string": test.old, "new_string": test.new, "replace_all": test.all}
			if _, err := d.call(Edit{Files: d.files}, in); err != nil {
				t.Fatal(err)
			}
			d.has("a.txt", test.want)
		})
	}
}

func TestEditRefuses(t *testing.T) {
	code := "func one() {\n\treturn 1\n}\n\nfunc two() {\n\treturn 2\n}\n"
	for _, test := range []struct {
		name, content, old, new string
		words                   []string
	}{
		{"empty", code, "", "x", []string{"old_string is empty", "Write"}},
		{"same", code, "one", "one", []string{"same"}},
		{"same but for line ends", code, "{\n", "{\r\n", []string{"same"}},
		{"several", code, "return", "x", []string{"2 times (lines 2, 6)", "replace_all"}},
		{"overlapping", "aaa\n", "aa", "x", []string{"2 times (lines 1, 1)"}},
		{"many", strings.Repeat("a\n", 30), "a", "x", []string{"30 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"}},
		{"not there", code, "completely different", "x", []string{"not in the file"}},
		{"nearly", code, "func twice() {\n\treturn 2", "x", []string{"the nearest is:\n     5\tfunc two() {\n     6\t\treturn 2"}},
		{"indentation", code, "    return 2\n}", "x", []string{"white space", "     6\t\treturn 2\n     7\t}"}},
		{"line numbers", code, "     5\tfunc two() {\n     6\t\treturn 2\n", "x", []string{"line numbers"}},
		{"Latin-1", "caf\xe9\n", "caf", "x", []string{"not UTF-8"}},
		{"UTF-16", "\xff\xfea\x00", "a", "x", []string{"not UTF-8"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.txt", test.content)
			d.must(d.read("a.txt"))
			_, err := d.edit("a.txt", test.old, test.new)
			wantErr(t, err, nil, append(test.words, filepath.Join(d.dir, "a.txt"))...)
			d.has("a.txt", test.content)
		})
	}
	d := newDesk(t)
	d.put("main.go", code)
	_, err := d.edit("mian.go", "a", "b")
	wantErr(t, err, nil, "main.go")
	for _, in := range []args{{}, {"file_path": "main.go"}, {"file_path": "main.go", "old_string": "a"}, {"file_path": "", "old_string": "a", "new_string": "b"}} {
		if _, err := d.call(Edit{Files: d.files}, in); err == nil {
			t.Errorf("%v was taken", in)
		}
	}
}

// An edit that would make a file too large to be read again is refused before
// its content is put together.
func TestEditBoundsTheResult(t *testing.T) {
	content := []byte(strings.Repeat("a", 1<<20))
	in := editInput{OldString: "a", NewString: strings.Repeat("b", 1<<20), ReplaceAll: true}
	if _, _, err := substitute(content, in); err == nil {
		t.Error("a terabyte was made")
	}
	in.NewString = "bb"
	if out, _, err := substitute(content, in); err != nil || len(out) != 2<<20 {
		t.Errorf("%d bytes: %v", len(out), err)
	}
}

func TestEditResult(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "\ufeff"+strings.ReplaceAll(plainLines(20), "\n", "\r\n"))
	d.must(d.read("a.txt"))
	in := args{"file_path": "a.txt", "old_string": "line 10\n", "new_string": "ten\nand a half\n"}
	res, err := d.call(Edit{Files: d.files}, in)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.dir, "a.txt")
	want := "Edited " + path + ":\n" +
		"     7\tline 7\n     8\tline 8\n     9\tline 9\n    10\tten\n    11\tand a half\n    12\tline 11\n    13\tline 12\n    14\tline 13\n"
	if diff := cmp.Diff(want, res.Content.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	var got map[string]any
	if err := json.Unmarshal(res.Data, &got); err != nil {
		t.Fatal(err)
	}
	wantData := map[string]any{
		"filePath": path, "oldString": "line 10\n", "newString": "ten\nand a half\n", "replaceAll": false,
		"originalFile": plainLines(20),
		"structuredPatch": []any{map[string]any{
			"oldStart": 7.0, "oldLines": 7.0, "newStart": 7.0, "newLines": 8.0,
			"lines": []any{" line 7", " line 8", " line 9", "-line 10", "+ten", "+and a half", " line 11", " line 12", " line 13"},
		}},
	}
	if diff := cmp.Diff(wantData, got); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}

	d.put("b.txt", strings.Repeat("word\n", 20_000)) // over 64 KB
	d.must(d.read("b.txt"))
	in = args{"file_path": "b.txt", "old_string": "word", "new_string": strings.Repeat("long", 100), "replace_all": true}
	if res, err = d.call(Edit{Files: d.files}, in); err != nil {
		t.Fatal(err)
	}
	if text := res.Content.Text(); !strings.Contains(text, "in 20000 places") || len(text) > 8000 {
		t.Errorf("%d characters: %.200s", len(text), text)
	}
	got = nil
	if err := json.Unmarshal(res.Data, &got); err != nil {
		t.Fatal(err)
	}
	if _, ok := got["originalFile"]; ok {
		t.Error("the data has a large originalFile")
	}
	if diff := cmp.Diff([]any{}, got["structuredPatch"]); diff != "" {
		t.Errorf("patch (-want +got):\n%.200s", diff)
	}
}

func TestStructuredPatch(t *testing.T) {
	for _, test := range []struct {
		name, before, after string
		want                []hunk
	}{
		{"same", "a\n", "a\n", []hunk{}},
		{"from nothing", "", "a\nb\n", []hunk{{0, 0, 1, 2, []string{"+a", "+b"}}}},
		{"to nothing", "a\n", "", []hunk{{1, 1, 0, 0, []string{"-a"}}}},
		{"line end added", "a", "a\n", []hunk{{1, 1, 1, 1, []string{"-a", `\ No newline at end of file`, "+a"}}}},
		{"far apart", plainLines(30), "x\n" + strings.TrimPrefix(strings.TrimSuffix(plainLines(30), "line 30\n"), "line 1\n"), []hunk{
			{1, 4, 1, 4, []string{"-line 1", "+x", " line 2", " line 3", " line 4"}},
			{27, 4, 27, 3, []string{" line 27", " line 28", " line 29", "-line 30"}},
		}},
	} {
		if diff := cmp.Diff(test.want, structuredPatch(test.before, test.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A patch put on the text before gives the text after.
func TestStructuredPatchApplies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n"}))
		before := strings.Join(lines.Draw(t, "before"), "")
		after := strings.Join(lines.Draw(t, "after"), "")
		old := strings.SplitAfter(before, "\n")
		var got strings.Builder
		done := 0
		for _, h := range structuredPatch(before, after) {
			at := h.OldStart - 1
			if h.OldLines == 0 {
				at = h.OldStart
			}
			got.WriteString(strings.Join(old[done:at], ""))
			done = at + h.OldLines
			if n := strings.Count(got.String(), "\n"); n != h.NewStart-1 && !(h.NewLines == 0 && n == h.NewStart) {
				t.Fatalf("hunk %+v begins at new line %d", h, n+1)
			}
			for _, l := range h.Lines {
				if l[0] != '-' {
					got.WriteString(l[1:] + "\n")
				}
			}
		}
		got.WriteString(strings.Join(old[done:], ""))
		if got.String() != after {
			t.Fatalf("before %q, patched %q, want %q", before, got.String(), after)
		}
	})
}

// FuzzEdit compares an edit with the same on the text with \n for all line
// ends. Files of one kind of line end keep that kind, all keep their mark.
func FuzzEdit(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "x\ny", true, false, false)
	f.Add("a\nb\na\n", "a\n", "", true, true, true)
	f.Add("aXaXa\n\n\n", "aXa", "\n", true, true, false)
	f.Add("日本\n", "本", "a\n", false, false, true)
	f.Add("\n\n\n", "\n\n", "x", true, true, true)
	f.Fuzz(func(t *testing.T, body, old, new string, crlf, all, mark bool) {
		// A lone \r would make what is a line end a matter of its neighbours.
		for _, s := range []*string{&body, &old, &new} {
			*s = strings.ToValidUTF8(strings.ReplaceAll(*s, "\r", ""), "?")
		}
		body = strings.TrimPrefix(body, byteOrderMark)
		content := body
		if crlf {
			content = strings.ReplaceAll(body, "\n", "\r\n")
		}
		if mark {
			content = byteOrderMark + content
		}
		got, places, err := substitute([]byte(content), editInput{OldString: old, NewString: new, ReplaceAll: all})
		n := 1
		if all {
			n = -1
		}
		if err != nil {
			unique := strings.Index(body, old) == strings.LastIndex(body, old)
			if old != "" && old != new && strings.Contains(body, old) && (all || unique) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if !strings.Contains(body, old) || len(places) == 0 || !all && strings.Index(body, old) != strings.LastIndex(body, old) {
			t.Fatalf("taken, but %q is not found once in %q", old, body)
		}
		want := strings.Replace(body, old, new, n)
		if crlf && strings.Contains(body, "\n") {
			want = strings.ReplaceAll(want, "\n", "\r\n")
		}
		if mark {
			want = byteOrderMark + want
		}
		if string(got) != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
		after := parseText(got)
		if s := snippet(after.body, places[0], len(new)); !utf8.ValidString(s) {
			t.Fatalf("snippet %q", s)
		}
	})
}

// Whatever the line ends of a file are, what an edit does not touch stays as
// it is.
func TestEditLeavesTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOf(rapid.SampledFrom([]rune("ab\r\n\ufeff")))
		head, tail := part.Draw(t, "head"), part.Draw(t, "tail")
		inner := rapid.SampledFrom([]string{"KEY", "K\nY", "K\r\nY", "K\r\n"}).Draw(t, "inner")
		content := head + inner + tail
		in := editInput{OldString: plainLineEnds(inner), NewString: "n"}
		got, _, err := substitute([]byte(content), in)
		if err != nil {
			t.Fatal(err)
		}
		if want := head + "n" + tail; string(got) != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestSnippetIsShort(t *testing.T) {
	body := strings.Repeat(strings.Repeat("w", 5000)+"\n", 100)
	s := snippet(body, 0, len(body)-1)
	if len(s) > 16*400 || !strings.Contains(s, "more") {
		t.Errorf("%d bytes", len(s))
	}
	if s := snippet("a\n", 2, 0); s != "     1\ta\n" {
		t.Errorf("at the end: %q", s)
	}
	if s := snippet("", 0, 0); s != "" {
		t.Errorf("of nothing: %q", s)
	}
	if got, want := fmt.Sprint(occurrences("aaaa", "aa", 2, 10)), "[0 2] true"; got != want {
		t.Errorf("occurrences %s, want %s", got, want)
	}
}
