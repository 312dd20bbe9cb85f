package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/internal/statefile"
)

// DefaultLimit is the number of characters that a result has at most unless
// the agent's host chooses another.
const DefaultLimit = 30_000

const (
	maxSaved = 64 << 20  // bytes of a result's text that are kept on disk
	maxData  = 256 << 10 // bytes of a result's data
)

// Cap wraps a tool so that the text of a result never has more than limit
// characters, 0 meaning DefaultLimit. A longer one becomes its beginning, a
// notice of what was left out and its end; the whole text is kept, as it was,
// in a private file in dir, which the notice names. Data of more than 256 KB
// loses its largest fields. What is left is always valid UTF-8 and valid JSON.
//
// Dir, which must be for such files alone, is made when it is needed. If
// a text cannot be kept, the result is capped all the same and says so. The
// tool that Cap returns is a [troupe.Ordered] if t is.
func Cap(t troupe.Tool, dir string, limit int) troupe.Tool {
	if limit <= 0 {
		limit = DefaultLimit
	}
	c := capped{t, dir, limit}
	if o, ok := t.(troupe.Ordered); ok {
		return cappedOrdered{c, o}
	}
	return c
}

type capped struct {
	tool  troupe.Tool
	dir   string
	limit int
}

type cappedOrdered struct {
	capped
	ordered troupe.Ordered
}

// Spec implements [troupe.Tool].
func (c capped) Spec() troupe.ToolSpec { return c.tool.Spec() }

// Lane implements [troupe.Ordered].
func (c cappedOrdered) Lane(call *troupe.Call) string { return c.ordered.Lane(call) }

// Call implements [troupe.Tool].
func (c capped) Call(ctx context.Context, call *troupe.Call) (troupe.Result, error) {
	res, err := c.tool.Call(ctx, call)
	text := joined(res.Content)
	size := utf8.RuneCountInString(text)
	if err != nil && ctx.Err() == nil && size+utf8.RuneCountInString(err.Error()) > c.limit {
		// The model hears of an error by its text, which is capped with the rest.
		text = joined(troupe.Blocks{troupe.Text(text), troupe.Text(err.Error())})
		size = utf8.RuneCountInString(text)
		res.IsError, err = true, nil
	}
	if size > c.limit {
		res.Content = withText(res.Content, c.shorten(call, text))
	} else {
		res.Content = validText(res.Content)
	}
	res.Data = smallData(res.Data)
	return res, err
}

// shorten keeps text and returns its beginning and its end with a notice
// between them.
func (c capped) shorten(call *troupe.Call, text string) string {
	path, err := c.save(call, text)
	notice := func(left int) string {
		if err != nil {
			return fmt.Sprintf("\n[%d characters left out here; the whole text could not be kept: %.300s]\n", left, err)
		}
		return fmt.Sprintf("\n[%d characters left out here; the whole text is in %s: Read it in parts with offset and limit, or search it with Grep]\n", left, path)
	}
	valid := []byte(strings.ToValidUTF8(text, "\uFFFD"))
	total := utf8.RuneCount(valid)
	room := c.limit - utf8.RuneCountInString(notice(total)) // no number left is longer
	if room < 0 {
		short := []byte(notice(total))
		return string(short[:prefix(short, c.limit)])
	}
	head := prefix(valid, room-room/2)
	tail := head + prefix(valid[head:], total-room)
	return string(valid[:head]) + notice(total-room) + string(valid[tail:])
}

// save writes text to a new file in the directory.
func (c capped) save(call *troupe.Call, text string) (path string, err error) {
	if err := privateDir(c.dir); err != nil {
		return "", err
	}
	const tries = 1000 // calls whose names look alike
	base := filepath.Join(c.dir, safeName(call.Agent)+"-"+safeName(call.ID))
	for n := range tries {
		path = base + ".txt"
		if n > 0 {
			path = fmt.Sprintf("%s-%d.txt", base, n+1)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if err := writeText(f, text); err != nil {
			_ = statefile.Remove(path) // the first error is the one to tell
			return "", err
		}
		failpoint.Here(failpoint.ResultSaved)
		return path, nil
	}
	return "", fmt.Errorf("%s.txt: %w", base, fs.ErrExist)
}

// writeText writes text to f and closes it. Of more than maxSaved bytes it
// writes the beginning and a mark.
func writeText(f *os.File, text string) error {
	mark := ""
	if len(text) > maxSaved {
		end := maxSaved - len(openEnd([]byte(text[maxSaved-utf8.UTFMax:maxSaved])))
		mark = fmt.Sprintf("\n[cut here: %d more bytes]\n", len(text)-end)
		text = text[:end]
	}
	_, err := f.WriteString(text)
	if err == nil {
		_, err = f.WriteString(mark)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// privateDir makes dir, if need be, and sees to it that nobody else can look
// into it. A link in its place is not followed: somebody else may have put it
// there.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// safeName is an id as part of a file's name.
func safeName(id string) string {
	const most = 80
	safe := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, id)
	return safe[:min(len(safe), most)]
}

// joined is the text of blocks, each on lines of its own.
func joined(blocks troupe.Blocks) string {
	var out strings.Builder
	ended := true
	for _, b := range blocks {
		t, ok := b.(troupe.Text)
		if !ok || t == "" {
			continue
		}
		if !ended {
			out.WriteByte('\n')
		}
		out.WriteString(string(t))
		ended = strings.HasSuffix(string(t), "\n")
	}
	return out.String()
}

// withText is blocks with one text in place of all the texts.
func withText(blocks troupe.Blocks, text string) troupe.Blocks {
	out := troupe.Blocks{troupe.Text(text)}
	for _, b := range blocks {
		if _, ok := b.(troupe.Text); !ok {
			out = append(out, b)
		}
	}
	return out
}

// validText is blocks with their texts made valid UTF-8.
func validText(blocks troupe.Blocks) troupe.Blocks {
	out := slices.Clone(blocks)
	for i, b := range out {
		if t, ok := b.(troupe.Text); ok {
			out[i] = troupe.Text(strings.ToValidUTF8(string(t), "\uFFFD"))
		}
	}
	return out
}

// smallData is data without its largest fields, as many as must go to keep
// the size, and with their names in the field omittedFields. What is not JSON
// goes altogether.
func smallData(data json.RawMessage) json.RawMessage {
	if !json.Valid(data) {
		return nil
	}
	if len(data) <= maxData {
		return data
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil // not an object
	}
	names := slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(fields[b]), len(fields[a])), cmp.Compare(a, b))
	})
	size := len(data)
	var omitted []string
	for _, name := range names {
		if size <= maxData-1<<10 { // some room for the names
			break
		}
		size -= len(fields[name])
		delete(fields, name)
		omitted = append(omitted, name)
	}
	var err error
	if fields["omittedFields"], err = troupe.Encode(omitted); err != nil {
		return nil
	}
	small, err := troupe.Encode(fields)
	if err != nil || len(small) > maxData {
		return nil
	}
	return small
}
