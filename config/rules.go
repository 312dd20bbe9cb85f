package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/tailscale/hujson"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/proc"
)

// LocalSettings is the file of a repository in which its user keeps rules of
// his own. Load takes what it allows only where the repository is trusted.
func LocalSettings(root string) string {
	return filepath.Join(root, ".troupe", "settings.local.json")
}

// AddRules writes permission rules with an effect into the settings file path,
// which is made if it is not there. All else in it stays, comments too; a rule
// that is there already is not written twice. Readers see the old file or the
// new one. A file that is not understood is left alone, and so is one that a
// link in a repository leads to: it may be anybody's.
//
// Processes that share the data directory home write one after another; ctx
// ends the wait.
func AddRules(ctx context.Context, home, path string, effect troupe.Effect, rules ...string) error {
	for _, text := range rules {
		// A rule that cannot be read would stop the next start.
		if _, err := permission.ParseRule(effect, text, permission.Origin{Root: filepath.Dir(path), Home: home}); err != nil {
			return fmt.Errorf("add to %s: %w", path, err)
		}
	}
	return change(ctx, home, path, "add rules to", func(data []byte) ([]byte, error) { return withEntries(data, string(effect), rules) })
}

// RemoveRules takes permission rules with an effect out of the settings file
// path, all of them if none is named, in the way of AddRules.
func RemoveRules(ctx context.Context, home, path string, effect troupe.Effect, rules ...string) error {
	return change(ctx, home, path, "remove rules from", func(data []byte) ([]byte, error) { return withoutEntries(data, string(effect), rules) })
}

// AddDirectories writes further directories to work in into the settings file
// path, in the way of AddRules.
func AddDirectories(ctx context.Context, home, path string, dirs ...string) error {
	return change(ctx, home, path, "add directories to", func(data []byte) ([]byte, error) { return withEntries(data, directories, dirs) })
}

// RemoveDirectories takes directories out again, as they are written there.
func RemoveDirectories(ctx context.Context, home, path string, dirs ...string) error {
	if len(dirs) == 0 {
		return nil
	}
	return change(ctx, home, path, "remove directories from", func(data []byte) ([]byte, error) { return withoutEntries(data, directories, dirs) })
}

const directories = "additionalDirectories"

// change rewrites a settings file, one process after another.
func change(ctx context.Context, home, path, doing string, edit func([]byte) ([]byte, error)) error {
	if err := alone(ctx, home, "settings.lock", func() error { return rewrite(path, edit) }); err != nil {
		return fmt.Errorf("%s %s: %w", doing, path, err)
	}
	return nil
}

// alone calls f while no other process with the same home does the like.
func alone(ctx context.Context, home, name string, f func() error) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return statefile.Explain(err)
	}
	lock := flock.New(filepath.Join(home, name), flock.SetPermissions(0o600))
	defer lock.Close()
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another process: %w", statefile.Explain(err))
	}
	return f()
}

func rewrite(path string, edit func([]byte) ([]byte, error)) error {
	if err := noLink(path); err != nil {
		return err
	}
	data, err := readWhole(path, maxSettings)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after, err := edit(data)
	if err != nil || bytes.Equal(after, data) {
		return err
	}
	if len(after) > maxSettings {
		return fmt.Errorf("it would become larger than %d KB", maxSettings>>10)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm() // others may read it, too
	}
	return replace(path, after, mode)
}

// replace gives a file that we keep a new content, and removes what one that was
// killed has left there.
func replace(path string, data []byte, mode fs.FileMode) error {
	self := proc.Owner()
	self.Sweep(filepath.Dir(path))
	return statefile.Replace(path, data, mode, self)
}

// noLink refuses a settings file, or the directory that holds it, that is a
// link: whoever made it says where the rules would go.
func noLink(path string) error {
	for _, p := range []string{path, filepath.Dir(path)} {
		info, err := os.Lstat(p)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link; write the rules by hand where it leads", p)
		}
	}
	return nil
}

func blank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))) == 0
}

