package tool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A grepOutput puts together the result of Grep. An entry, of which the input
// limits the number, is a line in mode content and a file in the others.
type grepOutput struct {
	in    grepInput
	query grepQuery
	name  func(rel string) string

	skip, left int // entries still to be passed over, and to be shown
	more       bool
	text       strings.Builder
	files      []string // with at least an entry shown
	entries    int
	matches    int // mode count: the sum of what is shown
}

type grepData struct {
	Mode          string   `json:"mode"`
	NumFiles      int      `json:"numFiles"`
	Filenames     []string `json:"filenames"`
	Content       string   `json:"content,omitempty"`
	NumLines      int      `json:"numLines,omitempty"`
	NumMatches    int      `json:"numMatches,omitempty"`
	AppliedLimit  int      `json:"appliedLimit,omitempty"`
	AppliedOffset int      `json:"appliedOffset,omitempty"`
}

func newGrepOutput(in grepInput, q grepQuery, name func(string) string) *grepOutput {
	return &grepOutput{in: in, query: q, name: name, skip: in.Offset, left: in.limit()}
}

// file adds what was found in one file.
func (o *grepOutput) file(f foundFile) {
	name := o.name(f.rel)
	before := o.entries
	switch o.query.mode {
	case modeContent:
		for i, l := range f.lines {
			if o.entry() {
				o.line(onOneLine(name), l, i == 0)
			}
		}
	case modeCount:
		if o.entry() {
			fmt.Fprintf(&o.text, "%s:%d\n", onOneLine(name), f.count)
			o.matches += f.count
		}
	default:
		if o.entry() {
			o.text.WriteString(onOneLine(name) + "\n")
		}
	}
	if o.entries > before {
		o.files = append(o.files, name)
	}
}

// entry tells whether the next entry is to be shown.
func (o *grepOutput) entry() bool {
	switch {
	case o.skip > 0:
		o.skip--
		return false
	case o.left == 0:
		o.more = true
		return false
	}
	o.left--
	o.entries++
	return true
}

// line shows a line as grep does.
func (o *grepOutput) line(name string, l shownLine, first bool) {
	if (l.gap || first) && o.query.before+o.query.after > 0 && o.text.Len() > 0 {
		o.text.WriteString("--\n")
	}
	o.text.WriteString(name)
	if l.mark == 0 {
		o.text.WriteString(": " + l.text + "\n")
		return
	}
	o.text.WriteByte(l.mark)
	if o.in.Numbers == nil || *o.in.Numbers {
		o.text.WriteString(strconv.Itoa(l.number))
		o.text.WriteByte(l.mark)
	}
	o.text.WriteString(l.text + "\n")
}

// result is the whole, with notes for the model.
func (o *grepOutput) result(notes []string) (troupe.Result, error) {
	text := strings.TrimSuffix(o.text.String(), "\n")
	data := grepData{Mode: o.query.mode, NumFiles: len(o.files), Filenames: append([]string{}, o.files...), AppliedOffset: o.in.Offset}
	switch o.query.mode {
	case modeContent:
		data.Content, data.NumLines = text, o.entries
	case modeCount:
		data.Content, data.NumMatches = text, o.matches
	}
	if o.more {
		data.AppliedLimit = o.in.limit()
		notes = append(notes, fmt.Sprintf("shown: %d from offset %d; there is more: go on with offset %d, or narrow the search", o.entries, o.in.Offset, o.in.Offset+o.entries))
	}
	if o.entries == 0 {
		text = "No matches found"
		if o.in.Offset > 0 {
			text += fmt.Sprintf(" from offset %d on", o.in.Offset)
		}
		if strings.Contains(o.in.Pattern, `\|`) {
			notes = append(notes, `\| matches the character |; alternatives are divided by | alone`)
		}
	}
	for _, n := range notes {
		text += "\n(" + n + ")"
	}
	raw, err := troupe.Encode(data)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("data of Grep: %w", err)
	}
	r := troupe.Answer(text)
	r.Data = raw
	return r, nil
}
