package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/store"
)

// A Work is a task as its own [Func] sees it.
type Work struct {
	r   *Registry
	job *job
}

// Task returns the task as it is.
func (w *Work) Task() Task {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.job.task
}

// Progress notes what the task has done so far.
func (w *Work) Progress(f func(p *Progress)) {
	w.r.change(w.job, func(t *Task) { f(&t.Progress) })
}

// Over asks whether the task may end. Idle is called while nothing can reach it:
// if it says true, the task takes nothing in any more, and whoever has something
// for it finds it ended ([Registry.Open]).
func (w *Work) Over(idle func() (bool, error)) (bool, error) {
	w.job.gate.Lock()
	defer w.job.gate.Unlock()
	is, err := idle()
	if is && err == nil {
		w.job.over = true
	}
	return w.job.over, err
}

// Writer returns where the task writes its output.
func (w *Work) Writer() io.Writer { return w.job.out }

// Await marks the task as one that only waits for what it has started, and gives
// its place back, until the returned func is called.
func (w *Work) Await() (resume func()) {
	w.r.change(w.job, func(t *Task) { t.Waiting = true })
	back := w.r.Yield(w.job.task.ID)
	return func() {
		back()
		w.r.change(w.job, func(t *Task) { t.Waiting = false })
	}
}

// Open reports whether a task is there to take something in: what is put before
// it, before it was asked, it sees. Of one that is not, nothing looks any more.
func (r *Registry) Open(id string) bool {
	j := r.job(id)
	if j == nil {
		return false
	}
	j.gate.Lock()
	defer j.gate.Unlock()
	return !j.over && j.ctx.Err() == nil
}

// Gone returns when nothing of a task is left, or ctx ends.
func (r *Registry) Gone(ctx context.Context, id string) error {
	j := r.job(id)
	if j == nil {
		return nil
	}
	select {
	case <-j.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run is the life of a task from its place to its end.
func (r *Registry) run(j *job, f Func) {
	defer close(j.gone)
	defer j.stop(nil)
	result, err := r.work(j, f)
	cause := context.Cause(j.ctx)
	j.gate.Lock()
	j.over = true
	j.gate.Unlock()
	r.Release(j.task.ID) // each way to an end comes by here
	r.freePlace(j)
	if cerr := j.out.close(); cerr != nil {
		r.warn(fmt.Sprintf("the output of task %s: %v", j.task.ID, cerr))
	}
	r.end(j, result, err, cause)
	close(j.done)
	if !j.task.Held { // nobody holds it from here on, or ever again
		r.report(j)
	}
	r.forget(j)
}

// work runs f when there is a place for it. A panic is the failure of one task.
func (r *Registry) work(j *job, f Func) (result string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it crashed: %v\n%s", p, debug.Stack())
		}
	}()
	if r.takePlace(j, false) == nil {
		r.change(j, func(t *Task) { t.Status, t.Started = Running, r.opts.Now().UTC() })
	}
	return f(j.ctx, &Work{r, j}) // if it was stopped before, too: it lets go of what was made for it
}

// end fixes what has become of a task.
func (r *Registry) end(j *job, result string, err, cause error) {
	r.change(j, func(t *Task) {
		t.Waiting = false
		t.Result, t.Ended, t.Status = result, r.opts.Now().UTC(), Completed
		if err == nil {
			return
		}
		t.Status, t.Reason = Failed, err.Error()
		if errors.Is(err, ErrStopped) {
			t.Status = Killed
		}
		if errors.Is(cause, ErrStopped) || errors.Is(cause, ErrClosing) {
			t.Status, t.Reason = Killed, cause.Error()
			if !errors.Is(err, cause) && !errors.Is(err, ErrStopped) && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), cause.Error()) {
				t.Reason += "; " + err.Error()
			}
		}
	})
}

// report writes the end down and tells the owner. Neither is given up before the
// registry is closed.
func (r *Registry) report(j *job) {
	ctx := context.WithoutCancel(j.ctx)
	failpoint.Here(failpoint.TaskEnded)
	r.insist(j, func() error { return r.record(ctx, j) })
	failpoint.Here(failpoint.TaskRecorded)
	r.insist(j, func() error { return r.opts.Tell(ctx, j.task) })
	failpoint.Here(failpoint.TaskTold)
}

// insist does what must not fail, again and again, until the registry is closed.
func (r *Registry) insist(j *job, do func() error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		err := do()
		if err == nil {
			return
		}
		r.warn(fmt.Sprintf("the end of task %s (%s) cannot be kept: %v", j.task.ID, j.task.Status, err))
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			if err := do(); err != nil { // the last try
				r.warn(fmt.Sprintf("task %s %s, and that was not kept: %v", j.task.ID, j.task.Status, err))
			}
			return
		}
	}
}

func (r *Registry) warn(line string) {
	if r.opts.Warn != nil {
		r.opts.Warn(line)
	}
}

// forget drops what is kept elsewhere: the text is in the record and the notice,
// or with who waited.
func (r *Registry) forget(j *job) {
	if j.task.Held {
		return // who waits takes it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	j.task.Result = ""
}

// record writes a task down as it is now.
func (r *Registry) record(ctx context.Context, j *job) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	r.mu.Lock()
	val, err := json.Marshal(j.task)
	key := records + j.task.ID
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return store.Update(context.WithoutCancel(ctx), r.opts.Store, key, func([]byte) ([]byte, error) { return val, nil })
}
