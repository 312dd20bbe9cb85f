package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestWholeRun(t *testing.T) {
	text, notes, object, stream := faces(t, priced, whole())
	if text != "found\n" || notes != "2 turns · 2,363 tokens · $2.36 · 1 call denied: Bash (denied by Bash(rm *)) · session s1\n" {
		t.Errorf("text %q, notes %q", text, notes)
	}
	golden(t, "whole.json", object)
	golden(t, "whole.jsonl", stream)
	golden(t, "whole.timeline", timeline(t, priced(), true, whole()))
}

func result(t *testing.T, object string) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return m
}

func coded(code string, end troupe.Ended) troupe.Ended {
	end.Code = code
	return end
}

// What did not complete is an error in each format, and its words are not
// passed off as a result.
func TestEnds(t *testing.T) {
	u := troupe.Usage{Input: 5}
	for _, c := range []struct {
		end      troupe.Ended
		subtype  string
		terminal any
		summary  string
	}{
		{ended(troupe.OutOfTurns, "so far", 3, u, "turn limit reached: 3"), "error_max_turns", "max_turns", "max_turns: turn limit reached: 3 · 3 turns · 5 tokens · $0.0050 · session s1\n"},
		{ended(troupe.Interrupted, "so far", 1, u, "interrupted"), "error_during_execution", "aborted_streaming", "interrupted · 1 turn · 5 tokens · $0.0050 · session s1\n"},
		{coded("hook_stopped", ended(troupe.Interrupted, "so far", 1, u, "a hook")), "error_during_execution", "hook_stopped", "interrupted: a hook · 1 turn · 5 tokens · $0.0050 · session s1\n"},
		{coded("api_error", ended(troupe.Failed, "so far", 1, u, "p:\n401\tno")), "error_during_execution", "api_error", "failed: p: 401 no · 1 turn · 5 tokens · $0.0050 · session s1\n"},
		{coded("prompt_too_long", ended(troupe.Failed, "so far", 1, u, "long")), "error_during_execution", "prompt_too_long", "failed: long · 1 turn · 5 tokens · $0.0050 · session s1\n"},
		{coded("max_budget_usd", ended(troupe.OverBudget, "so far", 1, u, "spent")), "error_max_budget_usd", "budget_exhausted", "over_budget: spent · 1 turn · 5 tokens · $0.0050 · session s1\n"},
		{coded("max_tokens", ended(troupe.OverBudget, "so far", 1, u, "spent")), "error_during_execution", "budget_exhausted", "over_budget: spent · 1 turn · 5 tokens · $0.0050 · session s1\n"},
		{ended(troupe.OutOfTime, "so far", 1, u, "late"), "error_during_execution", "budget_exhausted", "out_of_time: late · 1 turn · 5 tokens · $0.0050 · session s1\n"},
		{ended(troupe.Failed, "so far", 1, u, "disk full"), "error_during_execution", nil, "failed: disk full · 1 turn · 5 tokens · $0.0050 · session s1\n"},
	} {
		records := at(0, "lead", replied("p/kept", u, troupe.Text("so far")), c.end)
		text, notes, object, stream := faces(t, priced, records)
		if text != "so far\n" || notes != c.summary {
			t.Errorf("%s: text %q, notes %q", c.end.Reason, text, notes)
		}
		if _, last, _ := strings.Cut(stream, "\n"); last != object {
			t.Errorf("%s: the last line of the stream is not the result:\n%s", c.end.Reason, last)
		}
		m := result(t, object)
		want := map[string]any{"subtype": c.subtype, "terminal_reason": c.terminal, "is_error": true, "partial_result": "so far", "errors": []any{c.end.Err},
			"stop_reason": nil, "result": nil, "num_turns": float64(c.end.Turns)}
		for k, v := range want {
			if diff := cmp.Diff(v, m[k]); diff != "" {
				t.Errorf("%s: %s: %s", c.end.Reason, k, diff)
			}
		}
		if _, ok := m["result"]; ok {
			t.Errorf("%s: there is a result", c.end.Reason)
		}
	}
}

