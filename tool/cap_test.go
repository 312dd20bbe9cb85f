package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// A canned tool gives one result.
type canned struct {
	res troupe.Result
	err error
}

func (c canned) Spec() troupe.ToolSpec { return troupe.ToolSpec{Name: "Canned"} }

func (c canned) Call(context.Context, *troupe.Call) (troupe.Result, error) { return c.res, c.err }

type cannedInLane struct{ canned }

func (c cannedInLane) Lane(call *troupe.Call) string { return "lane of " + call.ID }

func capCall(agent, id string) *troupe.Call {
	return &troupe.Call{ToolUse: troupe.ToolUse{ID: id, Name: "Canned"}, Agent: agent}
}

func TestCapLeavesShortResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	want := troupe.Result{
		Content: troupe.Blocks{troupe.Text("é\xff!"), troupe.Image{Media: "image/png", Data: "AA=="}, troupe.Text("")},
		IsError: true,
		Data:    json.RawMessage(`{"a": "<&>"}`),
	}
	why := errors.New("why")
	got, err := Cap(canned{want, why}, dir, 10).Call(t.Context(), capCall("a", "1"))
	if err != why {
		t.Errorf("error %v, want %v", err, why)
	}
	want.Content = troupe.Blocks{troupe.Text("é\uFFFD!"), troupe.Image{Media: "image/png", Data: "AA=="}, troupe.Text("")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made for nothing (%v)", err)
	}
}

func TestCapShortensLongResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub", "results")
	whole := "HEAD" + strings.Repeat("日", 50_000) + "\xff" + strings.Repeat("ü", 50_000) + "raw output: /tmp/x"
	in := troupe.Result{
		Content: troupe.Blocks{troupe.Text(whole[:60_001]), troupe.Image{Data: "AA=="}, troupe.Text(whole[60_001:])},
		IsError: true,
	}
	got, err := Cap(canned{in, nil}, dir, 0).Call(t.Context(), capCall("a/../b", "toolu_1"))
	if err != nil || !got.IsError {
		t.Errorf("error %v, IsError %v", err, got.IsError)
	}
	text := got.Content.Text()
	if n := utf8.RuneCountInString(text); n > DefaultLimit || n < DefaultLimit-10 {
		t.Errorf("%d characters", n)
	}
	if !utf8.ValidString(text) || !strings.HasPrefix(text, "HEAD日日") || !strings.HasSuffix(text, "üüraw output: /tmp/x") {
		t.Errorf("got %.40q … %q", text, text[len(text)-40:])
	}
	if len(got.Content) != 2 || got.Content[1] != (troupe.Block)(troupe.Image{Data: "AA=="}) {
		t.Errorf("blocks %d", len(got.Content))
	}

	// The notice counts right and names the file with the whole text, which
	// nobody else can read.
	m := regexp.MustCompile(`\n\[(\d+) characters left out here; the whole text is in (.*): Read it .*\]\n`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no notice in the text")
	}
	path := filepath.Join(dir, "a____b-toolu_1.txt")
	if m[2] != path {
		t.Errorf("path %q, want %q", m[2], path)
	}
	joined := whole[:60_001] + "\n" + whole[60_001:]
	left := utf8.RuneCountInString(strings.ToValidUTF8(joined, "\uFFFD")) - utf8.RuneCountInString(text) + utf8.RuneCountInString(m[0])
	if m[1] != fmt.Sprint(left) {
		t.Errorf("%s characters left out, want %d", m[1], left)
	}
	saved, err := os.ReadFile(path)
	if err != nil || string(saved) != joined {
		t.Errorf("%d bytes saved, want %d (%v)", len(saved), len(joined), err)
	}
	for p, mode := range map[string]fs.FileMode{path: 0o600, dir: 0o700} {
		if info, err := os.Stat(p); err != nil || privateModes && info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, want %v (%v)", p, info.Mode(), mode, err)
		}
	}
}

// S126: whatever text a tool gives, a result is valid and not longer than the
// limit; head and tail are of the text.
func TestCapLimit(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 600).Draw(t, "limit")
		chunk := rapid.OneOf(rapid.String(), rapid.Just("\xf0\x9f"), rapid.Just("日本語"))
		whole := strings.Repeat(strings.Join(rapid.SliceOfN(chunk, 0, 20).Draw(t, "text"), ""), rapid.IntRange(1, 20).Draw(t, "times"))
		res, err := Cap(canned{troupe.Answer(whole), nil}, dir, limit).Call(context.Background(), capCall("a", "1"))
		if err != nil {
			t.Fatal(err)
		}
		text, valid := res.Content.Text(), strings.ToValidUTF8(whole, "\uFFFD")
		if n := utf8.RuneCountInString(text); n > limit || !utf8.ValidString(text) {
			t.Fatalf("%d characters, limit %d: %q", n, limit, text)
		}
		if utf8.RuneCountInString(whole) <= limit && text != valid {
			t.Fatalf("a short text was changed: %q", text)
		}
	})
}

