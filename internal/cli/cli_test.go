package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

func TestCleanShowsWhatATerminalWouldActOn(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nü":    "a\tb\nü",
		"\x1b[2Jx":   "␛[2Jx",
		"\u009b2J":   "<009B>2J",
		"\u202etxt":  "<202E>txt",
		"a\u2028b":   "a<2028>b",
		"a\u2066b\r": "a<2066>b␍",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func reply(content ...troupe.Block) troupe.Event {
	return troupe.Replied{Reply: troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: content}, Usage: troupe.Usage{Input: 1}}}
}

// What sub-agents do counts; of what they say only calls are printed.
func TestSubAgents(t *testing.T) {
	tally := &Tally{Price: func(string, troupe.Usage) (float64, bool) { return 1, true }}
	var out bytes.Buffer
	s := &Stream{Out: &out, Tally: tally}
	for _, r := range []session.Record{
		{Agent: "lead", Event: troupe.Started{Agent: "lead"}},
		{Agent: "lead", Event: reply(troupe.Text("to the user"))},
		{Agent: "a1", Event: troupe.Started{Agent: "a1", Call: "c1", Depth: 1}},
		{Agent: "a1", Event: reply(troupe.Text("to nobody"), troupe.ToolUse{ID: "w", Name: "Write", Input: []byte("{}")})},
		{Agent: "a1", Event: troupe.Decided{Use: "w", Verdict: troupe.Verdict{Effect: troupe.Deny, Reason: "no"}}},
	} {
		tally.Add(r)
		if err := s.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]bool{"to the user": true, "to nobody": false, `"parent_tool_use_id":"c1"`: true} {
		if strings.Contains(out.String(), text) != want {
			t.Errorf("%q is printed: %v in %s", text, !want, out.String())
		}
	}
	if len(tally.Denials) != 1 || tally.Denials[0].Tool != "Write" || tally.Denials[0].Agent != "a1" {
		t.Errorf("denials: %v", tally.Denials)
	}
	if _, known := tally.Cost(); !known {
		t.Error("the cost is known")
	}
	tally.Add(session.Record{Agent: "a1", Event: troupe.Replied{}}) // cut off: nobody said what it used
	if _, known := tally.Cost(); known {
		t.Error("the cost of a reply without usage is not known")
	}
}
