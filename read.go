package troupe

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readEvent decodes the events that hold what was said, which are nearly all of a
// long log, if they have the form in which [EncodeEvent] writes them. It gives
// what [json.Unmarshal] would, and looks at each byte once or twice instead of
// five times. Of anything else, be it right or wrong, it says that it is not ok.
func readEvent(data []byte) (e Event, ok bool) {
	r := &reader{b: data}
	switch {
	case r.next(`{"ToolEnded":{"Use":`):
		e = r.toolEnded()
	case r.next(`{"Replied":{"Message":`):
		e = r.replied()
	case r.next(`{"Received":{`):
		e = r.received()
	default:
		return nil, false
	}
	r.want(`}`)
	return e, !r.bad && r.i == len(r.b)
}

// A reader takes JSON apart. What it returns counts only if nothing was bad.
type reader struct {
	b   []byte
	i   int  // b[:i] is read
	bad bool // not in the form that is known here
}

// next reads s, if that is what comes.
func (r *reader) next(s string) bool {
	if len(r.b)-r.i < len(s) || string(r.b[r.i:r.i+len(s)]) != s {
		return false
	}
	r.i += len(s)
	return true
}

// fail says that this is not in the form that is known here. Nothing more is read.
func (r *reader) fail() { r.i, r.bad = len(r.b), true }

// want reads s, which must come.
func (r *reader) want(s string) {
	if !r.next(s) {
		r.fail()
	}
}

func (r *reader) toolEnded() ToolEnded {
	e := ToolEnded{Use: r.text()}
	r.want(`,"Result":{"Content":`)
	e.Result.Content = r.blocks(0)
	e.Result.IsError = r.next(`,"IsError":true`)
	if r.next(`,"Data":`) {
		e.Result.Data = r.value()
	}
	r.want(`},"Took":`)
	e.Took = readNumber(r, e.Took)
	r.want(`}`)
	return e
}

func (r *reader) replied() Replied {
	e := Replied{Reply{Message: r.message()}}
	r.want(`,"Usage":{"Input":`)
	e.Usage.Input = readNumber(r, 0)
	r.want(`,"Output":`)
	e.Usage.Output = readNumber(r, 0)
	r.want(`,"CacheRead":`)
	e.Usage.CacheRead = readNumber(r, 0)
	r.want(`,"CacheWrite":`)
	e.Usage.CacheWrite = readNumber(r, 0)
	r.want(`},"Stop":`)
	e.Stop = r.text()
	r.want(`,"Model":`)
	e.Model = r.text()
	r.want(`}`)
	return e
}

func (r *reader) received() Received {
	var e Received
	if r.next(`"ID":`) {
		e.ID = r.text()
		r.want(`,`)
	}
	r.want(`"From":`)
	e.From = r.text()
	r.want(`,"Message":`)
	e.Message = r.message()
	r.want(`}`)
	return e
}

func (r *reader) message() Message {
	var m Message
	r.want(`{"Role":`)
	m.Role = Role(r.text())
	r.want(`,"Content":`)
	m.Content = r.blocks(0)
	r.want(`}`)
	return m
}

// deepest is how deep values may lie in each other: who wants more must ask
// encoding/json, which has a limit of its own.
const deepest = 64

func (r *reader) blocks(depth int) (out Blocks) {
	r.want(`[`)
	if r.next(`]`) {
		return nil
	}
	if depth > deepest {
		r.fail()
	}
	for !r.bad {
		out = append(out, r.block(depth))
		r.want(`}`)
		if r.next(`]`) {
			return out
		}
		r.want(`,`)
	}
	return nil
}

