//go:build unix

package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// behind is a command in the background.
func behind(id, command string) troupe.ToolUse {
	return use(id, "Bash", map[string]any{"command": command, "run_in_background": true})
}

// gate is a command that waits until there is a file, and then says DONE and ends
// with a code.
func gate(name string, code int) string {
	return fmt.Sprintf("until test -e %s; do sleep 0.02; done; echo DONE; exit %d", name, code)
}

// S10, S12: an agent that has left a command in the background and said its last word
// is at work, waiting, until the command has ended. It is told once, with code and
// output, says its last word then, and only then its owner is told.
func TestS10S12AnAgentEndsAfterItsCommands(t *testing.T) {
	for _, background := range []bool{true, false} {
		t.Run(fmt.Sprint("background ", background), func(t *testing.T) {
			p := newPlace(t)
			p.plays(t, scene{
				"lead": first(doing(starts("c1", "child", "run_in_background", background)), "it works", "noted"),
				"child": func(said int, r *troupetest.Request) troupetest.Reply {
					switch said {
					case 0:
						return doing(behind("b1", gate("go", 7)))
					case 1:
						return saying("waiting")
					}
					return saying("the build came to DONE")
				},
			})
			s := p.open(t, bypass)
			go func() { // the lead waits for an agent in the foreground
				job := waitUntil(t, s, func(job jobs.Task) bool { return job.Title == "the part child" && job.Waiting })
				if job.Status != jobs.Running || len(news(t, s, session.Lead)) > 0 {
					t.Errorf("it has ended before its command: %+v", job)
				}
				p.write(t, "go", "")
			}()
			ask(t, s, "Please play lead.")
			child := named(t, s, "child")
			own := news(t, s, child.ID)
			if len(own) != 1 || part(own[0], "status") != "failed" || !strings.Contains(part(own[0], "summary"), "7") {
				t.Fatalf("the agent is told %s", own)
			}
			if out := read(t, part(own[0], "output-file")); string(out) != "DONE\n" {
				t.Errorf("the output is %q", out)
			}
			if !background {
				has(t, resultOf(t, s, "c1").Content.Text(), "the build came to DONE")
				return
			}
			n := news(t, s, session.Lead)
			if len(n) != 1 || part(n[0], "status") != "completed" || part(n[0], "result") != "the build came to DONE" {
				t.Errorf("%s", n)
			}
		})
	}
}

// wild starts processes in ways in which one can get away, notes their numbers, and
// makes more of them for ever.
const wild = `echo $$ >$N-a.pid; (setsid sh -c 'echo $$ >'$N'-b.pid; exec sleep 600' &)
(trap '' TERM HUP INT; sh -c 'echo $$ >'$N'-c.pid; exec sleep 600') &
for i in 1 2 3; do (setsid sh -c 'sleep 60' &) ; done; sh -c 'echo $$ >'$N'-d.pid; exec sleep 600' & while :; do sleep 0.05; done`

func wildAs(name string) string { return "N=" + name + "; export N\n" + wild }

// S46: a command is stopped with all that it has started, and TaskStop returns when
// it is gone.
func TestS46TaskStopEndsTheWholeTree(t *testing.T) {
	p := newPlace(t)
	var s *host.Session
	var left []int
	p.plays(t, scene{"lead": func(said int, r *troupetest.Request) troupetest.Reply {
		switch said {
		case 0:
			return doing(behind("b1", wildAs("one")))
		case 1:
			waitFor(t, func() bool { left = pids(p.dir); return len(left) == 4 })
			return doing(use("s1", "TaskStop", map[string]any{"task_id": s.Tasks.List()[0].ID}))
		case 2:
			for _, pid := range left {
				if running(pid) {
					t.Errorf("process %d is there when TaskStop has returned", pid)
				}
			}
		}
		return saying("gone")
	}})
	s = p.open(t, bypass)
	ask(t, s, "Please play lead.")
	if len(left) != 4 {
		t.Errorf("%d processes were noted", len(left))
	}
	has(t, resultOf(t, s, "s1").Content.Text(), "killed")
	job := s.Tasks.List()[0]
	if n := news(t, s, session.Lead); job.Status != jobs.Killed || len(n) != 1 || part(n[0], "status") != "killed" {
		t.Errorf("%+v; %s", job, n)
	}
}

