package host

import (
	"bytes"
	"context"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/internal/secret"
)

// Hidden takes the keys that these models have, and the values of the same
// variables in env, out of text.
func (m *Models) Hidden(env []string) func(text string) string { return m.hide(env, m.Secrets()).Text }

// hide is the mask of the variables named, by what lookup says and by env: what
// settings have put in the place of a key does not make it less of a secret.
func (m *Models) hide(env, names []string) *secret.Mask {
	var values []string
	for _, name := range names {
		values = append(values, m.lookup(name))
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); isOneOf(name, names) {
			values = append(values, value)
		}
	}
	return secret.New(values...)
}

// isOneOf reports whether a variable is among those named. Some systems ignore case.
func isOneOf(name string, names []string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// masked is content without keys.
func (s *Session) masked(content troupe.Blocks) troupe.Blocks { return lessKeys(s.mask, content) }

// lessKeys is content without what m masks. What a model has thought stays: it is
// signed.
func lessKeys(m *secret.Mask, content troupe.Blocks) troupe.Blocks {
	var out troupe.Blocks
	for _, b := range content {
		switch t := b.(type) {
		case troupe.Text:
			b = troupe.Text(m.Text(string(t)))
		case troupe.ToolUse:
			t.Input = m.JSON(t.Input)
			b = t
		}
		out = append(out, b)
	}
	return out
}

// speech is a reply while it comes, without keys: one may come in pieces, so what
// may be the beginning of one is held back.
type speech struct {
	text     bytes.Buffer
	masked   *secret.Writer
	thinking bool
}

func newSpeech(m *secret.Mask) *speech {
	s := new(speech)
	s.masked = m.Writer(&s.text)
	return s
}

// next returns what can be shown now that c has come.
func (s *speech) next(c troupe.Chunk) (out []troupe.Chunk) {
	d, goes := c.(troupe.Delta)
	if !goes {
		return append(s.rest(), c)
	}
	if d.Thinking != s.thinking {
		out = s.rest()
	}
	s.thinking = d.Thinking
	_, _ = s.masked.Write([]byte(d.Text)) // into memory
	return append(out, s.take()...)
}

// rest returns what was held back, when nothing follows.
func (s *speech) rest() []troupe.Chunk {
	_ = s.masked.Flush()
	return s.take()
}

func (s *speech) take() (out []troupe.Chunk) {
	if s.text.Len() > 0 {
		out = append(out, troupe.Delta{Text: s.text.String(), Thinking: s.thinking})
		s.text.Reset()
	}
	return out
}

// quiet is what hooks have said, without keys: it comes before the model, and
// into the log. An input of a call, too: what runs is what is logged.
func (s *Session) quiet(o hook.Outcome) hook.Outcome {
	o.Reason, o.Why, o.Input = s.mask.Text(o.Reason), s.mask.Text(o.Why), s.mask.JSON(o.Input)
	if o.Output != nil {
		text := s.mask.Text(*o.Output)
		o.Output = &text
	}
	for _, lines := range []*[]string{&o.Add, &o.Tell} {
		var out []string
		for _, line := range *lines {
			out = append(out, s.mask.Text(line))
		}
		*lines = out
	}
	return o
}

// quietGuard is a guard whose verdicts give no key away: a reason may name what it
// found in the place of a word.
type quietGuard struct {
	guard troupe.Guard
	mask  *secret.Mask
}

// Check implements [troupe.Guard].
func (q quietGuard) Check(ctx context.Context, c *troupe.Call) (troupe.Verdict, error) {
	v, err := q.guard.Check(ctx, c)
	v.Reason, v.Input = q.mask.Text(v.Reason), q.mask.JSON(v.Input)
	return v, q.mask.Error(err)
}
