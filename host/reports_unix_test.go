//go:build unix

package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// interrupted gives the lead its prompt, stops its turn once cond holds, and
// returns how it ended.
func interrupted(t *testing.T, s *host.Session, cond func() bool) (end troupe.Ended) {
	t.Helper()
	return stopped(t, s, cond, s.Interrupt)
}

// stopped is interrupted by stop or, if it is nil, as a session that is told to end
// is: its context ends, and then all that is left.
func stopped(t *testing.T, s *host.Session, cond func() bool, stop func()) (end troupe.Ended) {
	t.Helper()
	if err := s.Send(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := func() {
		end = lingered(ctx, s)
		s.Finish()
	}
	if stop == nil {
		stop = cancel
	} else {
		run = func() { end, _ = s.Run(ctx) }
	}
	var wg sync.WaitGroup
	wg.Go(run)
	waitFor(t, cond)
	stop()
	wg.Wait()
	return end
}

// waitFor looks again until cond holds. The test's own limit ends it if it never does.
func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for !cond() {
		if t.Context().Err() != nil {
			t.Fatal("the moment that was waited for did not come")
		}
		<-time.After(5 * time.Millisecond)
	}
}

// stopAll stops what the lead has left in the background.
func stopAll(t *testing.T, s *host.Session) {
	t.Helper()
	for _, left := range s.Tasks.Background(session.Lead) {
		if _, _, err := s.Tasks.Stop(t.Context(), left.ID, "the user"); err != nil {
			t.Error(err)
		}
	}
}

// pids are those that commands have written into files of dir.
func pids(dir string) (all []int) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bytes.HasSuffix(text, []byte("\n")) {
			all = append(all, n)
		}
	}
	return all
}

// running reports whether a process does anything. One that has ended and was not
// fetched by its parent yet does not; where the system tells no states, it counts.
func running(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
	}
	return syscall.Kill(pid, 0) == nil
}

// S44, S46, S87: one interrupt ends whoever works, however deep, with all that it
// has started, be it in a session of its own or deaf to signals. Each call on the
// way has its result, and the conversations go on, also in another process.
func TestS44S46S87AnInterruptEndsAllAndKeepsAll(t *testing.T) {
	const command = `echo $$ >a.pid
setsid sh -c 'echo $$ >b.pid; exec sleep 600' &
(trap '' TERM HUP INT; sh -c 'echo $$ >c.pid; exec sleep 600') &
sh -c 'echo $$ >d.pid; exec sleep 600'`
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		var left []int
		var s *host.Session
		set.run = func(t *testing.T, opened *host.Session) {
			s = opened
			end := interrupted(t, s, func() bool { left = pids(set.p.dir); return len(left) == 4 })
			if way.Apart {
				for _, pid := range left { // S45: the interrupt of the turn is not for it
					if !running(pid) {
						t.Errorf("process %d of what works apart was ended", pid)
					}
				}
				stopAll(t, s)
			} else if end.Reason != troupe.Interrupted {
				t.Errorf("ended with %+v", end)
			}
		}
		made := call(t, set, bash("c1", command))
		for _, pid := range left {
			if running(pid) {
				t.Errorf("process %d is still there", pid)
			}
		}
		if res := made["c1"].Result; !res.IsError || !strings.Contains(res.Content.Text(), "interrupted") {
			t.Errorf("the call came to %+v", res)
		}
		for _, path := range logs(t, s) {
			state, bad, err := session.Load(path)
			if err != nil || len(bad) > 0 || len(state.Open()) > 0 {
				t.Errorf("%s: %v, %v, open calls: %v", path, err, bad, state.Open())
			}
		}
		set.p.provider.Forget()
		set.p.provider.Say("here")
		if end := ask(t, s, "still there?"); end.Text != "here" {
			t.Errorf("%+v", end)
		}
		closed(t, s)
		again := set.p.open(t, append([]func(*host.Options){resume(t, s)}, set.change...)...)
		set.p.provider.Say("and here")
		if end := ask(t, again, "and now?"); end.Text != "and here" {
			t.Errorf("%+v", end)
		}
	})
}

// S124, S126: whoever calls, a result of any size reaches the model cut, with the
// path of the whole text, and what is kept of it is for the user alone.
func TestS124S126ResultsAreCutAndPrivate(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		set.p.write(t, "long.txt", strings.Repeat("a line of a long file\n", 200_000))
		made := call(t, set, bash("c1", "cat long.txt"), use("c2", "Grep", map[string]any{"pattern": "line", "path": "long.txt", "output_mode": "content", "head_limit": 0}))
		for id, m := range made {
			text := m.Result.Content.Text()
			if strings.HasPrefix(id, "c") && (len(text) > 40_000 || !strings.Contains(text, set.p.home)) {
				t.Errorf("%s: %d bytes, %.200s", id, len(text), text[max(0, len(text)-200):])
			}
		}
		for _, r := range set.p.provider.Requests() {
			if len(r.Body) > 400_000 {
				t.Errorf("a request has %d bytes", len(r.Body))
			}
		}
		err := filepath.WalkDir(set.p.home, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && path != set.p.home && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// S90: an ID that a provider gives twice costs no call, whoever makes them.
func TestS90IDsThatComeTwice(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		set.run = func(t *testing.T, s *host.Session) {
			ask(t, s, task)
			for _, path := range logs(t, s) {
				state, _, err := session.Load(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := troupe.Valid(state.Request.Messages); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
		call(t, set, bash("same", "touch one"), bash("same", "touch two"), bash("same", "touch three"))
		for _, name := range []string{"one", "two", "three"} {
			if !set.p.made(name) {
				t.Errorf("the call for %s did not run", name)
			}
		}
	})
}

// S88, S92, S93: whatever a crash has done to the logs of the agents, the session
// goes on, what could be read is there, and what is written next is not lost.
func TestS88S92S93DamagedLogsGoOn(t *testing.T) {
	callers().Each(t, func(t *testing.T, way troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		var s *host.Session
		set.run = func(t *testing.T, opened *host.Session) { s = opened; ask(t, s, task) }
		call(t, set, bash("c1", "echo first"), bash("c2", "echo second"))
		closed(t, s)
		for _, path := range logs(t, s) {
			lines := bytes.SplitAfter(read(t, path), []byte("\n"))
			lines[len(lines)/2] = append([]byte("\x00{broken"), lines[len(lines)/2][20:]...)
			whole := bytes.Join(lines, nil)
			if err := os.WriteFile(path, whole[:len(whole)-9], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, prompt := range []string{"still there?", "sure?"} {
			again := set.p.open(t, append([]func(*host.Options){resume(t, s)}, set.change...)...)
			if len(again.Warnings) == 0 {
				t.Error("nobody says that records are lost")
			}
			set.p.provider.Say("yes")
			if end := ask(t, again, prompt); end.Text != "yes" {
				t.Errorf("%+v", end)
			}
			closed(t, again)
		}
		has(t, string(set.p.provider.Last().Body), task, "still there?", "sure?")
	})
}
