package line

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/troupe-sh/troupe/internal/cli"
)

// IsTerminal reports whether w is one.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A Terminal is where a person sits: lines are typed at its foot, and what is
// printed appears above the one that is being typed. What is printed is shown
// and never acted on, whoever wrote it. It is safe for concurrent use.
type Terminal struct {
	in     *os.File
	before *term.State
	editor *term.Terminal
	keys   *keys
	lines  chan input
	once   sync.Once
	prompt string // guarded by mu
	mu     sync.Mutex
}

// An input is what a person did.
type input struct {
	kind inputKind
	text string
}

type inputKind int

const (
	typed     inputKind = iota // a line
	interrupt                  // Ctrl-C
	over                       // Ctrl-D, or there is no terminal any more
)

// Open takes the terminal with these two ends over, until Close. While it is
// open all output must go through it.
func Open(in, out *os.File) (*Terminal, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("take the terminal over: %w", err)
	}
	t := &Terminal{in: in, before: before, lines: make(chan input, 64), prompt: idle}
	t.keys = &keys{in: in}
	t.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{t.keys, out}, t.prompt)
	t.editor.AutoCompleteCallback = t.key
	t.fit()
	t.editor.SetBracketedPasteMode(true)
	go t.read() // lives as long as the program: nothing ends a read of a terminal
	return t, nil
}

// Close gives the terminal back as it was. It may be called twice.
func (t *Terminal) Close() {
	t.once.Do(func() {
		t.editor.SetBracketedPasteMode(false)
		_, _ = t.editor.Write([]byte("\r")) // a terminal that is gone needs no care
		_ = term.Restore(int(t.in.Fd()), t.before)
	})
}

// read hands on what is typed.
func (t *Terminal) read() {
	for {
		text, err := t.editor.ReadLine()
		if err != nil {
			t.lines <- input{kind: over}
			return
		}
		t.lines <- input{typed, t.keys.whole(text)}
	}
}

// key is called for keys that the editor has no use for.
func (t *Terminal) key(text string, pos int, key rune) (string, int, bool) {
	if key != ctrlC {
		return text, pos, false
	}
	if text == "" {
		t.lines <- input{kind: interrupt}
	}
	return "", 0, true
}

// Interrupt is as if the person had typed Ctrl-C.
func (t *Terminal) Interrupt() { t.lines <- input{kind: interrupt} }

// Ask asks a question before there is a session and returns what is typed; ok
// is false if the person left instead.
func (t *Terminal) Ask(ctx context.Context, question string) (answer string, ok bool) {
	fmt.Fprintln(t, question)
	t.ask(asked)
	defer t.ask(idle)
	select {
	case in := <-t.lines:
		return strings.TrimSpace(in.text), in.kind == typed
	case <-ctx.Done():
		return "", false
	}
}

// Write prints whole lines above the one being typed, cleaned of all that a
// terminal would act on.
func (t *Terminal) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	t.fit()
	if _, err := io.WriteString(t.editor, cli.Clean(string(b))); err != nil {
		return 0, fmt.Errorf("write to the terminal: %w", err)
	}
	return len(b), nil
}

// ask changes what stands in front of the line being typed.
func (t *Terminal) ask(prompt string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if prompt == t.prompt {
		return
	}
	t.prompt = prompt
	t.editor.SetPrompt(prompt)
	_, _ = t.editor.Write(nil) // draws it; what is wrong shows with the next line
}

// fit follows the size of the window, and returns its width in columns.
func (t *Terminal) fit() int {
	width, height, err := term.GetSize(int(t.in.Fd()))
	if err != nil || width < 20 {
		return 80
	}
	_ = t.editor.SetSize(width, height) // as in ask
	return width
}
