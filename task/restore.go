package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe/store"
)

// records and stops are where the store has tasks, and the requests of other
// processes to stop one.
const (
	records = "tasks/"
	stops   = "stops/"
)

// Records yields the tasks that are written down in a session's store, oldest
// first. What cannot be read is yielded as an error.
func Records(ctx context.Context, s store.Store) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		var all []Task
		for e, err := range s.List(ctx, records) {
			var t Task
			if err == nil {
				err = json.Unmarshal(e.Value, &t)
			}
			if err == nil && records+t.ID != e.Key {
				err = errors.New("it has another name than it should")
			}
			if err != nil {
				if !yield(Task{}, fmt.Errorf("read task %s: %w", strings.TrimPrefix(e.Key, records), err)) {
					return
				}
				continue
			}
			all = append(all, t)
		}
		slices.SortFunc(all, func(a, b Task) int { return a.Created.Compare(b.Created) })
		for _, t := range all {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// Restore takes up what earlier runs of the session have left: what they could
// not end counts as killed, with the text that partial finds, and what was not
// told is told now. heard says whether an owner has been told already. It is
// called before anything is started.
func (r *Registry) Restore(ctx context.Context, partial func(Task) string, heard func(Task) bool) error {
	var errs []error
	for t, err := range Records(ctx, r.opts.Store) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		j := r.adopt(t)
		if !t.Status.Ended() {
			r.change(j, func(t *Task) {
				t.Status, t.Ended, t.Result = Killed, r.opts.Now().UTC(), partial(*t)
				t.Reason = "troupe itself ended while it ran"
			})
			errs = append(errs, r.record(ctx, j))
		}
		if !heard(t) {
			errs = append(errs, r.opts.Tell(ctx, j.task))
		}
		r.forget(j)
	}
	return errors.Join(errs...)
}

// adopt takes in a task that nothing is left of.
func (r *Registry) adopt(t Task) *job {
	j := &job{task: t, over: true, done: make(chan struct{}), gone: make(chan struct{}), let: make(chan struct{})}
	j.ctx, j.stop = context.WithCancelCause(r.ctx)
	j.stop(nil)
	close(j.done)
	close(j.gone)
	close(j.let)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs[t.ID] = j
	return j
}

// Watch yields tasks that have changed, each as it is then, those that are there
// first, until ctx ends. Who is slow misses states in between, and no end.
func (r *Registry) Watch(ctx context.Context) iter.Seq[Task] {
	return func(yield func(Task) bool) {
		var seen uint64
		for {
			fresh, changed, now := r.Since(seen)
			seen = now
			for _, t := range fresh {
				if ctx.Err() != nil || !yield(t) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Since returns the tasks that have changed since a version, 0 being the first, in
// the order in which they did, the version of now, and a channel that is closed at
// the next change. Each is as it is; one that has ended and was taken up again is
// there twice, first as it ended.
func (r *Registry) Since(seen uint64) (fresh []Task, changed <-chan struct{}, now uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []past
	for _, j := range r.jobs {
		if j.version <= seen { // so are those before
			continue
		}
		for _, p := range j.past {
			if p.version > seen {
				all = append(all, p)
			}
		}
		all = append(all, past{j.task, j.version})
	}
	slices.SortFunc(all, func(a, b past) int { return cmp.Compare(a.version, b.version) })
	for _, p := range all {
		fresh = append(fresh, p.task)
	}
	return fresh, r.changed, r.version
}

// obey looks for the requests of other processes to stop a task, from the first
// task on that they can see.
func (r *Registry) obey() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.obeys || r.closed {
		return
	}
	r.obeys = true
	r.wg.Go(func() {
		for e, err := range r.opts.Store.Watch(r.ctx, stops) {
			switch {
			case r.ctx.Err() != nil:
				return
			case err != nil:
				r.warn(fmt.Sprintf("requests to stop a task cannot be seen any more: %v", err))
				return
			case e.Value == nil:
				continue
			}
			r.wg.Go(func() { r.grant(e) })
		}
	})
}

// grant does what one request asks for, and takes it away.
func (r *Registry) grant(e store.Entry) {
	id := strings.TrimPrefix(e.Key, stops)
	if _, _, err := r.Stop(r.ctx, id, "the user"); err != nil && !errors.Is(err, ErrUnknown) && r.ctx.Err() == nil {
		r.warn(err.Error())
	}
	err := r.opts.Store.Delete(context.WithoutCancel(r.ctx), e.Key, e.Rev)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		r.warn(fmt.Sprintf("the request to stop %s: %v", id, err))
	}
}

// RequestStop asks the process that runs a task of the session in s to stop it,
// and returns the task when it has ended. Whether there is such a process is the
// caller's to know; ctx ends the wait.
func RequestStop(ctx context.Context, s store.Store, id string) (Task, error) {
	if _, err := store.Create(ctx, s, stops+id, []byte(`{"by":"user"}`)); err != nil && !errors.Is(err, store.ErrConflict) {
		return Task{}, fmt.Errorf("ask for the end of task %s: %w", id, err)
	}
	for e, err := range s.Watch(ctx, records) {
		if err != nil {
			return Task{}, fmt.Errorf("wait for the end of task %s: %w", id, err)
		}
		var t Task
		if e.Key != records+id || e.Value == nil {
			continue
		}
		if err := json.Unmarshal(e.Value, &t); err != nil {
			return Task{}, fmt.Errorf("read task %s: %w", id, err)
		}
		if t.Status.Ended() {
			return t, nil
		}
	}
	return Task{}, context.Cause(ctx)
}
