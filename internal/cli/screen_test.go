package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
)

// S127: nothing of what agents and tools say moves the cursor.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"plain\n\ttext, größer, 日本, 👩‍🚀": "plain\n\ttext, größer, 日本, 👩‍🚀",
		"\x1b[2J\x1b[31mred":             "␛[2J␛[31mred",
		"\x1b]52;c;c2VjcmV0\a":           "␛]52;c;c2VjcmV0␇",
		"\x1b]8;;http://x\x1b\\y":        "␛]8;;http://x␛\\y",
		"50%\rdone":                      "50%␍done",
		"a\bb\x00c\x7fd":                 "a␈b␀c<007F>d",
		"\u009b2J\u0085":                 "<009B>2J<0085>",
		"a\u202eb\u2066c\u2069\u200f":    "a<202E>b<2066>c<2069><200F>",
		"\u061c\u200e\u202a\u202d\u2068": "<061C><200E><202A><202D><2068>",
		"one\u2028two\u2029":             "one<2028>two<2029>",
		"bad \xff\xfe utf8 \xc2":         "bad \ufffd\ufffd utf8 \ufffd",
		"\x9b2J":                         "\ufffd2J", // a bare byte, which some terminals take for ESC [
		"\ufffd":                         "\ufffd",
	} {
		if got := cli.Clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// harmless fails for what a terminal would act on.
func harmless(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%q is not UTF-8", text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			t.Errorf("%q has %U", text, r)
		}
	}
}

// Nothing harmful passes, what is harmless stays as it is, and cleaning twice
// is cleaning once.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"plain", "\x1b]52;c;x\a", "\u202e\u2028\u009b", "\xff\x9b", "a\r\nb\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := cli.Clean(s)
		harmless(t, once)
		if cli.Clean(once) != once {
			t.Errorf("%q changes again", once)
		}
		var b strings.Builder
		if n, err := cli.Screen(&b).Write([]byte(s)); n != len(s) || err != nil || b.String() != once {
			t.Errorf("Screen: %d, %v, %q, want %q", n, err, b.String(), once)
		}
		o := cli.Outcome{Tally: priced(), Ended: ended(troupe.Failed, s, 1, troupe.Usage{}, s)}
		o.Tally.Denials = []cli.Denial{{Tool: s, Verdict: troupe.Verdict{Reason: s}}}
		line := cli.Summary(o, "s1")
		harmless(t, line)
		if strings.ContainsAny(line, "\n\t") || len(line) > 6000 {
			t.Errorf("summary %q", line)
		}
	})
}

// JSON may go to a terminal as well. What it says stays the same.
func TestJSONMovesNoCursor(t *testing.T) {
	const evil = "\x1b[2J \u009b2J \x7f \u202e \u2028 \u2066 <&> \" \\ é 👩‍🚀\n"
	var out strings.Builder
	if err := (cli.JSON{Out: &out}).Finish(cli.Outcome{Tally: priced(), Ended: ended(troupe.Done, evil, 1, troupe.Usage{}, "")}); err != nil {
		t.Fatal(err)
	}
	harmless(t, out.String())
	var got struct{ Result string }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got.Result != evil {
		t.Errorf("%q, %v", got.Result, err)
	}
}

func TestScreenError(t *testing.T) {
	if n, err := cli.Screen(broken{}).Write([]byte("x")); n != 0 || err == nil {
		t.Error(n, err)
	}
}
