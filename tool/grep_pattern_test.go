package tool

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// linesByRegexp is the plain way to find lines: one at a time, by package
// regexp. The result is their starts.
func linesByRegexp(re *regexp.Regexp, keepCR bool, text []byte) []int {
	var found []int
	pos := 0
	for line := range bytes.Lines(text) {
		body := bytes.TrimSuffix(line, []byte("\n"))
		if !keepCR {
			body = bytes.TrimSuffix(body, []byte("\r"))
		}
		if re.Match(body) {
			found = append(found, pos)
		}
		pos += len(line)
	}
	return found
}

func linesByFinder(p *grepPattern, text []byte) []int {
	var found []int
	f := newLineFinder(p)
	f.begin()
	for pos := 0; ; {
		lo, hi := f.next(text, pos)
		if lo < 0 {
			return found
		}
		found = append(found, lo)
		pos = hi
	}
}

func compareFinders(t rapid.TB, expr string, ignoreCase bool, text []byte) {
	p, err := compileGrep(expr, ignoreCase, false)
	if err != nil {
		return
	}
	want := linesByRegexp(p.re, p.keepCR, text)
	if diff := cmp.Diff(want, linesByFinder(p, text)); diff != "" {
		t.Errorf("lines of %q with %q (needles %q): regexp -, finder +:\n%s", text, expr, p.needles, diff)
	}
	// The same without needles, so that the automaton looks at everything.
	bare := *p
	bare.needles, bare.plain = nil, false
	if diff := cmp.Diff(want, linesByFinder(&bare, text)); diff != "" {
		t.Errorf("lines of %q with %q: regexp -, automaton +:\n%s", text, expr, diff)
	}
}

func TestFinderAgreesWithRegexp(t *testing.T) {
	atom := rapid.SampledFrom([]string{"a", "b", "ab", "k", "s", "K", "é", "\u212a", ".", "[a-c]", "[^a]", `\w`, `\W`, `\b`, `\B`, "^", "$", `\A`, `\z`, `\s`, `\d`, "(a|b)", "(?:ab|k)", "(?i:sk)", `\x{fffd}`, "\r", "x_1", "-"})
	quantifier := rapid.SampledFrom([]string{"", "", "", "*", "+", "?", "{2}", "{0,2}", "*?"})
	term := rapid.Map(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return atom.Draw(t, "atom") + quantifier.Draw(t, "quantifier") }), 1, 5),
		func(s []string) string { return strings.Join(s, "") })
	expr := rapid.Map(rapid.SliceOfN(term, 1, 3), func(s []string) string { return strings.Join(s, "|") })
	text := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "A", "B", "k", "K", "s", "S", "ſ", "\u212a", "é", "É", " ", "-", "_", "1", "x", "\n", "\n", "\r\n", "\r", "\xff", "\xc3"}), 0, 30),
		func(s []string) string { return strings.Join(s, "") })
	rapid.Check(t, func(t *rapid.T) {
		compareFinders(t, expr.Draw(t, "expr"), rapid.Bool().Draw(t, "ignoreCase"), []byte(text.Draw(t, "text")))
	})
}

func FuzzFinder(f *testing.F) {
	f.Add(`\bfoo\b|^$`, false, "a foo\n\nfoob\r\n")
	f.Add(`(?i)ſk+$`, true, "SK\xff\n")
	f.Add(`a\x{fffd}b`, false, "a\xffb\na\ufffdb")
	f.Add(`[^\x00-\x{10FFFF}]|x`, false, "x")
	f.Fuzz(func(t *testing.T, expr string, ignoreCase bool, text string) {
		compareFinders(t, expr, ignoreCase, []byte(text))
	})
}

func TestNeedles(t *testing.T) {
	for expr, want := range map[string]string{
		"foo":                 "foo",
		"foo.*barbar":         "barbar",
		"(foo)+":              "foo",
		"foo*":                "fo",
		"(foo)?bar":           "bar",
		"(foo)*":              "",
		"foo|barbar":          "foo,barbar",
		"foo|b*":              "",
		"[a-z]+":              "",
		"(?i)Needle":          "needle~",
		"(?i)task_force":      "_force~",
		"(?i)sks":             "",
		"(foo){2,3}":          "foo",
		"a|bc|d|e|f|g|h|i|jj": "",
		"x(abc|defg)":         "abc,defg",
		`\bfunc\s+Name`:       "func", // the first of equal worth
	} {
		p, err := compileGrep(expr, false, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range p.needles {
			s := string(n.text)
			if n.fold {
				s += "~"
			}
			got = append(got, s)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("needles of %q are %q, want %q", expr, strings.Join(got, ","), want)
		}
	}
}

// More states than are kept must not change what is found.
func TestAutomatonForgets(t *testing.T) {
	p, err := compileGrep(`[ab]*a[ab]{14}c`, false, false)
	if err != nil {
		t.Fatal(err)
	}
	p.needles = nil
	var text bytes.Buffer
	seed := uint32(1)
	for range 300 {
		for range 60 {
			seed = seed*1664525 + 1013904223
			text.WriteByte("ab"[seed>>31])
		}
		if seed&3 == 0 {
			text.WriteByte('c')
		}
		text.WriteByte('\n')
	}
	f := newLineFinder(p)
	f.begin()
	if diff := cmp.Diff(linesByRegexp(p.re, false, text.Bytes()), linesByFinder(p, text.Bytes())); diff != "" {
		t.Errorf("regexp -, automaton +:\n%s", diff)
	}
	for pos := 0; pos >= 0; {
		_, pos = f.next(text.Bytes(), pos)
	}
	if n := len(f.auto.states); n > maxStates {
		t.Errorf("%d states are kept", n)
	}
}

func TestPatternErrors(t *testing.T) {
	for expr, want := range map[string]string{
		"(":         `put \ before it`,
		"(?=x)":     "no look-around",
		`(a)\1`:     "no back-reference",
		"a\nb":      "set multiline to true",
		`a\r\nb`:    "set multiline to true",
		"[z-a]":     "not a valid regular expression",
		"a{1,5000}": "not a valid regular expression",
	} {
		_, err := compileGrep(expr, false, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", expr, err, want)
		}
	}
}
