package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	asking "github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/troupetest"
)

func allowed() asking.Answer {
	return asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}}
}

// A rule that is given for one question answers all that it covers: those that
// lie on the desk, and those to come.
func TestANewRuleAnswersOpenQuestions(t *testing.T) {
	p := newPlace(t)
	d := asking.NewDesk(time.Now)
	defer d.Attend()()
	s := p.open(t, func(o *host.Options) { o.Desk = d })
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(
		use("c1", "Write", map[string]any{"file_path": "docs/a.txt", "content": "x"}),
		use("c2", "Write", map[string]any{"file_path": "docs/b.txt", "content": "x"}),
		use("c3", "Write", map[string]any{"file_path": ".git/hooks/x", "content": "x"}))})
	p.provider.Say("done")
	if err := s.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	given := false
	for open := range d.Watch(t.Context()) {
		if !given && len(open) < 3 {
			continue
		}
		i := slices.IndexFunc(open, func(q asking.Question) bool { return q.Call.ID == "c1" })
		if !given {
			if len(open[i].Rules) != 1 || !strings.HasSuffix(open[i].Rules[0], "/docs/**)") {
				t.Fatalf("suggested are %q", open[i].Rules)
			}
			if err := s.Allow(open[i].Rules...); err != nil {
				t.Fatal(err)
			}
			given = true
			continue
		}
		if len(open) == 1 { // no rule was offered for it, and none answers it
			if open[0].Call.ID != "c3" || open[0].Rules != nil {
				t.Errorf("%+v", open[0])
			}
			if err := d.Answer(open[0].ID, asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user"}}); err != nil {
				t.Error(err)
			}
			break
		}
	}
	wg.Wait()
	for name, want := range map[string]bool{"docs/a.txt": true, "docs/b.txt": true, ".git/hooks/x": false} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Allow("Bash(x"); err == nil {
		t.Error("half a rule was taken")
	}
}

// What is allowed always is in the file of the repository and counts for the
// next session; where the repository is not trusted nothing is written.
func TestAllowAlways(t *testing.T) {
	p := newPlace(t)
	p.src.Trusted = func(string) bool { return false }
	asked := 0
	face := desk(t, func(q asking.Question) asking.Answer { asked++; return allowed() })
	s := p.open(t, face)
	if _, err := s.AllowAlways(t.Context(), "Edit(/docs/**)"); !errors.Is(err, host.ErrUntrusted) {
		t.Error(err)
	}
	if _, err := os.Stat(config.LocalSettings(p.dir)); err == nil {
		t.Error("a rule was written where it does not count")
	}
	closed(t, s)
	p.src.Trusted = func(string) bool { return true }
	s = p.open(t, face)
	path, err := s.AllowAlways(t.Context(), "Edit(/docs/**)")
	if err != nil || path == "" {
		t.Fatal(path, err)
	}
	p.call(t, s, "Write", map[string]any{"file_path": "docs/a.txt", "content": "x"})
	closed(t, s)
	s = p.open(t, face)
	p.call(t, s, "Write", map[string]any{"file_path": "docs/b.txt", "content": "x"})
	if asked != 0 {
		t.Errorf("asked %d times", asked)
	}
	p.call(t, s, "Write", map[string]any{"file_path": "c.txt", "content": "x"})
	if asked != 1 {
		t.Errorf("asked %d times about what no rule covers", asked)
	}
}

// The lead's question lies on the desk as a choice, and the answer reaches it.
func TestAQuestionOfTheModelLiesOnTheDesk(t *testing.T) {
	p := newPlace(t)
	answer := asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user", Input: []byte(`{"answers":{"Which way?":"left"}}`)}}
	s := p.open(t, desk(t, func(q asking.Question) asking.Answer {
		if q.Kind != asking.Choice || q.Call.Name != "AskUserQuestion" {
			t.Errorf("%+v", q)
		}
		return answer
	}))
	option := map[string]any{"label": "left", "description": "d"}
	input := map[string]any{"questions": []any{map[string]any{"question": "Which way?", "header": "Way", "options": []any{option, option}, "multiSelect": false}}}
	if res := p.call(t, s, "AskUserQuestion", input); res.IsError || !strings.Contains(res.Content.Text(), "→ left") {
		t.Errorf("%+v", res)
	}
	answer = asking.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user"}, Text: "ask me later"}
	if res := p.call(t, s, "AskUserQuestion", input); !res.IsError || !strings.Contains(res.Content.Text(), "ask me later") {
		t.Errorf("%+v", res)
	}
}