// S47, S48: whatever an agent has left in the background is gone with it, however it
// ends, and whatever is there with the session.
func TestS47S48NothingOutlivesItsAgent(t *testing.T) {
	for name, tt := range map[string]struct {
		last   func(said int, r *troupetest.Request) troupetest.Reply // of the child, when its command runs
		end    func(*testing.T, *host.Session)
		status jobs.Status
	}{
		"killed": {nil, func(t *testing.T, s *host.Session) {
			if _, _, err := s.Tasks.Stop(t.Context(), named(t, s, "child").ID, "the user"); err != nil {
				t.Error(err)
			}
		}, jobs.Killed},
		"its owner killed": {nil, func(t *testing.T, s *host.Session) {
			if _, _, err := s.Tasks.Stop(t.Context(), named(t, s, "mid").ID, "the user"); err != nil {
				t.Error(err)
			}
		}, jobs.Killed},
		"the session closed": {nil, closed, jobs.Killed},
		"failed": {func(int, *troupetest.Request) troupetest.Reply {
			return troupetest.Reply{Fault: troupetest.Fault{Status: 400}}
		}, nil, jobs.Failed},
		"out of turns": {func(said int, r *troupetest.Request) troupetest.Reply {
			return doing(use(fmt.Sprintf("g%d", said), "Glob", map[string]any{"pattern": "*"}))
		}, nil, jobs.Failed},
		"crashed":        {func(int, *troupetest.Request) troupetest.Reply { return saying("crash") }, nil, jobs.Failed},
		"its time is up": {says("waiting"), nil, jobs.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.src.Agents = `{"boss": {"description": "d", "prompt": "You work.", "tools": ["*", "Agent"]},
				"short": {"description": "d", "prompt": "You work.", "maxTurns": 3}}`
			var left []int
			hold := make(chan struct{})
			defer close(hold)
			p.plays(t, scene{
				"lead": first(doing(starts("c1", "mid", "subagent_type", "boss")), "it works", "noted"),
				"mid":  first(doing(starts("d1", "child", "subagent_type", "short")), "waiting", "heard"),
				"child": func(said int, r *troupetest.Request) troupetest.Reply {
					if said == 0 {
						return doing(behind("b1", wildAs("one")))
					}
					if said == 1 {
						waitFor(t, func() bool { left = pids(p.dir); return len(left) == 4 })
					}
					if tt.last != nil {
						return tt.last(said, r)
					}
					return holds(hold, "never")(said, r)
				},
			})
			s := p.open(t, bypass, crash(t), func(o *host.Options) { o.Crew.ShellTime = 300 * time.Millisecond })
			turn(t, s, "Please play lead.")
			if tt.end != nil {
				waitFor(t, func() bool { return len(requestsOf(p, "child")) == 2 && len(pids(p.dir)) == 4 })
				tt.end(t, s)
			}
			if name != "the session closed" {
				untilIdle(t, s)
			}
			child := named(t, s, "child")
			if child.Status != tt.status || strings.Contains(child.Reason, "it crashed") != (name == "crashed") {
				t.Errorf("%+v", child)
			}
			if len(left) != 4 {
				t.Errorf("%d processes were noted", len(left))
			}
			allGone(t, p, s, left)
		})
	}
}

// allGone fails for tasks, processes and notes of processes that are left.
func allGone(t *testing.T, p *place, s *host.Session, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d is there", pid)
		}
	}
	for _, job := range s.Tasks.List() {
		if !job.Status.Ended() {
			t.Errorf("%+v", job)
		}
	}
	if notes, err := os.ReadDir(filepath.Join(p.home, "run")); err != nil || len(notes) > 0 {
		t.Errorf("in the ledger are %v, %v", notes, err)
	}
}
