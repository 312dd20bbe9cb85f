package line

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/troupe-sh/troupe"
)

// What is typed passes; Ctrl-C is a key; a paste is text, a long one a mark.
func TestKeys(t *testing.T) {
	const paste = pasteBegin + "a\r\n\tb\x03\x1b[31mc\rd" + pasteEnd
	for in, want := range map[string]string{
		"plain é\r":            "plain é\r",
		"a\x03b":               "a\x1cb",
		"\x1b[A\x1b[200\x1b[B": "\x1b[A\x1b[200\x1b[B",
		pasteBegin + "one\x03 two" + pasteEnd + "!": "one two!",
		"<" + paste + ">":               "<[paste 1: 3 lines]>",
		paste + paste:                   "[paste 1: 3 lines][paste 2: 3 lines]",
		"\x1b" + paste:                  "\x1b[paste 1: 3 lines]",
		pasteBegin + "x\x1b" + pasteEnd: "x",
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			k := &keys{in: r}
			got, err := io.ReadAll(k)
			if err != nil || string(got) != want {
				t.Errorf("%q gives %q, want %q (%v)", in, got, want, err)
			}
			if whole := k.whole(string(got)); strings.Contains(want, "paste 1") && !strings.Contains(whole, "a\n\tb[31mc\nd") {
				t.Errorf("%q is whole %q", in, whole)
			}
		}
	}
	gone := errors.New("gone")
	if _, err := io.ReadAll(&keys{in: iotest.ErrReader(gone)}); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// A text that comes in pieces fills lines, whatever the pieces are; code keeps
// its lines.
func TestRows(t *testing.T) {
	text := "A paragraph that is longer than a line of this window.\n\n```go\nfunc f() { a line of code that is long }\n```\n    four spaces are code, too, however long\nunbroken-words-are-left-as-they-are-here\nend"
	want := []string{"A paragraph that is", "longer than a line", "of this window.", "", "```go", "func f() { a line of code that is long }", "```",
		"    four spaces are code, too, however long", "unbroken-words-are-left-as-they-are-here", "end"}
	for _, size := range []int{1, 3, 7, len(text)} {
		var r rows
		var got []string
		for piece := range slices.Chunk([]byte(text), size) {
			got = append(got, r.add(string(piece), 20)...)
		}
		got = append(got, r.add(r.rest(), 20)...)
		if !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %q", size, got)
		}
		if r.rest() != "" {
			t.Error("something is left")
		}
	}
}

func delta(s *stream, text string) { s.watch(troupe.Streaming{Delta: troupe.Delta{Text: text}}) }

// Fragments are handed out once, each with its reply, and a reply whose record
// comes late or early is shown whole and once.
func TestStream(t *testing.T) {
	var s stream
	delta(&s, "One")
	got := s.fragment(0)
	delta(&s, " and a half.")
	s.watch(troupe.Replied{})
	delta(&s, "Two") // before the record of the first was seen
	if early := s.fragment(0); early != " and a half." {
		t.Errorf("%q", early)
	}
	got += " and a half." + s.settle(0, "One and a half. More.")
	if got != "One and a half. More." {
		t.Errorf("%q", got)
	}
	s.watch(troupe.Retrying{}) // the second begins anew, as the third
	s.settle(1, "")
	delta(&s, "Two again")
	s.watch(troupe.Streaming{Delta: troupe.Delta{Text: "hm", Thinking: true}})
	if got := s.fragment(2) + s.settle(2, "Two again"); got != "Two again" {
		t.Errorf("%q", got)
	}
	if got := s.settle(3, "not streamed"); got != "not streamed" {
		t.Errorf("%q", got)
	}
	s.watch(troupe.Replied{})
	s.watch(troupe.Replied{})
	delta(&s, "something else ")
	if got := s.fragment(4) + s.settle(4, "the reply"); got != "something else \nthe reply" {
		t.Errorf("%q", got)
	}
}

func TestPick(t *testing.T) {
	c := choice{Options: []struct{ Label, Description string }{{"short", ""}, {"long", ""}}}
	many := c
	many.MultiSelect = true
	for _, test := range []struct {
		c          choice
		text, want string
	}{{c, "2", "long"}, {c, " 1 ", "short"}, {c, "3", "3"}, {c, "1 2", "1 2"}, {many, "1, 2", "short, long"}, {many, "1 and more", "1 and more"}, {c, "", ""}, {c, "mine", "mine"}} {
		if got := test.c.pick(test.text); got != test.want {
			t.Errorf("%q means %q, want %q", test.text, got, test.want)
		}
	}
}
