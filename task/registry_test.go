package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A room is a registry with what it tells.
type room struct {
	*task.Registry
	store store.Store
	dir   string

	mu   sync.Mutex
	told []task.Task
	fail int // this many times nobody can be told
}

func newRoom(t *testing.T, change ...func(*task.Options)) *room {
	t.Helper()
	return roomIn(t, new(store.Mem), filepath.Join(t.TempDir(), "tasks"), change...)
}

func roomIn(t *testing.T, s store.Store, dir string, change ...func(*task.Options)) *room {
	t.Helper()
	r := &room{store: s, dir: dir}
	o := task.Options{Store: s, Dir: dir, Now: time.Now, Tell: r.tell}
	for _, f := range change {
		f(&o)
	}
	r.Registry = task.New(t.Context(), o)
	t.Cleanup(r.Close)
	return r
}

func (r *room) tell(_ context.Context, t task.Task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail--; r.fail >= 0 {
		return errors.New("the box is full")
	}
	r.told = append(r.told, t)
	return nil
}

func (r *room) start(t *testing.T, what task.Task, f task.Func) task.Task {
	t.Helper()
	if what.Kind == "" {
		what.Kind = task.Agent
	}
	got, err := r.Start(t.Context(), what, f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// running waits until a task has begun.
func (r *room) running(t *testing.T, id string) {
	t.Helper()
	for now := range r.Watch(t.Context()) {
		if now.ID == id && now.Status != task.Pending {
			return
		}
	}
}

func (r *room) gone(t *testing.T, id string) task.Task {
	t.Helper()
	if err := r.Gone(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (r *room) record(t *testing.T, id string) (rec task.Task) {
	t.Helper()
	e, err := r.store.Get(t.Context(), "tasks/"+id)
	if err == nil {
		err = json.Unmarshal(e.Value, &rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func until(ctx context.Context, _ *task.Work) (string, error) {
	<-ctx.Done()
	return "so far", ctx.Err()
}

// Whatever becomes of a task of whatever kind, there is one end, written down
// before its owner is told, once.
func TestEnds(t *testing.T) {
	for _, kind := range task.Kinds() {
		for name, tt := range map[string]struct {
			f      task.Func
			stop   bool
			status task.Status
			reason string
			result string
		}{
			"returns":    {func(context.Context, *task.Work) (string, error) { return "ok", nil }, false, task.Completed, "", "ok"},
			"fails":      {func(context.Context, *task.Work) (string, error) { return "half", errors.New("no disk") }, false, task.Failed, "no disk", "half"},
			"panics":     {func(context.Context, *task.Work) (string, error) { panic("boo") }, false, task.Failed, "it crashed: boo", ""},
			"is stopped": {until, true, task.Killed, "stopped by me", "so far"},
			"was too fast": {func(ctx context.Context, _ *task.Work) (string, error) {
				<-ctx.Done()
				return "ok", nil
			}, true, task.Completed, "", "ok"},
		} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				r := newRoom(t)
				id := r.start(t, task.Task{Kind: kind, Title: "x", Owner: "lead"}, tt.f).ID
				if id[0] != kind.Letter() || len(id) != 9 {
					t.Errorf("ID %q", id)
				}
				if tt.stop {
					r.running(t, id)
					if _, was, err := r.Stop(t.Context(), id, "me"); !was || err != nil {
						t.Errorf("stopped %v, %v", was, err)
					}
					if _, was, err := r.Stop(t.Context(), id, "me"); was || err != nil {
						t.Errorf("stopped twice: %v, %v", was, err)
					}
				}
				got := r.gone(t, id)
				rec := r.record(t, id)
				if got.Status != tt.status || !strings.HasPrefix(got.Reason, tt.reason) || (tt.reason == "") != (got.Reason == "") {
					t.Errorf("%s, %q", got.Status, got.Reason)
				}
				if rec.Status != tt.status || rec.Result != tt.result || rec.Ended.IsZero() {
					t.Errorf("written down: %+v", rec)
				}
				if len(r.told) != 1 || r.told[0].Result != tt.result || r.told[0].Notice() != rec.Notice() {
					t.Errorf("told %+v", r.told)
				}
				if got.Result != "" {
					t.Error("the text of a task that has ended stays in memory")
				}
			})
		}
	}
}

// S50: a place is free again however a task ends, those who wait come in their
// turn, and who waits for others has none.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, func(o *task.Options) { o.Most = map[task.Kind]int{task.Agent: 2} })
		for i := range 50 {
			r.start(t, task.Task{Title: fmt.Sprint(i)}, func(context.Context, *task.Work) (string, error) {
				switch i % 3 {
				case 0:
					return "", errors.New("failed")
				case 1:
					panic("boo")
				}
				return "", nil
			})
		}
		synctest.Wait()
		a := r.start(t, task.Task{Title: "a"}, until)
		b := r.start(t, task.Task{Title: "b"}, until)
		synctest.Wait() // they come in this order
		c := r.start(t, task.Task{Title: "c"}, until)
		synctest.Wait()
		d := r.start(t, task.Task{Title: "d"}, until)
		other := r.start(t, task.Task{Title: "shell", Kind: task.Shell}, until)
		states := func() (out []task.Status) {
			synctest.Wait()
			for _, id := range []string{a.ID, b.ID, c.ID, d.ID, other.ID} {
				now, err := r.Get(id)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, now.Status)
			}
			return out
		}
		if got := states(); !slices.Equal(got, []task.Status{"running", "running", "pending", "pending", "running"}) {
			t.Fatal(got)
		}
		back, again := r.Yield(a.ID), r.Yield(a.ID)
		if got := states(); got[2] != task.Running || got[3] != task.Pending {
			t.Fatalf("who waits keeps its place: %v", got)
		}
		back()
		resumed := make(chan struct{})
		go func() { again(); close(resumed) }()
		synctest.Wait()
		select {
		case <-resumed:
			t.Error("it goes on without a place")
		default:
		}
		for _, id := range []string{b.ID, c.ID, d.ID} { // a goes before d, which has not begun
			if _, _, err := r.Stop(t.Context(), id, "me"); err != nil {
				t.Fatal(err)
			}
			if id == b.ID {
				synctest.Wait()
				select {
				case <-resumed:
				default:
					t.Error("who comes back waits behind those who begin")
				}
			}
		}
	})
}

