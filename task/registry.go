package task

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/store"
)

// Options are what a registry works with. Store, Dir, Now and Tell are needed.
type Options struct {
	Store store.Store
	Dir   string // of output files; it is made private
	Now   func() time.Time
	// Most is how many tasks of a kind may be at work at one moment; the others
	// wait. What is not in it has no limit.
	Most map[Kind]int
	// Total is how many tasks of a kind may be started in all.
	Total map[Kind]int
	// Longest is the size of an output file in bytes; 0 is [DefaultLongest].
	Longest int64
	// Tell brings the news of an end to the task's owner. It is called when the
	// end is written down, from the task's goroutine, again if it fails, and again
	// after a crash: to tell twice must be harmless.
	Tell func(ctx context.Context, t Task) error
	// Warn is called with a line for the user when something cannot be written
	// down. It may be nil.
	Warn func(line string)
}

// A Func is the work of a task. It must return soon after ctx ends, when
// nothing of it is left. Its result counts also if it fails. It is called once for
// each task that was started, if the task was stopped before it began with a ctx
// that has ended. An error that is [ErrStopped] says that somebody has stopped the
// work by another way than [Registry.Stop].
type Func func(ctx context.Context, w *Work) (result string, err error)

// A Registry runs tasks and owns their goroutines. It is safe for concurrent
// use.
type Registry struct {
	opts Options
	ctx  context.Context // of all tasks: the end of the registry is its end
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	jobs    map[string]*job
	places  map[Kind]*places
	started map[Kind]int
	obeys   bool          // requests to stop are looked for
	version uint64        // of the last change
	changed chan struct{} // closed at the next one
}

// A job is a task with what makes it go.
type job struct {
	task    Task // guarded by the registry's lock
	version uint64
	past    []past // how it ended before it was taken up again
	ctx     context.Context
	stop    context.CancelCauseFunc
	out     *output
	gate    sync.Mutex    // of over; taken before the registry's
	over    bool          // it takes nothing in any more
	writing sync.Mutex    // of its record, taken before the registry's lock
	place   bool          // it has one
	waits   int           // why it has given it back
	done    chan struct{} // closed when the end is known: to those who wait
	gone    chan struct{} // closed when nothing of the task is left, and its owner is told
	let     chan struct{} // closed when it is not held in the foreground
}

// A past is an end of a task that was taken up again, for who has not seen it yet.
type past struct {
	task    Task
	version uint64
}

// New returns an empty registry. Its tasks live until it is closed, not until
// ctx ends; of ctx they have the values.
func New(ctx context.Context, o Options) *Registry {
	r := &Registry{opts: o, jobs: map[string]*job{}, places: map[Kind]*places{}, started: map[Kind]int{}, changed: make(chan struct{})}
	r.ctx, r.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	for k, n := range o.Most {
		r.places[k] = &places{most: n}
	}
	return r
}

// Start runs f as a task. Of t the caller says what it is and whose; an ID only
// if it is to be taken up again. What cannot be written down is not started.
func (r *Registry) Start(ctx context.Context, t Task, f Func) (Task, error) {
	j, err := r.enter(t)
	if err != nil {
		return Task{}, err
	}
	if err := r.begin(ctx, j); err != nil {
		r.leave(j, err)
		return Task{}, fmt.Errorf("start %s: %w", j.task.Title, err)
	}
	r.mu.Lock()
	snap := j.task
	r.mu.Unlock()
	go func() { // Close waits for it
		defer r.wg.Done()
		r.run(j, f)
	}()
	return snap, nil
}

