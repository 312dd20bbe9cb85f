package permission

import (
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// anything stands for a part of a word that is known only when the command
// runs. Text with such a byte of its own is never parsed.
const anything = '\x00'

// A word is what a program is given as one argument, as far as that can be
// told from the command line.
type word struct {
	text  string // without quotes; anything for what is not known
	split bool   // it may become several words, or none
	tilde bool   // it started with ~
	glob  string // the glob that it is, if all else of it is known
}

func (w word) known() bool { return strings.IndexByte(w.text, anything) < 0 }

// maxBraces is the number of words that one word with braces may become.
const maxBraces = 64

// maxGroups is the number of braces in one word that are expanded.
const maxGroups = 6

// words returns what a word becomes: more than one if it has braces.
func (x *extractor) words(w *syntax.Word) []word {
	if !hasBraces(w) {
		return []word{x.word(w)}
	}
	unknown := []word{{text: string(anything), split: true}}
	groups := 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			groups += strings.Count(lit.Value, "{")
		}
	}
	parts := *w // what splits the braces changes the word
	if groups > maxGroups || !syntax.SplitBraces(&parts) {
		return unknown
	}
	var out []word
	for each, err := range expand.BracesSeq(nil, &parts) {
		if err != nil || len(out) == maxBraces {
			return unknown
		}
		out = append(out, x.word(each))
	}
	return out
}

// hasBraces reports whether a word may have braces that bash expands.
func hasBraces(w *syntax.Word) bool {
	open, several := false, false
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			open = open || strings.Contains(lit.Value, "{")
			several = several || strings.Contains(lit.Value, ",") || strings.Contains(lit.Value, "..")
		}
	}
	return open && several
}

// joined returns a word that is neither split nor expanded, as the value of
// an assignment. nil is the empty word.
func (x *extractor) joined(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	out := x.word(w)
	out.split, out.glob = false, ""
	return out
}

// word returns a word without braces.
func (x *extractor) word(w *syntax.Word) word {
	b := wordBuilder{x: x}
	for i, p := range w.Parts {
		b.part(p, i == 0, len(w.Parts) == 1)
	}
	out := word{text: b.text.String(), split: b.split, tilde: b.tilde}
	if b.special && !b.unknown {
		out.glob = b.glob.String()
	}
	return out
}

// A wordBuilder puts the parts of one word together.
type wordBuilder struct {
	x       *extractor
	text    strings.Builder
	glob    strings.Builder // the same, with * and ? kept and all else escaped
	special bool            // there are * or ?
	unknown bool            // there is something else that is not known
	split   bool
	tilde   bool
}

func (b *wordBuilder) literal(s string) {
	b.text.WriteString(s)
	for i := range len(s) {
		if strings.IndexByte(`*?[\`, s[i]) >= 0 && filepath.Separator != '\\' {
			b.glob.WriteByte('\\')
		}
		b.glob.WriteByte(s[i])
	}
}

func (b *wordBuilder) notKnown() {
	b.unknown = true
	b.text.WriteByte(anything)
}

// part adds a part that is not in double quotes.
func (b *wordBuilder) part(p syntax.WordPart, first, alone bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.bare(p.Value, first, alone)
	case *syntax.SglQuoted:
		b.single(p)
	case *syntax.DblQuoted:
		b.double(p)
	case *syntax.ProcSubst:
		b.literal("/dev/fd/63")
	case *syntax.CmdSubst:
		if s, ok := b.x.quotedText(p); ok && !strings.ContainsAny(s, " \t\n*?[") && s != "" {
			b.literal(s)
			return
		}
		b.notKnown()
		b.split = true
	default: // expansions and patterns
		b.notKnown()
		b.split = true
	}
}

// bare adds text that is not in quotes.
func (b *wordBuilder) bare(s string, first, alone bool) {
	if first && strings.HasPrefix(s, "~") {
		s = b.home(s, alone)
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.literal(s[i : i+1])
		case c == '*' || c == '?':
			b.special, b.split = true, true
			b.text.WriteByte(anything)
			b.glob.WriteByte(c)
		case c == '[' && strings.Contains(s[i:], "]"), c == '[' && !alone:
			b.notKnown()
			b.split = true
		case c == '~' && i > 0 && (s[i-1] == '=' || s[i-1] == ':'):
			b.notKnown()
		default:
			b.literal(s[i : i+1])
		}
	}
}

// home adds what a ~ at the start of a word stands for, and returns the rest.
func (b *wordBuilder) home(s string, alone bool) string {
	b.tilde = true
	rest := s[1:]
	if b.x.home == "" || rest != "" && rest[0] != '/' || rest == "" && !alone {
		b.notKnown()
		return rest
	}
	b.literal(b.x.home)
	return rest
}

// single adds text in single quotes. Of $'...' only plain text and the usual
// escapes are known.
func (b *wordBuilder) single(p *syntax.SglQuoted) {
	if !p.Dollar || !strings.Contains(p.Value, `\`) {
		b.literal(p.Value)
		return
	}
	escapes := map[byte]string{'n': "\n", 't': "\t", '\\': `\`, '\'': "'", '"': `"`}
	for i := 0; i < len(p.Value); i++ {
		if p.Value[i] != '\\' {
			b.literal(p.Value[i : i+1])
			continue
		}
		i++
		s, ok := "", false
		if i < len(p.Value) {
			s, ok = escapes[p.Value[i]]
		}
		if !ok {
			b.notKnown()
			return
		}
		b.literal(s)
	}
}

// double adds text in double quotes.
func (b *wordBuilder) double(p *syntax.DblQuoted) {
	if p.Dollar { // translated, to whatever the locale says
		b.notKnown()
		return
	}
	for _, part := range p.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.literal(unescape(part.Value, "\\$`\""))
		case *syntax.CmdSubst:
			if s, ok := b.x.quotedText(part); ok {
				b.literal(s)
				continue
			}
			b.notKnown()
		case *syntax.ParamExp:
			b.notKnown()
			if part.Param == nil || part.Param.Value == "@" || part.Index != nil || part.Names != 0 {
				b.split = true
			}
		default:
			b.notKnown()
		}
	}
}

// unescape removes the backslashes in front of special characters.
func unescape(s, special string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(special+"\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quotedText returns the text of a substitution that only quotes: of
// $(cat <<'EOF' …), the way to write a long argument.
func (x *extractor) quotedText(c *syntax.CmdSubst) (string, bool) {
	if x.functions || len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) != 1 || c.Backquotes || c.TempFile || c.ReplyVar {
		return "", false
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 1 || len(call.Assigns) != 0 || call.Args[0].Lit() != "cat" {
		return "", false
	}
	r := c.Stmts[0].Redirs[0]
	if r.Op != syntax.Hdoc || r.N != nil || r.Hdoc == nil {
		return "", false
	}
	text := ""
	for _, p := range r.Hdoc.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			return "", false
		}
		text += lit.Value
	}
	if r.Word.Lit() != "" { // the delimiter has no quotes
		text = unescape(text, "\\$`")
	}
	return strings.TrimRight(text, "\n"), true
}
