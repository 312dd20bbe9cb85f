//go:build unix

package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// S127: what anybody says, and what any tool prints, moves the cursor of no face;
// the log keeps it as it was.
func TestS127NobodyMovesTheCursor(t *testing.T) {
	const evil = "\x1b[2J \x1b]52;c;c2VjcmV0\a \x1b]0;title\a \x1bP1$r\x1b\\ \u009b2J 50%\rdone \b \x7f \u202e \u2066 \u2028 "
	const print = `printf '\033[2J\033]52;c;c2VjcmV0\007\033]8;;http://x\033\\ \033P$q\033\\ \302\2332J \2332J 50%%\rdone\b\000\177 \342\200\256 \342\201\246\n'; head -c 22000 /dev/zero | tr '\0' '\033'`
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
			if turn > 0 {
				return troupetest.Reply{Message: troupetest.Say("END " + evil)}
			}
			return troupetest.Reply{Message: troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Text("LOOK " + evil), bash(fmt.Sprint("print", r.Number), print),
				use(fmt.Sprint("read", r.Number), "Read", map[string]any{"file_path": evil}), use(fmt.Sprint("none", r.Number), evil, map[string]any{evil: evil})}}}
		}
		var end troupe.Ended
		var s *host.Session
		set.run = func(t *testing.T, opened *host.Session) { s = opened; ended(&end)(t, s) }
		call(t, set)
		var out bytes.Buffer
		tally := &cli.Tally{Price: func(string, troupe.Usage) (float64, bool) { return 0, false }}
		stream, steps := &cli.Stream{Out: &out, Tally: tally, About: cli.About{Session: s.ID}}, &cli.Steps{Tally: tally}
		faces := []cli.Face{cli.Text{Out: cli.Screen(&out), Notes: &out, Session: s.ID}, cli.JSON{Out: &out, Session: s.ID}, stream}
		timeline := &cli.Timeline{Out: &out, Tally: tally, Plain: true}
		kept := 0
		s.Finish()
		for r, err := range s.Follow(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			tally.Add(r)
			errs := []error{timeline.Record(r)}
			for _, face := range faces {
				errs = append(errs, face.Record(r))
			}
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
			for _, line := range steps.Lines(r) {
				fmt.Fprintln(&out, line)
			}
			if reply, ok := r.Event.(troupe.Replied); ok && strings.Contains(reply.Message.Content.Text(), evil) {
				kept++
			}
		}
		for _, face := range faces {
			if err := face.Finish(cli.Outcome{Ended: end, Tally: tally}); err != nil {
				t.Error(err)
			}
		}
		if kept < 2 {
			t.Errorf("the logs keep %d of what was said as it was", kept)
		}
		harmless(t, out.String())
	})
}

// harmless fails for what a terminal would act on, and for what shows nothing.
func harmless(t *testing.T, text string) {
	t.Helper()
	has(t, text[:min(len(text), 100_000)], "LOOK", "2J")
	if !utf8.ValidString(text) {
		t.Errorf("%.1000q is not UTF-8", text)
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			t.Fatalf("there is %U in %q", r, text[max(0, i-200):i+4])
		}
	}
}

// inTheWay puts files where there are directories, or are to be some, so that nothing
// can be made in them, whoever the user is. back takes them away again.
func inTheWay(t *testing.T, dirs ...string) (back func()) {
	for _, dir := range dirs {
		if err := os.Rename(dir, dir+".away"); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	return func() {
		for _, dir := range dirs {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
			if err := os.Rename(dir+".away", dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		}
	}
}

// S128: where the home cannot be written nobody begins: it is said at once, with
// the path and the remedy, and nothing is asked of a model. In another home all works.
func TestS128AHomeThatCannotBeWritten(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t)
		var err error
		back, asked := func() {}, 0
		set.last = []func(*host.Options){func(o *host.Options) {
			asked = len(set.p.provider.Requests())
			back = inTheWay(t, host.Sessions(o.Home))
		}}
		set.refused = func(refused error) { err = refused }
		if made := call(t, set, use("c1", "Glob", map[string]any{"pattern": "*"})); made != nil || err == nil {
			t.Fatalf("%+v, %v", made, err)
		}
		has(t, err.Error(), host.Sessions(set.p.home), "set TROUPE_HOME to a directory you can write")
		if n := len(set.p.provider.Requests()); n != asked || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d requests were made; %v", n-asked, err)
		}
		back()
		set.last, set.refused = nil, nil
		set.p.home += "2"
		set.p.src.Home = set.p.home
		if made := call(t, set, use("c1", "Glob", map[string]any{"pattern": "*"})); made["c1"].Result.IsError || made["c1"].Agent == "" {
			t.Errorf("in another home: %+v", made)
		}
	})
}