// block reads a block, without the brace that closes it.
func (r *reader) block(depth int) Block {
	switch {
	case r.next(`{"Text":`):
		return Text(r.text())
	case r.next(`{"ToolResult":{"ID":`):
		b := ToolResult{ID: r.text()}
		r.want(`,"Content":`)
		b.Content = r.blocks(depth + 1)
		b.IsError = r.next(`,"IsError":true`)
		r.want(`}`)
		return b
	case r.next(`{"ToolUse":{"ID":`):
		b := ToolUse{ID: r.text()}
		r.want(`,"Name":`)
		b.Name = r.text()
		r.want(`,"Input":`)
		b.Input = r.value()
		r.want(`}`)
		return b
	case r.next(`{"Thinking":{"Text":`):
		b := Thinking{Text: r.text()}
		r.want(`,"Signature":`)
		b.Signature = r.text()
		r.want(`,"Provider":`)
		b.Provider = r.text()
		r.want(`}`)
		return b
	case r.next(`{"Image":{"Media":`):
		b := Image{Media: r.text()}
		r.want(`,"Data":`)
		b.Data = r.text()
		r.want(`}`)
		return b
	case r.next(`{"Opaque":{"Provider":`):
		b := Opaque{Provider: r.text()}
		r.want(`,"JSON":`)
		b.JSON = r.text()
		r.want(`}`)
		return b
	}
	r.fail()
	return nil
}

// readNumber reads a whole number as a T, which its caller names by any value of it.
func readNumber[T ~int | ~int64](r *reader, _ T) T {
	from := r.i
	r.next(`-`)
	digits := r.i
	for r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		r.i++
	}
	n, err := strconv.ParseInt(string(r.b[from:r.i]), 10, reflect.TypeFor[T]().Bits())
	if err != nil || r.b[digits] == '0' && r.i > digits+1 {
		r.fail()
	}
	return T(n)
}

// value reads any value as it stands there.
func (r *reader) value() json.RawMessage {
	from := r.i
	if from == len(r.b) || r.b[from] != '{' {
		r.fail()
		return nil
	}
	depth := 0
	for ; r.i < len(r.b) && depth <= deepest; r.i++ {
		switch r.b[r.i] {
		case '"':
			r.i = endOfString(r.b, r.i)
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth > 0 {
				continue
			}
			r.i++
			raw := append(json.RawMessage(nil), r.b[from:r.i]...)
			if !json.Valid(raw) {
				r.fail()
			}
			return raw
		}
	}
	r.fail()
	return nil
}

// text reads a string.
func (r *reader) text() string {
	if r.want(`"`); r.bad {
		return ""
	}
	from, size := r.i, 0 // the size is what the escapes are longer than what they stand for
	high := byte(0)
	for ; r.i < len(r.b); r.i++ {
		c := r.b[r.i]
		if plain[c] {
			high |= c
			continue
		}
		if c == '"' {
			break
		}
		if c != '\\' { // a control character
			r.fail()
			return ""
		}
		r.i++
		size++
	}
	if r.i >= len(r.b) {
		r.fail()
		return ""
	}
	raw := r.b[from:r.i]
	r.i++
	if high >= utf8.RuneSelf && !utf8.Valid(raw) { // what is put in its place is encoding/json's affair
		r.fail()
	}
	if size == 0 {
		return string(raw)
	}
	return r.unescape(raw, len(raw)-size)
}

// unescape returns the text of a string with escapes, which is at most size long.
func (r *reader) unescape(raw []byte, size int) string {
	var out strings.Builder
	out.Grow(size)
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			out.Write(raw)
			return out.String()
		}
		out.Write(raw[:i])
		c, used := raw[i+1], 2
		if c == 'u' {
			c, ok := hexRune(raw[i+2:])
			if !ok {
				break
			}
			out.WriteRune(c)
			used = 6
		} else if c = escaped[c]; c != 0 {
			out.WriteByte(c)
		} else {
			break
		}
		raw = raw[i+used:]
	}
	r.fail()
	return ""
}

// hexRune is the character that the four hexadecimal digits at the beginning of b
// name. Halves of a pair are none: it takes two to tell what they are.
func hexRune(b []byte) (c rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, d := range b[:4] {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		c = c<<4 | rune(d)
	}
	return c, c < 0xD800 || c > 0xDFFF
}

// plain says which bytes stand for themselves within a string of JSON.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// escaped is what the letter behind a backslash stands for; 0 is that it is no such letter.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