// What an agent started ends with it, and an agent that is stopped is gone with all
// below it when Stop returns.
func TestTheWholeTreeEnds(t *testing.T) {
	r := newRoom(t)
	var mu sync.Mutex
	var ended []string
	note := func(name string, f task.Func) task.Func {
		return func(ctx context.Context, w *task.Work) (string, error) {
			defer func() { mu.Lock(); defer mu.Unlock(); ended = append(ended, name) }()
			return f(ctx, w)
		}
	}
	top := r.start(t, task.Task{Title: "top", Owner: "lead"}, note("top", until))
	mid := r.start(t, task.Task{Title: "mid", Owner: top.ID}, note("mid", until))
	leaf := r.start(t, task.Task{Title: "leaf", Owner: mid.ID, Kind: task.Shell}, note("leaf", until))
	for _, id := range []string{top.ID, mid.ID, leaf.ID} {
		r.running(t, id)
	}
	if _, _, err := r.Stop(t.Context(), top.ID, "me"); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 3 {
		t.Errorf("Stop returned when only %v had ended", ended)
	}
	crashing := r.start(t, task.Task{Title: "crash", Owner: "lead"}, func(ctx context.Context, w *task.Work) (string, error) {
		r.running(t, r.start(t, task.Task{Title: "loop", Owner: w.Task().ID, Kind: task.Shell}, note("loop", until)).ID)
		panic("boo")
	})
	r.gone(t, crashing.ID)
	if !slices.Contains(ended, "loop") {
		t.Error("what a crashed agent had started lives on")
	}
}

