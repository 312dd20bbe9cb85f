package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const sample = "repository  /tmp/troupe-demo-123/rota\n" +
	"   0.10s  lead             says a < b && c\n" +
	"   0.20s    Explore        ✓ Read conflict.go  0ms\n" +
	"-\treturn 1\n" +
	"green: the test passes.\n"

func picture(t *testing.T, in string) string {
	t.Helper()
	var out strings.Builder
	if err := draw(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The text of the picture is the text of the demo, less its random directory.
func TestPictureShowsTheText(t *testing.T) {
	var text strings.Builder
	dec := xml.NewDecoder(strings.NewReader(picture(t, sample)))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
		if c, ok := tok.(xml.CharData); ok {
			text.Write(c)
		}
	}
	for _, want := range []string{"/tmp/troupe-demo/rota", "says a < b && c", "✓ Read conflict.go  0ms", "-    return 1", "green: the test passes."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

func TestPictureColours(t *testing.T) {
	out := picture(t, sample)
	for what, colour := range map[string]string{">lead ": lead, ">Explore ": other, ">✓ Read": good, ">-  ": bad, ">green:": good, ">says": ink} {
		line := out[:strings.Index(out, what)+1]
		if line = line[strings.LastIndex(line, "<"):]; !strings.Contains(line, colour) {
			t.Errorf("%q is drawn by %s, want %s", what, line, colour)
		}
	}
}

func TestPictureIsTheSameEachTime(t *testing.T) {
	other := strings.ReplaceAll(sample, "123", "456")
	if picture(t, sample) != picture(t, other) {
		t.Error("another directory gives another picture")
	}
}

func TestPictureCutsLongLines(t *testing.T) {
	if got := plain(strings.Repeat("ä", columns+1)); got != strings.Repeat("ä", columns-1)+"…" {
		t.Errorf("cut to %q", got)
	}
	if full := strings.Repeat("ä", columns); plain(full) != full {
		t.Error("a line that fits is cut")
	}
}

func TestPictureOfNothing(t *testing.T) {
	if err := draw(strings.NewReader(""), io.Discard); err == nil {
		t.Error("no error for an empty demo")
	}
}