func TestCapNamesFilesApart(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 100)
	seen := map[string]bool{}
	for _, c := range []*troupe.Call{
		capCall("a", "1"), capCall("a", "1"), capCall("a/", "1"), capCall("a\\", "1"), capCall("", ""),
		capCall("../../../etc", "passwd\x00"), capCall(strings.Repeat("n", 500), strings.Repeat("é", 500)),
	} {
		if _, err := Cap(canned{troupe.Answer(long), nil}, dir, 50).Call(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		seen[e.Name()] = true
		if !regexp.MustCompile(`^[A-Za-z0-9_-]+\.txt$`).MatchString(e.Name()) {
			t.Errorf("name %q", e.Name())
		}
	}
	if len(seen) != 7 || !seen["a-1.txt"] || !seen["a-1-2.txt"] || !seen["a_-1-2.txt"] {
		t.Errorf("files %v", seen)
	}
}

// A text that cannot be kept is capped all the same.
func TestCapWithoutDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := Cap(canned{troupe.Answer(strings.Repeat("x", 5000)), nil}, dir, 1000).Call(t.Context(), capCall("a", "1"))
	if err != nil {
		t.Fatal(err)
	}
	text := res.Content.Text()
	if utf8.RuneCountInString(text) > 1000 || !strings.Contains(text, "could not be kept: ") || !strings.HasSuffix(text, "xxx") {
		t.Errorf("got %q", text)
	}
}

func TestCapBoundsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// The limit falls into a character of three bytes.
	if err := writeText(f, strings.Repeat("日", maxSaved/3+10)); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(saved); n > maxSaved+100 || n < maxSaved || !utf8.Valid(saved) {
		t.Errorf("%d bytes, valid %v", n, utf8.Valid(saved))
	}
	if end := string(saved[maxSaved/3*3:]); end != "\n[cut here: 30 more bytes]\n" {
		t.Errorf("ends with %q", end)
	}
}

// An error's text is read by the model too.
func TestCapBoundsErrors(t *testing.T) {
	dir := t.TempDir()
	tool := canned{troupe.Answer("some content"), errors.New(strings.Repeat("e", 5000) + " the end")}
	res, err := Cap(tool, dir, 500).Call(t.Context(), capCall("a", "1"))
	text := res.Content.Text()
	if err != nil || !res.IsError || utf8.RuneCountInString(text) > 500 || !strings.HasPrefix(text, "some content\neee") || !strings.HasSuffix(text, " the end") {
		t.Errorf("%v, IsError %v, %q", err, res.IsError, text)
	}

	// At the end of its ctx a run must learn that it is over.
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Cap(tool, dir, 500).Call(ctx, capCall("a", "2")); err != tool.err {
		t.Errorf("error %v is not the tool's", err)
	}
}

func TestCapBoundsData(t *testing.T) {
	big := `"` + strings.Repeat("<", maxData) + `"`
	for _, test := range []struct{ name, data, want string }{
		{"none", ``, ``},
		{"small", `{"b": 1,"a":2}`, `{"b": 1,"a":2}`},
		{"broken", `{"b":`, ``},
		{"one field", `{"b":` + big + `,"a":"<"}`, `{"a":"<","omittedFields":["b"]}`},
		{"several", `{"b":` + big + `,"c":` + big[:maxData-10] + `","a":[1]}`, `{"a":[1],"omittedFields":["b","c"]}`},
		{"no object", `[` + big + `]`, ``},
		{"many", `{` + strings.TrimSuffix(manyFields(), ",") + `}`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, err := Cap(canned{troupe.Result{Data: json.RawMessage(test.data)}, nil}, t.TempDir(), 0).Call(t.Context(), capCall("a", "1"))
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Data) > maxData || res.Data != nil && !json.Valid(res.Data) {
				t.Errorf("%d bytes: %.100s", len(res.Data), res.Data)
			}
			if test.name != "many" && string(res.Data) != test.want {
				t.Errorf("got %.200q, want %.200q", res.Data, test.want)
			}
		})
	}
}

func manyFields() string {
	var out strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&out, `"field-%d":%d,`, i, i)
	}
	return out.String()
}

func TestCapKeepsLane(t *testing.T) {
	if _, ok := Cap(canned{}, t.TempDir(), 0).(troupe.Ordered); ok {
		t.Error("a tool without lanes has got them")
	}
	o, ok := Cap(cannedInLane{}, t.TempDir(), 0).(troupe.Ordered)
	if !ok || o.Lane(capCall("a", "7")) != "lane of 7" {
		t.Error("the lane is lost")
	}
	if o.Spec().Name != "Canned" {
		t.Errorf("spec %+v", o.Spec())
	}
}

// What Read gives needs no cap: otherwise the notice of where to go on could
// be lost.
func TestCapAndReadAgree(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", strings.Repeat(strings.Repeat("word ", 30)+"\n", 1900))
	res, err := d.call(Cap(Read{Files: d.files}, filepath.Join(d.dir, "results"), 0), args{"file_path": "a.txt"})
	if err != nil {
		t.Fatal(err)
	}
	if text := res.Content.Text(); strings.Contains(text, "left out") || !strings.Contains(text, "go on with offset") {
		t.Errorf("got … %q", text[len(text)-200:])
	}
}
