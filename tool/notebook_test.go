package tool

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// jupyter is a notebook as Jupyter writes it.
const jupyter = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "calc",
   "metadata": {"z": 1, "a": 2},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "4\n"
     ]
    }
   ],
   "source": [
    "print(2+2)"
   ]
  }
 ],
 "metadata": {
  "language_info": {"name": "python"}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

// oldest has no ids, is written in one line and has a byte order mark.
const oldest = "\ufeff" + `{"nbformat":4,"nbformat_minor":2,"metadata":{},"cells":[{"cell_type":"code","metadata":{},"outputs":[],"execution_count":null,"source":"a = 1\nb"},{"cell_type":"raw","metadata":{},"source":["r"]}]}`

func (d desk) notebook(in args) (string, error) {
	d.t.Helper()
	in["notebook_path"] = "n.ipynb"
	if in["new_source"] == nil {
		in["new_source"] = ""
	}
	res, err := d.call(NotebookEdit{Files: d.files}, in)
	return res.Content.Text(), err
}

func TestReadShowsNotebooks(t *testing.T) {
	output := func(fields string) string {
		return `{"nbformat":4,"nbformat_minor":5,"cells":[{"id":"c","cell_type":"code","source":[],"outputs":[` + fields + `]}]}`
	}
	long := strings.Repeat("é", 2000)
	for name, test := range map[string]struct{ content, want string }{
		"jupyter": {jupyter, "[cell \"intro\": markdown]\n     1\t# Title\n     2\ttext\n[cell \"calc\": code, run 3]\n     3\tprint(2+2)\n[output of cell \"calc\"]\n     4\t4\n"},
		"oldest":  {oldest, "[cell \"cell-0\": code]\n     1\ta = 1\n     2\tb\n[cell \"cell-1\": raw]\n     3\tr\n"},
		"CRLF":    {strings.ReplaceAll(jupyter, "\n", "\r\n"), "[cell \"intro\": markdown]\n     1\t# Title\n     2\ttext\n[cell \"calc\": code, run 3]\n     3\tprint(2+2)\n[output of cell \"calc\"]\n     4\t4\n"},
		"odd id":  {`{"nbformat":4,"cells":[{"id":"a\"]\n[b","cell_type":"raw","source":"x"}]}`, "[cell \"a\\\"]\\n[b\": raw]\n     1\tx\n"},
		"error": {output(`{"output_type":"error","ename":"E","evalue":"v","traceback":["\u001b[31mline 1\u001b[0m","E: v"]}`),
			"[cell \"c\": code]\n     1\t\n[output of cell \"c\"]\n     2\tline 1\n     3\tE: v\n"},
		"error without traceback": {output(`{"output_type":"error","ename":"E","evalue":"v"}`), "[cell \"c\": code]\n     1\t\n[output of cell \"c\"]\n     2\tE: v\n"},
		"picture": {output(`{"output_type":"display_data","data":{"image/png":"QUJDREVG","text/plain":["<Figure>"]}}`),
			"[cell \"c\": code]\n     1\t\n[output of cell \"c\"]\n     2\t<Figure>\n     3\t(\"image/png\", 10 bytes; not shown)\n"},
		"other forms": {output(`{"output_type":"execute_result","data":{"text/html":"<b>","application/json":{}}}`),
			"[cell \"c\": code]\n     1\t\n[output of cell \"c\"]\n     2\t(\"text/html\", 5 bytes; not shown)\n"},
		"long output": {output(`{"output_type":"stream","text":"` + long + "mid" + long + `"}`),
			"[cell \"c\": code]\n     1\t\n[output of cell \"c\"]\n     2\t" + long + "\n[3 characters of the output left out here]\n     3\t" + long + "\n"},
		"no cells":      {`{"nbformat":4,"cells":[]}`, "NAME is a notebook without cells."},
		"broken":        {`{"nbformat":4,"cells":`, "     1\t{\"nbformat\":4,\"cells\":\n[the file cannot be shown as a notebook: it is not the JSON of a notebook: unexpected end of JSON input]\n"},
		"version 3":     {`{"nbformat":3}`, "     1\t{\"nbformat\":3}\n[the file cannot be shown as a notebook: it has version 3 of the notebook format, not 4]\n"},
		"no list":       {`{"nbformat":4,"cells":{}}`, "     1\t{\"nbformat\":4,\"cells\":{}}\n[the file cannot be shown as a notebook: it has no list of cells]\n"},
		"no source":     {`{"nbformat":4,"cells":[{"cell_type":"code"}]}`, "     1\t{\"nbformat\":4,\"cells\":[{\"cell_type\":\"code\"}]}\n[the file cannot be shown as a notebook: its cell 1 has no source]\n"},
		"Latin-1":       {"{\"nbformat\":4,\"cells\":[],\"a\":\"\xe9\"}", "     1\t{\"nbformat\":4,\"cells\":[],\"a\":\"\uFFFD\"}\n[the file is not UTF-8 (perhaps Latin-1): what could not be shown is \uFFFD, and Edit refuses it]\n[the file cannot be shown as a notebook: it is not UTF-8]\n"},
		"name only":     {"plain words\n", "     1\tplain words\n[the file cannot be shown as a notebook: it is not the JSON of a notebook: invalid character 'p' looking for beginning of value]\n"},
		"empty":         {"", "NAME is empty."},
		"members twice": {`{"nbformat":4,"cells":[],"cells":[{"cell_type":"raw","Source":"no","source":"no","source":"yes"}]}`, "[cell \"cell-0\": raw]\n     1\tyes\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put("n.IPYNB", test.content)
			want := strings.ReplaceAll(test.want, "NAME", filepath.Join(d.dir, "n.IPYNB"))
			if diff := cmp.Diff(want, d.must(d.read("n.IPYNB"))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A long notebook is shown in pages, each of which tells what its first lines
// belong to.
func TestReadPagesNotebooks(t *testing.T) {
	var cells []string
	for i := range 20 {
		cells = append(cells, fmt.Sprintf(`{"id":"c%d","cell_type":"markdown","source":"%s"}`, i, strings.Repeat("some text\\n", 99)+"end"))
	}
	d := newDesk(t)
	d.put("n.ipynb", `{"nbformat":4,"cells":[`+strings.Join(cells, ",")+`]}`)
	for _, limit := range []int{1000, 3000, 100_000} {
		seen, from := 0, 1
		for from > 0 {
			res, err := d.call(Read{Files: d.files, Limit: limit}, args{"file_path": "n.ipynb", "offset": from})
			if err != nil {
				t.Fatal(err)
			}
			text := res.Content.Text()
			if n := len([]rune(text)); n > limit {
				t.Fatalf("limit %d: %d characters", limit, n)
			}
			want := fmt.Sprintf("[cell \"c%d\": markdown]\n%6d\t", (from-1)/100, from)
			if !strings.HasPrefix(text, want) {
				t.Fatalf("limit %d, line %d: begins with %.60q, want %q", limit, from, text, want)
			}
			seen += strings.Count(text, "\t")
			_, next, more := strings.Cut(text, "go on with offset ")
			from = 0
			if more {
				fmt.Sscanf(next, "%d", &from)
			}
			if !strings.Contains(string(res.Data), `"type":"notebook"`) {
				t.Errorf("data %s", res.Data)
			}
		}
		if seen != 2000 {
			t.Errorf("limit %d: %d lines seen, want 2000", limit, seen)
		}
	}
}

// Only what a call is about changes, to the byte.
func TestNotebookEdit(t *testing.T) {
	for _, test := range []struct {
		name, content string
		in            args
		old, new      string // the part of the file that changes
	}{
		{"replace", jupyter, args{"cell_id": "intro", "new_source": "# Ü \"x\"\n\n<b>\\\n"}, "    \"# Title\\n\",\n    \"text\"\n", "    \"# Ü \\\"x\\\"\\n\",\n    \"\\n\",\n    \"<b>\\\\\\n\"\n"},
		{"replace by nothing", jupyter, args{"cell_id": "calc", "new_source": ""}, "[\n    \"print(2+2)\"\n   ]", "[]"},
		{"CRLF in the call", jupyter, args{"cell_id": "calc", "new_source": "a\r\nb"}, "    \"print(2+2)\"\n", "    \"a\\n\",\n    \"b\"\n"},
		{"file with CRLF", strings.ReplaceAll(jupyter, "\n", "\r\n"), args{"cell_id": "calc", "new_source": "a\nb"}, "    \"print(2+2)\"\r\n", "    \"a\\n\",\r\n    \"b\"\r\n"},
		{"string stays string", oldest, args{"cell_id": "cell-0", "new_source": "x\ny"}, `"a = 1\nb"`, `"x\ny"`},
		{"one line stays one line", oldest, args{"cell_id": "cell-1", "new_source": "x\ny"}, `["r"]`, `["x\n","y"]`},
		{"same kind", jupyter, args{"cell_id": "intro", "new_source": "x", "cell_type": "markdown"}, "    \"# Title\\n\",\n    \"text\"\n", "    \"x\"\n"},
		{"code to markdown", jupyter, args{"cell_id": "calc", "new_source": "x", "cell_type": "markdown"},
			jupyter[strings.Index(jupyter, "  {\n   \"cell_type\": \"code\""):strings.Index(jupyter, " ],\n \"metadata\": {\n")],
			"  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"calc\",\n   \"metadata\": {\"z\": 1, \"a\": 2},\n   \"source\": [\n    \"x\"\n   ]\n  }\n"},
		{"markdown to code", jupyter, args{"cell_id": "intro", "new_source": "x", "cell_type": "code"},
			"   \"cell_type\": \"markdown\",\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"source\": [\n    \"# Title\\n\",\n    \"text\"\n   ]",
			"   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"x\"\n   ]"},
		{"delete the first", jupyter, args{"cell_id": "intro", "edit_mode": "delete"}, "  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"source\": [\n    \"# Title\\n\",\n    \"text\"\n   ]\n  },\n", ""},
		{"delete the last", oldest, args{"cell_id": "cell-1", "edit_mode": "delete"}, `,{"cell_type":"raw","metadata":{},"source":["r"]}`, ""},
		{"delete the only one", `{"nbformat":4,"cells":[ {"cell_type":"raw","source":""} ]}`, args{"cell_id": "cell-0", "edit_mode": "delete"}, ` {"cell_type":"raw","source":""} `, ""},
		{"insert at the beginning", oldest, args{"edit_mode": "insert", "cell_type": "code", "new_source": "x\n"}, `"cells":[`, `"cells":[{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":"x\n"},`},
		{"insert behind", oldest, args{"edit_mode": "insert", "cell_type": "markdown", "new_source": "x", "cell_id": "cell-1"}, `"source":["r"]}`, `"source":["r"]},{"cell_type":"markdown","metadata":{},"source":"x"}`},
		{"insert into nothing", "{\n \"nbformat\": 4,\n \"cells\": []\n}", args{"edit_mode": "insert", "cell_type": "markdown", "new_source": "x"}, "[]",
			"[\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \"x\"\n   ]\n  }\n ]"},
		{"tabs", "{\n\t\"nbformat\": 4,\n\t\"cells\": []}", args{"edit_mode": "insert", "cell_type": "markdown", "new_source": ""}, "[]",
			"[\n\t\t{\n\t\t\t\"cell_type\": \"markdown\",\n\t\t\t\"metadata\": {},\n\t\t\t\"source\": []\n\t\t}\n\t]"},
		{"spaces in one line", `{"nbformat": 4, "cells": [{"cell_type": "raw", "source": ["a", "b"]}]}`, args{"edit_mode": "insert", "cell_type": "markdown", "new_source": "x\ny"}, `"cells": [`,
			`"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["x\n", "y"]}, `},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("n.ipynb", test.content)
			d.must(d.read("n.ipynb"))
			d.must(d.notebook(test.in))
			if n := strings.Count(test.content, test.old); n != 1 {
				t.Fatalf("the old part is there %d times", n)
			}
			if diff := cmp.Diff(strings.Replace(test.content, test.old, test.new, 1), d.content("n.ipynb")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotebookEditInsertsWithID(t *testing.T) {
	d := newDesk(t)
	d.put("n.ipynb", jupyter)
	d.must(d.read("n.ipynb"))
	said := d.must(d.notebook(args{"cell_id": "intro", "edit_mode": "insert", "cell_type": "code", "new_source": "x = 1"}))
	nb, err := parseNotebook([]byte(d.content("n.ipynb")))
	if err != nil {
		t.Fatal(err)
	}
	id := nb.cells[1].id
	if len(id) != 8 || !strings.Contains(said, id) || nb.cells[1].source != "x = 1" {
		t.Errorf("said %q of the cell %+v", said, nb.cells[1])
	}
	want := strings.Replace(jupyter, "  },\n", "  },\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \""+id+"\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"x = 1\"\n   ]\n  },\n", 1)
	if diff := cmp.Diff(want, d.content("n.ipynb")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The new cell is known: nothing has to be read again.
	if said := d.must(d.notebook(args{"cell_id": id, "new_source": "x = 2"})); strings.Contains(said, "outputs") {
		t.Error(said)
	}
	if said := d.must(d.notebook(args{"cell_id": "calc", "new_source": "x"})); !strings.Contains(said, "Its outputs are those of the source before") {
		t.Error(said)
	}
}

func TestNotebookEditRefuses(t *testing.T) {
	twice := `{"nbformat":4,"cells":[{"id":"a","cell_type":"raw","source":""},{"id":"a","cell_type":"raw","source":""}]}`
	for _, test := range []struct {
		content string
		in      args
		want    string
	}{
		{jupyter, args{"cell_id": "other", "new_source": "x"}, `no cell "other"; Read shows the ids of its 2 cells`},
		{jupyter, args{"cell_id": "cell-0", "new_source": "x"}, `no cell "cell-0"`},
		{jupyter, args{"cell_id": "calc", "new_source": "print(2+2)"}, "nothing would change"},
		{jupyter, args{"new_source": "x"}, "to replace a cell needs its cell_id"},
		{jupyter, args{"edit_mode": "delete"}, "to delete a cell needs its cell_id"},
		{jupyter, args{"edit_mode": "insert", "new_source": "x"}, "needs cell_type"},
		{jupyter, args{"edit_mode": "append", "cell_id": "calc"}, `edit_mode is "append"`},
		{jupyter, args{"cell_type": "raw", "cell_id": "calc"}, `cell_type is "raw"`},
		{twice, args{"cell_id": "a", "new_source": "x"}, "2 cells of the notebook have the id"},
		{"{}", args{"cell_id": "a", "new_source": "x"}, "cannot be changed by cell"},
		{strings.Replace(jupyter, "text", "\xe9", 1), args{"cell_id": "calc", "new_source": "x"}, "not UTF-8"},
	} {
		d := newDesk(t)
		d.put("n.ipynb", test.content)
		d.must(d.read("n.ipynb"))
		_, err := d.notebook(test.in)
		wantErr(t, err, nil, test.want)
		d.has("n.ipynb", test.content)
	}
	d := newDesk(t)
	_, err := d.notebook(args{"cell_id": "a", "new_source": "x"})
	wantErr(t, err, nil, "edit "+filepath.Join(d.dir, "n.ipynb"))
	_, err = d.call(NotebookEdit{Files: d.files}, args{"notebook_path": "a.txt", "new_source": ""})
	wantErr(t, err, nil, "use Edit")
	d.put("n.ipynb", jupyter)
	_, err = d.notebook(args{"cell_id": "calc", "new_source": "x"})
	wantErr(t, err, ErrNotRead)
	d.must(d.read("n.ipynb"))
	d.put("n.ipynb", jupyter+"\n")
	_, err = d.notebook(args{"cell_id": "calc", "new_source": "x"})
	wantErr(t, err, ErrChanged)
}

// Where cells are named by their number, a change of numbers has to be seen
// before the next edit, or that would hit another cell.
func TestNotebookEditOfNumberedCells(t *testing.T) {
	for _, in := range []args{{"edit_mode": "delete", "cell_id": "cell-0"}, {"edit_mode": "insert", "cell_type": "code", "new_source": "x"}} {
		d := newDesk(t)
		d.put("n.ipynb", oldest)
		d.must(d.read("n.ipynb"))
		d.must(d.notebook(args{"cell_id": "cell-1", "new_source": "r2"}))
		if said := d.must(d.notebook(in)); !strings.Contains(said, "Read the notebook before the next change") {
			t.Error(said)
		}
		_, err := d.notebook(args{"cell_id": "cell-1", "new_source": "x"})
		wantErr(t, err, ErrNotRead)
	}
}

// Any sequence of edits leaves a notebook that other readers of JSON read as
// it should be, in whatever way it is laid out.
func TestNotebookEditsKeepNotebooks(t *testing.T) {
	type jsonCell struct {
		ID     string `json:"id"`
		Kind   string `json:"cell_type"`
		Source any    `json:"source"`
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{jupyter, oldest, "{\n\t\"nbformat\": 4,\n\t\"cells\": []}", `{"cells": [], "nbformat": 4, "nbformat_minor": 5}`}).Draw(t, "notebook")
		nb, err := parseNotebook([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var want [][2]string // kind and source
		for _, c := range nb.cells {
			want = append(want, [2]string{c.kind, c.source})
		}
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			source := rapid.StringMatching(`([a-z\\"<é\n\t\x00\x{2028}😀]|\]\}|,){0,12}`).Draw(t, "source")
			kind := rapid.SampledFrom([]string{"code", "markdown"}).Draw(t, "kind")
			in := notebookInput{NotebookPath: "n.ipynb", NewSource: source, CellType: kind, EditMode: rapid.SampledFrom([]string{"insert", "insert", "replace", "delete"}).Draw(t, "mode")}
			i := 0
			if len(want) > 0 {
				i = rapid.IntRange(0, len(want)-1).Draw(t, "cell")
				in.CellID = nb.name(i)
			} else if in.EditMode != "insert" {
				continue
			}
			change, err := in.apply(nb)
			if err != nil {
				if in.EditMode == "replace" && want[i] == [2]string{kind, source} {
					continue
				}
				t.Fatal(err)
			}
			switch in.EditMode {
			case "delete":
				want = slices.Delete(want, i, i+1)
			case "replace":
				want[i] = [2]string{kind, source}
			default:
				want = slices.Insert(want, min(i+1, len(want)), [2]string{kind, source})
			}
			if nb, err = parseNotebook(change.content); err != nil {
				t.Fatalf("%v: %s", err, change.content)
			}
			var plain struct{ Cells []jsonCell }
			if err := json.Unmarshal([]byte(strings.TrimPrefix(string(change.content), byteOrderMark)), &plain); err != nil || len(plain.Cells) != len(want) {
				t.Fatalf("%v, %d cells: %s", err, len(plain.Cells), change.content)
			}
			ids := map[string]bool{}
			for i, c := range plain.Cells {
				got := ""
				switch s := c.Source.(type) {
				case string:
					got = s
				case []any:
					for _, line := range s {
						got += line.(string)
					}
				}
				if c.Kind != want[i][0] || got != want[i][1] || nb.cells[i].source != got || (c.ID == "") != (nb.minor < 5) || c.ID != "" && ids[c.ID] {
					t.Fatalf("cell %d is %q, want %q: %s", i, c, want[i], change.content)
				}
				ids[c.ID] = true
			}
		}
	})
}

// The places of parts are those that encoding/json sees.
func FuzzPlaces(f *testing.F) {
	for _, seed := range []string{jupyter, `{"a":[1,-2.5e3 ,true,null,"x\\\"]}"] , "b" : {}}`, `[[],[{}],"",0]`, ` 7`, `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		at := skipSpace(text, 0)
		all := span{at, skipValue(text, at)}
		if skipSpace(text, all.end) != len(text) {
			t.Fatalf("the value ends at %d of %d", all.end, len(text))
		}
		var list []json.RawMessage
		var object map[string]json.RawMessage
		if es := elements(text, all); json.Unmarshal(text, &list) == nil && len(es) != len(list) {
			t.Fatalf("%d elements, want %d", len(es), len(list))
		}
		for i, e := range elements(text, all) {
			if string(e.of(text)) != string(list[i]) {
				t.Fatalf("element %d is %q, want %q", i, e.of(text), list[i])
			}
		}
		ms := members(text, all)
		if json.Unmarshal(text, &object) == nil {
			for name, want := range object {
				if got, ok := lookUp(ms, name); !ok || string(got.of(text)) != string(want) {
					t.Fatalf("member %q is %q, want %q", name, got.of(text), want)
				}
			}
		}
	})
}
