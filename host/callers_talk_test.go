package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// full is the usage of a reply after which a conversation is to be cut short.
func full(p *place) troupe.Usage {
	return troupe.Usage{Input: host.NewModels(lookupIn(p.env), nil, p.dir, nil, nil).Window(p.model) * 9 / 10, Output: 5}
}

// S89, S91: whoever's conversation is cut short, and wherever, calls keep their
// results, and what a model has signed goes back byte for byte or not at all.
func TestS89S91WhatACompactionLeavesIsWhole(t *testing.T) {
	const odd, rounds = `{"data":"QU\/D+=","type":"redacted_thinking"}`, 6
	thought := troupe.Thinking{Text: "first the \u2028 black ones", Signature: "sig+/=", Provider: "anthropic"}
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		set.says = func(_ *troupetest.Request, turn int) troupetest.Reply {
			if turn == rounds {
				return troupetest.Reply{Message: troupetest.Say("counted")}
			}
			return troupetest.Reply{Usage: full(set.p), Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{thought, troupe.Opaque{Provider: "anthropic", JSON: odd},
				use(fmt.Sprintf("glob%d", turn), "Glob", map[string]any{"pattern": "*"}), use(fmt.Sprintf("none%d", turn), "Nobody", map[string]any{})}}}
		}
		set.run = func(t *testing.T, s *host.Session) {
			ask(t, s, task)
			cuts := 0
			for _, path := range logs(t, s) {
				state := new(troupe.State)
				for r := range session.Read(path) {
					state.Apply(r.Event)
					if _, cut := r.Event.(troupe.Compacted); cut {
						cuts++
						if err := troupe.Valid(state.Request.Messages); err != nil {
							t.Errorf("%s: %v", path, err)
						}
					}
				}
			}
			if cuts < 3 {
				t.Errorf("cut short %d times", cuts)
			}
		}
		made := call(t, set)
		for turn := range rounds {
			if m := made[fmt.Sprintf("glob%d", turn)]; m.Result.IsError || m.Agent == "" {
				t.Errorf("glob %d: %+v", turn, m)
			}
		}
		most := 0
		for _, r := range set.p.provider.Requests() {
			kept := bytes.Count(r.Body, []byte("redacted_thinking"))
			if most = max(most, kept); bytes.Count(r.Body, []byte(odd)) != kept || bytes.Count(r.Body, []byte(`"signature":"sig+/="`)) != kept {
				t.Errorf("of %d signed messages some are not as they were: %s", kept, r.Body)
			}
		}
		if most < 2 {
			t.Errorf("%d signed messages came back", most)
		}
	})
}

// S96: a compaction that is asked for, or is due, while calls run waits for all
// their results, be they the lead's or those of an agent below it; nobody is lost.
func TestS96ACompactionWaitsForTheResults(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		var s *host.Session
		set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
			s.Compact("")
			switch {
			case strings.Contains(r.FirstUser(), "be a child"):
				return troupetest.Reply{Message: troupetest.Say("CHILD RESULT")}
			case turn > 0:
				return troupetest.Reply{Message: troupetest.Say("done")}
			}
			return troupetest.Reply{Usage: full(set.p), Message: troupetest.Use(use(fmt.Sprint("glob", r.Number), "Glob", map[string]any{"pattern": "*"}),
				bash(fmt.Sprint("bash", r.Number), "echo SHELL RESULT"), use(fmt.Sprint("child", r.Number), "Agent", map[string]any{"description": "d", "prompt": "be a child"}))}
		}
		set.run = func(t *testing.T, opened *host.Session) {
			s = opened
			set.p.provider.Say("noted")
			ask(t, s, strings.Repeat("remember green ", 200))
			ask(t, s, task)
		}
		calls := 0
		for id, m := range call(t, set) {
			text := m.Result.Content.Text()
			switch {
			case strings.HasPrefix(id, "bash") && !strings.Contains(text, "SHELL RESULT"),
				strings.HasPrefix(id, "child") && !strings.Contains(text, "CHILD RESULT") && !hasNone(text):
				t.Errorf("%s: %+v", id, m)
			}
			calls++
		}
		if calls < 3 {
			t.Errorf("%d calls", calls)
		}
		cut := map[string]bool{}
		for _, path := range logs(t, s) {
			state := new(troupe.State)
			for r := range session.Read(path) {
				switch r.Event.(type) {
				case troupe.Compacting, troupe.Compacted:
					cut[path] = true
					if open := state.Open(); len(open) > 0 {
						t.Errorf("%s: cut short while calls are open: %v", path, open)
					}
				}
				state.Apply(r.Event)
			}
		}
		if !cut[session.LogPath(s.Path(), session.Lead)] {
			t.Error("the lead's conversation was not cut short")
		}
	})
}

