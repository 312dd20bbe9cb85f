package host_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// S91: what a model has signed goes back byte for byte, after a resume, in a copy
// of the session and after a compaction; to another provider it does not go at all.
func TestS91SignedBlocksGoBackAsTheyCame(t *testing.T) {
	const odd = `{"data":"QU\/D+=","type":"redacted_thinking"}`
	thought := troupe.Thinking{Text: "first the \u2028 black ones", Signature: "sig+/=", Provider: "anthropic"}
	signed := func(id string) troupe.Message {
		return troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{thought, troupe.Opaque{Provider: "anthropic", JSON: odd}, use(id, "Glob", map[string]any{"pattern": "*"})}}
	}
	p := newPlace(t)
	s := p.open(t)
	p.provider.Queue(troupetest.Reply{Message: signed("c1")}, troupetest.Reply{Message: troupetest.Say("one")})
	ask(t, s, "count the sheep")
	p.provider.Queue(troupetest.Reply{Message: signed("c2")}, troupetest.Reply{Message: troupetest.Say("two")})
	ask(t, s, "again")
	whole := func(name string, times int) {
		t.Helper()
		body := p.provider.Last().Body
		if n := bytes.Count(body, []byte(odd)); n != times {
			t.Errorf("%s: the opaque block is there %d times, want %d", name, n, times)
		}
		if n := bytes.Count(body, []byte(`"signature":"sig+/="`)); n != times {
			t.Errorf("%s: the signature is there %d times, want %d", name, n, times)
		}
	}
	whole("in its session", 2)
	closed(t, s)
	copied := p.open(t, resume(t, s), func(o *host.Options) { o.Fork = true })
	p.provider.Say("three")
	ask(t, copied, "in a copy")
	whole("in a copy", 2)
	p.provider.Say("SUMMARY")
	copied.Compact("")
	if _, err := copied.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.provider.Say("four")
	ask(t, copied, "after a summary")
	body := p.provider.Last().Body
	if kept := bytes.Count(body, []byte(`redacted_thinking`)); bytes.Count(body, []byte(odd)) != kept || bytes.Count(body, []byte(`"sig+/="`)) != kept {
		t.Errorf("of %d signed messages that are left some are not as they were: %s", kept, body)
	}
	closed(t, copied)
	other := p.open(t, resume(t, s), func(o *host.Options) { o.Model = names[troupetest.OpenAI] })
	p.provider.Say("five")
	ask(t, other, "to another")
	whole("to another provider", 0)
	closed(t, other)
	back := p.open(t, resume(t, s), func(o *host.Options) { o.Model = names[troupetest.Anthropic] })
	p.provider.Say("six")
	ask(t, back, "and back")
	whole("back at its provider", 2)
}

// S96: a compaction that is asked for while calls run waits for all their results,
// those of sub-agents, too.
func TestS96ACompactionWaitsForTheResults(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, bypass)
	p.provider.Say("noted")
	ask(t, s, strings.Repeat("remember blue ", 200))
	p.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
		switch {
		case strings.Contains(r.FirstUser(), "child"):
			s.Compact("")
			return troupetest.Reply{Message: troupetest.Say("CHILD RESULT")}
		case isSummary(r):
			return troupetest.Reply{Message: troupetest.Say("SUMMARY")}
		case len(r.Results()) == 0 && !strings.Contains(string(r.Body), "SUMMARY"):
			return troupetest.Reply{Message: troupetest.Use(use("c1", "Glob", map[string]any{"pattern": "*"}), use("c2", "Bash", map[string]any{"command": "echo SHELL RESULT"}),
				use("c3", "Agent", map[string]any{"description": "child", "prompt": "child"}))}
		}
		return troupetest.Reply{Message: troupetest.Say("done")}
	})
	if end := ask(t, s, "go"); end.Text != "done" {
		t.Errorf("%+v", end)
	}
	has(t, string(p.provider.Last().Body), "SUMMARY", "SHELL RESULT", "CHILD RESULT")
	var order []string
	for r := range session.Read(session.LogPath(s.Path(), session.Lead)) {
		switch r.Event.(type) {
		case troupe.ToolEnded:
			order = append(order, "result")
		case troupe.Compacted:
			order = append(order, "compacted")
		}
	}
	if got := strings.Join(order, " "); got != "result result result compacted" {
		t.Error(got)
	}
}

// S99: a copy of a session sends its parent's bytes: nothing in them depends on
// the session, the process or the hour.
func TestS99ACopySendsTheBytesOfItsParent(t *testing.T) {
	for dialect, name := range names {
		t.Run(string(dialect), func(t *testing.T) {
			p := newPlace(t)
			p.model = name
			now := time.Date(2026, 5, 4, 23, 59, 0, 0, time.UTC)
			clock := func(o *host.Options) { o.Now = func() time.Time { return now } }
			s := p.once(t, clock)
			parent := p.provider.Last().Unmarked
			var system, tools []json.RawMessage
			for range 4 {
				now = now.Add(7 * time.Hour)
				child := p.open(t, resume(t, s), clock, func(o *host.Options) { o.Fork = true })
				p.provider.Say("yes")
				ask(t, child, "still blue?")
				closed(t, child)
				body := p.provider.Last().Unmarked
				if end := messagesEnd(t, parent); !bytes.HasPrefix(body, parent[:end]) {
					t.Fatalf("a copy does not begin as its parent:\n%s\n%s", parent, body)
				}
				var fields struct{ System, Tools json.RawMessage }
				if err := json.Unmarshal(body, &fields); err != nil {
					t.Fatal(err)
				}
				system, tools = append(system, fields.System), append(tools, fields.Tools)
			}
			for i := range system {
				if !bytes.Equal(system[i], system[0]) || !bytes.Equal(tools[i], tools[0]) {
					t.Error("system prompt or tools of two copies differ")
				}
			}
			if last := p.provider.Last(); last.Usage.CacheRead == 0 {
				t.Errorf("nothing came out of the cache: %+v", last.Usage)
			}
		})
	}
}

// S130: who holds a session is known from the lock, not from the time on it.
func TestS130LocksKnowNoTime(t *testing.T) {
	for _, skew := range []time.Duration{-48 * time.Hour, 0, 48 * time.Hour} {
		p := newPlace(t)
		s := p.open(t)
		lock := s.Path() + "/lock"
		then := time.Now().Add(skew)
		if err := os.Chtimes(lock, then, then); err != nil {
			t.Fatal(err)
		}
		o := p.options(t)
		resume(t, s)(&o)
		o.Now = func() time.Time { return time.Now().Add(-skew) }
		if other, err := host.Open(t.Context(), o); err == nil {
			_ = other.Close()
			t.Errorf("with a clock %v off a session in use was taken", skew)
		}
		closed(t, s)
		closed(t, p.open(t, resume(t, s), func(o *host.Options) { o.Now = func() time.Time { return then } }))
	}
}
