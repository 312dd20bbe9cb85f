package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// isNotebook says that a file of this name should be a Jupyter notebook.
func isNotebook(path string) bool { return strings.EqualFold(filepath.Ext(path), ".ipynb") }

// A notebook is a file in Jupyter's format, version 4 (nbformat.readthedocs.io),
// and where its parts stand in it.
type notebook struct {
	text  []byte // without byte order mark
	mark  string // the byte order mark, if there is one
	top   []member
	list  span // of the cells
	cells []cell
	minor int // of the version; from 5 on cells have ids
}

// A cell is one cell of a notebook.
type cell struct {
	place  span
	fields []member
	id     string // "" if it has none
	kind   string // code, markdown or raw
	source string
}

func parseNotebook(content []byte) (notebook, error) {
	var nb notebook
	text, marked := bytes.CutPrefix(content, []byte(byteOrderMark))
	if marked {
		nb.mark = byteOrderMark
	}
	nb.text = text
	var version struct {
		Major int `json:"nbformat"`
		Minor int `json:"nbformat_minor"`
	}
	if !utf8.Valid(text) {
		return nb, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nb, fmt.Errorf("it is not the JSON of a notebook: %w", err)
	}
	if version.Major != 4 {
		return nb, fmt.Errorf("it has version %d of the notebook format, not 4", version.Major)
	}
	nb.minor = version.Minor
	start := skipSpace(text, 0)
	nb.top = members(text, span{start, len(text)})
	list, ok := lookUp(nb.top, "cells")
	if !ok || text[list.start] != '[' {
		return nb, errors.New("it has no list of cells")
	}
	nb.list = list
	for i, place := range elements(text, list) {
		c, err := parseCell(text, place)
		if err != nil {
			return nb, fmt.Errorf("its cell %d %w", i+1, err)
		}
		nb.cells = append(nb.cells, c)
	}
	return nb, nil
}

func parseCell(text []byte, place span) (cell, error) {
	c := cell{place: place, fields: members(text, place)}
	var ok bool
	if v, has := lookUp(c.fields, "id"); has {
		if c.id, ok = textAt(text, v); !ok {
			return c, errors.New("has an id that is no text")
		}
	}
	if v, has := lookUp(c.fields, "cell_type"); has {
		c.kind, _ = textAt(text, v)
	}
	if c.kind != "code" && c.kind != "markdown" && c.kind != "raw" {
		return c, errors.New("is neither code nor markdown nor raw")
	}
	v, has := lookUp(c.fields, "source")
	if has {
		c.source, ok = textAt(text, v)
	}
	if !has || !ok {
		return c, errors.New("has no source")
	}
	return c, nil
}

// name is by what a call names the cell with the number i, from 0: its id, or
// its number if it has none.
func (nb notebook) name(i int) string {
	if id := nb.cells[i].id; id != "" {
		return id
	}
	return fmt.Sprintf("cell-%d", i)
}

// find is the number of the cell of that name.
func (nb notebook) find(name string) (int, error) {
	found, n := 0, 0
	for i := range nb.cells {
		if nb.name(i) == name {
			found, n = i, n+1
		}
	}
	switch n {
	case 0:
		return 0, fmt.Errorf("the notebook has no cell %q; Read shows the ids of its %s", name, plural(len(nb.cells), "cell"))
	case 1:
		return found, nil
	}
	return 0, fmt.Errorf("%d cells of the notebook have the id %q; it must be repaired first", n, name)
}

// numbered says that some cell from the number i on is named by its number.
func (nb notebook) numbered(i int) bool {
	for _, c := range nb.cells[min(i, len(nb.cells)):] {
		if c.id == "" {
			return true
		}
	}
	return false
}
