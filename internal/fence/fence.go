// Package fence puts text that somebody else wrote into a frame of the
// runtime's, so that it can neither end the frame nor pass for another: for a
// notice, a reminder, a message of an agent or of a person.
//
// All words of the runtime to a model are put together here, and what an agent
// reports to another goes through [Escape]. The package has no state; all of it
// may be called from several goroutines.
package fence

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns text in which nothing looks like a tag of the runtime, of the
// protocols of this field or of a model's template, and no line begins like a
// turn of a dialogue ("Human:"). What does gets a backslash: "<\notice>",
// "\Human:". All else stays as it is, so that code, generics and HTML can be
// read and copied. One more backslash stands where there were some, so that
// what was written can be told from what is shown. Control characters are shown
// by their pictures, and what is not UTF-8 by U+FFFD.
func Escape(text string) string { return escape(text, nil) }

// Frame returns text in an element of that name, on lines of its own. The text
// is escaped, and can have no tag of that name either.
func Frame(name, text string, attrs ...Attr) string {
	var b strings.Builder
	openTag(&b, name, attrs)
	b.WriteString("\n" + escape(text, []string{name}) + "\n</" + name + ">")
	return b.String()
}

// An Attr is an attribute of an element. The name is the caller's own, the value
// may be anybody's.
type Attr struct{ Name, Value string }

// An Element is a word of the runtime in parts. Names are the caller's own:
// letters and hyphens or underscores. Text and the values of attributes may be
// anybody's: they are escaped, and have no tag of a name that is in the element.
type Element struct {
	Name  string
	Attrs []Attr
	Text  string
	In    []Element // after the text
}

// String returns the element, which is well-formed XML whatever the texts are.
// A text that XML would not take as it is stands in a CDATA section, and not in
// entities, which a model would copy.
func (e Element) String() string {
	var b strings.Builder
	e.write(&b, e.names(nil))
	return b.String()
}

func (e Element) names(all []string) []string {
	all = append(all, e.Name)
	for _, in := range e.In {
		all = in.names(all)
	}
	return all
}

func (e Element) write(b *strings.Builder, names []string) {
	openTag(b, e.Name, e.Attrs)
	if text := escape(e.Text, names); strings.ContainsAny(text, "<&") || strings.Contains(text, "]]") {
		b.WriteString("<![CDATA[" + closing.Replace(text) + "]]>")
	} else {
		b.WriteString(text)
	}
	for _, in := range e.In {
		b.WriteByte('\n')
		in.write(b, names)
	}
	if len(e.In) > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("</" + e.Name + ">")
}

func openTag(b *strings.Builder, name string, attrs []Attr) {
	b.WriteString("<" + name)
	for _, a := range attrs {
		b.WriteString(" " + a.Name + `="` + value.Replace(escape(a.Value, nil)) + `"`)
	}
	b.WriteByte('>')
}

