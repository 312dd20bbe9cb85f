package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

func grepDataOf(t *testing.T, r troupe.Result) (d grepData) {
	t.Helper()
	if err := json.Unmarshal(r.Data, &d); err != nil {
		t.Fatalf("data %s: %v", r.Data, err)
	}
	return d
}

// limitTree has three files with three, four and three matches.
func limitTree(t *testing.T) string {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"a": "x1\nx2\nx3\n", "b": "x4\nno\nno\nx5\nx6\nx7\n", "c": "x8\nx9\nx10\n"})
	return dir
}

func TestGrepLimits(t *testing.T) {
	dir := limitTree(t)
	type in = map[string]any
	for name, c := range map[string]struct {
		in   in
		text string
		data grepData
	}{
		"content cut": {
			in{"output_mode": "content", "head_limit": 4},
			"a:1:x1\na:2:x2\na:3:x3\nb:1:x4\n(shown: 4 from offset 0; there is more: go on with offset 4, or narrow the search)",
			grepData{Mode: modeContent, NumFiles: 2, Filenames: []string{"a", "b"}, Content: "a:1:x1\na:2:x2\na:3:x3\nb:1:x4", NumLines: 4, AppliedLimit: 4},
		},
		"content goes on": {
			in{"output_mode": "content", "head_limit": 4, "offset": 4},
			"b:4:x5\nb:5:x6\nb:6:x7\nc:1:x8\n(shown: 4 from offset 4; there is more: go on with offset 8, or narrow the search)",
			grepData{Mode: modeContent, NumFiles: 2, Filenames: []string{"b", "c"}, Content: "b:4:x5\nb:5:x6\nb:6:x7\nc:1:x8", NumLines: 4, AppliedLimit: 4, AppliedOffset: 4},
		},
		"content to the end": {
			in{"output_mode": "content", "head_limit": 2, "offset": 8},
			"c:2:x9\nc:3:x10",
			grepData{Mode: modeContent, NumFiles: 1, Filenames: []string{"c"}, Content: "c:2:x9\nc:3:x10", NumLines: 2, AppliedOffset: 8},
		},
		"lines of context count": {
			in{"output_mode": "content", "head_limit": 2, "offset": 3, "-A": 1},
			"b:1:x4\nb-2-no\n(shown: 2 from offset 3; there is more: go on with offset 5, or narrow the search)",
			grepData{Mode: modeContent, NumFiles: 1, Filenames: []string{"b"}, Content: "b:1:x4\nb-2-no", NumLines: 2, AppliedLimit: 2, AppliedOffset: 3},
		},
		"files": {
			in{"head_limit": 2},
			"a\nb\n(shown: 2 from offset 0; there is more: go on with offset 2, or narrow the search)",
			grepData{Mode: modeFiles, NumFiles: 2, Filenames: []string{"a", "b"}, AppliedLimit: 2},
		},
		"all files": {
			in{"head_limit": 0},
			"a\nb\nc",
			grepData{Mode: modeFiles, NumFiles: 3, Filenames: []string{"a", "b", "c"}},
		},
		"count": {
			in{"output_mode": "count", "offset": 1},
			"b:4\nc:3",
			grepData{Mode: modeCount, NumFiles: 2, Filenames: []string{"b", "c"}, Content: "b:4\nc:3", NumMatches: 7, AppliedOffset: 1},
		},
		"behind the end": {
			in{"offset": 3},
			"No matches found from offset 3 on",
			grepData{Mode: modeFiles, Filenames: []string{}, AppliedOffset: 3},
		},
		"grep's way to write alternatives": {
			in{"pattern": `x1\|x2`},
			"No matches found\n(\\| matches the character |; alternatives are divided by | alone)",
			grepData{Mode: modeFiles, Filenames: []string{}},
		},
		"nothing to search": {
			in{"glob": "*.go"},
			"No matches found\n(there was no file to search in " + filepath.ToSlash(dir) + ")",
			grepData{Mode: modeFiles, Filenames: []string{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.in["pattern"] == nil {
				c.in["pattern"] = "x"
			}
			text, r := searchCall(t, &Grep{}, dir, c.in)
			if diff := cmp.Diff(c.text, text); diff != "" {
				t.Errorf("text, want -, got +:\n%s", diff)
			}
			if diff := cmp.Diff(c.data, grepDataOf(t, r)); diff != "" {
				t.Errorf("data, want -, got +:\n%s", diff)
			}
		})
	}
}

func TestGrepDefaultLimit(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"a": strings.Repeat("x\n", 300)})
	_, r := searchCall(t, &Grep{}, dir, map[string]any{"pattern": "x", "output_mode": "content"})
	if d := grepDataOf(t, r); d.NumLines != 250 || d.AppliedLimit != 250 {
		t.Errorf("%d lines shown, limit %d", d.NumLines, d.AppliedLimit)
	}
}

