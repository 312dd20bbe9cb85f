//go:build unix

package host_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/host"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// A footprint is what a process holds.
type footprint struct {
	goroutines, files, children int
	heap                        int // in bytes
}

func footprintOf(t *testing.T) (f footprint) {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap, f.goroutines = int(m.HeapAlloc), runtime.NumGoroutine()
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.files = len(fds)
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range tasks {
		f.children += len(bytes.Fields(read(t, path)))
	}
	return f
}

// ways are how the agents of the next test end, in turn.
var ways = []string{"completed", "failed", "stopped", "crashed", "turns", "refused", "commands"}

// many has a session start n agents, in batches, that end in every way, those of each
// third batch with a command in the background, and returns when nothing is left for
// the lead.
func many(t *testing.T, p *place, s *host.Session, n, batch int) {
	t.Helper()
	glob := func(said int) troupe.ToolUse {
		return use(fmt.Sprintf("g%d", said), "Glob", map[string]any{"pattern": "*"})
	}
	var batches atomic.Int32
	behind := func(id, command string) troupe.ToolUse {
		if batches.Load()%3 != 0 {
			return glob(0)
		}
		return behind(id, command)
	}
	sleeps := func() troupe.ToolUse { return behind("b", "sleep 600") }
	then := func(call func() troupe.ToolUse, reply troupetest.Reply) func(int, *troupetest.Request) troupetest.Reply {
		return func(said int, _ *troupetest.Request) troupetest.Reply {
			if said == 0 {
				return doing(call())
			}
			return reply
		}
	}
	sc := scene{
		"completed": then(func() troupe.ToolUse { return behind("b", "true") }, saying("done")),
		"failed":    then(sleeps, troupetest.Reply{Fault: troupetest.Fault{Status: 400}}),
		"stopped":   then(sleeps, troupetest.Reply{Message: troupetest.Say("x"), Fault: troupetest.Fault{Stall: troupetest.Midway}}),
		"crashed":   then(sleeps, saying("crash")),
		"turns":     func(said int, _ *troupetest.Request) troupetest.Reply { return doing(glob(said)) },
		"commands":  then(sleeps, saying("I wait")),
	}
	for i := 0; i < n; i += batch {
		var calls []troupe.ToolUse
		for j := range batch {
			way := ways[(i+j)%len(ways)]
			more := []any{"subagent_type", "short"}
			if way == "refused" { // it does not begin
				more = []any{"subagent_type", "none"}
			}
			calls = append(calls, starts(fmt.Sprintf("c%d", i+j), way, more...))
		}
		sc["lead"] = first(doing(calls...), "so it is")
		p.plays(t, sc)
		turn(t, s, "Please play lead.")
		stops(t, s)
		untilIdle(t, s)
		batches.Add(1)
	}
}

// stops stops each agent that waits for that, once it has left its command.
func stops(t *testing.T, s *host.Session) {
	t.Helper()
	for _, job := range s.Tasks.List() {
		if job.Title != "the part stopped" || job.Status.Ended() {
			continue
		}
		waitUntil(t, s, func(now jobs.Task) bool { return now.ID == job.ID && now.Calls > 0 })
		if _, was, err := s.Tasks.Stop(t.Context(), job.ID, "the user"); !was || err != nil {
			t.Error(was, err)
		}
	}
}

// S50, S51, S52: of hundreds of agents that end in every way nothing is left but what
// is on the disk: no goroutine, process, descriptor or temporary file, no place that
// nobody has, and no more memory than their names need.
func TestS50S51S52NothingIsLeftOfMany(t *testing.T) {
	const most, n = 6, 500
	p := newPlace(t, troupetest.KeepLast(4))
	p.env = append(p.env, "TROUPE_MAX_RETRIES=0", "TMPDIR="+filepath.Join(p.user, "tmp"))
	if err := os.Mkdir(filepath.Join(p.user, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.src.Agents = `{"short": {"description": "d", "prompt": "You work.", "maxTurns": 3}}`
	s := p.open(t, bypass, crash(t), func(o *host.Options) {
		o.Crew = host.Crew{Most: most, Total: 2 * n, ShellTime: 50 * time.Millisecond}
	})
	many(t, p, s, 5*len(ways), 5)
	before := footprintOf(t)
	many(t, p, s, n, 25)
	after := footprintOf(t)
	ended := map[jobs.Status]int{}
	for _, job := range s.Tasks.List() {
		ended[job.Status]++
		if job.Result != "" {
			t.Errorf("its result is still in memory: %+v", job)
		}
	}
	if ended[jobs.Completed] < n/3 || ended[jobs.Failed] < n/4 || ended[jobs.Killed] < n/4 || len(ended) != 3 {
		t.Errorf("they ended as %v", ended)
	}
	if after.goroutines > before.goroutines+5 || after.files > before.files+5 || after.children > before.children {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if grown := after.heap - before.heap; grown > 64<<20 || grown/n > 20_000 {
		t.Errorf("%d bytes are left of each agent", grown/n)
	}
	t.Logf("before %+v, after %+v, %v", before, after, ended)
	allGone(t, p, s, nil)
	closed(t, s)
	nothingTemporary(t, p.home, filepath.Join(p.user, "tmp"))
}

// nothingTemporary fails for files that are not to stay.
func nothingTemporary(t *testing.T, home, tmp string) {
	t.Helper()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if strings.Contains(d.Name(), "tmp") && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// crash has an agent that says so last crash, in its own goroutine.
func crash(t *testing.T) func(*host.Options) {
	t.Helper()
	hooks := new(hook.Set)
	err := hooks.Register("test", hook.Hook{Event: hook.SubagentStop, Name: "crash", Run: func(_ context.Context, in hook.Input) (hook.Output, error) {
		if in.Last != "crash" {
			return hook.Output{}, nil
		}
		return hook.Output{SystemMessage: in.Last}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *host.Options) {
		o.Hooks = hooks
		o.Tell = func(line string) {
			if line == "crash" {
				panic(line)
			}
		}
	}
}
