package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const key = "sk-test-0f6b1c2d"

func TestTextWithoutTheValues(t *testing.T) {
	for name, tt := range map[string]struct {
		values     []string
		text, want string
	}{
		"one":                  {[]string{key}, "a " + key + " b", "a [key] b"},
		"several times":        {[]string{key}, key + key + "\n" + key, "[key][key]\n[key]"},
		"two keys":             {[]string{key, "other-key-1"}, "other-key-1=" + key, "[key]=[key]"},
		"one begins another":   {[]string{key, key + "-long"}, key + "-long " + key, "[key] [key]"},
		"one is in another":    {[]string{"0f6b1c2d", key}, key + " 0f6b1c2d", "[key] [key]"},
		"space around it":      {[]string{" " + key + "\n"}, "Bearer " + key, "Bearer [key]"},
		"empty":                {[]string{""}, "abc", "abc"},
		"short":                {[]string{"a", "1234567"}, "a 1234567", "a 1234567"},
		"as long as it must":   {[]string{"12345678"}, "123456789", "[key]9"},
		"another case is none": {[]string{key}, strings.ToUpper(key), strings.ToUpper(key)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := New(tt.values...).Text(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	var none *Mask
	if none.Text("x") != "x" || string(none.JSON(json.RawMessage(`"x"`))) != `"x"` || new(Mask).Text("x") != "x" {
		t.Error("no mask changes a text")
	}
}

func TestJSONStaysJSON(t *testing.T) {
	odd := "na\"b\\c\n<d>é" // with all that is written in several ways
	m := New(key, odd, "nabcdefgh")
	for _, tt := range []struct {
		in, want any
	}{
		{map[string]any{"a": key, key: []any{1.5, "x" + key, true, nil}}, map[string]any{"a": "[key]", "[key]": []any{1.5, "x[key]", true, nil}}},
		{odd, "[key]"},
		{"\nabcdefgh", "\nabcdefgh"}, // in JSON it looks as if the value were there
		{key + "\nabcdefgh", "[key]\nabcdefgh"},
		{"nothing", "nothing"},
	} {
		for _, html := range []bool{true, false} {
			raw := encode(t, tt.in, html)
			got := m.JSON(raw)
			if want := encode(t, tt.want, false); string(got) != string(want) && string(got) != string(encode(t, tt.want, true)) {
				t.Errorf("%s becomes %s, want %s", raw, got, want)
			}
		}
	}
	if got := m.JSON(json.RawMessage("{ " + key)); string(got) != "{ [key]" {
		t.Errorf("what is no JSON: %s", got)
	}
	if got := m.JSON(json.RawMessage(`{"n":12345678901234567890,"k":"` + key + `"}`)); string(got) != `{"k":"[key]","n":12345678901234567890}` {
		t.Errorf("a number has changed: %s", got)
	}
}

func encode(t *testing.T, v any, html bool) json.RawMessage {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(strings.TrimSpace(b.String()))
}

func TestErrorsKeepWhatTheyAre(t *testing.T) {
	m := New(key)
	err := fmt.Errorf("read %s: %w", key, &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist})
	got := m.Error(err)
	if got.Error() != "read [key]: open [key]: file does not exist" || !errors.Is(got, fs.ErrNotExist) {
		t.Errorf("got %v", got)
	}
	if p, ok := errors.AsType[*fs.PathError](got); !ok || p.Op != "open" {
		t.Error("the cause is lost")
	}
	plain := errors.New("plain")
	if m.Error(plain) != plain || m.Error(nil) != nil {
		t.Error("an error without a value is another")
	}
}

// However the output comes in pieces, what is written is what Text makes of the
// whole, and nothing is held back that cannot become a value.
func TestWriterInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), Least, Least+4, -1)
		values := rapid.SliceOfN(value, 1, 2).Draw(t, "values")
		if len(values) == 2 && (overlaps(values[0], values[1]) || overlaps(values[1], values[0])) {
			values = values[:1] // which of two that overlap is masked is not said; see below
		}
		part := rapid.OneOf(rapid.SampledFrom(values), rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 5, -1))
		parts := rapid.SliceOf(part).Draw(t, "parts")
		m := New(values...)
		var out strings.Builder
		w := m.Writer(&out)
		text := strings.Join(parts, "")
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if k, err := w.Write([]byte(rest[:n])); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
			if len(w.held) >= len(m.values[0]) {
				t.Fatalf("%q is held back", w.held)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := m.Text(text); out.String() != want {
			t.Fatalf("%q of %q became %q, want %q", text, values, out.String(), want)
		}
	})
}

// overlaps reports whether a text could hold both with signs in common.
func overlaps(a, b string) bool {
	for i := range a {
		if strings.HasPrefix(b, a[i:]) || strings.HasPrefix(a[i:], b) {
			return true
		}
	}
	return false
}

// Of values that overlap in a text none is left.
func TestWriterWithValuesThatOverlap(t *testing.T) {
	values := []string{"xxabcdefg", "abcdefghij", "abcdefgh"}
	for _, text := range []string{"xxabcdefg", "xxabcdefghij", "abcdefghij", "abcdefgh", "abcdefghi", "xxabcdefxxabcdefg"} {
		for cut := range len(text) {
			var out strings.Builder
			w := New(values...).Writer(&out)
			for _, part := range []string{text[:cut], text[cut:]} {
				if _, err := w.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(out.String(), v) }) || !strings.Contains(out.String(), Shown) {
				t.Errorf("%s cut at %d becomes %s", text, cut, out.String())
			}
		}
	}
}

func TestWriterHoldsBackNoMoreThanItMust(t *testing.T) {
	var out strings.Builder
	w := New(key).Writer(&out)
	for _, step := range [][2]string{{"ready\n", "ready\n"}, {"sk-te", "ready\n"}, {"ll me\n", "ready\nsk-tell me\n"}, {key[:10], "ready\nsk-tell me\n"}, {key[10:], "ready\nsk-tell me\n[key]"}} {
		if _, err := w.Write([]byte(step[0])); err != nil || out.String() != step[1] {
			t.Errorf("after %q: %q, want %q; %v", step[0], out.String(), step[1], err)
		}
	}
}