// S15: an owner who cannot be told is told later, and once.
func TestToldInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		r.fail = 3
		id := r.start(t, task.Task{Title: "x", Owner: "lead"}, func(context.Context, *task.Work) (string, error) { return "", nil }).ID
		synctest.Wait()
		if left := r.Background("lead"); len(left) != 1 {
			t.Errorf("an owner who was not told hears that nothing is left: %v", left)
		}
		r.gone(t, id)
		if len(r.told) != 1 {
			t.Errorf("told %d times", len(r.told))
		}
	})
}

// What a run could not end, or not tell, the next one does.
func TestRestore(t *testing.T) {
	s, dir := new(store.Mem), filepath.Join(t.TempDir(), "tasks")
	first := roomIn(t, s, dir)
	done := func(context.Context, *task.Work) (string, error) { return "ok", nil }
	heard := first.start(t, task.Task{Title: "heard", Owner: "lead"}, done)
	first.gone(t, heard.ID)
	untold := first.start(t, task.Task{Title: "untold", Owner: "lead"}, done)
	first.gone(t, untold.ID)
	running := first.start(t, task.Task{Title: "running", Owner: "lead"}, until)

	second := roomIn(t, s, filepath.Join(t.TempDir(), "tasks"))
	err := second.Restore(t.Context(), func(task.Task) string { return "partial" }, func(t task.Task) bool { return t.ID == heard.ID })
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]task.Task{}
	for _, n := range second.told {
		told[n.ID] = n
	}
	if len(told) != 2 || told[untold.ID].Result != "ok" {
		t.Errorf("told %+v", second.told)
	}
	if lost := told[running.ID]; lost.Status != task.Killed || lost.Result != "partial" || lost.Reason == "" {
		t.Errorf("%+v", lost)
	}
	again := second.start(t, task.Task{ID: untold.ID, Kind: task.Agent, Title: "again", Owner: "lead"}, done)
	if again.Turn != 2 || again.Notice() == told[untold.ID].Notice() {
		t.Errorf("taken up again it is turn %d", again.Turn)
	}
}

