package prefix

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const anthropicBody = `{"model":"m","max_tokens":9,"tools":[{"name":"Read","input_schema":{}},{"name":"Bash","input_schema":{},"cache_control":{"type":"ephemeral"}}],` +
	`"system":[{"type":"text","text":"be good","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[` +
	`{"role":"user","content":[{"type":"text","text":"a \",\"cache_control\":{ b","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"text","text":"yes"}]}]}`

const openaiBody = `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"Read"}}],"messages":[{"role":"system","content":"be good"},{"role":"user","content":"hi"}]}`

const scriptBody = `{"Model":"m","System":"be good","Tools":[{"Name":"Read"}],"Messages":[{"Role":"user","Content":[{"Text":"hi"}]}],"MaxTokens":3}`

// Each byte of a body is in the part that its text says.
func TestPart(t *testing.T) {
	for body, at := range map[string]map[string]string{
		anthropicBody: {`"m"`: "the name of the model", `9`: "the field max_tokens", `Read`: "the tool Read", `Bash`: "the tool Bash", `be good`: "the system prompt",
			`a \"`: "message 1 (user)", `yes`: "message 2 (assistant)"},
		openaiBody: {`"m"`: "the name of the model", `true`: "the field stream", `Read`: "the tool Read", `be good`: "the system prompt", `hi`: "message 2 (user)"},
		scriptBody: {`"m"`: "the name of the model", `be good`: "the system prompt", `Read`: "the tool Read", `hi`: "message 1 (user)", `3}`: "the field MaxTokens"},
		"no JSON":  {"J": "the end"}, `{"messages":[`: {"[": "the end"}, `{"messages":[]}`: {`]`: "the end of the messages, after 0"}, `{"tools":[{}]}`: {"{}": "tool 1", "]": "the end of the tools"},
	} {
		for text, want := range at {
			if got := part([]byte(body), strings.Index(body, text)); got != want {
				t.Errorf("%q of %s is in %q, want %q", text, body, got, want)
			}
		}
	}
}

func TestMarksAreNoPart(t *testing.T) {
	got := string(unmarked([]byte(anthropicBody)))
	if strings.Count(got, "cache_control") != 1 || !strings.Contains(got, `{"type":"text","text":"be good"}]`) {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{"be good", "a \\\"", "yes", `"m"`} {
		if at := sent([]byte(anthropicBody), strings.Index(got, text)); !strings.HasPrefix(anthropicBody[at:], text) {
			t.Errorf("%q is at %q", text, anthropicBody[at:at+9])
		}
	}
}

func TestGoesOn(t *testing.T) {
	one := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`
	for later, want := range map[string]bool{
		one: true,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[]}]}`: true,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`:        true, // two messages of the user became one
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"b"}]}]}`:                                   false,
		`{"model":"m","messages":[]}`: false,
		`{"model":"n","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`: false,
	} {
		if got := goesOn([]byte(one), common([]byte(one), []byte(later))); got != want {
			t.Errorf("%s: %v", later, got)
		}
	}
	longer := strings.Replace(scriptBody, `]}],"Max`, `]},{"Role":"assistant","Content":[]}],"Max`, 1)
	if !goesOn([]byte(scriptBody), common([]byte(scriptBody), []byte(longer))) {
		t.Error("what stands behind the messages is none of them")
	}
}

func TestCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		same := strings.Repeat("x", rapid.IntRange(0, 10_000).Draw(t, "same"))
		a, b := same+rapid.StringN(0, 3, -1).Draw(t, "a"), same+rapid.StringN(0, 3, -1).Draw(t, "b")
		n := common([]byte(a), []byte(b))
		if a[:n] != b[:n] || n < min(len(a), len(b)) && a[n] == b[n] {
			t.Errorf("%d", n)
		}
	})
}

// FuzzBody: whatever stands in a file of bodies, nothing panics, and what is found
// lies in it.
func FuzzBody(f *testing.F) {
	for _, s := range []string{anthropicBody, openaiBody, scriptBody, `{"messages":[`, `,"cache_control":{`, `{"tools":{}}`} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		u := unmarked(b)
		if n < 0 || n > len(u) {
			return
		}
		part(u, n)
		goesOn(u, n)
		if at := sent(b, n); at < n || at > len(b) || n < len(u) && at < len(b) && b[at] != u[n] {
			t.Errorf("byte %d of %q is %d of %q", n, u, at, b)
		}
	})
}
