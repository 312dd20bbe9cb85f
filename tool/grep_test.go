package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/troupetest"
)

// writeTree makes files, by their paths below dir, with a slash at the end of
// directories.
func writeTree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(full, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// searchCall calls Glob or Grep in dir and returns its text.
func searchCall(t testing.TB, tool troupe.Tool, dir string, in map[string]any) (string, troupe.Result) {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	c := &troupe.Call{ToolUse: troupe.ToolUse{Name: tool.Spec().Name, Input: raw}, Place: troupe.Place{Dir: dir}}
	r, err := tool.Call(context.Background(), c)
	if err != nil {
		return "error: " + err.Error(), r
	}
	return string(r.Content[0].(troupe.Text)), r
}

// sampleTree has something of everything that a search must see or pass over.
func sampleTree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, dir, map[string]string{
		".git/HEAD":           "ref: needle\n",
		".git/info/exclude":   "excluded.txt\n",
		".gitignore":          "*.log\n/build/\n!keep.log\nnode_modules/\n!.shown\n",
		".ignore":             "private*\n",
		"a.go":                "package a\n\nfunc Needle() {}\n\nfunc needle2() { needle() }\n// end\n",
		"b.txt":               "one needle\ntwo\nthree\nfour\nfive needle\nsix\nseven\neight needle needle\n",
		"crlf.txt":            "alpha needle\r\nbeta\r\nneedle\r\n",
		"bom.txt":             "\xef\xbb\xbfneedle at the start\n",
		"no end.txt":          "x\nneedle",
		"empty.txt":           "",
		"x.log":               "needle\n",
		"keep.log":            "needle\n",
		"build/out.txt":       "needle\n",
		"build/deep/out.go":   "needle\n",
		"excluded.txt":        "needle\n",
		"private.txt":         "needle\n",
		".hidden":             "needle\n",
		".shown":              "needle\n",
		".config/app.yml":     "needle: 1\n",
		"src/lib/deep.ts":     "const needle = 'é';\nexport const x = needle + 1;\n",
		"src/lib/deep.js":     "var needle;\n",
		"src/lib/.gitignore":  "*.js\n/gen\n",
		"src/lib/gen/made.ts": "needle\n",
		"src/gen/kept.ts":     "needle\n",
		"src/main.rs":         "fn needle() -> u32 {\n    4711\n}\n",
		"src/main_test.go":    "func TestNeedle(t *testing.T) { needle() }\n",
		"node_modules/m/i.js": "needle\n",
		"sub/.git/HEAD":       "needle\n",
		"sub/.gitignore":      "skipped.txt\n",
		"sub/x.log":           "needle of a repository in the repository\n",
		"sub/skipped.txt":     "needle\n",
		"bin.dat":             "needle\x00\x01\x02needle\n",
		"late.dat":            "needle\n" + strings.Repeat("filler line\n", 10_000) + "\x00needle\n",
		"umlaut.txt":          "größe needle\nGRÖSSE NEEDLE\nKelvin \u212a ſ\n",
		"latin1.txt":          "caf\xe9 needle\n",
		"日本/語.txt":            "針 needle\n",
		"names/with space.md": "needle\n",
		"names/Makefile":      "needle:\n\techo needle\n",
		"odd/[x].txt":         "needle in brackets\n",
		"odd/{y}.txt":         "needle in braces\n",
		"long/blank.txt":      "\n\n\nneedle\n\n\n\nneedle\n",
		"regex/digits.txt":    "id 12345\nid 1234\nid_99 foo.bar foo-bar\nFooBar fooBar\n",
		"regex/words.txt":     "cat concatenate cat.\nscat cat\n",
		"types/app.py":        "needle = 1\n",
		"types/app.java":      "int needle;\n",
		"types/style.scss":    "needle\n",
		"types/doc.md":        "# needle\n",
		"types/data.json":     "{\"needle\": [1]}\n",
		"types/.eslintrc.js":  "needle\n",
		"types/q.sql":         "select needle\n",
		"types/w.yaml":        "needle: 1\n",
		"types/index.html":    "<b>needle</b>\n",
		"types/run.sh":        "echo needle\n",
		"types/Dockerfile":    "FROM needle\n",
		"multi/span.txt":      "begin\nmiddle\nend\nbegin end\nbegin\n\nend\n",
		"multi/only-a.txt":    "a1\na2\na3\nb\na4\n",
		"tabs/indent.txt":     "\tneedle\n  needle\n",
	})
	return dir
}