// parseWhole reads a settings file with all that is in it.
func parseWhole(data []byte) (v hujson.Value, err error) {
	top, err := parseJSON(data) // it knows of limits that keep the parser's stack small
	if err != nil {
		return v, err
	}
	if top.kind != isObject {
		return v, errors.New("it does not hold an object; mend it first")
	}
	return hujson.Parse(bytes.TrimPrefix(data, []byte("\ufeff")))
}

// withoutEntries returns the text of a settings file without texts in one of
// the lists of its permissions; nil are all.
func withoutEntries(data []byte, list string, texts []string) ([]byte, error) {
	if blank(data) {
		return data, nil
	}
	v, err := parseWhole(data)
	if err != nil {
		return nil, err
	}
	there := v.Find("/permissions/" + list)
	if there == nil {
		return data, nil
	}
	array, ok := there.Value.(*hujson.Array)
	if !ok {
		return data, nil
	}
	var patch []map[string]any
	for i, e := range slices.Backward(array.Elements) { // from the end, so that places stay right
		if l, ok := e.Value.(hujson.Literal); texts == nil || ok && l.Kind() == '"' && slices.Contains(texts, l.String()) {
			patch = append(patch, map[string]any{"op": "remove", "path": fmt.Sprintf("/permissions/%s/%d", list, i)})
		}
	}
	if patch == nil {
		return data, nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if err := v.Patch(raw); err != nil {
		return nil, err
	}
	return v.Pack(), nil
}

// withEntries returns the text of a settings file with texts in one of the
// lists of its permissions.
func withEntries(data []byte, list string, texts []string) ([]byte, error) {
	fresh := blank(data)
	if fresh {
		data = []byte("{}\n")
	}
	v, err := parseWhole(data)
	if err != nil {
		return nil, err
	}
	var patch []map[string]any
	add := func(at string, value any) {
		patch = append(patch, map[string]any{"op": "add", "path": at, "value": value})
	}
	for _, at := range []struct {
		path  string
		kind  hujson.Kind
		empty any
	}{{"/permissions", '{', map[string]any{}}, {"/permissions/" + list, '[', []any{}}} {
		switch found := v.Find(at.path); {
		case found == nil, found.Value.Kind() == 'n':
			add(at.path, at.empty)
		case found.Value.Kind() != at.kind:
			return nil, fmt.Errorf("%s in it is not what it should be; mend it first", at.path[1:])
		}
	}
	there := v.Find("/permissions/" + list)
	for _, text := range slices.Compact(texts) {
		if !holds(there, text) {
			add("/permissions/"+list+"/-", text)
		}
	}
	if patch == nil {
		return data, nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if err := v.Patch(raw); err != nil {
		return nil, err
	}
	if fresh {
		v.Format()
		return v.Pack(), nil
	}
	layOut(v.Find("/permissions/" + list))
	return v.Pack(), nil
}

// holds reports whether a list has a text in it; nil has none.
func holds(list *hujson.Value, text string) bool {
	if list == nil {
		return false
	}
	array, ok := list.Value.(*hujson.Array)
	return ok && slices.ContainsFunc(array.Elements, func(e hujson.Value) bool {
		l, ok := e.Value.(hujson.Literal)
		return ok && l.Kind() == '"' && l.String() == text
	})
}

// layOut gives elements that were added to a list a line of their own, if the
// first one has.
func layOut(list *hujson.Value) {
	array, ok := list.Value.(*hujson.Array)
	if !ok || len(array.Elements) < 2 {
		return
	}
	first := array.Elements[0].BeforeExtra
	indent := first[bytes.LastIndexByte(first, '\n')+1:]
	for i := range array.Elements[1:] {
		e := &array.Elements[i+1]
		switch lines := bytes.IndexByte(first, '\n') >= 0; {
		case lines && bytes.HasSuffix(e.BeforeExtra, []byte("\n")): // behind a comment
			e.BeforeExtra = append(e.BeforeExtra, indent...)
		case len(e.BeforeExtra) > 0:
		case lines:
			e.BeforeExtra = append(hujson.Extra("\n"), indent...)
		default:
			e.BeforeExtra = hujson.Extra(" ")
		}
	}
}
