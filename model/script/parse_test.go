package script

import (
	"os"
	"strings"
	"testing"
)

// The place of each error is marked by » in the script.
func TestMistakesInAScript(t *testing.T) {
	say := `"reply": {"content": [{"text": "x"}]}`
	when := func(s string) string { return `{"rules": [{"when": {` + s + `}, ` + say + `}]}` }
	reply := func(s string) string {
		return `{"rules": [{"when": {"first": {"regexp": "(?P<name>.)"}}, "reply": {` + s + `}}]}`
	}
	content := func(s string) string { return reply(`"content": [` + s + `]`) }
	tests := []struct{ name, script, says string }{
		{"empty file", `»`, "EOF"},
		{"no object", `»[]`, "object"},
		{"no rules", `// a comment` + "\n" + ` »{}`, "no rules"},
		{"empty rules", `{"rules": »[]}`, "empty"},
		{"rules no list", `{"rules": »{}}`, "list"},
		{"syntax", "{\n  \"rules\": [\n    »;\n  ]\n}", "invalid character"},
		{"text after the end", "{\"rules\": [{" + say + "}]}\n»x", "top-level"},
		{"unknown name", `{"rules": [], »"rule": 1}`, "rule"},
		{"name twice", `{"rules": [], »"rules": []}`, "twice"},
		{"rule without reply", `{"rules": [»{}]}`, "no reply"},
		{"unknown condition", when(`»"lsat": "x"`), "lsat"},
		{"empty text", when(`"last": »""`), "empty"},
		{"text of a wrong kind", when(`"last": »7`), "string"},
		{"pattern of a wrong name", when(`"last": {»"glob": "x"}`), "regexp"},
		{"pattern without a name", when(`"last": »{}`), "regexp"},
		{"bad expression", when(`"last": {"regexp": »"(a\n"}`), "missing closing )"},
		{"bad expression in a list", when(`"last": ["a", {"regexp": »"*"}]`), "missing argument"},
		{"turn zero", when(`"turn": »0`), "from 1"},
		{"half a turn", when(`"turn": »1.5`), "whole"},
		{"huge turn", when(`"turn": »99999999999`), "whole"},
		{"turn of a wrong kind", when(`"turn": »"1"`), "number"},
		{"no turn", when(`"turn": »{}`), "no turn"},
		{"turns backwards", when(`"turn": »{"from": 3, "to": 2}`), "no turn"},
		{"times zero", when(`"times": »0`), "from 1"},
		{"tools no list", when(`"tools": »"Bash"`), "list"},
		{"no results", when(`"results": »[]`), "empty"},
		{"result of a wrong name", when(`"results": [{»"is_error": true}]`), "isError"},
		{"isError of a wrong kind", when(`"results": [{"isError": »"yes"}]`), "true or false"},
		{"bad id", when(`"results": [{"id": »"a_b"}]`), "letters"},
		{"long id", when(`"results": [{"id": »"` + strings.Repeat("a", 33) + `"}]`), "32"},
		{"same capture twice", `{"rules": [»{"when": {"first": {"regexp": "(?P<n>.)"}, "seen": [{"text": {"regexp": "(?P<n>.)"}}]}, ` + say + `}]}`, `"n"`},
		{"empty reply", `{"rules": [{"reply": »{}}]}`, "content"},
		{"empty content", reply(`"content": »[]`), "empty"},
		{"block without a kind", content(`»{}`), "one of"},
		{"block of two kinds", content(`»{"text": "a", "thinking": "b"}`), "one of"},
		{"input of a text", content(`»{"text": "a", "input": {}}`), "one of"},
		{"input of a wrong kind", content(`{"call": "Bash", "input": »"ls"}`), "object"},
		{"unknown capture", content(`{"text": »"a ${nmae}"}`), "nmae"},
		{"unknown capture in an input", content(`{"call": "Bash", "input": »{"a": [{"b": "${HOME}"}]}}`), "HOME"},
		{"open capture", content(`{"text": »"a ${name"}`), "closing brace"},
		{"bad duration", reply(`"content": [{"text": "a"}], "wait": »"5"`), "duration"},
		{"negative duration", reply(`"content": [{"text": "a"}], "pace": »"-5s"`), "duration"},
		{"bad usage", reply(`"content": [{"text": "a"}], "usage": {"input": »-1}`), "whole"},
		{"error without status", reply(`"error": »{"message": "a"}`), "status"},
		{"error without message", reply(`"error": »{"status": 500}`), "message"},
		{"status that is no error", reply(`"error": {"status": »200, "message": "a"}`), "400"},
		{"content beside error", reply(`"error": {"status": 500, "message": "a"}, "content": »[{"text": "a"}]`), "beside error"},
		{"cut and stall", reply(`"cut": 1, "stall": »1`), "beside cut"},
		{"error with times", `{"rules": [»{"when": {"times": 1}, "reply": {"error": {"status": 500, "message": "a"}}}]}`, "times"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, after, marked := strings.Cut(tt.script, "»")
			if !marked {
				t.Fatal("no mark")
			}
			p := parser{file: "dir/bad.json", data: []byte(before + after)}
			_, err := Parse(p.file, p.data)
			if err == nil {
				t.Fatal("no error")
			}
			if place := p.place(len(before)) + ": "; !strings.HasPrefix(err.Error(), place) {
				t.Errorf("error %q, want it to begin with %q", err, place)
			}
			if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want it in one line and to say %q", err, tt.says)
			}
		})
	}
}