// TestGrepAsRipgrep compares with rg what an rg user would expect to be the
// same. Words, digits and space are those of ASCII in our pattern, so the
// patterns here do not put that to the test.
func TestGrepAsRipgrep(t *testing.T) {
	rg := troupetest.Need(t, "rg")
	dir := sampleTree(t)
	cases := selectionCases()
	maps.Copy(cases, patternCases())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c["pattern"] == nil {
				c["pattern"] = "needle"
			}
			c["head_limit"] = 0
			got, _ := searchCall(t, &Grep{}, dir, c)
			got = strings.TrimSuffix(got, "No matches found")
			want := ripgrep(t, rg, dir, c)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rg -, Grep +:\n%s", diff)
			}
		})
	}
}

// selectionCases are about which files are searched and what is shown of them.
func selectionCases() map[string]map[string]any {
	type in = map[string]any
	return map[string]in{
		"files":                    {},
		"content":                  {"output_mode": "content"},
		"count":                    {"output_mode": "count"},
		"one context line":         {"output_mode": "content", "-C": 1},
		"context synonym":          {"output_mode": "content", "context": 2},
		"lines before":             {"output_mode": "content", "-B": 2},
		"lines after":              {"output_mode": "content", "-A": 3},
		"before and after":         {"output_mode": "content", "-B": 1, "-A": 2},
		"no numbers":               {"output_mode": "content", "-n": false},
		"no numbers with context":  {"output_mode": "content", "-n": false, "-C": 1},
		"ignore case":              {"output_mode": "content", "-i": true, "pattern": "NEEDLE"},
		"ignore case beyond ASCII": {"output_mode": "content", "-i": true, "pattern": "größe"},
		"ignore case kelvin":       {"output_mode": "content", "-i": true, "pattern": "kelvin k s"},
		"only matching":            {"output_mode": "content", "-o": true, "pattern": "need[a-z]+"},
		"only matching, anchored":  {"output_mode": "content", "-o": true, "pattern": "^n[a-z]*"},
		"subdirectory":             {"path": "src"},
		"subdirectory with rules":  {"path": "src/lib"},
		"ignored directory":        {"path": "build"},
		"deep in an ignored one":   {"path": "build/deep"},
		"node_modules":             {"path": "node_modules/m"},
		"hidden directory":         {"path": ".config"},
		"inner repository":         {"path": "sub"},
		"a file":                   {"path": "b.txt", "output_mode": "content"},
		"an ignored file":          {"path": "x.log", "output_mode": "content"},
		"a hidden file":            {"path": ".hidden"},
		"a file with a late NUL":   {"path": "late.dat", "output_mode": "count"},
		"glob of an extension":     {"glob": "*.go"},
		"glob with a directory":    {"glob": "src/**/*.ts"},
		"glob with braces":         {"glob": "*.{go,rs}"},
		"negated glob":             {"glob": "!*.txt"},
		"glob of an ignored kind":  {"glob": "*.log"},
		"glob of a hidden file":    {"glob": ".hid*"},
		"glob of a directory":      {"glob": "**/lib/**"},
		"negated directory":        {"glob": "!src"},
		"glob with a class":        {"glob": "[ab].*"},
		"type go":                  {"type": "go"},
		"type js":                  {"type": "js"},
		"type ts":                  {"type": "ts"},
		"type py":                  {"type": "py"},
		"type rust":                {"type": "rust"},
		"type md":                  {"type": "md"},
		"type yaml":                {"type": "yaml"},
		"type json":                {"type": "json"},
		"type make":                {"type": "make"},
		"type docker":              {"type": "docker"},
		"type css":                 {"type": "css"},
		"type and negated glob":    {"type": "go", "glob": "!*_test.go"},
	}
}