// A task in the foreground is its owner's alone: nothing is written down and nobody
// told, until it is let go.
func TestForeground(t *testing.T) {
	r := newRoom(t)
	held := r.start(t, task.Task{Title: "x", Owner: "lead", Held: true}, func(context.Context, *task.Work) (string, error) { return "ok", nil })
	got, err := r.Wait(t.Context(), held.ID)
	if err != nil || got.Result != "ok" || len(r.told) != 0 {
		t.Errorf("%+v, %v, told %d", got, err, len(r.told))
	}
	if _, err := r.store.Get(t.Context(), "tasks/"+held.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("written down: %v", err)
	}
	let := r.start(t, task.Task{Title: "y", Owner: "lead", Held: true}, until)
	waited := make(chan error, 1)
	go func() { _, err := r.Wait(t.Context(), let.ID); waited <- err }()
	if err := r.Detach(t.Context(), let.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, task.ErrDetached) {
		t.Error(err)
	}
	if _, _, err := r.Stop(t.Context(), let.ID, "me"); err != nil || len(r.told) != 1 {
		t.Errorf("%v, told %d times", err, len(r.told))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cut := r.start(t, task.Task{Title: "z", Owner: "lead", Held: true}, until)
	r.running(t, cut.ID)
	cancel(errors.New("enough"))
	if got, err := r.Wait(ctx, cut.ID); err != nil || got.Status != task.Failed || got.Result != "so far" {
		t.Errorf("interrupted: %+v, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	r := newRoom(t, func(o *task.Options) { o.Total = map[task.Kind]int{task.Agent: 1} })
	first := r.start(t, task.Task{Title: "x"}, until)
	if _, err := r.Start(t.Context(), task.Task{Kind: task.Agent}, until); !errors.Is(err, task.ErrTotal) {
		t.Error(err)
	}
	if _, err := r.Start(t.Context(), task.Task{ID: first.ID, Kind: task.Agent}, until); !errors.Is(err, task.ErrRunning) {
		t.Error(err)
	}
	r.Close()
	if _, err := r.Start(t.Context(), task.Task{Kind: task.Shell}, until); !errors.Is(err, task.ErrClosed) {
		t.Error(err)
	}
	if got := r.gone(t, first.ID); got.Status != task.Killed || !strings.Contains(got.Reason, "session was closed") {
		t.Errorf("%+v", got)
	}
}

// Who has something for a task either finds it open, and then it is seen, or over.
func TestNothingIsPutBeforeAClosedDoor(t *testing.T) {
	for range 200 {
		r := newRoom(t)
		var box, seen sync.Map
		take := func() (n int) {
			box.Range(func(k, _ any) bool { box.Delete(k); seen.Store(k, true); n++; return true })
			return n
		}
		id := r.start(t, task.Task{Title: "x"}, func(_ context.Context, w *task.Work) (string, error) {
			for {
				take()
				if over, err := w.Over(func() (bool, error) { return take() == 0, nil }); over || err != nil {
					return "", err
				}
			}
		}).ID
		box.Store("mail", true)
		open := r.Open(id)
		r.gone(t, id)
		if _, ok := seen.Load("mail"); open && !ok {
			t.Fatal("it was open, and did not see what was there before")
		}
		r.Close()
	}
}

// The file of a task is private, new and our own: a link is never written to nor
// read, and what is too long is cut with a mark.
func TestOutput(t *testing.T) {
	r := newRoom(t, func(o *task.Options) { o.Longest = 10 })
	write := make(chan string)
	wrote := make(chan struct{})
	run := func(_ context.Context, w *task.Work) (string, error) {
		for text := range write {
			fmt.Fprint(w.Writer(), text)
			wrote <- struct{}{}
		}
		return "", nil
	}
	one := r.start(t, task.Task{Title: "x", Kind: task.Shell}, run)
	write <- "hello "
	<-wrote
	text, next, err := r.Output(one.ID, 0, 100)
	if err != nil || string(text) != "hello " || next != 6 {
		t.Errorf("%q, %d, %v", text, next, err)
	}
	write <- "world and more"
	<-wrote
	if text, _, _ := r.Output(one.ID, next, 100); !strings.HasPrefix(string(text), "worl\n[the output was longer than 10 bytes") {
		t.Errorf("%q", text)
	}
	close(write)
	r.gone(t, one.ID)

	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	write = make(chan string)
	two := r.start(t, task.Task{Title: "y", Kind: task.Shell}, run)
	if err := os.Remove(two.Output); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, two.Output); err != nil {
		t.Fatal(err)
	}
	write <- "evil"
	<-wrote
	if _, _, err := r.Output(two.ID, 0, 100); !errors.Is(err, task.ErrReplaced) {
		t.Errorf("read through a link: %v", err)
	}
	close(write)
	r.gone(t, two.ID)
	if got, _ := os.ReadFile(victim); string(got) != "mine" {
		t.Errorf("written through a link: %q", got)
	}
	if err := os.Symlink(victim, filepath.Join(r.dir, "b00000000.output")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(t.Context(), task.Task{ID: "b00000000", Kind: task.Shell}, until); err == nil {
		t.Error("a link that was there before was taken for the output file")
	}
	if err := os.WriteFile(filepath.Join(r.dir, "b11111111.output"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Start(t.Context(), task.Task{ID: "b11111111", Kind: task.Shell}, until); err == nil {
		t.Error("a file that was there before was taken for the output file")
	}
}

// Another process can ask for the end of a task.
func TestRequestStop(t *testing.T) {
	r := newRoom(t)
	one := r.start(t, task.Task{Title: "x", Owner: "lead"}, until)
	got, err := task.RequestStop(t.Context(), r.store, one.ID)
	if err != nil || got.Status != task.Killed || got.Reason != "stopped by the user" {
		t.Errorf("%+v, %v", got, err)
	}
}