// enter takes the task in, if it may be started.
func (r *Registry) enter(t Task) (*job, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	if t.ID == "" {
		t.ID = NewID(t.Kind)
	}
	old := r.jobs[t.ID]
	if old != nil && !old.isGone() {
		return nil, fmt.Errorf("%w: %s", ErrRunning, t.ID)
	}
	t.Turn = max(t.Turn, 1)
	var before []past
	if old != nil {
		t.Turn = old.task.Turn + 1
		before = append(old.past, past{old.task, old.version})
	}
	if most, limited := r.opts.Total[t.Kind]; limited && t.Turn == 1 {
		if r.started[t.Kind] >= most {
			return nil, fmt.Errorf("%w: %d of kind %s", ErrTotal, most, t.Kind)
		}
		r.started[t.Kind]++
	}
	t.Status, t.Created = Pending, r.opts.Now().UTC()
	t.Result, t.Reason, t.Started, t.Ended = "", "", time.Time{}, time.Time{}
	j := &job{task: t, past: before, done: make(chan struct{}), gone: make(chan struct{}), let: make(chan struct{})}
	above := r.ctx
	if owner := r.jobs[t.Owner]; owner != nil && !owner.isGone() {
		above = owner.ctx
	}
	j.ctx, j.stop = context.WithCancelCause(above)
	if !t.Held {
		close(j.let)
	}
	r.jobs[t.ID] = j
	r.touch(j)
	r.wg.Add(1) // under the lock: Close has not begun to wait
	return j, nil
}

// begin makes what a task in the background needs, on the disk.
func (r *Registry) begin(ctx context.Context, j *job) error {
	out, err := newOutput(r.opts.Dir, outputName(j.task.ID, j.task.Turn), r.opts.Longest)
	if err != nil {
		return err
	}
	r.mu.Lock()
	j.out, j.task.Output = out, out.path
	held := j.task.Held
	r.mu.Unlock()
	if held {
		return nil
	}
	r.obey()
	err = r.record(ctx, j)
	failpoint.Here(failpoint.TaskBegun)
	return err
}

// leave takes a task out that never ran.
func (r *Registry) leave(j *job, why error) {
	defer r.wg.Done()
	j.stop(why)
	r.mu.Lock()
	defer r.mu.Unlock()
	j.over = true
	if j.task.Turn == 1 {
		delete(r.jobs, j.task.ID)
		if _, limited := r.opts.Total[j.task.Kind]; limited {
			r.started[j.task.Kind]--
		}
	}
	close(j.done)
	close(j.gone)
}

func (j *job) isGone() bool {
	select {
	case <-j.gone:
		return true
	default:
		return false
	}
}

// touch notes a change. The caller holds the lock.
func (r *Registry) touch(j *job) {
	r.version++
	j.version = r.version
	close(r.changed)
	r.changed = make(chan struct{})
}

// change changes a task under the lock.
func (r *Registry) change(j *job, f func(*Task)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&j.task)
	r.touch(j)
}

// Get returns the task with this ID, or ErrUnknown.
func (r *Registry) Get(id string) (Task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[id]; j != nil {
		return j.task, nil
	}
	return Task{}, fmt.Errorf("%w: %q%s", ErrUnknown, id, r.hint())
}

// hint names what runs. The caller holds the lock.
func (r *Registry) hint() string {
	var ids []string
	for _, j := range r.sorted() {
		if !j.task.Status.Ended() {
			ids = append(ids, j.task.ID)
		}
	}
	if ids == nil {
		return "; nothing is running"
	}
	return "; running: " + strings.Join(ids, ", ")
}

// sorted are the jobs, oldest first. The caller holds the lock.
func (r *Registry) sorted() []*job {
	out := make([]*job, 0, len(r.jobs))
	for _, j := range r.jobs {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b *job) int {
		if c := a.task.Created.Compare(b.task.Created); c != 0 {
			return c
		}
		return strings.Compare(a.task.ID, b.task.ID)
	})
	return out
}

// List returns all tasks of this run and those restored, oldest first.
func (r *Registry) List() []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Task
	for _, j := range r.sorted() {
		out = append(out, j.task)
	}
	return out
}

