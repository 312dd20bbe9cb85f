package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/troupe-sh/troupe"
)

//go:embed notebookedit.md
var notebookEditDoc string

// NotebookEdit is the tool that changes one cell of a Jupyter notebook. The
// agent must have seen the present content of the file, as Files knows it;
// else the error is ErrNotRead or ErrChanged.
type NotebookEdit struct {
	Files *Files
}

type notebookInput struct {
	NotebookPath string `json:"notebook_path" jsonschema:"the notebook to change"`
	CellID       string `json:"cell_id,omitempty" jsonschema:"the cell to change; for insert the cell behind which the new one comes"`
	NewSource    string `json:"new_source" jsonschema:"the source of the cell"`
	CellType     string `json:"cell_type,omitempty" jsonschema:"code or markdown; needed for insert"`
	EditMode     string `json:"edit_mode,omitempty" jsonschema:"replace, insert or delete"`
}

// Spec implements [troupe.Tool].
func (n NotebookEdit) Spec() troupe.ToolSpec {
	return define[notebookInput]("NotebookEdit", notebookEditDoc)
}

// Lane implements [troupe.Ordered]: the calls on one file keep their order.
func (n NotebookEdit) Lane(c *troupe.Call) string {
	in, err := input[notebookInput](c)
	if err != nil {
		return ""
	}
	return lane(c, in.NotebookPath)
}

// Call implements [troupe.Tool].
func (n NotebookEdit) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[notebookInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	if err := in.complete(); err != nil {
		return troupe.Result{}, err
	}
	path := resolve(c.Place, in.NotebookPath)
	real, err := realPath(path)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("edit %s: %w", path, err)
	}
	var edit notebookChange
	_, _, err = n.Files.change(ctx, c, real, func(old snapshot) ([]byte, error) {
		if old.info == nil {
			return nil, fs.ErrNotExist
		}
		nb, err := parseNotebook(old.content)
		if err != nil {
			return nil, fmt.Errorf("the notebook cannot be changed by cell: %w", err)
		}
		edit, err = in.apply(nb)
		return edit.content, err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return troupe.Result{}, missing("edit", path)
	}
	if err != nil {
		return troupe.Result{}, fmt.Errorf("edit %s: %w", path, err)
	}
	if edit.renumbered {
		n.Files.forget(real) // what the agent knows names other cells now
	}
	return in.told(path, edit)
}

// complete fills in what a call may leave out, and refuses what makes no sense.
func (in *notebookInput) complete() error {
	if in.EditMode == "" {
		in.EditMode = "replace"
	}
	switch {
	case in.NotebookPath == "":
		return errors.New("notebook_path is empty")
	case !isNotebook(in.NotebookPath):
		return fmt.Errorf("%s is not a notebook (.ipynb); use Edit", in.NotebookPath)
	case in.EditMode != "replace" && in.EditMode != "insert" && in.EditMode != "delete":
		return fmt.Errorf("edit_mode is %q; it must be replace, insert or delete", in.EditMode)
	case in.CellType != "" && in.CellType != "code" && in.CellType != "markdown":
		return fmt.Errorf("cell_type is %q; it must be code or markdown", in.CellType)
	case in.EditMode == "insert" && in.CellType == "":
		return errors.New("to insert a cell needs cell_type: code or markdown")
	case in.EditMode != "insert" && in.CellID == "":
		return fmt.Errorf("to %s a cell needs its cell_id", in.EditMode)
	}
	in.NewSource = plainLineEnds(in.NewSource)
	return nil
}

// told tells of a notebook that was changed.
func (in notebookInput) told(path string, edit notebookChange) (troupe.Result, error) {
	var said string
	switch in.EditMode {
	case "insert":
		said = fmt.Sprintf("Inserted the %s cell %q into %s.", edit.kind, edit.cell, path)
	case "delete":
		said = fmt.Sprintf("Deleted the %s cell %q from %s.", edit.kind, edit.cell, path)
	default:
		said = fmt.Sprintf("Replaced the source of the %s cell %q in %s.", edit.kind, edit.cell, path)
	}
	if edit.stale {
		said += " Its outputs are those of the source before."
	}
	if edit.renumbered {
		said += " Cells without an id have other numbers now: Read the notebook before the next change."
	}
	res := troupe.Answer(said)
	var err error
	res.Data, err = troupe.Encode(map[string]string{
		"notebook_path": path, "cell_id": edit.cell, "cell_type": edit.kind, "edit_mode": in.EditMode, "new_source": in.NewSource,
	})
	if err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	return res, nil
}
