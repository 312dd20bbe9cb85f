package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
)

//go:embed edit.md
var editDoc string

// Edit is the tool that replaces a text in a file. The agent must have seen
// the present content of the file, as Files knows it; else the error is
// ErrNotRead or ErrChanged.
type Edit struct {
	Files *Files
}

type editInput struct {
	FilePath   string `json:"file_path" jsonschema:"the file to change"`
	OldString  string `json:"old_string" jsonschema:"the text to replace"`
	NewString  string `json:"new_string" jsonschema:"the text to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace it wherever it is found"`
}

type editData struct {
	FilePath        string  `json:"filePath"`
	OldString       string  `json:"oldString"`
	NewString       string  `json:"newString"`
	OriginalFile    *string `json:"originalFile,omitempty"`
	StructuredPatch []hunk  `json:"structuredPatch"`
	ReplaceAll      bool    `json:"replaceAll"`
}

var editSpec = sync.OnceValue(func() troupe.ToolSpec { return define[editInput]("Edit", editDoc) })

// Spec implements [troupe.Tool].
func (e Edit) Spec() troupe.ToolSpec { return editSpec() }

// Lane implements [troupe.Ordered]: the calls on one file keep their order.
func (e Edit) Lane(c *troupe.Call) string {
	in, err := input[editInput](c)
	if err != nil {
		return ""
	}
	return lane(c, in.FilePath)
}

// Call implements [troupe.Tool].
func (e Edit) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[editInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	if in.FilePath == "" {
		return troupe.Result{}, errors.New("file_path is empty")
	}
	in.OldString, in.NewString = plainLineEnds(in.OldString), plainLineEnds(in.NewString)
	path := resolve(c.Place, in.FilePath)
	real, err := realPath(path)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("edit %s: %w", path, err)
	}
	var places []int
	before, after, err := e.Files.change(ctx, c, real, func(old snapshot) ([]byte, error) {
		if old.info == nil {
			return nil, fs.ErrNotExist
		}
		content, at, err := substitute(old.content, in)
		places = at
		return content, err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return troupe.Result{}, missing("edit", path)
	}
	if err != nil {
		return troupe.Result{}, fmt.Errorf("edit %s: %w", path, err)
	}
	return edited(path, in, places, before.content, after)
}

// substitute carries out an edit on the content of a file. It returns where
// in the text of the file, with \n for all line ends, it found the old string.
func substitute(content []byte, in editInput) (changed []byte, places []int, err error) {
	switch {
	case in.OldString == "":
		return nil, nil, errors.New("old_string is empty; use Write to give a file its whole content")
	case in.OldString == in.NewString:
		return nil, nil, errors.New("old_string and new_string are the same; nothing would change")
	case !utf8.Valid(content):
		return nil, nil, errors.New("the file is not UTF-8, an edit could damage it; convert it first")
	}
	t := parseText(content)
	// Occurrences may overlap: an edit of "aa" in "aaa" could mean either.
	step, most := 1, 1000
	if in.ReplaceAll {
		step, most = len(in.OldString), 1<<20
	}
	places, all := occurrences(t.body, in.OldString, step, most)
	switch {
	case len(places) == 0:
		return nil, nil, errors.New("old_string is not in the file" + nearest(t.body, in.OldString))
	case in.ReplaceAll && !all:
		return nil, nil, fmt.Errorf("old_string is in the file more than %d times; use another tool", most)
	case !in.ReplaceAll && len(places) > 1:
		return nil, nil, fmt.Errorf("old_string is in the file %d times (%s); give more of the text around it so that it is found once, or set replace_all",
			len(places), lineNumbers(t.body, places))
	case len(t.raw)+len(places)*(len(in.NewString)-len(in.OldString)) > maxFileSize:
		return nil, nil, fmt.Errorf("the new content is %w", errTooLarge)
	}
	return t.replace(places, len(in.OldString), in.NewString), places, nil
}

// occurrences is where s is found in body, at most so often; all says that
// there are no more. From one the search goes on step bytes later.
func occurrences(body, s string, step, most int) (places []int, all bool) {
	for from := 0; from <= len(body); {
		i := strings.Index(body[from:], s)
		if i < 0 {
			return places, true
		}
		if len(places) == most {
			return places, false
		}
		places = append(places, from+i)
		from += i + step
	}
	return places, true
}

// lineNumbers names the lines of the first places.
func lineNumbers(body string, places []int) string {
	const named = 10
	var out []string
	line, done := 1, 0
	for _, p := range places[:min(named, len(places))] {
		line += strings.Count(body[done:p], "\n")
		done = p
		out = append(out, fmt.Sprint(line))
	}
	if len(places) > named {
		out = append(out, "…")
	}
	return "lines " + strings.Join(out, ", ")
}

// edited tells of a file that was edited, with the lines around the first
// change.
func edited(path string, in editInput, places []int, before, after []byte) (troupe.Result, error) {
	old, new := parseText(before), parseText(after)
	said := fmt.Sprintf("Edited %s:\n", path)
	if len(places) > 1 {
		said = fmt.Sprintf("Edited %s in %d places, the first of them:\n", path, len(places))
	}
	res := troupe.Answer(said + snippet(new.body, places[0], len(in.NewString)))
	data := editData{
		FilePath:        path,
		OldString:       in.OldString,
		NewString:       in.NewString,
		StructuredPatch: structuredPatch(old.body, new.body),
		ReplaceAll:      in.ReplaceAll,
	}
	if len(before) <= maxOriginal {
		data.OriginalFile = &old.body
	}
	var err error
	if res.Data, err = troupe.Encode(data); err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	return res, nil
}

// snippet shows with line numbers the length bytes of body at start and some
// lines around them.
func snippet(body string, start, length int) string {
	const around, most = 3, 16
	first := strings.Count(body[:start], "\n")
	last := first + strings.Count(strings.TrimSuffix(body[start:start+length], "\n"), "\n")
	lines := strings.SplitAfter(body, "\n")
	var out strings.Builder
	from, to := max(first-around, 0), min(last+around+1, len(lines))
	for i := from; i < to; i++ {
		if i == from+most {
			fmt.Fprintf(&out, "[%s more]\n", plural(to-i, "line"))
			break
		}
		if lines[i] != "" { // behind the last line end there is no line
			out.WriteString(numbered(i+1, strings.TrimSuffix(lines[i], "\n")))
		}
	}
	return out.String()
}

// numbered is a line as Read shows it, shortened.
func numbered(number int, line string) string {
	const shown = 300
	end := prefix([]byte(line), shown)
	return fmt.Sprintf("%6d\t%s%s\n", number, line[:end], cutMark(utf8.RuneCountInString(line[end:])))
}
