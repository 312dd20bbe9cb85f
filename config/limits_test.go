package config

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Of all limits the lowest counts, also one of a project that is not trusted: it
// only takes away. Each is shown with its file.
func TestTheLowestLimitCounts(t *testing.T) {
	w := newWorld(t, `
-- home/.claude/settings.json --
{"limits": {"session": {"usd": 5, "tokens": 100, "time": "1h"}, "agent": {"usd": 2}}}
-- home/repo/.troupe/settings.json --
{"limits": {"session": {"usd": 9, "tokens": 50, "time": null}, "agent": {"time": "90s"}}}
`)
	cfg := w.load(t)
	if want := (Limits{5, 50, time.Hour}); cfg.Limits != want {
		t.Errorf("the session may use %+v, want %+v", cfg.Limits, want)
	}
	if want := (Limits{2, 0, 90 * time.Second}); cfg.Each != want {
		t.Errorf("an agent may use %+v, want %+v", cfg.Each, want)
	}
	if got := cfg.Limits.And(Limits{Dollars: 1, Time: 2 * time.Hour}); got != (Limits{1, 50, time.Hour}) {
		t.Errorf("with those of the command line %+v", got)
	}
	n := 0
	for _, e := range cfg.Entries() {
		if strings.HasPrefix(e.Key, "limits.") && e.Source != "" && e.Text != "" {
			n++
		}
	}
	if n != 7 {
		t.Errorf("%d limits are shown, want 7: %v", n, cfg.Entries())
	}
}

// A limit that cannot be read, or that would be none, stops the start; an unknown
// key is told with its place.
func TestLimitsThatAreNone(t *testing.T) {
	for text, says := range map[string]string{
		`{"limits": {"session": {"usd": 0}}}`:       "usd cannot be 0",
		`{"limits": {"session": {"usd": -1}}}`:      "usd cannot be -1",
		`{"limits": {"session": {"tokens": 0}}}`:    "tokens cannot be 0",
		`{"limits": {"agent": {"time": "0s"}}}`:     `time: want a time as in "90s"`,
		`{"limits": {"agent": {"time": 90}}}`:       `time: want a time as in "90s"`,
		`{"limits": {"agent": 5}}`:                  "agent",
		`{"limits": []}`:                            "limits",
		`{"limits": {"sesion": {"usd": 1}}}`:        `is "session" meant?`,
		`{"limits": {"session": {"dollars": 1.5}}}`: "limits.session.dollars",
	} {
		w := newWorld(t, "-- home/.claude/settings.json --\n"+text+"\n")
		cfg, err := Load(w.src)
		if strings.Contains(says, "meant") || strings.Contains(says, "dollars") {
			if err != nil {
				t.Fatal(err)
			}
		} else {
			if !errors.Is(err, ErrRules) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		all := strings.Join(cfg.Warnings, "\n")
		for _, p := range cfg.Problems {
			all += p.Error() + "\n"
		}
		if !strings.Contains(all, says) || cfg.Limits != (Limits{}) || cfg.Each != (Limits{}) {
			t.Errorf("%s: %+v, told %q", text, cfg.Limits, all)
		}
	}
}
