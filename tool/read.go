package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/troupe-sh/troupe"
)

//go:embed read.md
var readDoc string

// Read is the tool that shows a text file or a part of it, a picture, or the
// cells of a notebook. It streams text, so the size does not matter, and notes
// the content of the file in Files.
type Read struct {
	Files *Files
	Limit int // characters of a result at most; 0 is DefaultLimit
}

type readInput struct {
	FilePath string `json:"file_path" jsonschema:"the file to read"`
	Offset   int    `json:"offset,omitempty" jsonschema:"number of the first line to show, from 1"`
	Limit    int    `json:"limit,omitempty" jsonschema:"number of lines to show at most"`
}

var readSpec = sync.OnceValue(func() troupe.ToolSpec { return define[readInput]("Read", readDoc) })

// Spec implements [troupe.Tool].
func (r Read) Spec() troupe.ToolSpec { return readSpec() }

// Lane implements [troupe.Ordered]: the calls on one file keep their order.
func (r Read) Lane(c *troupe.Call) string {
	in, err := input[readInput](c)
	if err != nil {
		return ""
	}
	return lane(c, in.FilePath)
}

// Call implements [troupe.Tool].
func (r Read) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[readInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	switch {
	case in.FilePath == "":
		return troupe.Result{}, errors.New("file_path is empty")
	case in.Offset < 0:
		return troupe.Result{}, fmt.Errorf("offset is %d; lines count from 1", in.Offset)
	case in.Limit < 0:
		return troupe.Result{}, fmt.Errorf("limit is %d; it is a number of lines", in.Limit)
	}
	path := resolve(c.Place, in.FilePath)
	res, err := r.read(ctx, path, in)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return res, missing("read", path)
	case errors.Is(err, errDirectory):
		return res, fmt.Errorf("read %s: %w; list it with Glob (or ls in a shell)", path, err)
	case err != nil:
		return res, fmt.Errorf("read %s: %w", path, err)
	}
	return res, nil
}

func (r Read) read(ctx context.Context, path string, in readInput) (troupe.Result, error) {
	real, err := realPath(path)
	if err != nil {
		return troupe.Result{}, err
	}
	f, info, err := openRegular(real)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			r.Files.forget(real) // the agent knows that it is gone
		}
		return troupe.Result{}, err
	}
	defer f.Close()
	s, err := openSource(f, info)
	if err != nil {
		return troupe.Result{}, cause(err)
	}
	res, err := r.show(ctx, path, in, s)
	// What is not text is noted too: having been told what it is, an agent may
	// replace it by Write.
	if d, whole := s.digest(); whole {
		r.Files.saw(real, d)
	} else {
		r.Files.forget(real)
	}
	return res, cause(err)
}

// show is what the model gets to see of a file.
func (r Read) show(ctx context.Context, path string, in readInput, s *source) (troupe.Result, error) {
	switch {
	case isPicture(s.binary):
		return showPicture(ctx, path, s)
	case s.binary != "":
		if err := s.drain(ctx); err != nil {
			return troupe.Result{}, err
		}
		return troupe.Answer(fmt.Sprintf("%s is a binary file (%s, %s); its content is not shown.", path, s.binary, byteSize(s.size()))), nil
	}
	v := newView(in.Offset, in.Limit, r.Limit)
	if isNotebook(path) && !s.utf16 {
		return showNotebook(ctx, path, s, v)
	}
	if err := v.fill(ctx, s); err != nil {
		return troupe.Result{}, err
	}
	return v.result(path, s)
}