// hasNone reports whether a result says that its agent has no such tool: most that
// act start no others, and a fork never does.
func hasNone(result string) bool {
	return strings.Contains(result, "There is no tool") || strings.Contains(result, "not for a fork")
}

// S97: results belong to their calls, whoever makes them, however many run at once
// and in whatever order they end.
func TestS97ResultsBelongToTheirCalls(t *testing.T) {
	const rounds, wide = 3, 8
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass, rule(troupe.Allow, "WebFetch(domain:127.0.0.1)"))
		web := lastFirst(t, wide)
		var mu sync.Mutex
		seen := 0
		set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
			for i, res := range r.Results() {
				if strings.HasPrefix(res.ID, "start") { // a fork has it of its parent
					continue
				}
				name, _, _ := strings.Cut(res.ID, "c")
				if res.ID != fmt.Sprintf("%sc%d", name, i) || !strings.Contains(res.Content.Text(), res.ID+".") || res.IsError {
					t.Errorf("result %d is %s: %s", i, res.ID, res.Content.Text())
				}
				mu.Lock()
				seen++
				mu.Unlock()
			}
			if turn == rounds {
				return troupetest.Reply{Message: troupetest.Say("done")}
			}
			var calls []troupe.ToolUse
			for i := range 3 * wide {
				id := fmt.Sprintf("n%dc%d", r.Number, i)
				switch i % 3 {
				case 0:
					calls = append(calls, use(id, "WebFetch", map[string]any{"url": fmt.Sprintf("%s/n%d/%d?%s.", web, r.Number, i/3, id), "prompt": "x"}))
				case 1:
					set.p.write(t, id, id+".\n")
					calls = append(calls, use(id, "Read", map[string]any{"file_path": id}))
				case 2:
					calls = append(calls, use(id, "Glob", map[string]any{"pattern": "{" + id + ".,main.go}"}))
					set.p.write(t, id+".", "")
				}
			}
			return troupetest.Reply{Message: troupetest.Use(calls...)}
		}
		call(t, set)
		if seen < rounds*3*wide {
			t.Errorf("%d results were seen", seen)
		}
	})
}

