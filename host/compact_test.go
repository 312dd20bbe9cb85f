package host_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

func isSummary(r *troupetest.Request) bool {
	return strings.Contains(string(r.Body), "Write a summary of it now")
}

// A lead whose conversation nears the window goes on with a summary, keeps what
// it was told of the place, and goes on after a resume with the same bytes.
func TestTheConversationIsCutShortInTime(t *testing.T) {
	for dialect, name := range names {
		t.Run(string(dialect), func(t *testing.T) {
			p := newPlace(t)
			p.model = name
			p.write(t, "AGENTS.md", "always count twice")
			p.write(t, "a.txt", strings.Repeat("wool\n", 20000))
			window := host.NewModels(lookupIn(p.env), nil, p.dir, nil, nil).Window(name)
			s := p.open(t)
			todo := use("c1", "TodoWrite", map[string]any{"todos": []any{map[string]any{"content": "shear them", "status": "pending", "activeForm": "Shearing"}}})
			p.provider.Queue(troupetest.Reply{Message: troupetest.Use(todo)},
				troupetest.Reply{Message: troupetest.Use(use("c2", "Grep", map[string]any{"pattern": "wool", "output_mode": "content"})), Usage: troupe.Usage{Input: window * 9 / 10, Output: 5}},
				troupetest.Reply{Message: troupetest.Say("SUMMARY"), Usage: troupe.Usage{Input: 70, Output: 7}}, troupetest.Reply{Message: troupetest.Say("done")})
			end := ask(t, s, "count the sheep")
			sent := p.provider.Requests()
			if len(sent) != 4 || !isSummary(sent[2]) {
				t.Fatalf("%d requests", len(sent))
			}
			if before, after := sent[1].Unmarked, sent[2].Unmarked; string(after[:messagesEnd(t, before)]) != string(before[:messagesEnd(t, before)]) {
				t.Error("the question for the summary does not begin with what was sent before")
			}
			has(t, string(sent[3].Body), "count the sheep", "shear them", "SUMMARY", "always count twice", "Working directory")
			has(t, string(sent[3].Body), "wool") // the newest result is still to be looked at
			hasNot(t, string(sent[3].Body), `"c1"`)
			if end.Usage.Output < 12 {
				t.Errorf("the summary is not in the usage: %+v", end.Usage)
			}
			closed(t, s)
			again := p.open(t, resume(t, s))
			p.provider.Say("yes")
			ask(t, again, "still there?")
			last, before := p.provider.Last().Unmarked, sent[3].Unmarked
			if end := messagesEnd(t, before); string(last[:end]) != string(before[:end]) {
				t.Error("after a resume the request does not begin with the one before")
			}
		})
	}
}

// Every agent has it, and a provider that says "too long" is asked once more.
func TestTooLongIsPutTogetherAndAskedOnceMore(t *testing.T) {
	p := newPlace(t)
	p.provider = troupetest.NewProvider(t, troupetest.Key(key), troupetest.RefusalsExpected())
	for i, kv := range p.env {
		if strings.HasPrefix(kv, "ANTHROPIC_BASE_URL=") {
			p.env[i] = "ANTHROPIC_BASE_URL=" + p.provider.URL()
		}
	}
	s := p.open(t)
	refused := 0
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		results := len(r.Results())
		switch body := string(r.Body); {
		case isSummary(r):
			if !strings.Contains(r.FirstUser(), "look around") {
				t.Error("the lead was cut short")
			}
			return troupetest.Reply{Message: troupetest.Say("SUMMARY")}
		case strings.Contains(body, "SUMMARY") && strings.Contains(body, "look around"):
			return troupetest.Reply{Message: troupetest.Say("done")}
		case !strings.Contains(r.FirstUser(), "look around"): // the lead
			if results > 0 {
				return troupetest.Reply{Message: troupetest.Say("the child says so")}
			}
			return troupetest.Reply{Message: troupetest.Use(use("a1", "Agent", map[string]any{"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}))}
		case strings.Count(body, "tool_result") < 3:
			return troupetest.Reply{Message: troupetest.Use(use("c"+string(rune('0'+strings.Count(body, "tool_result"))), "Glob", map[string]any{"pattern": "*"}))}
		}
		refused++
		return troupetest.Reply{Fault: troupetest.Fault{Status: 413}}
	})
	if end := ask(t, s, "go"); end.Text != "the child says so" || refused != 1 {
		t.Errorf("%+v; refused %d times", end, refused)
	}
	agents, err := filepath.Glob(filepath.Join(s.Path(), "agents", "*[a-z0-9].jsonl"))
	agents = slices.DeleteFunc(agents, func(path string) bool { return strings.HasSuffix(path, ".sent.jsonl") })
	if err != nil || len(agents) != 1 {
		t.Fatalf("%v, %v", agents, err)
	}
	for log, want := range map[string]bool{agents[0]: true, session.LogPath(s.Path(), session.Lead): false} {
		cut := false
		for r := range session.Read(log) {
			if _, ok := r.Event.(troupe.Compacted); ok {
				cut = true
			}
		}
		if cut != want {
			t.Errorf("%s was cut short: %v", log, cut)
		}
	}
}

func TestCompactOnDemand(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	p.provider.Say("noted")
	ask(t, s, "remember blue")
	p.provider.Say("noted, too")
	ask(t, s, "and green")
	p.provider.Say("The user likes blue.")
	s.Compact("mind the colour")
	end, err := s.Run(t.Context())
	if err != nil || end.Reason != troupe.Done || end.Turns != 0 {
		t.Errorf("%+v, %v", end, err)
	}
	has(t, string(p.provider.Last().Body), "mind the colour")
	p.provider.Say("blue")
	ask(t, s, "which?")
	texts := p.provider.Last().Body
	has(t, string(texts), "The user likes blue.", "which?")
	if n := len(p.provider.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}
