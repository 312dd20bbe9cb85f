package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean replaces what a terminal would act on instead of showing it: control
// characters (line ends and tabs are kept) and marks that turn the direction
// of text.
func Clean(s string) string {
	ok := true
	for _, r := range s {
		if harmful(r) || r == utf8.RuneError {
			ok = false
			break
		}
	}
	if ok {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !harmful(r):
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune('␀' + r) // the picture of the control character
		default:
			fmt.Fprintf(&b, "<%04X>", r)
		}
	}
	return b.String()
}

func harmful(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	}
	// Directional marks, embeddings, overrides and isolates (Unicode TR 9).
	return r == '\u061c' || r == '\u200e' || r == '\u200f' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Screen returns a writer that cleans what it is given, for terminals. Each
// Write must hold whole characters.
func Screen(w io.Writer) io.Writer { return screen{w} }

type screen struct{ w io.Writer }

func (s screen) Write(b []byte) (int, error) {
	if _, err := io.WriteString(s.w, Clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
