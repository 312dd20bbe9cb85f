package config

import (
	"strings"
	"testing"
	"time"
)

// Of each value the strongest file's counts; a project that is not trusted can
// only switch the background off.
func TestCrew(t *testing.T) {
	const files = `
-- home/.claude/settings.json --
{"agents": {"concurrent": 4, "total": 50, "depth": 2, "fork": true}, "background": {"wait": "1h", "waitOthers": "30s", "enabled": true}}
-- home/repo/.troupe/settings.json --
{"agents": {"concurrent": 400, "fork": false}, "background": {"enabled": false, "wait": "90h"}}
`
	w := newWorld(t, files)
	cfg := w.load(t)
	c := cfg.Crew
	if c.Concurrent != 4 || c.Total != 50 || c.Depth != 2 || c.Fork == nil || !*c.Fork || c.Wait != time.Hour || c.WaitOthers != 30*time.Second || !c.Foreground {
		t.Errorf("%+v", c)
	}
	if n := len(cfg.Withheld); n != 3 {
		t.Errorf("withheld: %q", cfg.Withheld)
	}
	shown := map[string]string{}
	for _, e := range cfg.Entries() {
		shown[e.Key] = e.Text + " " + w.short(e.Source)
	}
	if shown["agents.concurrent"] != "4 home/.claude/settings.json" || shown["background.enabled"] != "false home/repo/.troupe/settings.json" {
		t.Errorf("shown: %v", shown)
	}

	w.src.Trusted = func(string) bool { return true }
	if c := w.load(t).Crew; c.Concurrent != 400 || *c.Fork || c.Wait != 90*time.Hour || c.Total != 50 {
		t.Errorf("of a trusted project: %+v", c)
	}
}

func TestCrewThatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		`{"agents": {"concurrent": 0}}`:       "concurrent cannot be 0",
		`{"agents": {"total": 1.5}}`:          "total cannot be 1.5",
		`{"agents": {"fork": "yes"}}`:         "agents.fork",
		`{"agents": []}`:                      "agents",
		`{"agents": {"concurent": 3}}`:        `is "concurrent" meant?`,
		`{"background": {"wait": 90}}`:        `wait: want a time as in "90s"`,
		`{"background": {"waitOthers": "x"}}`: `waitOthers: want a time`,
		`{"background": {"forever": true}}`:   "background.forever",
	} {
		w := newWorld(t, "-- home/.claude/settings.json --\n"+text+"\n")
		cfg := w.load(t)
		all := strings.Join(cfg.Warnings, "\n")
		for _, p := range cfg.Problems {
			all += p.Error() + "\n"
		}
		if !strings.Contains(all, says) || cfg.Crew.Concurrent+cfg.Crew.Total != 0 || cfg.Crew.Fork != nil || cfg.Crew.Wait+cfg.Crew.WaitOthers != 0 {
			t.Errorf("%s: %+v, told %q", text, cfg.Crew, all)
		}
	}
	w := newWorld(t, "-- home/.claude/settings.json --\n"+`{"background": {"enabled": "no"}}`+"\n")
	if _, err := Load(w.src); err == nil {
		t.Error("what may switch the background off cannot be read, and it starts")
	}
}
