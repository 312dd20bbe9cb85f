package tool

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A notebookChange is what an edit makes of a notebook.
type notebookChange struct {
	content    []byte
	cell, kind string // the cell that was changed
	stale      bool   // it has outputs of another source
	renumbered bool   // cells that are named by their number have another
}

// apply carries out an edit.
func (in notebookInput) apply(nb notebook) (notebookChange, error) {
	if in.EditMode == "insert" && in.CellID == "" {
		return nb.insert(0, in.CellType, in.NewSource)
	}
	i, err := nb.find(in.CellID)
	if err != nil {
		return notebookChange{}, err
	}
	switch c := nb.cells[i]; {
	case in.EditMode == "insert":
		return nb.insert(i+1, in.CellType, in.NewSource)
	case in.EditMode == "delete":
		return nb.remove(i), nil
	case in.CellType == "" || in.CellType == c.kind:
		return nb.replace(i, in.NewSource)
	}
	return nb.convert(i, in.CellType, in.NewSource)
}

// splice is the content of the file with new in place of what is at s.
func (nb notebook) splice(s span, new string) []byte {
	return slices.Concat([]byte(nb.mark), nb.text[:s.start], []byte(new), nb.text[s.end:])
}

// replace gives the cell with the number i another source.
func (nb notebook) replace(i int, source string) (notebookChange, error) {
	c := nb.cells[i]
	source = withLineEnds(source, parseText([]byte(c.source)).lineEnd())
	if source == c.source {
		return notebookChange{}, errors.New("the cell has this source already; nothing would change")
	}
	old, _ := lookUp(c.fields, "source")
	new, err := nb.encodeSource(source, old, nb.layout())
	if err != nil {
		return notebookChange{}, err
	}
	outputs, _ := lookUp(c.fields, "outputs")
	return notebookChange{
		content: nb.splice(old, new), cell: nb.name(i), kind: c.kind, stale: len(elements(nb.text, outputs)) > 0,
	}, nil
}

// convert makes the cell with the number i one of another kind. Outputs are
// lost with that: a markdown cell cannot have any.
func (nb notebook) convert(i int, kind, source string) (notebookChange, error) {
	c := nb.cells[i]
	metadata := "{}"
	if v, ok := lookUp(c.fields, "metadata"); ok {
		metadata = string(v.of(nb.text))
	}
	new, err := nb.newCell(kind, c.id, metadata, source)
	if err != nil {
		return notebookChange{}, err
	}
	return notebookChange{content: nb.splice(c.place, new), cell: nb.name(i), kind: kind}, nil
}

// remove takes the cell with the number i out, and a comma with it.
func (nb notebook) remove(i int) notebookChange {
	cut := nb.cells[i].place
	switch {
	case len(nb.cells) == 1:
		cut = span{nb.list.start + 1, nb.list.end - 1}
	case i == 0:
		cut.end = nb.cells[1].place.start
	default:
		cut.start = nb.cells[i-1].place.end
	}
	return notebookChange{content: nb.splice(cut, ""), cell: nb.name(i), kind: nb.cells[i].kind, renumbered: nb.numbered(i + 1)}
}

// insert makes a new cell that has the number i then.
func (nb notebook) insert(i int, kind, source string) (notebookChange, error) {
	id, name := "", fmt.Sprintf("cell-%d", i)
	if nb.minor >= 5 {
		id = nb.newID(i)
		name = id
	}
	new, err := nb.newCell(kind, id, "{}", source)
	if err != nil {
		return notebookChange{}, err
	}
	change := notebookChange{cell: name, kind: kind, renumbered: nb.numbered(i)}
	l := nb.layout()
	between := spacingOf(nb.text, nb.list, spacing{l.cell, l.comma + l.cell, l.top})
	switch {
	case len(nb.cells) == 0:
		change.content = nb.splice(nb.list, "["+between.open+new+between.close+"]")
	case i == 0:
		at := nb.cells[0].place.start
		change.content = nb.splice(span{at, at}, new+between.next)
	default:
		at := nb.cells[i-1].place.end
		change.content = nb.splice(span{at, at}, between.next+new)
	}
	return change, nil
}

