package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGlob(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{
		".git/config": "", ".gitignore": "*.log\nbuild/\n.env\n",
		"a.go": "", "b.txt": "", "x.log": "", ".env": "", ".env.example": "",
		"src/c.go": "", "src/deep/d.go": "", "src/deep/e.ts": "", "src/f.tsx": "",
		"build/g.go": "", ".github/workflows/ci.yml": "", ".github/.hidden": "",
		"with space/h i.md": "", "日本/語.md": "", "[x]/y{z}.md": "", "tear\napart.md": "", "empty/": "",
	})
	outside := t.TempDir()
	writeTree(t, outside, map[string]string{"o.go": ""})
	type in = map[string]any
	for name, c := range map[string]struct {
		in   in
		want []string
	}{
		"one level":                 {in{"pattern": "*.go"}, []string{"a.go"}},
		"all levels":                {in{"pattern": "**/*.go"}, []string{"a.go", "src/c.go", "src/deep/d.go"}},
		"braces":                    {in{"pattern": "src/**/*.{ts,tsx}"}, []string{"src/deep/e.ts", "src/f.tsx"}},
		"braces with directories":   {in{"pattern": "{src,src/deep}/*.go"}, []string{"src/c.go", "src/deep/d.go"}},
		"one directory between":     {in{"pattern": "src/*/*.go"}, []string{"src/deep/d.go"}},
		"path":                      {in{"pattern": "**/*.go", "path": "src/deep"}, []string{"src/deep/d.go"}},
		"class":                     {in{"pattern": "[ab].*"}, []string{"a.go", "b.txt"}},
		"ignored":                   {in{"pattern": "**/*.log"}, nil},
		"ignored by its name":       {in{"pattern": ".env"}, []string{".env"}},
		"ignored directory, named":  {in{"pattern": "build/*.go"}, []string{"build/g.go"}},
		"hidden, not named":         {in{"pattern": "**/*.yml"}, nil},
		"hidden directory, named":   {in{"pattern": ".github/**/*.yml"}, []string{".github/workflows/ci.yml"}},
		"names with a dot":          {in{"pattern": "**/.*"}, []string{".env.example", ".github/.hidden", ".gitignore"}},
		"dot in braces":             {in{"pattern": "{.env*,b.*}"}, []string{".env.example", "b.txt"}},
		"never .git":                {in{"pattern": "**/.git/*"}, nil},
		"from here":                 {in{"pattern": "./*.go"}, []string{"a.go"}},
		"absolute":                  {in{"pattern": filepath.ToSlash(dir) + "/src/*.go"}, []string{"src/c.go"}},
		"absolute outside":          {in{"pattern": filepath.ToSlash(outside) + "/*"}, []string{filepath.ToSlash(outside) + "/o.go"}},
		"absolute path":             {in{"pattern": "*.go", "path": outside}, []string{filepath.ToSlash(outside) + "/o.go"}},
		"up and down":               {in{"pattern": "../../deep/*.go", "path": "src/deep/../deep/x/.."}, nil},
		"up":                        {in{"pattern": "../*.go", "path": "src/deep"}, []string{"src/c.go"}},
		"a name":                    {in{"pattern": "src/c.go"}, []string{"src/c.go"}},
		"a directory's name":        {in{"pattern": "src"}, nil},
		"space":                     {in{"pattern": "**/h *.md"}, []string{"with space/h i.md"}},
		"other scripts":             {in{"pattern": "日*/*"}, []string{"日本/語.md"}},
		"escaped signs":             {in{"pattern": `\[x\]/*\{z\}.md`}, []string{"[x]/y{z}.md"}},
		"escaped signs in a name":   {in{"pattern": `\[x\]/y\{z\}.md`}, []string{"[x]/y{z}.md"}},
		"line feed":                 {in{"pattern": "tear*"}, []string{"tear\napart.md"}},
		"directory that is missing": {in{"pattern": "nowhere/**"}, nil},
		"directories are no files":  {in{"pattern": "*", "path": "src"}, []string{"src/c.go", "src/f.tsx"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, r := searchCall(t, &Glob{}, dir, c.in)
			var data globData
			if err := json.Unmarshal(r.Data, &data); err != nil {
				t.Fatalf("%s: data %s: %v", text, r.Data, err)
			}
			got := slices.Clone(data.Filenames)
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" && len(c.want)+len(got) > 0 {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if data.NumFiles != len(c.want) || data.Truncated {
				t.Errorf("data %s", r.Data)
			}
			if len(c.want) == 0 && text != "No files found" || len(c.want) > 0 && strings.Count(text, "\n") != len(c.want)-1 {
				t.Errorf("text %q", text)
			}
		})
	}
}

func TestGlobNewestFirst(t *testing.T) {
	dir := t.TempDir()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	files := map[string]string{}
	for i := range 130 {
		files[fmt.Sprintf("f%03d", i)] = ""
	}
	writeTree(t, dir, files)
	for name := range files {
		var i int
		if _, err := fmt.Sscanf(name, "f%d", &i); err != nil {
			t.Fatal(err)
		}
		at := start.Add(time.Duration(i/2) * time.Second) // two files of each moment
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	text, r := searchCall(t, &Glob{}, dir, map[string]any{"pattern": "*"})
	lines := strings.Split(text, "\n")
	if len(lines) != 101 || lines[0] != "f128" || lines[1] != "f129" || lines[99] != "f031" || !strings.Contains(lines[100], "100 of 130 files") {
		t.Errorf("got %d lines: %s", len(lines), text)
	}
	var data globData
	if err := json.Unmarshal(r.Data, &data); err != nil || data.NumFiles != 100 || len(data.Filenames) != 100 || !data.Truncated {
		t.Errorf("data %+v, %v", data, err)
	}
}

func TestGlobErrors(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{"file": ""})
	for _, c := range []struct {
		in   map[string]any
		want string
	}{
		{map[string]any{}, `needs the field "pattern"`},
		{map[string]any{"pattern": ""}, "is empty"},
		{map[string]any{"pattern": "a[b"}, "not complete"},
		{map[string]any{"pattern": "{a,b"}, "not complete"},
		{map[string]any{"pattern": "*", "path": "nowhere"}, "no such file"},
		{map[string]any{"pattern": "*", "path": "file"}, "has to be a directory"},
	} {
		if text, _ := searchCall(t, &Glob{}, dir, c.in); !strings.HasPrefix(text, "error: ") || !strings.Contains(text, c.want) {
			t.Errorf("%v: got %q, want an error with %q", c.in, text, c.want)
		}
	}
}
