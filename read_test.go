package troupe

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// spoken are events of the kinds that readEvent reads, with all that can be in them.
func spoken() []Event {
	texts := Blocks{Text(""), Text("plain"), Text("a\tb\n\"c\" \\ </> \b\f\r\x01\u2028 é 日本 🙂 \ufffd"), Image{"image/png", "AAAA"}}
	return []Event{
		ToolEnded{Use: "a", Result: Result{Content: texts, IsError: true, Data: json.RawMessage(`{"a":[1,{"b":"}\"]"}],"c":null}`)}, Took: -12},
		ToolEnded{Use: "b", Result: Answer("x"), Took: 1<<62 + 1},
		ToolEnded{},
		Replied{Reply{Message{Assistant, Blocks{Thinking{"t", "s", "p"}, Opaque{"p", `{ "z":1}`}, Text("t"), ToolUse{"i", "n", json.RawMessage(`{"x": 1.50}`)}}},
			Usage{1, 2, 3, 40}, "end_turn", "m"}},
		Replied{},
		Received{ID: "1", From: "user", Message: Message{User, append(texts, ToolResult{"i", texts, true}, ToolResult{"j", Blocks{ToolResult{}}, false})}},
		Received{},
	}
}

// What is written in the form that we write is read without a detour. Else
// nothing would be wrong, and a long session would go on much later.
func TestReadsWhatIsWritten(t *testing.T) {
	for _, e := range spoken() {
		raw, err := EncodeEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := readEvent(raw); !ok {
			t.Errorf("not read: %s", raw)
		}
		fast := testing.AllocsPerRun(10, func() { _, _ = DecodeEvent(raw) })
		if slow := testing.AllocsPerRun(10, func() { _, _ = decode(eventTypes, raw) }); fast >= slow {
			t.Errorf("%g allocations, by encoding/json %g: %s", fast, slow, raw)
		}
		checkRead(t, raw)
	}
}

// What readEvent reads is what encoding/json would read.
func checkRead(t interface{ Errorf(string, ...any) }, raw []byte) {
	got, ok := readEvent(slices.Clone(raw))
	if !ok {
		return
	}
	want, err := decode(eventTypes, raw)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nis read as %#v\ninstead of %#v, %v", raw, got, want, err)
	}
}

func TestReadAgreesWithJSON(t *testing.T) {
	var seeds [][]byte
	for _, e := range spoken() {
		raw, err := EncodeEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, raw)
	}
	bits := []string{"", `"`, `\`, `\u`, `\ud83d`, `\u00e9`, `\/`, "{", "}", "[", "]", ",", ":", "0", "-", "1e9", "007", "null", "true", `,"IsError":false`, " ", "\x00", "\xff", "é", `{"Text":"x"}`, `"ID":"2",`}
	rapid.Check(t, func(t *rapid.T) {
		raw := slices.Clone(rapid.SampledFrom(seeds).Draw(t, "seed"))
		for range rapid.IntRange(1, 2).Draw(t, "changes") {
			at := rapid.IntRange(0, len(raw)).Draw(t, "at")
			until := min(len(raw), at+rapid.IntRange(0, 4).Draw(t, "away"))
			raw = slices.Replace(raw, at, until, []byte(rapid.SampledFrom(bits).Draw(t, "bit"))...)
		}
		checkRead(t, raw[:rapid.IntRange(len(raw)/2, len(raw)).Draw(t, "size")])
		checkRead(t, raw)
	})
}

func FuzzReadEvent(f *testing.F) {
	for _, e := range spoken() {
		raw, err := EncodeEvent(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { checkRead(t, raw) })
}
