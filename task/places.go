package task

import (
	"context"
	"slices"
)

// places are how many tasks of a kind may be at work at one moment. The
// registry's lock guards them.
type places struct {
	most, taken int
	queue       []*wait
}

// A wait is one task's wait for a place.
type wait struct {
	ready chan struct{} // closed when the place is its own
}

// takePlace waits until there is a place for the task, or the task is stopped.
// Who comes back to work it has begun goes before those who begin.
func (r *Registry) takePlace(j *job, back bool) error {
	r.mu.Lock()
	p := r.places[j.task.Kind]
	if p == nil || j.place {
		r.mu.Unlock()
		return context.Cause(j.ctx)
	}
	w := &wait{make(chan struct{})}
	if back {
		p.queue = slices.Insert(p.queue, 0, w)
	} else {
		p.queue = append(p.queue, w)
	}
	p.fill()
	r.mu.Unlock()
	select {
	case <-w.ready:
	case <-j.ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		if i := slices.Index(p.queue, w); i >= 0 {
			p.queue = slices.Delete(p.queue, i, i+1)
			return context.Cause(j.ctx)
		}
		p.taken-- // it came at the same moment
		p.fill()
		return context.Cause(j.ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	j.place = true
	return nil
}

// fill gives free places to those who wait.
func (p *places) fill() {
	for p.taken < p.most && len(p.queue) > 0 {
		p.taken++
		close(p.queue[0].ready)
		p.queue = slices.Delete(p.queue, 0, 1)
	}
}

// freePlace gives back the place that a task has, if it has one.
func (r *Registry) freePlace(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.places[j.task.Kind]; p != nil && j.place {
		j.place = false
		p.taken--
		p.fill()
	}
}

// Yield gives the place of a task back while it waits for others, who may need
// it, until the returned func is called. Of several waits that overlap the first
// gives it back and the last takes it again. A task that is not there has none.
func (r *Registry) Yield(id string) (resume func()) {
	j := r.job(id)
	if j == nil {
		return func() {}
	}
	r.mu.Lock()
	j.waits++
	first := j.waits == 1
	r.mu.Unlock()
	if first {
		r.freePlace(j)
	}
	return func() {
		r.mu.Lock()
		j.waits--
		last := j.waits == 0
		r.mu.Unlock()
		if last {
			_ = r.takePlace(j, true) // a task that was stopped needs none
		}
	}
}

func (r *Registry) job(id string) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[id]
}
