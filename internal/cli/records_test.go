package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

// price knows one provider: a dollar for a thousand tokens.
func price(model string, u troupe.Usage) (float64, bool) {
	if !strings.HasPrefix(model, "p/") {
		return 0, false
	}
	return float64(u.Total()) / 1000, true
}

// at makes records of an agent's events, half a second apart, from the n-th on.
func at(n int, agent string, events ...troupe.Event) (out []session.Record) {
	for i, ev := range events {
		t := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n+i) * 500 * time.Millisecond)
		out = append(out, session.Record{Agent: agent, Time: t, Event: ev})
	}
	return out
}

func replied(model string, u troupe.Usage, blocks ...troupe.Block) troupe.Replied {
	return troupe.Replied{Reply: troupe.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: blocks}, Usage: u, Stop: "stop", Model: model}}
}

func toolUse(id, name, input string) troupe.ToolUse {
	return troupe.ToolUse{ID: id, Name: name, Input: json.RawMessage(input)}
}

func ended(reason troupe.Reason, text string, turns int, u troupe.Usage, err string) troupe.Ended {
	return troupe.Ended{Reason: reason, Text: text, Turns: turns, Usage: u, Err: err}
}

// whole is a run in which a lead has an agent search, which is denied a command
// and has to wait for its provider.
func whole() (out []session.Record) {
	out = append(out, at(0, "lead",
		troupe.Started{Agent: "lead", Definition: "lead", Request: troupe.Request{Model: "p/big"}, Mode: "default"},
		troupe.Received{ID: "1", From: "user", Message: troupe.Say(troupe.User, "go")},
		replied("p/big-1", troupe.Usage{Input: 1000, Output: 20}, troupe.Text("I ask."), toolUse("c1", "Agent", `{"subagent_type":"finder","description":"find it"}`)),
		troupe.ToolStarted{Use: "c1", Name: "Agent"},
		troupe.Decided{Use: "c1", Verdict: troupe.Verdict{Effect: troupe.Allow, By: "mode"}},
	)...)
	out = append(out, at(5, "a1",
		troupe.Started{Agent: "a1", Definition: "finder", Parent: "lead", Call: "c1", Depth: 1, Request: troupe.Request{Model: "p/small"}},
		troupe.Received{ID: "c1", From: "lead", Message: troupe.Say(troupe.User, "find")},
		replied("p/small-1", troupe.Usage{Input: 100, CacheWrite: 5}, troupe.Text("searching"), toolUse("b1", "Bash", `{"command":"rm -rf x"}`)),
		troupe.ToolStarted{Use: "b1", Name: "Bash"},
		troupe.Decided{Use: "b1", Verdict: troupe.Verdict{Effect: troupe.Deny, By: "rule", Reason: "denied by Bash(rm *)"}},
		troupe.ToolEnded{Use: "b1", Result: troupe.Failure("Permission denied"), Took: 2 * time.Millisecond},
		troupe.Retrying{Attempt: 1, Of: 10, After: 1500 * time.Millisecond, Status: 529, Cause: "overloaded"},
		replied("p/small-1", troupe.Usage{Input: 130, CacheRead: 5}, troupe.Text("the report")),
		ended(troupe.Done, "the report", 2, troupe.Usage{Input: 230, CacheRead: 5, CacheWrite: 5}, ""),
	)...)
	return append(out, at(14, "lead",
		troupe.ToolEnded{Use: "c1", Result: troupe.Result{Content: troupe.Blocks{troupe.Text("the report")}, Data: json.RawMessage(`{"agentId":"a1"}`)}, Took: 4500 * time.Millisecond},
		replied("p/big-1", troupe.Usage{Input: 1100, Output: 3}, troupe.Text("found")),
		ended(troupe.Done, "found", 2, troupe.Usage{Input: 2100, Output: 23}, ""),
	)...)
}

// show has a face show records, as the command does, and returns the outcome.
func show(t *testing.T, face cli.Face, tally *cli.Tally, records []session.Record) {
	t.Helper()
	o := cli.Outcome{Tally: tally, Took: 8 * time.Second}
	for _, r := range records {
		tally.Add(r)
		if err := face.Record(r); err != nil {
			t.Fatal(err)
		}
		if end, ok := r.Event.(troupe.Ended); ok && r.Agent == session.Lead {
			o.Ended = end
		}
	}
	if err := face.Finish(o); err != nil {
		t.Fatal(err)
	}
}

// faces shows records in each format.
func faces(t *testing.T, tally func() *cli.Tally, records []session.Record) (text, notes, json, stream string) {
	t.Helper()
	var out, err, object, lines strings.Builder
	show(t, cli.Text{Out: &out, Notes: &err, Session: "s1"}, tally(), records)
	show(t, cli.JSON{Out: &object, Session: "s1"}, tally(), records)
	of := tally()
	show(t, &cli.Stream{Out: &lines, Tally: of, About: cli.About{Session: "s1"}}, of, records)
	return out.String(), err.String(), withoutUUID(t, object.String()), withoutUUID(t, lines.String())
}

// withoutUUID takes the random field out of each line.
func withoutUUID(t *testing.T, lines string) string {
	t.Helper()
	uuid := regexp.MustCompile(`,"uuid":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"`)
	if n, of := len(uuid.FindAllString(lines, -1)), strings.Count(lines, "\n"); n != of {
		t.Errorf("%d of %d lines have a UUID:\n%s", n, of, lines)
	}
	return uuid.ReplaceAllString(lines, "")
}

func timeline(t *testing.T, tally *cli.Tally, plain bool, records []session.Record) string {
	t.Helper()
	var out strings.Builder
	line := &cli.Timeline{Out: &out, Tally: tally, Plain: plain}
	for _, r := range records {
		tally.Add(r)
		if err := line.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func priced() *cli.Tally { return &cli.Tally{Price: price, Model: "p/kept"} }