// newID is an id that no cell has, for a new cell with the number i.
func (nb notebook) newID(i int) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", n, i, nb.text))
		id := fmt.Sprintf("%x", sum[:4])
		if !slices.ContainsFunc(nb.cells, func(c cell) bool { return c.id == id }) {
			return id
		}
	}
}

// newCell is the JSON of a cell, laid out as the others are. Its members are
// in the order of the alphabet, as Jupyter writes them.
func (nb notebook) newCell(kind, id, metadata, source string) (string, error) {
	l := nb.layout()
	like := span{} // another source, to be written in the same form
	if len(nb.cells) > 0 {
		like, _ = lookUp(nb.cells[0].fields, "source")
	}
	src, err := nb.encodeSource(source, like, l)
	if err != nil {
		return "", err
	}
	var fields []string
	put := func(name, value string) { fields = append(fields, l.member+`"`+name+`"`+l.colon+value) }
	put("cell_type", `"`+kind+`"`)
	if kind == "code" {
		put("execution_count", "null")
	}
	if id != "" {
		quoted, err := troupe.Encode(id)
		if err != nil {
			return "", fmt.Errorf("encode the id: %w", err)
		}
		put("id", string(quoted))
	}
	put("metadata", metadata)
	if kind == "code" {
		put("outputs", "[]")
	}
	put("source", src)
	return "{" + strings.Join(fields, l.comma) + l.cell + "}", nil
}

// encodeSource is the JSON of a source in the form of another, which is at
// like: a string, or a list of lines with their ends.
func (nb notebook) encodeSource(source string, like span, l layout) (string, error) {
	if like.start < like.end && nb.text[like.start] == '"' {
		raw, err := troupe.Encode(source)
		return string(raw), err
	}
	if source == "" {
		return "[]", nil
	}
	form := spacingOf(nb.text, like, spacing{l.line, l.comma + l.line, l.member})
	var lines []string
	for line := range strings.Lines(source) {
		raw, err := troupe.Encode(line)
		if err != nil {
			return "", fmt.Errorf("encode the source: %w", err)
		}
		lines = append(lines, string(raw))
	}
	return "[" + form.open + strings.Join(lines, form.next) + form.close + "]", nil
}

// A layout is the white space between the parts of a notebook: empty in front
// of what follows on the same line.
type layout struct {
	top    string // in front of the members of the notebook
	cell   string // in front of a cell and of its end
	member string // in front of a member of a cell
	line   string // in front of a line of a source
	colon  string
	comma  string
}

// layout is how nb is laid out, as its first member shows.
func (nb notebook) layout() layout {
	first := nb.top[0]
	l := layout{
		top:   string(nb.text[skipSpace(nb.text, 0)+1 : first.key.start]),
		colon: string(nb.text[first.key.end:first.value.start]),
		comma: ",",
	}
	at := strings.LastIndexByte(l.top, '\n')
	if at < 0 {
		if strings.HasSuffix(l.colon, " ") {
			l.comma = ", "
		}
		return l
	}
	unit := l.top[at+1:]
	l.cell = l.top + unit
	l.member = l.cell + unit
	l.line = l.member + unit
	return l
}

// A spacing is the white space of a JSON list: behind its opening bracket,
// between elements with the comma, in front of its closing bracket.
type spacing struct{ open, next, close string }

// spacingOf is the spacing of the list at s; what it does not show is usual.
func spacingOf(text []byte, s span, usual spacing) spacing {
	es := elements(text, s)
	if len(es) == 0 {
		return usual
	}
	l := spacing{string(text[s.start+1 : es[0].start]), "", string(text[es[len(es)-1].end : s.end-1])}
	l.next = "," + l.open
	if len(es) > 1 {
		l.next = string(text[es[0].end:es[1].start])
	}
	if len(es) == 1 && l.open == "" {
		l.next = usual.next
	}
	return l
}