// lastFirst serves pages /GROUP/NUMBER?TEXT that are TEXT: of the wide ones of a
// group the last comes first.
func lastFirst(t *testing.T, wide int) (url string) {
	t.Helper()
	var mu sync.Mutex
	answered := map[string]chan struct{}{}
	gate := func(group string, n int) chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		key := fmt.Sprint(group, "/", n)
		if answered[key] == nil {
			answered[key] = make(chan struct{})
		}
		return answered[key]
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		group, number, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		n := 0
		if _, err := fmt.Sscan(number, &n); err != nil {
			t.Errorf("asked for %s", r.URL)
		}
		if n < wide-1 {
			select {
			case <-gate(group, n+1):
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprintln(w, r.URL.RawQuery)
		close(gate(group, n))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// S99: nothing in what an agent sends depends on the session, the process or the
// hour: another one of its kind sends the same bytes, and what goes on from
// something, a fork or a session that is resumed, begins with its bytes.
func TestS99AgentsOfAKindSendTheSameBytes(t *testing.T) {
	for _, model := range names {
		callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
			now := time.Date(2026, 5, 4, 21, 59, 0, 0, time.UTC)
			set := with(t, func(o *host.Options) { o.Now = func() time.Time { return now } })
			set.p.model = model
			var mu sync.Mutex
			var sent [3][]string // by the agents that act
			for i := range sent {
				set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
					mu.Lock()
					defer mu.Unlock()
					body := string(r.Body)
					if i == 2 { // at another hour only what is before the conversation is the same
						body = ""
					}
					sent[i] = append(sent[i], body+head(t, r))
					if turn > 0 {
						return troupetest.Reply{Message: troupetest.Say("done")}
					}
					return troupetest.Reply{Message: troupetest.Use(use("c1", "Read", map[string]any{"file_path": "main.go"}))}
				}
				if i == 2 {
					now = now.Add(31 * time.Hour)
				}
				call(t, set)
				slices.Sort(sent[i])
			}
			if !slices.Equal(sent[0], sent[1]) || len(sent[0]) < 2 {
				t.Errorf("two of a kind send\n%s\n%s", sent[0], sent[1])
			}
			for _, body := range sent[0] {
				if !strings.HasSuffix(body, sent[2][0]) {
					t.Errorf("a day later it is\n%s, not\n%s", sent[2][0], body)
				}
			}
			goesOn(t, set.p.provider.Requests())
		})
	}
}

// head is what a request says before the conversation begins, whoever speaks.
func head(t *testing.T, r *troupetest.Request) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.Unmarked, &fields); err != nil {
		t.Error(err)
	}
	return string(fields["system"]) + string(fields["tools"])
}

// goesOn fails for a request that is not the first of its conversation and does not
// begin with the bytes of an earlier one, or comes with another head.
func goesOn(t *testing.T, all []*troupetest.Request) {
	t.Helper()
	for i, r := range all {
		if len(r.Messages) == 1 || r.Dialect == troupetest.OpenAI && len(r.Messages) == 2 && r.Messages[0].Role != troupe.User {
			continue
		}
		if !slices.ContainsFunc(all[:i], func(before *troupetest.Request) bool {
			return bytes.HasPrefix(r.Unmarked, before.Unmarked[:messagesEnd(t, before.Unmarked)]) && head(t, r) == head(t, before)
		}) {
			t.Errorf("request %d begins as none before it: %s", r.Number, r.Body)
		}
	}
}

// S100: another mode and a new rule, in the middle of the work, change no byte of
// what was sent, whoever works; they count all the same.
func TestS100AModeChangesNoByte(t *testing.T) {
	for _, model := range names {
		callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
			set := with(t, inMode(permission.AcceptEdits))
			set.p.model = model
			var s *host.Session
			set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
				var err error
				switch turn {
				case 0:
					return troupetest.Reply{Message: troupetest.Use(writing(fmt.Sprint("one", r.Number), "one"))}
				case 1:
					err = s.Switch(troupe.Switched{Mode: "plan"})
				case 2:
					err = s.Allow("Bash(touch *)")
				case 3:
					err = s.Switch(troupe.Switched{Mode: "acceptEdits"})
				case 4:
					return troupetest.Reply{Message: troupetest.Say("done")}
				}
				if err != nil {
					t.Error(err)
				}
				return troupetest.Reply{Message: troupetest.Use(writing(fmt.Sprint("two", r.Number), "two"), bash(fmt.Sprint("touch", r.Number), "touch three"))}
			}
			set.run = func(t *testing.T, opened *host.Session) { s = opened; ask(t, s, task) }
			made := call(t, set)
			denied := 0
			for id, m := range made {
				if strings.HasPrefix(id, "two") && m.Denied() {
					denied++
				}
			}
			if denied < 2 || !set.p.made("one") {
				t.Errorf("%d calls were denied: %+v", denied, made)
			}
			goesOn(t, set.p.provider.Requests())
		})
	}
}