// patternCases are about what matches.
func patternCases() map[string]map[string]any {
	type in = map[string]any
	return map[string]in{
		"word boundary":               {"output_mode": "content", "pattern": `\bcat\b`},
		"no boundary":                 {"output_mode": "content", "pattern": `\Bcat`},
		"digits":                      {"output_mode": "content", "pattern": `[0-9]{5}`},
		"end of line":                 {"output_mode": "content", "pattern": `needle$`},
		"whole line":                  {"output_mode": "content", "pattern": `^needle$`},
		"start of line":               {"output_mode": "content", "pattern": `^needle`},
		"empty lines":                 {"output_mode": "content", "pattern": `^$`, "path": "long"},
		"alternatives":                {"output_mode": "content", "pattern": `alpha|beta|4711|echo needle`},
		"alternatives of unlike kind": {"output_mode": "content", "pattern": `alpha|[0-9]{4}`},
		"escapes":                     {"output_mode": "content", "pattern": `foo\.bar|needle\(\)`},
		"no literal at all":           {"output_mode": "content", "pattern": `[a-z]+_[0-9]+`},
		"class and negation":          {"output_mode": "content", "pattern": `^[^a-z]+$`, "path": "regex"},
		"case in the pattern":         {"output_mode": "content", "pattern": `(?i)foobar`},
		"everything":                  {"output_mode": "count", "pattern": ""},
		"no match":                    {"pattern": "no such text"},
		"other scripts":               {"output_mode": "content", "pattern": "針 n"},
		"any character":               {"output_mode": "content", "pattern": "gr..e needle"},
		"multiline":                   {"output_mode": "content", "pattern": `begin.*?end`, "multiline": true, "path": "multi"},
		"multiline with a line feed":  {"output_mode": "content", "pattern": `a1\na2`, "multiline": true},
		"multiline context":           {"output_mode": "content", "pattern": `a2\na3`, "multiline": true, "-C": 1},
		"multiline count":             {"output_mode": "count", "pattern": `a[0-9]\n`, "multiline": true, "path": "multi"},
		"multiline files":             {"pattern": `middle\s+end`, "multiline": true},
		"multiline lines":             {"output_mode": "content", "pattern": `^a[0-9]$`, "multiline": true, "path": "multi"},
	}
}

// ripgrep runs rg with what is the same as in.
func ripgrep(t *testing.T, rg, dir string, in map[string]any) string {
	t.Helper()
	argv := []string{"--no-config", "--color=never", "--no-heading", "--with-filename", "--sort=path", "--no-messages", "--no-ignore-global"}
	set := func(name, flag string) {
		switch v := in[name].(type) {
		case int:
			argv = append(argv, flag, strconv.Itoa(v))
		case bool:
			if v {
				argv = append(argv, flag)
			}
		}
	}
	switch in["output_mode"] {
	case "content":
		if in["-n"] != false {
			argv = append(argv, "-n")
		}
		set("-A", "-A")
		set("-B", "-B")
		set("-C", "-C")
		set("context", "-C")
		set("-o", "-o")
	case "count":
		argv = append(argv, "-c")
	default:
		argv = append(argv, "-l")
	}
	set("-i", "-i")
	if in["multiline"] == true {
		argv = append(argv, "-U", "--multiline-dotall")
	} else {
		argv = append(argv, "--crlf")
	}
	if g, ok := in["glob"].(string); ok {
		argv = append(argv, "-g", g)
	}
	if typ, ok := in["type"].(string); ok {
		argv = append(argv, "-t", typ)
	}
	path, _ := in["path"].(string)
	argv = append(argv, "-e", in["pattern"].(string), "--", "./"+path)
	cmd := exec.CommandContext(t.Context(), rg, argv...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && (cmd.ProcessState.ExitCode() != 1 || stderr.Len() > 0) {
		t.Fatalf("rg %q: %v: %s", argv, err, stderr.String())
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		line = strings.TrimPrefix(line, "./")
		if strings.Contains(line, "stopped searching binary file") {
			continue
		}
		lines = append(lines, strings.ToValidUTF8(line, "\uFFFD"))
	}
	if in["output_mode"] != "content" {
		slices.Sort(lines)
	}
	return strings.Join(lines, "\n")
}