func TestGrepInputErrors(t *testing.T) {
	dir := limitTree(t)
	for name, c := range map[string]struct {
		in   map[string]any
		want string
	}{
		"no pattern":      {map[string]any{}, `needs the field "pattern"`},
		"mode":            {map[string]any{"pattern": "x", "output_mode": "lines"}, "output_mode \"lines\" is not known; it is files_with_matches, content or count"},
		"negative":        {map[string]any{"pattern": "x", "-A": -1}, "-A is -1"},
		"negative limit":  {map[string]any{"pattern": "x", "head_limit": -1}, "head_limit is -1"},
		"no such path":    {map[string]any{"pattern": "x", "path": "nowhere"}, "nowhere"},
		"unknown type":    {map[string]any{"pattern": "x", "type": "pyton"}, `the file type "pyton" is not known (near: py`},
		"type by ending":  {map[string]any{"pattern": "x", "type": "tsx"}, "near: ts"},
		"open brace":      {map[string]any{"pattern": "x", "glob": "*.{go,ts"}, "open {"},
		"too many braces": {map[string]any{"pattern": "x", "glob": strings.Repeat("{a,b}", 20)}, "more than 1000"},
		"bad expression":  {map[string]any{"pattern": "x("}, "not a valid regular expression"},
		"wrong kind":      {map[string]any{"pattern": "x", "-C": "two"}, "the input of Grep"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, _ := searchCall(t, &Grep{}, dir, c.in); !strings.HasPrefix(text, "error: ") || !strings.Contains(text, c.want) || strings.Contains(text, "\n") {
				t.Errorf("got %q, want an error of one line with %q", text, c.want)
			}
		})
	}
}

