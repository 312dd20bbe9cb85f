package line

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// ctrlC is what the editor is given for Ctrl-C, which it would take for the end
// of all input: a character that it has no use for.
const ctrlC = 0x1c

// Marks of a terminal around what is pasted.
const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// longestPaste is in bytes; what is longer is cut off.
const longestPaste = 1 << 20

// keys is what is typed, made fit for the line editor: Ctrl-C is a key, and
// what is pasted is text, whatever is in it. A paste of more than a line stands
// in the line as a mark, which whole takes back.
type keys struct {
	in      io.Reader
	out     []byte // to be read next
	held    []byte // the beginning of what may become a mark
	pasting bool
	pasted  []byte

	mu     sync.Mutex
	pastes map[string]string // by their marks
}

// Read implements [io.Reader].
func (k *keys) Read(p []byte) (int, error) {
	var buf [256]byte
	for len(k.out) == 0 {
		n, err := k.in.Read(buf[:])
		for _, b := range buf[:n] {
			k.take(b)
		}
		if err != nil && len(k.out) == 0 {
			return 0, err
		}
	}
	n := copy(p, k.out)
	k.out = k.out[n:]
	return n, nil
}

// take takes in one byte.
func (k *keys) take(b byte) {
	mark := pasteBegin
	if k.pasting {
		mark = pasteEnd
	}
	k.held = append(k.held, b)
	if strings.HasPrefix(mark, string(k.held)) {
		if len(k.held) < len(mark) {
			return
		}
		if k.pasting {
			k.paste(k.pasted)
		}
		k.held, k.pasted, k.pasting = nil, nil, !k.pasting
		return
	}
	held := k.held
	k.held = nil
	if b == '\x1b' && len(held) > 1 { // it may begin another mark
		held, k.held = held[:len(held)-1], []byte{b}
	}
	for _, b := range held {
		switch {
		case k.pasting && len(k.pasted) < longestPaste:
			k.pasted = append(k.pasted, b)
		case k.pasting:
		case b == 0x03:
			k.out = append(k.out, ctrlC)
		default:
			k.out = append(k.out, b)
		}
	}
}

// paste puts what was pasted into the line.
func (k *keys) paste(raw []byte) {
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	raw = bytes.ReplaceAll(raw, []byte("\r"), []byte("\n"))
	text := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, string(raw))
	if !strings.ContainsAny(text, "\n\t") {
		k.out = append(k.out, text...)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pastes == nil {
		k.pastes = map[string]string{}
	}
	mark := fmt.Sprintf("[paste %d: %d lines]", len(k.pastes)+1, strings.Count(strings.TrimRight(text, "\n"), "\n")+1)
	k.pastes[mark] = text
	k.out = append(k.out, mark...)
}

// whole is a line with the pastes in it in place of their marks.
func (k *keys) whole(line string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for mark, text := range k.pastes {
		line = strings.ReplaceAll(line, mark, text)
	}
	return line
}
