package script

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
)

// maxSize is the largest script that is read, in bytes.
const maxSize = 4 << 20

// A Model plays a script. It is immutable and safe for concurrent use.
type Model struct {
	name    string // "script/NAME"
	file    string // for messages
	rules   []rule
	limited bool // a rule has a limit on its uses
}

var _ troupe.Model = (*Model)(nil)

// Open reads the script at path. An error in it names the file, the line and
// the column.
func Open(path string) (*Model, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open script: %w; give the path of a script file, see doc/script.md", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open script: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open script: %s is not a regular file", path)
	}
	if info.Size() > maxSize {
		return nil, tooLarge(path, info.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open script: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a script from data. The name stands for the file in messages;
// its last element without the extension is the model's name.
func Parse(name string, data []byte) (*Model, error) {
	if len(data) > maxSize {
		return nil, tooLarge(name, int64(len(data)))
	}
	base := filepath.Base(filepath.ToSlash(name))
	m := &Model{name: "script/" + strings.TrimSuffix(base, filepath.Ext(base)), file: name}
	var err error
	m.rules, err = (&parser{file: name, data: data}).script()
	if err != nil {
		return nil, err
	}
	for _, r := range m.rules {
		m.limited = m.limited || r.when.times > 0
	}
	return m, nil
}

func tooLarge(name string, size int64) error {
	return fmt.Errorf("script %s has %d bytes; the limit is %d", name, size, int64(maxSize))
}

// Name is "script/" and the name of the script. Replies carry it.
func (m *Model) Name() string { return m.name }

// Stream implements [troupe.Model]. Its errors are an [*Error] where the
// script asks for one or the conversation is not a valid one, [ErrNoRule], and
// the cause of the end of ctx.
func (m *Model) Stream(ctx context.Context, req *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) {
		send := func(c troupe.Chunk) bool { return yield(c, nil) }
		if err := m.play(ctx, req, send); err != nil {
			yield(nil, fmt.Errorf("%s: %w", m.name, err))
		}
	}
}

// play answers one request. As soon as send reports that nobody listens any
// more, it returns nil.
func (m *Model) play(ctx context.Context, req *troupe.Request, send func(troupe.Chunk) bool) error {
	body, err := troupe.Encode(req)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	if !send(troupe.Sending{Body: body}) {
		return nil
	}
	// A provider refuses such a request as well. Only a strict model shows
	// that the loop never makes one.
	if err := troupe.Valid(req.Messages); err != nil {
		return &Error{Status: 400, Message: err.Error()}
	}
	r, facts, err := m.choose(req)
	if err != nil {
		return err
	}
	if err := pause(ctx, r.reply.wait); err != nil {
		return err
	}
	if r.reply.fail != nil {
		return r.reply.fail.with(facts)
	}
	answer, err := r.reply.build(newView(req, req.Messages), facts, len(body))
	if err != nil {
		return fmt.Errorf("the rule at %s: %w", r.place, err)
	}
	answer.Model = m.name
	if !send(troupe.Opened{}) {
		return nil
	}
	return r.reply.stream(ctx, answer, send)
}

// choose finds the rule that answers req, and the facts that its conditions
// captured.
func (m *Model) choose(req *troupe.Request) (*rule, facts, error) {
	// What each rule did so far is found by playing the conversation again.
	used := make([]int, len(m.rules))
	if m.limited {
		for i, msg := range req.Messages {
			if msg.Role != troupe.Assistant {
				continue
			}
			if n, _ := m.first(newView(req, req.Messages[:i]), used); n >= 0 {
				used[n]++
			}
		}
	}
	now := newView(req, req.Messages)
	n, found := m.first(now, used)
	if n < 0 {
		return nil, nil, fmt.Errorf("%w to turn %d, which begins with %q; add a rule to %s",
			ErrNoRule, now.turn, shorten(now.latest()), m.file)
	}
	return &m.rules[n], found, nil
}

// first returns the number of the first rule that applies; -1 is none.
func (m *Model) first(v *view, used []int) (int, facts) {
	for i := range m.rules {
		w := &m.rules[i].when
		if w.times > 0 && used[i] >= w.times {
			continue
		}
		if found, ok := w.match(v); ok {
			return i, found
		}
	}
	return -1, nil
}

// pause waits for d, or returns the cause of the end of ctx when that comes
// first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shorten keeps the beginning of a text that is quoted in an error.
func shorten(s string) string {
	const most = 160
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most]) + "…"
}