// Unlike most of TestGrepAsRipgrep these are the tool's own ways.
func TestGrepOwnWays(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("ä", 3000) + "needle" + strings.Repeat("z", 5000)
	writeTree(t, dir, map[string]string{
		".git/HEAD": "", ".gitignore": "vendor/\n",
		"src/app/a.go":            "needle\n",
		"a.go":                    "needle\n",
		"vendor/dep/d.go":         "needle\n",
		".github/workflows/c.yml": "needle\n",
		"long.txt":                long + "\n",
		"a file.go":               "needle\n",
		"tear\napart":             "needle\n",
		"bin":                     "x\x00needle\nneedle\n",
		"crlf":                    "begin\r\nend\r\n",
		"types.kts":               "needle\n",
		"big":                     strings.Repeat("filler\n", 3<<20),
	})
	type in = map[string]any
	for name, c := range map[string]struct {
		in   in
		want string
	}{
		"glob from the searched directory": {in{"path": "src", "glob": "app/*.go"}, "src/app/a.go"},
		"glob from the agent's directory":  {in{"path": "src", "glob": "src/app/*.go"}, "src/app/a.go"},
		"absolute glob":                    {in{"glob": filepath.ToSlash(dir) + "/src/**/*.go"}, "src/app/a.go"},
		"several globs":                    {in{"glob": "*.kts, *.yml a.go"}, "a.go\nsrc/app/a.go\ntypes.kts"},
		"glob with a space":                {in{"glob": `a\ file.go`}, "a file.go"},
		"named hidden directory":           {in{"glob": ".github/**/*.yml"}, ".github/workflows/c.yml"},
		"named ignored directory":          {in{"glob": "vendor/**"}, "vendor/dep/d.go"},
		"type and glob both count":         {in{"type": "go", "glob": "src/**"}, "src/app/a.go"},
		"type by another name":             {in{"type": "golang", "glob": `!src,!a\ *`}, "a.go"},
		"two types":                        {in{"type": "yaml,kotlin"}, "types.kts"},
		"name that would tear the list":    {in{"glob": "tear*"}, `"tear\napart"`},
		"absolute path":                    {in{"path": dir + "/src", "output_mode": "content"}, "src/app/a.go:1:needle"},
		"binary file named":                {in{"path": "bin", "output_mode": "content"}, "bin: binary file matches"},
		"binary file named, count":         {in{"path": "bin", "output_mode": "count"}, "bin:2"},
		"long line":                        {in{"path": "long.txt", "output_mode": "content"}, fmt.Sprintf("long.txt:1:[5500 bytes cut] %sneedle%s [3506 bytes cut]", strings.Repeat("ä", 250), strings.Repeat("z", 1494))},
		"long match alone":                 {in{"path": "long.txt", "output_mode": "content", "-o": true, "pattern": "z+"}, "long.txt:1:" + strings.Repeat("z", 2000) + " [3000 bytes cut]"},
		"matches alone have no context":    {in{"path": "a.go", "output_mode": "content", "-o": true, "-C": 3, "pattern": "[de]+"}, "a.go:1:eed\na.go:1:e"},
		"line ends of Windows in a span":   {in{"path": "crlf", "output_mode": "content", "multiline": true, "pattern": `begin\nend$`}, "crlf:1:begin\ncrlf:2:end"},
		"carriage return asked for":        {in{"path": "crlf", "output_mode": "count", "pattern": `n\r$|d\r$`}, "crlf:2"},
		"span in a file that is too large": {in{"glob": "big", "multiline": true}, "No matches found\n(files of more than 16 MB, not searched across lines: 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.in["pattern"] == nil {
				c.in["pattern"] = "needle"
			}
			got, _ := searchCall(t, &Grep{}, dir, c.in)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// A line longer than what is held at once, and matches around the places where
// the buffer ends, in a file larger than all buffers.
func TestGrepStreams(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for i := range 200_000 {
		word := "filler"
		if i%997 == 0 {
			word = fmt.Sprintf("needle%d", want)
			want++
		}
		fmt.Fprintf(f, "%d %s %s\n", i+1, word, strings.Repeat("x", i%61))
	}
	fmt.Fprintf(f, "%s needle\n", strings.Repeat("y", 3*maxBuffer))
	fmt.Fprint(f, "last\n")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{"needle[0-9]", "[n]eedle[0-9]+ ", `\d+ [m-o]e+dle`} {
		text, r := searchCall(t, &Grep{}, dir, map[string]any{"pattern": expr, "output_mode": "content", "head_limit": 0, "-B": 1, "-A": 1})
		if got := strings.Count(text, ": needle") + strings.Count(text, " needle"); got != want {
			t.Errorf("%s: %d matches, want %d", expr, got, want)
		}
		for _, line := range strings.Split(text, "\n") {
			// Each line begins with its own number.
			parts := strings.FieldsFunc(line, func(r rune) bool { return r == ':' || r == '-' || r == ' ' })
			if len(parts) > 3 && parts[1] != parts[2] {
				t.Fatalf("%s: wrong number: %.80s", expr, line)
			}
		}
		// All but the first match have a line before; each has one after.
		if d := grepDataOf(t, r); d.NumLines != 3*want-1 {
			t.Errorf("%s: %d lines, want %d", expr, d.NumLines, 3*want-1)
		}
	}
	s := newFileSearch(grepQuery{pattern: must(compileGrep("needle", false, false)), mode: modeCount})
	in, err := os.Open(filepath.Join(dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	m, err := s.search(context.Background(), in, 0, false)
	if err != nil || m.count != want+1 {
		t.Errorf("count %d, %v; want %d", m.count, err, want+1)
	}
	if len(s.buf) > 2*maxBuffer {
		t.Errorf("the buffer grew to %d bytes", len(s.buf))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSearchEndsWithContext(t *testing.T) {
	dir := limitTree(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tool := range []troupe.Tool{&Grep{}, &Glob{}} {
		c := &troupe.Call{ToolUse: troupe.ToolUse{Name: tool.Spec().Name, Input: json.RawMessage(`{"pattern":"**"}`)}, Place: troupe.Place{Dir: dir}}
		if tool.Spec().Name == "Grep" {
			c.Input = json.RawMessage(`{"pattern":"x"}`)
		}
		if _, err := tool.Call(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool.Spec().Name, err)
		}
	}
	r := &grepRun{root: dir, files: []string{"a", "b", "c"}, query: grepQuery{pattern: must(compileGrep("x", false, false)), mode: modeFiles}}
	if _, err := r.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
}
