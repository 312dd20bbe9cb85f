package troupe_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-sh/troupe"
)

// texts that a JSON string has a form of its own for, and their neighbours.
var texts = []string{"", "plain", "a\nb\tc\r\n", "\"quoted\" and \\ and /", "<a href='x'>&amp;</a>", "\x00\x01\b\f\x1f\x7f", "é 日本 🙂",
	"\u2027\u2028\u2029\u202a", "\ufffd is not broken", "broken \xff\xfe", "cut \xe2\x80", "\xed\xa0\x80"}

// AppendText and Encode write the same.
func TestAppendText(t *testing.T) {
	for _, s := range texts {
		checkAppendText(t, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		checkAppendText(t, strings.Join(rapid.SliceOf(rapid.SampledFrom(append(texts, `\`, `"`, "\n", "\xe2"))).Draw(t, "parts"), ""))
	})
}

func FuzzAppendText(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkAppendText(t, s) })
}

func checkAppendText(t interface{ Errorf(string, ...any) }, s string) {
	want, err := troupe.Encode(s)
	if err != nil {
		t.Errorf("Encode(%q): %v", s, err)
	}
	if got := troupe.AppendText([]byte("before "), s); string(got) != "before "+string(want) {
		t.Errorf("AppendText(%q) = %s, want %s", s, got, want)
	}
}

// An event is read in whatever form its JSON has, not in ours alone.
func TestDecodeTakesAnyForm(t *testing.T) {
	want := troupe.Ended{Reason: troupe.Done, Text: "}"}
	for _, raw := range []string{
		`{"Ended":{"Reason":"completed","Text":"}"}}`,
		" {\n \"Ended\" : {\"Reason\":\"completed\", \"Text\":\"}\"} } ",
		`{"\u0045nded":{"Reason":"completed","Text":"\u007d"}}`,
		`{"Later":[1],"Ended":{"Reason":"completed","Text":"}"}}`,
		`{"Ended":{"Reason":"completed","Text":"}"},"Later":{"a":[1]}}`,
		`{"Ended":{"Reason":"failed"},"Ended":{"Reason":"completed","Text":"}"}}`,
	} {
		if got, err := troupe.DecodeEvent([]byte(raw)); err != nil || got != want {
			t.Errorf("%s became %v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"Ended":{}}}`, `{"Ended":{}`, `{"Ended":{},}`, `{"Ended":{}} {}`, `{"Ended":}`, `{"Ended"}`, `{"`} {
		if got, err := troupe.DecodeEvent([]byte(raw)); err == nil {
			t.Errorf("%s became %v", raw, got)
		}
	}
}