// Background returns the tasks of an owner that are in the background and of
// whose end it has not been told yet, oldest first. An owner without any, and
// without mail, will hear of none.
func (r *Registry) Background(owner string) []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Task
	for _, j := range r.sorted() {
		if j.task.Owner == owner && !j.task.Held && !j.isGone() {
			out = append(out, j.task)
		}
	}
	return out
}

// While returns a context that ends, with [ErrQuiet], when an owner has nothing in
// the background any more: who waits for mail of a task must not wait on when it has
// had it before the task was gone. release must be called.
func (r *Registry) While(ctx context.Context, owner string) (while context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() { // release waits for it
		defer close(over)
		for {
			left := r.Background(owner)
			if left == nil {
				cancel(ErrQuiet)
				return
			}
			if r.Gone(ctx, left[0].ID) != nil {
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-over
	}
}

// Wait waits for a task that is held in the foreground. If ctx ends first the
// task is stopped, and Wait returns when it is gone; ErrDetached says that it
// runs on without the caller.
func (r *Registry) Wait(ctx context.Context, id string) (Task, error) {
	r.mu.Lock()
	j := r.jobs[id]
	r.mu.Unlock()
	if j == nil {
		return Task{}, fmt.Errorf("%w: %q", ErrUnknown, id)
	}
	select {
	case <-j.done:
	case <-j.let:
	case <-ctx.Done():
		j.stop(context.Cause(ctx))
		<-j.done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := j.task
	if !t.Held { // its owner is told, whatever it has come to
		return t, ErrDetached
	}
	j.task.Result = "" // it is the caller's
	return t, nil
}

// Detach moves a task to the background, if it is held in the foreground and has
// not ended.
func (r *Registry) Detach(ctx context.Context, id string) error {
	r.mu.Lock()
	j := r.jobs[id]
	if j == nil || !j.task.Held || j.task.Status.Ended() {
		r.mu.Unlock()
		return fmt.Errorf("%w in the foreground: %q", ErrUnknown, id)
	}
	j.task.Held = false
	r.touch(j)
	r.mu.Unlock()
	err := r.record(ctx, j)
	close(j.let)
	return err
}

// Stop ends a task, in whatever state, and returns it when it and all that it
// has started is gone. by says who stops it, for its owner to read. A task that
// has ended is returned as it is, with false.
func (r *Registry) Stop(ctx context.Context, id, by string) (t Task, stopped bool, err error) {
	r.mu.Lock()
	j := r.jobs[id]
	stopped = j != nil && !j.task.Status.Ended()
	r.mu.Unlock()
	if j == nil {
		_, err := r.Get(id)
		return Task{}, false, err
	}
	if stopped {
		j.stop(fmt.Errorf("%w by %s", ErrStopped, by))
	}
	select {
	case <-j.gone:
		t, err = r.Get(id)
		return t, stopped, err
	case <-ctx.Done():
		return Task{}, stopped, fmt.Errorf("stop %s: it has not ended yet: %w", id, context.Cause(ctx))
	}
}

// Release stops all that belongs to an agent and returns when it is gone.
func (r *Registry) Release(owner string) {
	r.mu.Lock()
	var left []*job
	for _, j := range r.jobs {
		if j.task.Owner == owner && !j.isGone() {
			left = append(left, j)
		}
	}
	r.mu.Unlock()
	for _, j := range left {
		j.stop(fmt.Errorf("%w: the agent that started it has ended", ErrStopped))
	}
	for _, j := range left {
		<-j.gone
	}
}

// Close stops all tasks and returns when nothing of them is left.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(ErrClosing)
	r.wg.Wait()
}

// Output returns what a task has written from offset on, at most most bytes of
// it, and the offset to go on from. What was cut at its longest says so at the end.
func (r *Registry) Output(id string, offset int64, most int) (text []byte, next int64, err error) {
	t, err := r.Get(id)
	if err != nil {
		return nil, offset, err
	}
	return ReadOutput(t.Output, offset, most)
}