var (
	// closing keeps a text from ending the CDATA section that it is in.
	closing = strings.NewReplacer("]]>", `]]\>`, `]]\`, `]]\\`)
	// value makes a text fit between quotation marks, on one line.
	value = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", "&#xA;", "\r", "&#xD;", "\t", "&#x9;")
)

// escape is Escape with further names that no tag in the text may have.
func escape(text string, names []string) string {
	var b strings.Builder
	done, begins := 0, true // text[:done] is in b; a line begins here
	put := func(at, size int, instead string) {
		b.WriteString(text[done:at] + instead)
		done = at + size
	}
	for i := 0; i < len(text); {
		if begins {
			if at := turn(text[i:]); at >= 0 {
				put(i+at, 0, `\`)
			}
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		begins = slices.Contains(lineEnds, r)
		switch seen := visible(r, size); {
		case seen != r || size == 1 && r == utf8.RuneError:
			put(i, size, string(seen))
		case plain(r) == '<' && isTag(text[i+size:], names):
			put(i+size, 0, `\`)
		}
		i += size
	}
	b.WriteString(text[done:])
	return b.String()
}

var lineEnds = []rune{'\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029'}

// visible is what is shown of a rune: XML has no control characters, and a
// screen obeys them.
func visible(r rune, size int) rune {
	switch {
	case r == '\n' || r == '\r' || r == '\t':
		return r
	case r < ' ':
		return '\u2400' + r
	case r == '\x7f':
		return '\u2421'
	case r == '\ufffe' || r == '\uffff' || r == utf8.RuneError && size == 1:
		return utf8.RuneError
	}
	return r
}

// plain is the ASCII form of a rune that has a wide one, and the small letter
// of a capital.
func plain(r rune) rune {
	switch {
	case r >= '\uff01' && r <= '\uff5e':
		r -= '\uff01' - '!'
	case r == '\ufe64':
		return '<'
	case unicode.Is(unicode.Pd, r): // hyphens of all kinds, and dashes
		return '-'
	case r < utf8.RuneSelf && (r < 'A' || r > 'Z'):
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// hidden reports whether a rune shows nothing of its own.
func hidden(r rune) bool {
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me)
}

// turn returns where in a line, from its beginning on, somebody seems to take
// the word as in a dialogue; -1 if nobody does. Lower case is left alone: it is
// a key of YAML more often.
func turn(line string) int {
	rest := strings.TrimLeftFunc(line, func(r rune) bool {
		return hidden(r) || strings.ContainsRune("*_#>", r) || unicode.IsSpace(r) && !slices.Contains(lineEnds, r)
	})
	word := strings.TrimLeft(rest, `\`)
	for _, who := range []string{"Human", "User", "Assistant", "System"} {
		if len(word) < len(who) || word[0] != who[0] || !strings.EqualFold(word[:len(who)], who) {
			continue
		}
		after := strings.TrimLeftFunc(word[len(who):], func(r rune) bool { return hidden(r) || strings.ContainsRune("*_ ", r) })
		if strings.HasPrefix(after, ":") || strings.HasPrefix(after, "：") {
			return len(line) - len(rest)
		}
	}
	return -1
}

// longestName is more than any name that is looked for has.
const longestName = 64

// isTag reports whether text, which follows a "<", goes on like a tag that
// nobody but the runtime may write. Spaces, hidden characters, letters of
// another width and another kind of hyphen make no difference.
func isTag(text string, names []string) bool {
	rest := strings.TrimLeftFunc(text, func(r rune) bool {
		return hidden(r) || unicode.IsSpace(r) || plain(r) == '/' || r == '\\'
	})
	var name []byte
	for _, r := range rest {
		if hidden(r) {
			continue
		}
		switch r = plain(r); {
		case r == '_':
			r = '-'
		case r == '|' && len(name) == 0, r == ':', r == '-', r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)):
		default:
			r = 0
		}
		if r == 0 || len(name) == longestName {
			break
		}
		name = append(name, byte(r))
	}
	return reserved(string(name)) || slices.ContainsFunc(names, func(n string) bool {
		return strings.ReplaceAll(strings.ToLower(n), "_", "-") == string(name)
	})
}

// reserved reports whether a name, in small letters and with hyphens, is one
// that means something to models wherever it stands. Children of elements have
// names that are ordinary elsewhere; they are kept out of their element only.
func reserved(name string) bool {
	switch name {
	case "notice", "hook", "environment", "system", "human", "assistant", "invoke", "tool-use", "tool-result", "start-of-turn", "end-of-turn":
		return true
	}
	if len(name) > 1 && name[0] == '|' { // <|im_start|>
		return true
	}
	return slices.ContainsFunc([]string{
		"task-notification", "system-reminder", "system-message", "system-warning", "pr-activity", "agent-message", "teammate-message",
		"cross-session-message", "fork-directive", "function-call", "function-result", "antml:", "user-prompt-submit-hook",
		"command-name", "command-message", "command-args", "local-command-",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
