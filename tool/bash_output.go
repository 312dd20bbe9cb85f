package tool

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/proc"
)

// A bashEnd says how a command ended.
type bashEnd struct {
	proc.Outcome
	interrupted bool
	timedOut    time.Duration        // its time limit, if it reached that
	refused     error                // why it could not go on in the background then
	survivors   *proc.SurvivorsError // what could not be ended

	dir     string        // where it ran
	sandbox *proc.Sandbox // what confined it, if anything
	limits  proc.Limits
}

// bashResult makes the result of a command of what it printed and how it
// ended.
func bashResult(capture *proc.Capture, end bashEnd) (troupe.Result, error) {
	binary := isBinary(capture.Output())
	if binary {
		_ = capture.File() // Close tells why there is none
	}
	fileErr := capture.Close()
	out := capture.Output()

	shown := outputText(out)
	if binary {
		shown = binaryText(out)
	}
	fields := bashData{
		Stdout:        shown,
		Interrupted:   end.interrupted,
		ExitCode:      end.Code,
		RawOutputPath: out.Path,
		TimedOutAfter: end.timedOut.Milliseconds(),
		LeftProcesses: end.Left,
	}
	if out.Path != "" {
		fields.RawOutputSize = out.Size
	}
	data, err := troupe.Encode(fields)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	notes := append(append(outputNotes(out, fileErr), endNotes(end)...), sandboxNotes(out, end)...)
	if shown == "" {
		shown = "(no output)\n"
	}
	if len(notes) > 0 && !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	text := shown + strings.Join(notes, "\n")
	return troupe.Result{
		Content: troupe.Blocks{troupe.Text(strings.TrimSuffix(text, "\n"))},
		IsError: end.Code != 0 || end.interrupted || end.timedOut > 0 || end.survivors != nil,
		Data:    data,
	}, nil
}

// outputNotes says where the output is that the model does not see.
func outputNotes(out proc.Output, fileErr error) []string {
	var notes []string
	switch {
	case out.Path != "" && out.Cut:
		notes = append(notes, fmt.Sprintf("(the command printed %d bytes; the first of them are in %s)", out.Size, out.Path))
	case out.Path != "":
		notes = append(notes, fmt.Sprintf("(the whole output, %d bytes, is in %s)", out.Size, out.Path))
	}
	if fileErr != nil {
		notes = append(notes, fmt.Sprintf("(could not %v)", fileErr))
	}
	return notes
}

// endNotes says how a command ended, if not well.
func endNotes(end bashEnd) []string {
	var notes []string
	switch {
	case end.interrupted:
		notes = append(notes, "(interrupted before the command ended; what it printed until then is above)")
	case end.timedOut > 0:
		notes = append(notes, fmt.Sprintf("(ended after its time limit of %v; what it printed until then is above)", end.timedOut))
	case end.Code > 0:
		notes = append(notes, fmt.Sprintf("(exit code %d)", end.Code))
	case end.Code < 0 && end.State != "":
		notes = append(notes, fmt.Sprintf("(the command did not end by itself: %s)", end.State))
	}
	if end.refused != nil {
		notes = append(notes, fmt.Sprintf("(it could not go on in the background: %v)", end.refused))
	}
	switch {
	case end.Left == 1:
		notes = append(notes, "(1 process that the command left running was ended)")
	case end.Left > 1:
		notes = append(notes, fmt.Sprintf("(%d processes that the command left running were ended)", end.Left))
	}
	if end.survivors != nil {
		notes = append(notes, fmt.Sprintf("(%v)", end.survivors))
	}
	return notes
}

// isBinary reports whether output is no text: it has a NUL, or much of it is
// not UTF-8.
func isBinary(out proc.Output) bool {
	invalid, size := 0, 0
	for _, part := range [][]byte{out.Head, out.Tail} {
		if bytes.IndexByte(part, 0) >= 0 {
			return true
		}
		size += len(part)
		for len(part) > 0 {
			r, n := utf8.DecodeRune(part)
			if r == utf8.RuneError && n == 1 {
				invalid++
			}
			part = part[n:]
		}
	}
	return invalid*10 > size*3
}

func binaryText(out proc.Output) string {
	return fmt.Sprintf("(binary output, %d bytes, not shown)\n", out.Size)
}

// outputText is output as the model sees it.
func outputText(out proc.Output) string {
	if out.Missing == 0 {
		return plain(append(bytes.Clone(out.Head), out.Tail...))
	}
	head, tail := plain(out.Head), plain(out.Tail)
	if !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return fmt.Sprintf("%s[%d bytes left out here]\n%s", head, out.Missing, tail)
}

// plain makes valid text of what is meant for a terminal: it leaves out escape
// sequences and control characters other than tab and newline. A carriage
// return, by which progress bars overwrite themselves, begins a line.
func plain(raw []byte) string {
	s := strings.ToValidUTF8(string(raw), "\uFFFD")
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == 0x1b || r == 0x9b || r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
			s = afterEscape(s)
			continue
		case r == '\r':
			if !strings.HasPrefix(s, "\r\n") {
				out.WriteByte('\n')
			}
		case r == '\n' || r == '\t' || r >= 0x20 && r != 0x7f && (r < 0x80 || r > 0x9f):
			out.WriteString(s[:n])
		}
		s = s[n:]
	}
	return out.String()
}

// afterEscape returns s without the escape sequence it begins with; see
// ECMA-48. Of a sequence that is not well formed only the introducer goes.
func afterEscape(s string) string {
	kind, n := utf8.DecodeRuneInString(s)
	rest := s[n:]
	if kind == 0x1b {
		if rest == "" {
			return rest
		}
		switch c := rest[0]; {
		case c == '[' || c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
			kind, rest = rune(c)+0x40, rest[1:]
		default: // intermediate bytes and a final one
			i := 0
			for i < len(rest) && rest[i] >= 0x20 && rest[i] <= 0x2f {
				i++
			}
			if i < len(rest) && rest[i] >= 0x30 && rest[i] <= 0x7e {
				return rest[i+1:]
			}
			return rest
		}
	}
	if kind == 0x9b { // parameters, intermediate bytes, a final one
		i := 0
		for i < len(rest) && rest[i] >= 0x20 && rest[i] <= 0x3f {
			i++
		}
		switch {
		case i == len(rest):
			return ""
		case rest[i] >= 0x40 && rest[i] <= 0x7e:
			return rest[i+1:]
		}
		return rest
	}
	// A string, ended by ST or BEL. One that spans lines was none.
	for i, r := range rest {
		switch {
		case r == 0x07 || r == 0x9c:
			return rest[i+utf8.RuneLen(r):]
		case r == 0x1b && strings.HasPrefix(rest[i:], "\x1b\\"):
			return rest[i+2:]
		case r == '\n' || r == 0x1b:
			return rest[i:]
		}
	}
	return ""
}
