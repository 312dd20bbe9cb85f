package prefix

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model/anthropic"
	"github.com/troupe-sh/troupe/session"
)

// A diary is a session in the making.
type diary struct {
	t      *testing.T
	folder *session.Folder
	now    time.Time
}

func newDiary(t *testing.T) *diary {
	d := &diary{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f, err := session.Create(t.TempDir(), "/project", "s1", func() time.Time { return d.now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	d.folder = f
	return d
}

func (d *diary) log(agent string, events ...troupe.Event) {
	d.t.Helper()
	l, err := d.folder.Log(agent)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, ev := range events {
		if err := l.Append(ev); err != nil {
			d.t.Fatal(err)
		}
	}
}

func start(id, parent, model string, said ...troupe.Message) troupe.Started {
	return troupe.Started{Agent: id, Definition: "worker", Parent: parent, Request: troupe.Request{Model: model, Messages: said}}
}

// ask has an agent send a request as a provider gets it, and logs what it used.
func (d *diary) ask(agent string, req troupe.Request, u troupe.Usage) {
	d.t.Helper()
	body, err := anthropic.Encode(&req, anthropic.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.log(agent, troupe.Sent{Body: body}, troupe.Replied{Reply: troupe.Reply{Usage: u}})
}

// look returns the report and its breaks and misses in words.
func (d *diary) look() (Report, []string) {
	d.t.Helper()
	r, err := Look(d.folder.Dir, func(model string, u troupe.Usage) (float64, bool) {
		return (10*float64(u.Input) + float64(u.CacheRead) + 12*float64(u.CacheWrite)) / 1e6, model == "p/m"
	})
	if err != nil {
		d.t.Fatal(err)
	}
	var found []string
	for _, a := range r.Agents {
		for _, q := range a.Requests {
			if b := q.Break; b != nil {
				found = append(found, fmt.Sprintf("%s %d breaks %s %d in %s (%s): %d", a.ID, q.Number, b.Of.Agent, b.Of.Number, b.Part, b.Cause, b.Tokens))
			}
			if q.Missed != nil {
				found = append(found, fmt.Sprintf("%s %d misses %d of %s %d, %s after", a.ID, q.Number, q.Missed.Tokens, q.With.Agent, q.With.Number, q.After.Round(time.Second)))
			}
		}
	}
	return r, found
}

var role = strings.Repeat("You work. ", 1000)

// talk is a conversation of n messages in turn, each of some length.
func talk(n int) troupe.Request {
	req := troupe.Request{Model: "m", MaxTokens: 9, System: role, Tools: []troupe.ToolSpec{{Name: "Read", Schema: []byte(`{"type":"object"}`)}}}
	for i := range n {
		m := troupe.Say([]troupe.Role{troupe.User, troupe.Assistant}[i%2], fmt.Sprintf("message %d %s", i, strings.Repeat("word ", 400)))
		req.Messages = append(req.Messages, m)
	}
	return req
}

// used is the usage of a prompt of size tokens, of which read were in the cache.
func used(size, read int) troupe.Usage {
	return troupe.Usage{CacheRead: read, CacheWrite: size - read, Output: 1}
}

// A scene is what happens in a session, and what there is to say of it.
type scene struct {
	play func(d *diary)
	want []string
}

func (s scene) check(t *testing.T) {
	d := newDiary(t)
	d.log("lead", start("lead", "", "p/m"))
	s.play(d)
	_, got := d.look()
	if diff := cmp.Diff(s.want, got); diff != "" {
		t.Error(diff)
	}
}

// edited is a conversation of which the third message is another one than in talk.
func edited() troupe.Request {
	req := talk(5)
	req.Messages[2] = troupe.Say(troupe.User, "another one")
	return req
}

// Where one agent's requests break with those before, and where not.
func TestBreaks(t *testing.T) {
	other := talk(3)
	other.System = strings.Replace(role, "work", "rest", 1)
	tools := talk(3)
	tools.Tools = []troupe.ToolSpec{{Name: "Bash", Schema: []byte(`{"type":"object"}`)}}
	renamed := talk(3)
	renamed.Model = "n"
	for name, s := range map[string]scene{
		"a conversation that goes on": {func(d *diary) {
			d.ask("lead", talk(1), used(3000, 0))
			d.ask("lead", talk(3), used(4000, 3000))
			d.ask("lead", talk(5), used(5000, 4000))
		}, nil},
		"another system prompt": {func(d *diary) {
			d.ask("lead", talk(1), used(3000, 0))
			d.ask("lead", other, used(4000, 0))
		}, []string{"lead 2 breaks lead 1 in the system prompt (): 2961"}},
		"other tools": {func(d *diary) {
			d.ask("lead", talk(1), used(3000, 0))
			d.ask("lead", tools, used(100, 0))
		}, []string{"lead 2 breaks lead 1 in the tool Bash (): 100"}}, // not more than was paid
		"a message that changed": {func(d *diary) {
			d.ask("lead", talk(5), used(5000, 0))
			d.ask("lead", edited(), used(4000, 3900))
		}, []string{"lead 2 breaks lead 1 in message 3 (user) (): 100"}},
		"another model": {func(d *diary) {
			d.ask("lead", talk(1), used(3000, 0))
			d.log("lead", troupe.Switched{Model: "p/n"})
			d.ask("lead", renamed, used(4000, 0))
		}, []string{"lead 2 breaks lead 1 in the name of the model (another model): 2997"}},
		"put together": {func(d *diary) {
			d.ask("lead", talk(5), used(5000, 0))
			d.log("lead", troupe.Compacting{})
			body, _ := anthropic.Encode(new(talk(6)), anthropic.Options{})
			d.log("lead", troupe.Sent{Body: body}, troupe.Compacted{Usage: used(5100, 5000)})
			d.ask("lead", edited(), used(4000, 3900))
		}, []string{"lead 3 breaks lead 1 in message 3 (user) (the conversation was put together): 100"}},
		"a summary that failed": {func(d *diary) {
			d.ask("lead", talk(5), used(5000, 0))
			d.log("lead", troupe.Compacting{})
			d.ask("lead", talk(6), used(5100, 5000))
			d.log("lead", troupe.NotCompacted{})
			d.ask("lead", talk(7), used(6000, 5000))
		}, nil},
	} {
		t.Run(name, s.check)
	}
}

// What was not read from the cache although the bytes are the same, and agents that
// begin with what others have sent.
func TestMisses(t *testing.T) {
	for name, s := range map[string]scene{
		"too old": {func(d *diary) {
			d.ask("lead", talk(1), used(3000, 0))
			d.now = d.now.Add(6 * time.Minute)
			d.ask("lead", talk(3), used(4000, 0))
		}, []string{"lead 2 misses 2989 of lead 1, 6m0s after"}},
		"a provider without a cache": {func(d *diary) {
			d.ask("lead", talk(1), troupe.Usage{Input: 3000})
			d.ask("lead", talk(3), troupe.Usage{Input: 4000})
		}, nil},
		"siblings that started together": {func(d *diary) {
			d.ask("lead", talk(1), used(3000, 0))
			for _, id := range []string{"a", "b", "c"} {
				d.log(id, start(id, "lead", "p/m"))
			}
			for _, id := range []string{"c", "b", "a"} { // in another order than they began
				task := talk(0)
				task.System = strings.ToUpper(role)
				task.Messages = []troupe.Message{troupe.Say(troupe.User, "part "+id)}
				d.ask(id, task, used(3000, map[string]int{"b": 2900}[id]))
			}
		}, []string{"a 1 misses 2997 of b 1, 0s after"}},
		"forks": {func(d *diary) {
			d.ask("lead", talk(3), used(4000, 0))
			for id, req := range map[string]troupe.Request{"good": talk(5), "bad": edited()} {
				d.log(id, start(id, "lead", "p/m", req.Messages...))
				d.ask(id, req, used(5000, 4000))
			}
			d.ask("lead", talk(5), used(5000, 4000))
		}, []string{"bad 1 breaks lead 1 in message 3 (user) (a fork): 492"}},
	} {
		t.Run(name, s.check)
	}
}

// What is said of each request: its size, what it shares with which earlier one, and
// where a break is in the body as it was sent.
func TestLookAtRequests(t *testing.T) {
	d := newDiary(t)
	d.log("lead", start("lead", "", "p/m"))
	d.ask("lead", talk(3), used(4000, 0))
	changed := talk(5)
	changed.Messages[4] = troupe.Say(troupe.User, "last")
	d.log("lead", troupe.Billed{}) // of no request that was kept
	d.ask("lead", changed, used(5000, 4000))
	d.ask("lead", talk(5), used(5000, 4000))
	r, _ := d.look()
	all := r.Agents[0].Requests
	if len(all) != 3 || all[0].With != (Ref{}) || all[1].With != (Ref{"lead", 1}) || all[2].With != (Ref{"lead", 2}) || all[1].Usage != used(5000, 4000) {
		t.Fatalf("%+v", all)
	}
	var bodies []string
	for q := range session.Requests(d.folder.Dir, "lead") {
		bodies = append(bodies, string(q.Body))
	}
	at := all[2].Break.At
	loss := all[2].Break.Loss
	if bodies[2][at:at+7] != "message" || loss.Tokens < 1 || loss.Tokens > 100 || loss.Dollars != float64(12*loss.Tokens-loss.Tokens)/1e6 || !loss.Priced {
		t.Errorf("at %q, %+v", bodies[2][at:at+7], loss)
	}
	if r.Usage != used(4000, 0).Add(used(5000, 4000)).Add(used(5000, 4000)) || r.Agents[0].Usage != r.Usage || !r.Cache {
		t.Errorf("%+v", r.Usage)
	}
}

// What was not kept or is damaged is told in a line, and the rest is there.
func TestLookAtWhatIsDamaged(t *testing.T) {
	d := newDiary(t)
	d.log("lead", start("lead", "", "p/m"))
	d.ask("lead", talk(1), used(3000, 0))
	d.ask("lead", talk(3), used(4000, 3000))
	d.log("old", start("old", "lead", "p/m"))
	d.ask("old", talk(1), used(3000, 0))
	if err := d.folder.Close(); err != nil {
		t.Fatal(err)
	}
	sent := filepath.Join(d.folder.Dir, "lead.sent.jsonl")
	raw, err := os.ReadFile(sent)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		sent: strings.Replace(string(raw), "message 2", "message x", 1) + "\n{broken\n",
		filepath.Join(d.folder.Dir, "agents", "new.jsonl"): "{broken\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(d.folder.Dir, "agents", "old.sent.jsonl")); err != nil {
		t.Fatal(err)
	}
	r, _ := d.look()
	if len(r.Notes) != 3 || !strings.Contains(r.Notes[0], "log of new") || !strings.Contains(r.Notes[1], "agent lead: what cannot be restored of its requests: 2; "+sent) ||
		!strings.Contains(r.Notes[2], "agent old: its requests were not kept") {
		t.Errorf("%q", r.Notes)
	}
	if r.Usage.CacheRead != 3000 || len(r.Agents) != 2 || len(r.Agents[0].Requests) != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := Look(filepath.Join(d.folder.Dir, "nothing"), nil); err != nil {
		t.Error(err) // there is nothing, and so nothing wrong
	}
}
