package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
)

//go:embed write.md
var writeDoc string

// Write is the tool that makes a file or replaces its whole content. Of a
// file that exists, the agent must have seen the present content, as Files
// knows it; else the error is ErrNotRead or ErrChanged.
type Write struct {
	Files *Files
}

type writeInput struct {
	FilePath string `json:"file_path" jsonschema:"the file to write"`
	Content  string `json:"content" jsonschema:"its whole new content"`
}

type writeData struct {
	Type            string  `json:"type"` // create or update
	FilePath        string  `json:"filePath"`
	Content         string  `json:"content"`
	OriginalFile    *string `json:"originalFile,omitempty"`
	StructuredPatch []hunk  `json:"structuredPatch"`
}

var writeSpec = sync.OnceValue(func() troupe.ToolSpec { return define[writeInput]("Write", writeDoc) })

// Spec implements [troupe.Tool].
func (w Write) Spec() troupe.ToolSpec { return writeSpec() }

// Lane implements [troupe.Ordered]: the calls on one file keep their order.
func (w Write) Lane(c *troupe.Call) string {
	in, err := input[writeInput](c)
	if err != nil {
		return ""
	}
	return lane(c, in.FilePath)
}

// Call implements [troupe.Tool].
func (w Write) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[writeInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	if in.FilePath == "" {
		return troupe.Result{}, errors.New("file_path is empty")
	}
	path := resolve(c.Place, in.FilePath)
	real, err := realPath(path)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("write %s: %w", path, err)
	}
	before, after, err := w.Files.change(ctx, c, real, func(old snapshot) ([]byte, error) {
		return likeBefore(old, in.Content), nil
	})
	if err != nil {
		return troupe.Result{}, fmt.Errorf("write %s: %w", path, err)
	}
	return wrote(path, before, after)
}

// likeBefore is content with the byte order mark and the line ends of the
// file that it replaces.
func likeBefore(old snapshot, content string) []byte {
	if !utf8.Valid(old.content) {
		return []byte(content)
	}
	was, now := parseText(old.content), parseText([]byte(content))
	if was.lineEnd() == "\r\n" {
		now.raw = withLineEnds(now.body, "\r\n")
	}
	if was.mark || now.mark {
		now.raw = byteOrderMark + now.raw
	}
	return []byte(now.raw)
}

// wrote tells of a file that was written.
func wrote(path string, before snapshot, after []byte) (troupe.Result, error) {
	text := parseText(after)
	lines := countLines(text.body)
	data := writeData{Type: "create", FilePath: path, Content: text.body, StructuredPatch: []hunk{}}
	said := fmt.Sprintf("Made %s (%s).", path, plural(lines, "line"))
	if before.info != nil {
		data.Type = "update"
		said = fmt.Sprintf("Replaced the content of %s (%s).", path, plural(lines, "line"))
		if utf8.Valid(before.content) {
			old := parseText(before.content)
			data.StructuredPatch = structuredPatch(old.body, text.body)
			if len(before.content) <= maxOriginal {
				data.OriginalFile = &old.body
			}
		}
	}
	res := troupe.Answer(said)
	var err error
	if res.Data, err = troupe.Encode(data); err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	return res, nil
}

// plural is n and what is counted.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