// S129: state that cannot be written any more in the middle of the work: who works
// is told by each call what could not be kept, no agent that was not recorded works
// or is a success, and all is well again once it can be written.
func TestS129StateThatCannotBeWrittenAnyMore(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		set := with(t, bypass)
		var s *host.Session
		var mu sync.Mutex
		back, children, seen, mended := func() {}, 0, false, false
		first := "" // of several that act the first one
		batch := func(r *troupetest.Request) troupetest.Reply {
			return troupetest.Reply{Message: troupetest.Use(bash(fmt.Sprint("long", r.Number), "seq 30000"),
				use(fmt.Sprint("child", r.Number), "Agent", map[string]any{"description": "d", "prompt": "be a child"}))}
		}
		check := func(r *troupetest.Request, kept bool) {
			res := r.Results()
			long, child := res[0].Content.Text(), res[1].Content.Text()
			if why := "could not keep the output in a file"; strings.Contains(long, why) == kept || !strings.Contains(long, filepath.Join(s.Path(), "output")) {
				t.Errorf("kept %v: of the long output is told: … %s", kept, long[max(0, len(long)-500):])
			}
			switch {
			case hasNone(child):
			case kept:
				has(t, child, "CHILD RESULT")
			case !res[1].IsError || !strings.Contains(child, "cannot write the log") || !strings.Contains(child, filepath.Join(s.Path(), "agents")):
				t.Errorf("of the agent is told: %s", child)
			}
			if !kept && children > 0 {
				t.Error("an agent that is not recorded works")
			}
		}
		set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
			mu.Lock()
			defer mu.Unlock()
			_, actor, _ := position(r)
			switch {
			case strings.Contains(r.FirstUser(), "be a child"):
				children++
				return troupetest.Reply{Message: troupetest.Say("CHILD RESULT")}
			case turn == 0 && first == "":
				first = "actor " + actor
				back = inTheWay(t, filepath.Join(s.Path(), "agents"), filepath.Join(s.Path(), "results"), filepath.Join(s.Path(), "output"))
				return batch(r)
			case first != "actor "+actor:
			case len(r.Results()) == 2 && !seen:
				seen = true
				check(r, false)
				back()
				return batch(r)
			case len(r.Results()) == 2:
				check(r, true)
				mended = true
			}
			return troupetest.Reply{Message: troupetest.Say("done")}
		}
		set.run = func(t *testing.T, opened *host.Session) { s = opened; ask(t, s, task) }
		if call(t, set); !mended {
			t.Error("nobody has worked to the end")
		}
	})
}

// S130: who holds a session is known from its lock, not from the time on it, whoever
// works in it and whatever the clocks say; the order of what happened is that in
// which it was written.
func TestS130LocksKnowNoTime(t *testing.T) {
	callers().Each(t, func(t *testing.T, _ troupetest.Way, call troupetest.Caller[setting]) {
		var mu sync.Mutex
		clock := time.Now()
		set := with(t, func(o *host.Options) {
			o.Now = func() time.Time { // goes back
				mu.Lock()
				defer mu.Unlock()
				clock = clock.Add(-time.Hour)
				return clock
			}
		})
		var s *host.Session
		set.says = func(r *troupetest.Request, turn int) troupetest.Reply {
			if turn > 0 {
				return troupetest.Reply{Message: troupetest.Say("done")}
			}
			for _, skew := range []time.Duration{-48 * time.Hour, 0, 48 * time.Hour} {
				then := time.Now().Add(skew)
				if err := os.Chtimes(filepath.Join(s.Path(), "lock"), then, then); err != nil {
					t.Error(err)
				}
				o := set.p.options(t)
				info, err := session.Find(host.Sessions(o.Home), s.ID)
				if err != nil {
					t.Error(err)
				}
				o.Resume, o.Model, o.Now = &info, "", func() time.Time { return time.Now().Add(-skew) }
				if other, err := host.Open(t.Context(), o); !errors.Is(err, session.ErrInUse) {
					t.Errorf("with a clock %v off a session in use was taken: %v", skew, err)
					_ = other.Close()
				}
			}
			return troupetest.Reply{Message: troupetest.Use(use(fmt.Sprint("glob", r.Number), "Glob", map[string]any{"pattern": "*"}))}
		}
		set.run = func(t *testing.T, opened *host.Session) { s = opened; ask(t, s, task) }
		call(t, set)
		before := set.p.provider.Last().Unmarked
		closed(t, s)
		again := set.p.open(t, append([]func(*host.Options){resume(t, s)}, set.change...)...)
		if len(again.Warnings) > 0 {
			t.Error(again.Warnings)
		}
		set.p.provider.Say("yes")
		ask(t, again, "still there?")
		if last := set.p.provider.Last().Unmarked; !bytes.HasPrefix(last, before[:messagesEnd(t, before)]) {
			t.Errorf("what was said is in another order:\n%s\n%s", before, last)
		}
	})
}
