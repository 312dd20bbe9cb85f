package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/troupe-sh/troupe"
)

//go:embed grep.md
var grepDoc string

const (
	defaultHead = 250    // entries of a result unless another number is asked for
	maxHead     = 50_000 // entries of a result that has no limit, for the sake of memory
	maxContext  = 1000   // lines of context
)

// Grep is the tool that searches the text of files.
type Grep struct {
	// Hide tells that a path, absolute, may not be seen; it is called from
	// many goroutines. nil hides none.
	Hide func(path string) bool
}

type grepInput struct {
	Pattern    string `json:"pattern" jsonschema:"the regular expression"`
	Path       string `json:"path,omitempty" jsonschema:"the file or directory to search, absolute or from the working directory"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files whose path matches, like *.go or !*_test.go"`
	Type       string `json:"type,omitempty" jsonschema:"only files of this type, like go, js, py"`
	OutputMode string `json:"output_mode,omitempty" jsonschema:"files_with_matches (default), content or count"`
	After      int    `json:"-A,omitempty" jsonschema:"lines to show after each match"`
	Before     int    `json:"-B,omitempty" jsonschema:"lines to show before each match"`
	Around     int    `json:"-C,omitempty" jsonschema:"lines to show before and after each match"`
	Context    int    `json:"context,omitempty" jsonschema:"the same as -C"`
	Numbers    *bool  `json:"-n,omitempty" jsonschema:"show line numbers (default true)"`
	IgnoreCase bool   `json:"-i,omitempty" jsonschema:"ignore case"`
	Only       bool   `json:"-o,omitempty" jsonschema:"show only what matched"`
	HeadLimit  *int   `json:"head_limit,omitempty" jsonschema:"lines or files to show (default 250, 0 for all)"`
	Offset     int    `json:"offset,omitempty" jsonschema:"lines or files to pass over first"`
	Multiline  bool   `json:"multiline,omitempty" jsonschema:"the pattern may span lines"`
}

var grepSpec = sync.OnceValue(func() troupe.ToolSpec { return define[grepInput]("Grep", grepDoc) })

// Spec implements [troupe.Tool].
func (g *Grep) Spec() troupe.ToolSpec { return grepSpec() }

// Call implements [troupe.Tool].
func (g *Grep) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[grepInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	query, err := in.query()
	if err != nil {
		return troupe.Result{}, err
	}
	run, notes, err := g.prepare(ctx, c.Place, in)
	if err != nil {
		return troupe.Result{}, err
	}
	run.query = query
	// One more than is shown tells whether there is more.
	run.need = in.Offset + in.limit() + 1
	run.query.most = run.need
	found, err := run.run(ctx)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("search %s: %w", run.root, cause(err))
	}
	out := newGrepOutput(in, run.query, func(rel string) string {
		return shown(c.Place.Dir, filepath.Join(run.shown, filepath.FromSlash(rel)))
	})
	for _, f := range found {
		out.file(f)
	}
	return out.result(append(notes, run.notes()...))
}

// query checks the input and makes of it what is wanted of each file.
func (in *grepInput) query() (grepQuery, error) {
	in.OutputMode = cmp.Or(in.OutputMode, modeFiles)
	if !slices.Contains([]string{modeFiles, modeContent, modeCount}, in.OutputMode) {
		return grepQuery{}, fmt.Errorf("output_mode %q is not known; it is %s, %s or %s", in.OutputMode, modeFiles, modeContent, modeCount)
	}
	for name, n := range map[string]int{"-A": in.After, "-B": in.Before, "-C": in.Around, "context": in.Context, "offset": in.Offset, "head_limit": in.limit()} {
		if n < 0 {
			return grepQuery{}, fmt.Errorf("%s is %d; it can not be less than 0", name, n)
		}
	}
	pattern, err := compileGrep(in.Pattern, in.IgnoreCase, in.Multiline)
	if err != nil {
		return grepQuery{}, err
	}
	q := grepQuery{pattern: pattern, mode: in.OutputMode, multiline: in.Multiline, only: in.Only}
	if !in.Only && in.OutputMode == modeContent {
		around := cmp.Or(in.Around, in.Context)
		q.before = min(cmp.Or(in.Before, around), maxContext)
		q.after = min(cmp.Or(in.After, around), maxContext)
	}
	return q, nil
}

// limit is how many entries to show.
func (in *grepInput) limit() int {
	switch {
	case in.HeadLimit == nil:
		return defaultHead
	case *in.HeadLimit == 0 || *in.HeadLimit > maxHead:
		return maxHead
	}
	return *in.HeadLimit
}

// prepare finds the files to be searched, and what there is to say about them.
func (g *Grep) prepare(ctx context.Context, p troupe.Place, in grepInput) (*grepRun, []string, error) {
	path := resolve(p, in.Path)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, missing("search", path)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("search %s: %w", path, cause(err))
	}
	run := &grepRun{root: path, shown: path, named: !info.IsDir()}
	hide, hidden := hideBoth(g.Hide, path)
	switch {
	case hidden:
		return run, nil, nil
	case run.named:
		if err := regular(info); err != nil {
			return nil, nil, fmt.Errorf("search %s: %w", path, err)
		}
		if run.root, err = realPath(path); err != nil {
			return nil, nil, fmt.Errorf("search %s: %w", path, err)
		}
		run.files = []string{""}
		return run, nil, nil
	}
	w := walk{root: path, hide: hide}
	if err := in.choose(&w, p); err != nil {
		return nil, nil, err
	}
	files, unread, err := w.files(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("search %s: %w", path, cause(err))
	}
	slices.Sort(files)
	run.files = files
	var notes []string
	if len(files) == 0 {
		notes = append(notes, fmt.Sprintf("there was no file to search in %s", shown(p.Dir, path)))
	}
	if unread > 0 {
		notes = append(notes, fmt.Sprintf("directories that could not be read: %d", unread))
	}
	return run, notes, nil
}

// choose sets what of the tree is wanted.
func (in *grepInput) choose(w *walk, p troupe.Place) error {
	// A link to a file may lead anywhere, so none is searched.
	w.take = func(_ string, mode fs.FileMode) bool { return mode.IsRegular() }
	if in.Glob != "" {
		above, err := filepath.Rel(p.Dir, w.root)
		if err != nil || !filepath.IsLocal(above) {
			above = ""
		}
		filter, err := newGlobFilter(in.Glob, filepath.ToSlash(w.root), filepath.ToSlash(above))
		if err != nil {
			return err
		}
		w.judge = filter.judge
	}
	if in.Type != "" {
		kind, err := fileTypes(in.Type)
		if err != nil {
			return err
		}
		w.kind = kind
	}
	return nil
}
