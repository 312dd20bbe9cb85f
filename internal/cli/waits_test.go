package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// What a run waits for, and that another model answers, each format says.
func TestWaitsAndOtherModels(t *testing.T) {
	u := troupe.Usage{Input: 500}
	records := append(at(0, "lead", troupe.Started{Agent: "lead", Request: troupe.Request{Model: "p/big"}},
		troupe.Waiting{For: 20 * time.Second, Cause: "p: 429:\nslow down"},
		replied("p/big", u, toolUse("c1", "Agent", `{}`))),
		at(3, "a1", troupe.Started{Agent: "a1", Call: "c1", Depth: 1, Request: troupe.Request{Model: "p/big"}},
			troupe.Waiting{Cause: "busy"},
			troupe.Switched{Model: "p/other", Cause: "p/big is not available: 529"},
			replied("p/other", u, troupe.Text("x")))...)
	records = append(records, at(8, "lead", troupe.Switched{Model: "p/big"}, ended(troupe.Done, "done", 1, u, ""))...)
	_, notes, object, stream := faces(t, priced, records)
	for _, line := range []string{
		"waiting for about 20.0s for the account's rate limit: p: 429: slow down\n",
		"waiting for the account's rate limit: busy\n",
		"going on with p/other: p/big is not available: 529\n",
	} {
		if !strings.Contains(notes, line) || !strings.Contains(timeline(t, priced(), true, records), line) {
			t.Errorf("nobody says %q: %s", line, notes)
		}
	}
	if n := strings.Count(notes, "going on"); n != 1 {
		t.Errorf("the user's own switch is told as a surprise: %s", notes)
	}
	for _, line := range []string{
		`{"rate_limit_info":{"message":"p: 429:\nslow down","resetsAt":1767323065,"status":"rejected"},"session_id":"s1","type":"rate_limit_event"}`,
		`{"agent_id":"a1","rate_limit_info":{"message":"busy","status":"rejected"},"session_id":"s1","type":"rate_limit_event"}`,
		`{"agent_id":"a1","content":"going on with p/other: p/big is not available: 529","level":"warning","model":"p/other","session_id":"s1","subtype":"informational","type":"system"}`,
	} {
		if !strings.Contains(stream, line+"\n") {
			t.Errorf("the stream lacks %s:\n%s", line, stream)
		}
	}
	var res struct {
		ModelUsage map[string]struct{ InputTokens int }
	}
	if err := json.Unmarshal([]byte(object), &res); err != nil || res.ModelUsage["p/big"].InputTokens != 500 || res.ModelUsage["p/other"].InputTokens != 500 {
		t.Errorf("the models are not told apart: %v, %s", err, object)
	}
}

// What attempts without a reply have cost is in the total; that of one nobody
// has counted is not known.
func TestCostOfWhatBrokeOff(t *testing.T) {
	u, none := troupe.Usage{Input: 500}, troupe.Usage{}
	again := troupe.Retrying{Attempt: 1}
	for name, tt := range map[string]struct {
		events []troupe.Event
		want   string
	}{
		"one that was counted":         {[]troupe.Event{troupe.Billed{Usage: u}, again, replied("", u)}, "1,000 tokens · $1.00"},
		"one that was not":             {[]troupe.Event{troupe.Billed{}, again, replied("", u)}, "500 tokens · cost unknown"},
		"one that was refused":         {[]troupe.Event{again, replied("", u)}, "500 tokens · $0.50"},
		"the last, with its text":      {[]troupe.Event{troupe.Billed{Usage: u}, replied("", none)}, "500 tokens · $0.50"},
		"the last, with its text only": {[]troupe.Event{replied("", none)}, "0 tokens · cost unknown"},
		"a reply after one":            {[]troupe.Event{troupe.Billed{Usage: u}, again, replied("", none)}, "500 tokens · cost unknown"},
		"by two models":                {[]troupe.Event{troupe.Billed{Usage: u}, troupe.Switched{Model: "q/b", Cause: "x"}, replied("", u)}, "1,000 tokens · cost unknown"},
	} {
		var records []session.Record
		records = append(records, at(0, "lead", append(tt.events, ended(troupe.Done, "x", 1, u, ""))...)...)
		if _, notes, _, _ := faces(t, priced, records); !strings.Contains(notes, tt.want+" · ") {
			t.Errorf("%s: %q, want %q", name, notes, tt.want)
		}
	}
}
