package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
)

// outputShown is the number of characters that are shown of one output.
const outputShown = 4000

// A section is a part of a notebook as it is shown: a heading, and a text
// whose lines are numbered.
type section struct{ heading, text string }

// showNotebook is the notebook in s for the model. What cannot be read as one
// is shown as the text that it is.
func showNotebook(ctx context.Context, path string, s *source, v *view) (troupe.Result, error) {
	raw, err := s.rest(ctx)
	if err != nil {
		return troupe.Result{}, err
	}
	var nb notebook
	if s.huge() {
		err = errTooLarge
	} else {
		nb, err = parseNotebook(raw)
	}
	if err != nil {
		s.text = bufio.NewReader(io.MultiReader(bytes.NewReader(raw), s.text))
		if err := v.fill(ctx, s); err != nil {
			return troupe.Result{}, err
		}
		v.notes = fmt.Sprintf("[the file cannot be shown as a notebook: %v]\n", err)
		return v.result(path, s)
	}
	if len(nb.cells) == 0 {
		return troupe.Answer(path + " is a notebook without cells."), nil
	}
	v.kind = "notebook"
	for _, sec := range nb.sections() {
		if ctx.Err() != nil {
			return troupe.Result{}, ctx.Err()
		}
		v.section(sec)
	}
	return v.result(path, s)
}

// rest is all that has not been read of s yet, or enough of it to tell that
// the file is huge.
func (s *source) rest(ctx context.Context) ([]byte, error) {
	var out bytes.Buffer
	for !s.huge() {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		_, err := io.CopyN(&out, s.text, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// section takes the lines of sec. A page that begins inside of it has the
// heading too, so that it can be told what the lines belong to.
func (v *view) section(sec section) {
	first := true
	for line := range strings.SplitSeq(sec.text, "\n") {
		v.total++
		if v.total >= v.from && !v.full {
			above := ""
			if first || v.shown == 0 {
				above = sec.heading + "\n"
			}
			end := prefix([]byte(line), viewLineSize)
			v.show(above, []byte(line[:end]), utf8.RuneCountInString(line[end:]))
		}
		first = false
	}
}

// sections are the cells of nb with their outputs.
func (nb notebook) sections() []section {
	var out []section
	for i, c := range nb.cells {
		name := nb.name(i)
		heading := fmt.Sprintf("[cell %q: %s]", name, c.kind)
		if count, ok := lookUp(c.fields, "execution_count"); ok && nb.text[count.start] >= '0' && nb.text[count.start] <= '9' {
			heading = fmt.Sprintf("[cell %q: %s, run %s]", name, c.kind, count.of(nb.text))
		}
		out = append(out, section{heading, plainLineEnds(c.source)})
		outputs, _ := lookUp(c.fields, "outputs")
		for _, o := range elements(nb.text, outputs) {
			out = append(out, nb.output(name, members(nb.text, o))...)
		}
	}
	return out
}

// output is an output of the cell of that name; a long one is cut.
func (nb notebook) output(cell string, fields []member) []section {
	text := func(ms []member, name string) string {
		v, ok := lookUp(ms, name)
		if !ok {
			return ""
		}
		s, _ := textAt(nb.text, v)
		return s
	}
	var shown string
	switch text(fields, "output_type") {
	case "stream":
		shown = text(fields, "text")
	case "error":
		shown = text(fields, "ename") + ": " + text(fields, "evalue")
		if lines := nb.lines(fields, "traceback"); lines != "" {
			shown = lines
		}
	default:
		data, _ := lookUp(fields, "data")
		shown = nb.bundle(members(nb.text, data))
	}
	shown = strings.TrimRight(plain([]byte(shown)), "\n")
	heading := fmt.Sprintf("[output of cell %q]", cell)
	head := prefix([]byte(shown), outputShown/2)
	rest := shown[head:]
	left := utf8.RuneCountInString(rest) - outputShown/2
	if left <= 0 {
		return []section{{heading, shown}}
	}
	tail := rest[prefix([]byte(rest), left):]
	return []section{{heading, shown[:head]}, {fmt.Sprintf("[%d characters of the output left out here]", left), tail}}
}

// lines are those of a list of lines without line ends.
func (nb notebook) lines(fields []member, name string) string {
	list, _ := lookUp(fields, name)
	var out []string
	for _, l := range elements(nb.text, list) {
		line, _ := textAt(nb.text, l)
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// bundle is an output that is there in several forms, by media type: its
// plain text, and what else there is by name.
func (nb notebook) bundle(forms []member) string {
	var lines []string
	if v, ok := lookUp(forms, "text/plain"); ok {
		s, _ := textAt(nb.text, v)
		lines = append(lines, s)
	}
	for _, f := range forms {
		if strings.HasPrefix(f.name, "image/") || len(lines) == 0 {
			lines = append(lines, fmt.Sprintf("(%.80q, %s; not shown)", f.name, byteSize(int64(f.value.end-f.value.start))))
		}
	}
	return strings.Join(lines, "\n")
}
