package session

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// The lines of a file are the same, and have the same numbers, however long
// they are and in however many pieces they are read.
func TestPiecesAreTheLinesOfTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(0, 9).Draw(t, "lines") {
			size := rapid.SampledFrom([]int{0, 1, 10, firstPiece - 1, firstPiece, firstPiece + 1, 3 * firstPiece, mostPiece, 2*mostPiece + 1}).Draw(t, "size")
			text.WriteString(strings.Repeat(rapid.SampledFrom([]string{"x", " "}).Draw(t, "byte"), size) + "\n")
		}
		text.WriteString(rapid.SampledFrom([]string{"", "end", "\r"}).Draw(t, "rest"))
		broken := rapid.Bool().Draw(t, "broken")
		from := iotest.HalfReader(strings.NewReader(text.String()))
		want := text.String()
		if broken {
			from = io.MultiReader(from, iotest.ErrReader(errors.ErrUnsupported))
			want = want[:strings.LastIndexByte(want, '\n')+1]
		}
		var got []numbered
		p := pieces{from: from}
		var err error
		for err == nil {
			var some []numbered
			some, err = p.next()
			for _, l := range some {
				got = append(got, numbered{number: l.number, text: bytes.Clone(l.text)})
			}
		}
		if broken != errors.Is(err, errors.ErrUnsupported) || broken == errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		for i, l := range strings.SplitAfter(want, "\n") {
			if strings.TrimSpace(l) == "" {
				continue
			}
			if len(got) == 0 || got[0].number != i+1 || string(got[0].text) != l {
				t.Fatalf("line %d of %d bytes is not there", i+1, len(l))
			}
			got = got[1:]
		}
		if len(got) > 0 {
			t.Fatalf("%d lines too many", len(got))
		}
	})
}