func TestPlace(t *testing.T) {
	p := parser{file: "f", data: []byte("ab\n\tcd\n")}
	for offset, want := range map[int]string{0: "f:1:1", 2: "f:1:3", 3: "f:2:1", 5: "f:2:3", 7: "f:3:1"} {
		if got := p.place(offset); got != want {
			t.Errorf("offset %d is %s, want %s", offset, got, want)
		}
	}
}

// Nesting that would overflow the stack of the JSON parser is an error;
// brackets in strings and comments do not nest.
func TestDepth(t *testing.T) {
	for _, deep := range []string{"[", `{"a":`, "[ // x\n", "[/* ] */"} {
		_, err := Parse("x", []byte(strings.Repeat(deep, maxSize/len(deep))))
		if err == nil || !strings.Contains(err.Error(), "nested") {
			t.Errorf("%q: %.100v", deep, err)
		}
	}
	many := strings.Repeat("[{", 10*maxDepth)
	text := `{ // ` + many + "\n/*" + many + `*/ "rules": [{"reply": {"content": [{"text": "\"` + many + `\\"}, {"text": "` + many + `"}]}}]}`
	if _, err := Parse("x", []byte(text)); err != nil {
		t.Error(err)
	}
	if _, err := Parse("x", []byte(strings.Repeat(" ", maxSize+1))); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("huge script: %v", err)
	}
}

// Whatever a script holds, reading and playing it does not panic, and an error
// names a place in it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(one(`"first": {"regexp": "(?P<a>.*)"}, "turn": {"from": 1}`, `"content": [{"call": "x", "input": {"a": "${a}$${"}}]`)))
	f.Add([]byte(one(`"times": 2`, `"cut": 3, "usage": {"input": 1}`)))
	f.Add([]byte(one(`"results": [{"text": ["a"]}]`, `"error": {"status": 503, "message": "m"}`)))
	f.Add([]byte("{\"rules\": [ // \n /* */ ],}"))
	f.Add([]byte(`{"rules": "\`))
	for _, path := range []string{"../../cmd/troupe/demo/demo.json"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("fuzz.json", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.json:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		for _, req := range sampleRequests() {
			r, found, err := m.choose(req)
			if err != nil || r.reply.fail != nil {
				continue
			}
			if got, err := r.reply.build(newView(req, req.Messages), found, 1); err == nil && r.reply.broken == nil {
				checkReply(t, req, got)
			}
		}
	})
}