// What went otherwise than asked is in the result, also if the run came to its end.
func TestResultTellsOfFallbacksAndFailedCompactions(t *testing.T) {
	failed := troupe.NotCompacted{Trigger: "auto", Err: "no summary"}
	records := append(at(0, "a1", troupe.Started{Agent: "a1", Parent: "lead", Call: "c1", Request: troupe.Request{Model: "p/small"}},
		troupe.Switched{Model: "p/spare", Cause: "p/small is down"}, troupe.NotCompacted{Err: "another's affair"}),
		at(3, "lead", failed, failed, replied("", troupe.Usage{}, troupe.Text("x")), troupe.Switched{Model: "p/asked"},
			troupe.Switched{Model: "p/other", Cause: "p/asked is down"}, ended(troupe.Done, "x", 1, troupe.Usage{}, ""))...)
	_, _, object, stream := faces(t, priced, records)
	if !strings.HasSuffix(stream, "\n"+object) {
		t.Errorf("stream %s", stream)
	}
	m := result(t, object)
	want := map[string]any{"subtype": "success", "compact_errors": []any{"no summary"}, "fallbacks": []any{
		map[string]any{"agent_id": "a1", "from": "p/small", "model": "p/spare", "reason": "p/small is down"},
		map[string]any{"from": "p/asked", "model": "p/other", "reason": "p/asked is down"}}}
	for k, v := range want {
		if diff := cmp.Diff(v, m[k]); diff != "" {
			t.Errorf("%s: %s", k, diff)
		}
	}
	tally := priced()
	for _, r := range records {
		tally.Add(r)
	}
	if tally.Turn(); tally.Failed != nil || tally.Fallbacks != nil {
		t.Errorf("a later turn still has %v, %v", tally.Failed, tally.Fallbacks)
	}
}

// Of a session that goes on no first record passes: its model is the one given.
func TestResumed(t *testing.T) {
	records := at(0, "lead",
		troupe.Received{ID: "2", From: "user", Message: troupe.Say(troupe.User, "go on")},
		replied("p/kept-1", troupe.Usage{Input: 10}, troupe.Text("a")),
		troupe.Switched{Model: "p/other"},
		troupe.Switched{Mode: "plan"},
		replied("p/other-1", troupe.Usage{Input: 20}, troupe.Text("b")),
		ended(troupe.Done, "b", 2, troupe.Usage{Input: 30}, ""))
	tally := priced()
	got := timeline(t, tally, true, records)
	want := []cli.ModelUse{{Model: "p/kept", Usage: troupe.Usage{Input: 10}}, {Model: "p/other", Usage: troupe.Usage{Input: 20}}}
	if diff := cmp.Diff(want, tally.Models, cmp.AllowUnexported(cli.ModelUse{})); diff != "" {
		t.Error(diff)
	}
	if wantLines := "   0.50s  lead             says a\n   2.00s  lead             says b\n   2.50s  lead             done: 2 turns, 30 tokens\n"; got != wantLines {
		t.Errorf("timeline:\n%s", got)
	}
	_, notes, _, _ := faces(t, priced, records)
	if notes != "2 turns · 30 tokens · $0.03 · session s1\n" {
		t.Errorf("notes %q", notes)
	}
}

