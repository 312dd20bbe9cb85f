// Package secret keeps values that must not be seen, such as the keys of
// providers, out of texts: of what agents are told, of logs, of files, of errors.
package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
)

// Least is how long a value must be, in bytes, to be masked. Shorter ones
// protect nothing, and texts would be riddled with masks.
const Least = 8

// Shown is what stands in the place of a value.
const Shown = "[key]"

// A Mask knows values and takes them out of texts. It never changes and may be
// used by several goroutines. The zero value, and nil, mask nothing.
type Mask struct {
	values []string // the longest first, so that none shows a part of another
	inJSON []string // the values as they may stand in JSON
}

// New returns a mask of values, without the space around them: who uses one may
// have cut it off. Those that are shorter than [Least] are left out.
func New(values ...string) *Mask {
	m := new(Mask)
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) < Least || slices.Contains(m.values, v) {
			continue
		}
		m.values = append(m.values, v)
		m.inJSON = append(m.inJSON, inJSON(v, false), inJSON(v, true))
	}
	slices.SortStableFunc(m.values, func(a, b string) int { return len(b) - len(a) })
	return m
}

// inJSON returns v as it stands between the quotes of a JSON text.
func inJSON(v string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(v) // a text can be encoded
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// Text returns s with every value masked.
func (m *Mask) Text(s string) string {
	if m == nil {
		return s
	}
	for _, v := range m.values {
		if strings.Contains(s, v) { // mostly there is none, and then nothing is copied
			s = strings.ReplaceAll(s, v, Shown)
		}
	}
	return s
}

// JSON returns raw with every value masked in the texts and names that it holds.
// What was JSON stays JSON.
func (m *Mask) JSON(raw json.RawMessage) json.RawMessage {
	if m == nil || !slices.ContainsFunc(m.inJSON, func(v string) bool { return bytes.Contains(raw, []byte(v)) }) {
		return raw
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var any any
	if dec.Decode(&any) != nil {
		return json.RawMessage(m.Text(string(raw))) // it is none
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(m.tree(any)) // it was decoded a moment ago
	return bytes.TrimSpace(out.Bytes())
}

// tree masks the texts in a decoded value.
func (m *Mask) tree(v any) any {
	switch v := v.(type) {
	case string:
		return m.Text(v)
	case []any:
		for i := range v {
			v[i] = m.tree(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[m.Text(name)] = m.tree(e)
		}
		return out
	}
	return v
}

// Error returns err with a text without any value. What err wraps is found in
// it as before. Nil stays nil.
func (m *Mask) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); m.Text(text) != text {
		return &masked{m.Text(text), err}
	}
	return err
}

// masked is an error with a text of its own.
type masked struct {
	text string
	err  error
}

func (e *masked) Error() string { return e.text }

// Is and As let the wrapped error answer without giving it away to whoever
// unwraps and prints.
func (e *masked) Is(target error) bool { return errors.Is(e.err, target) }
func (e *masked) As(target any) bool   { return errors.As(e.err, target) }

// Writer returns a writer that passes on to w what is written to it, masked. A
// value may come in any number of pieces: the beginning of what may become one
// is held back until it is known. Flush passes it on when nothing more will come.
func (m *Mask) Writer(w io.Writer) *Writer { return &Writer{mask: m, to: w} }

// A Writer is what [Mask.Writer] returns. It is safe for concurrent use.
type Writer struct {
	mask *Mask
	to   io.Writer

	mu   sync.Mutex
	held []byte
}

// Write takes p. An error is that of the writer below.
func (w *Writer) Write(p []byte) (int, error) {
	if w.mask == nil || len(w.mask.values) == 0 {
		return w.to.Write(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(p), w.pass(append(w.held, p...), false)
}

// Flush passes on what is held back.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return nil
	}
	return w.pass(w.held, true)
}

// pass writes b, masked, but for an end of it that may go on as a value.
func (w *Writer) pass(b []byte, last bool) error {
	var out []byte
	for len(b) > 0 {
		at, value := w.mask.first(b)
		if end := w.mask.open(b, at); end >= 0 && !last {
			out, b = append(out, b[:end]...), b[end:]
			break
		}
		out, b = append(out, b[:at]...), b[at:]
		if value != "" {
			out, b = append(out, Shown...), b[len(value):]
		}
	}
	w.held = bytes.Clone(b)
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}

// first returns where the first value in b begins, len(b) if there is none, and
// which it is: the longest of those that begin there.
func (m *Mask) first(b []byte) (at int, value string) {
	at = len(b)
	for _, v := range m.values {
		if i := bytes.Index(b[:min(len(b), at+len(v))], []byte(v)); i >= 0 && i < at {
			at, value = i, v
		}
	}
	return at, value
}

// open returns the first place, not behind at, from which b to its end is the
// beginning of a value that is not whole yet; -1 if there is none.
func (m *Mask) open(b []byte, at int) int {
	for i := max(0, len(b)-len(m.values[0])+1); i < len(b) && i <= at; i++ {
		for _, v := range m.values {
			if rest := b[i:]; len(rest) < len(v) && v[:len(rest)] == string(rest) {
				return i
			}
		}
	}
	return -1
}
