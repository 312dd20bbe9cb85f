package tool

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// A grepPattern is what Grep looks for, compiled. It does not change, so that
// many goroutines can use it.
type grepPattern struct {
	re   *regexp.Regexp
	prog *syntax.Prog // of the same expression, for an automaton
	// Each match contains one of the needles; nil if no such text is known.
	needles []needle
	// The expression is its one needle and nothing else.
	plain bool
	// The expression has a carriage return, so those at the end of lines are
	// not passed over.
	keepCR bool
}

// maxNeedles is how many needles are sought side by side before looking for
// the expression itself is as fast.
const maxNeedles = 8

// compileGrep compiles expr. Unless it may span lines it will be given lines
// without their end one by one.
func compileGrep(expr string, ignoreCase, multiline bool) (*grepPattern, error) {
	flags := "(?m)"
	if multiline {
		flags = "(?ms)"
	}
	if ignoreCase {
		flags += "(?i)"
	}
	tree, err := syntax.Parse(flags+expr, syntax.Perl)
	if err != nil {
		return nil, patternError(expr, err)
	}
	if !multiline && hasLiteral(tree, '\n') {
		return nil, fmt.Errorf("the pattern %q has a line feed, and lines are searched one by one; set multiline to true to find what spans lines", expr)
	}
	re, err := regexp.Compile(flags + expr)
	if err != nil {
		return nil, patternError(expr, err)
	}
	simple := tree.Simplify()
	prog, err := syntax.Compile(simple)
	if err != nil {
		return nil, patternError(expr, err)
	}
	p := &grepPattern{re: re, prog: prog, needles: needlesOf(simple), keepCR: hasLiteral(tree, '\r')}
	p.plain = simple.Op == syntax.OpLiteral && simple.Flags&syntax.FoldCase == 0 && len(p.needles) == 1
	return p, nil
}

// patternError tells the model what is wrong with its pattern and what else to
// try.
func patternError(expr string, err error) error {
	var se *syntax.Error
	if !errors.As(err, &se) {
		return fmt.Errorf("the pattern %q: %w", expr, err)
	}
	hint := `to find a character like ( [ + literally put \ before it`
	if se.Code == syntax.ErrInvalidPerlOp || se.Code == syntax.ErrInvalidEscape {
		hint = "this is RE2 syntax: there is no look-around and no back-reference"
	}
	return fmt.Errorf("the pattern %q is not a valid regular expression: %w; %s", expr, err, hint)
}

// hasLiteral tells whether the expression asks for a character as such; a
// class like \s only allows it.
func hasLiteral(re *syntax.Regexp, r rune) bool {
	if re.Op == syntax.OpLiteral && slices.Contains(re.Rune, r) {
		return true
	}
	return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return hasLiteral(sub, r) })
}

// needlesOf returns texts of which every match of re contains one, or nil. Of
// several such sets it takes the one whose shortest text is longest.
func needlesOf(re *syntax.Regexp) []needle {
	switch re.Op {
	case syntax.OpLiteral:
		if n, ok := newNeedle(re.Rune, re.Flags&syntax.FoldCase != 0); ok {
			return []needle{n}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needlesOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needlesOf(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, sub := range re.Sub {
			if set := needlesOf(sub); worth(set) > worth(best) {
				best = set
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range re.Sub {
			set := needlesOf(sub)
			if set == nil || len(all)+len(set) > maxNeedles {
				return nil
			}
			all = append(all, set...)
		}
		return all
	}
	return nil
}

// worth is how much a set of needles narrows a search. One text of a length is
// better than several.
func worth(set []needle) int {
	if len(set) == 0 {
		return 0
	}
	shortest := len(set[0].text)
	for _, n := range set[1:] {
		shortest = min(shortest, len(n.text))
	}
	return shortest*maxNeedles - len(set) + 1
}

// A needle is a text that is sought without a regular expression.
type needle struct {
	text []byte // of lower case if the case does not count
	fold bool   // ASCII letters of both cases are equal
	// For fold: the place of the byte of text to look for first, and its upper case.
	rare  int
	upper byte
}

// newNeedle makes a needle of a literal. Where case does not count it can be
// a part of it: the letters k and s are equal to characters outside ASCII too,
// and so are all outside ASCII to others.
func newNeedle(literal []rune, fold bool) (needle, bool) {
	if slices.Contains(literal, utf8.RuneError) {
		return needle{}, false // equal to every byte that is not UTF-8
	}
	if !fold {
		return needle{text: []byte(string(literal))}, len(literal) > 0
	}
	var best, run []byte
	for _, r := range append(literal[:len(literal):len(literal)], -1) {
		if lower := r | 0x20; 'A' <= r && r <= 'Z' && lower != 'k' && lower != 's' {
			r = lower
		}
		if r >= 0 && r < 0x80 && r != 'k' && r != 's' && r != 'K' && r != 'S' {
			run = append(run, byte(r))
			continue
		}
		if len(run) > len(best) {
			best = run
		}
		run = nil
	}
	if len(best) == 0 {
		return needle{}, false
	}
	n := needle{text: best, fold: true}
	for i, b := range best {
		if commonness(b) < commonness(best[n.rare]) {
			n.rare = i
		}
	}
	n.upper = upperCase(best[n.rare])
	return n, true
}

// commonness orders the bytes of text and code: the rarest are 0.
func commonness(b byte) int { return strings.IndexByte("zjqxkv_wygbhpfmducl siranote", b) + 1 }

func upperCase(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}

// index is the first place of the needle in text, -1 if there is none.
func (n *needle) index(text []byte) int {
	if !n.fold {
		return bytes.Index(text, n.text)
	}
	// The next place of the rare byte in either case; len(text) is none.
	lower := indexFrom(text, n.rare, n.text[n.rare])
	upper := len(text)
	if n.upper != n.text[n.rare] {
		upper = indexFrom(text, n.rare, n.upper)
	}
	for {
		at := min(lower, upper)
		start := at - n.rare
		if start+len(n.text) > len(text) {
			return -1
		}
		if equalFold(text[start:start+len(n.text)], n.text) {
			return start
		}
		if at == lower {
			lower = indexFrom(text, at+1, n.text[n.rare])
		} else {
			upper = indexFrom(text, at+1, n.upper)
		}
	}
}

func indexFrom(text []byte, from int, b byte) int {
	if from < len(text) {
		if i := bytes.IndexByte(text[from:], b); i >= 0 {
			return from + i
		}
	}
	return len(text)
}

// equalFold compares ASCII text with lower case text of the same length.
func equalFold(text, lower []byte) bool {
	for i, b := range text {
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}