// What is not known to cost something is never told to cost nothing.
func TestCost(t *testing.T) {
	u := troupe.Usage{Input: 500}
	for name, c := range map[string]struct {
		records []session.Record
		total   any
		models  map[string]any
		text    string
	}{
		"two models": {at(0, "lead", replied("", u), troupe.Switched{Model: "p/b"}, replied("", u), replied("", u)), 1.5,
			map[string]any{"p/kept": 0.5, "p/b": 1.0}, "$1.50"},
		"one without a price": {at(0, "lead", replied("", u), troupe.Switched{Model: "q/b"}, replied("", u)), nil,
			map[string]any{"p/kept": 0.5, "q/b": nil}, "cost unknown"},
		"a reply without usage":      {at(0, "lead", replied("", u), replied("", troupe.Usage{})), nil, map[string]any{"p/kept": nil}, "cost unknown"},
		"no reply with usage at all": {at(0, "lead", replied("", troupe.Usage{})), nil, map[string]any{"p/kept": nil}, "cost unknown"},
		"no reply":                   {nil, nil, map[string]any{}, "cost unknown"},
	} {
		records := append(c.records, at(9, "lead", ended(troupe.Done, "x", 1, u, ""))...)
		_, notes, object, _ := faces(t, priced, records)
		m := result(t, object)
		if m["total_cost_usd"] != c.total || !strings.Contains(notes, " · "+c.text+" · ") {
			t.Errorf("%s: %v, %q", name, m["total_cost_usd"], notes)
		}
		got := map[string]any{}
		for model, use := range m["modelUsage"].(map[string]any) {
			got[model] = use.(map[string]any)["costUSD"]
		}
		if diff := cmp.Diff(c.models, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		tally := priced()
		for _, r := range records {
			tally.Add(r)
		}
		bill := cli.Bill(tally)
		if !strings.HasSuffix(bill, c.text) || strings.Contains(bill, "$0.00") {
			t.Errorf("%s: bill\n%s", name, bill)
		}
	}
	if got := cli.Money(0, true); got != "$0.00" { // a model that costs nothing
		t.Error(got)
	}
}

// All denials are told; a name once.
func TestDenials(t *testing.T) {
	no := func(use string) troupe.Decided {
		return troupe.Decided{Use: use, Verdict: troupe.Verdict{Effect: troupe.Ask, Reason: "because\nof " + use}}
	}
	records := at(0, "lead",
		replied("", troupe.Usage{Input: 1}, toolUse("1", "Bash", `{"command":"x"}`), toolUse("2", "Bash", `{}`), toolUse("3", "Write", `{}`)),
		no("1"), no("2"), no("3"), ended(troupe.Done, "", 1, troupe.Usage{}, ""))
	text, notes, object, _ := faces(t, priced, records)
	if text != "" || !strings.Contains(notes, "3 calls denied: Bash, Write (because of 1)") {
		t.Errorf("text %q, notes %q", text, notes)
	}
	want := []any{
		map[string]any{"tool_name": "Bash", "tool_use_id": "1", "tool_input": map[string]any{"command": "x"}},
		map[string]any{"tool_name": "Bash", "tool_use_id": "2", "tool_input": map[string]any{}},
		map[string]any{"tool_name": "Write", "tool_use_id": "3", "tool_input": map[string]any{}},
	}
	if diff := cmp.Diff(want, result(t, object)["permission_denials"]); diff != "" {
		t.Error(diff)
	}
}

func TestInit(t *testing.T) {
	var out strings.Builder
	s := &cli.Stream{Out: &out, Tally: priced(), About: cli.About{Session: "s1", Dir: "/d", Model: "p/m", Mode: "plan", Key: "none", Version: "v1", Tools: []string{"Read"}}}
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	golden(t, "init.jsonl", withoutUUID(t, out.String()))
}

// Every kind of block has its documented form, and none can break a line.
func TestBlocks(t *testing.T) {
	records := at(0, "lead",
		replied("p/m", troupe.Usage{Input: 1}, troupe.Thinking{Text: "hm", Signature: "sig"}, troupe.Opaque{Provider: "p", JSON: `{"type":"redacted_thinking","data":"x"}`},
			troupe.Opaque{Provider: "p", JSON: "{"}, troupe.Text("<&>\u2028\n")),
		troupe.ToolEnded{Use: "1", Result: troupe.Result{Content: troupe.Blocks{troupe.Image{Media: "image/png", Data: "AA=="}}}},
		replied("p/m", troupe.Usage{Input: 1}), // nothing to print
	)
	var out strings.Builder
	tally := priced()
	face := &cli.Stream{Out: &out, Tally: tally, About: cli.About{Session: "s1"}}
	for _, r := range records {
		tally.Add(r)
		if err := face.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "blocks.jsonl", withoutUUID(t, out.String()))
}

type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// Who prints the run must learn that nobody reads any more.
func TestNobodyReads(t *testing.T) {
	r := at(0, "lead", replied("p/m", troupe.Usage{Input: 1}, troupe.Text("x")))[0]
	tally := priced()
	tally.Add(r)
	o := cli.Outcome{Tally: tally, Ended: ended(troupe.Done, "x", 1, troupe.Usage{}, "")}
	stream := &cli.Stream{Out: broken{}, Tally: tally}
	var notes strings.Builder
	for name, err := range map[string]error{
		"stream, first":  stream.Begin(),
		"stream, record": stream.Record(r),
		"stream, result": stream.Finish(o),
		"json":           cli.JSON{Out: broken{}}.Finish(o),
		"text":           cli.Text{Out: broken{}, Notes: &notes}.Finish(o),
		"notes":          cli.Text{Out: &notes, Notes: broken{}}.Finish(o),
		"timeline":       (&cli.Timeline{Out: broken{}, Tally: tally}).Record(r),
	} {
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A record that no run of ours would write breaks no face.
func TestStrangeRecords(t *testing.T) {
	records := at(0, "\x1b[2Jevil",
		troupe.Started{Definition: "\x1b[2Jevil", Depth: -3, Request: troupe.Request{Model: "\x1b[2J"}},
		troupe.Started{Call: "c", Definition: "\x1b[2Jevil", Depth: 1 << 40},
		troupe.ToolEnded{Use: "never asked", Took: time.Hour},
		troupe.Decided{Use: "never asked", Verdict: troupe.Verdict{Reason: "\x1b[2J"}},
		replied("\x1b[2J", troupe.Usage{Input: -1}, toolUse("x", "Agent", `{"subagent_type":7}`), toolUse("y", "\x1b[2J", `[]`), toolUse("z", "Bash\n", `{"command":"\u001b[2J\n"}`)),
		troupe.Decided{Use: "y", Verdict: troupe.Verdict{Reason: "\x1b[2J"}},
		troupe.Retrying{Cause: "\x1b[2J\n"},
		ended("\x1b[2J\n", "", 0, troupe.Usage{}, "\x1b[2J\n"))
	out := timeline(t, priced(), true, records)
	if strings.Contains(out, "\x1b") || strings.Contains(out, "<nil>") {
		t.Errorf("%q", out)
	}
	if lines := strings.Count(out, "\n"); lines != 10 {
		t.Errorf("%d lines:\n%s", lines, out)
	}
	_, notes, _, _ := faces(t, priced, records)
	if strings.Contains(notes, "\x1b") || strings.Count(notes, "\n") != 1 {
		t.Errorf("%q", notes)
	}
}
