package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/task"
)

// taskFeed is what a [Stream] has said of the tasks in the background. States and
// records come by two ways; a task is told of after the call that has started it,
// and its end before its owner reads of it. It is safe for concurrent use.
type taskFeed struct {
	mu    sync.Mutex
	from  *task.Registry // nil: there are none
	now   func() time.Time
	seen  uint64          // version of the registry that was looked at
	calls map[string]bool // that were printed, by agent and ID
	tasks []*told         // whose end was not told, in the order in which they came
	over  map[string]int  // turns of which the end was told, by ID
}

// told is a task as it was told of last, and as it is.
type told struct {
	was, is task.Task
	old     bool // it ended in an earlier run: only its end is news
	started bool
}

// WatchTasks has the stream tell of the tasks of r that begin from now on. It is
// called before anything runs; now is for how long they take.
func (s *Stream) WatchTasks(r *task.Registry, now func() time.Time) {
	f := &s.tasks
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from, f.now, f.calls, f.over = r, now, map[string]bool{}, map[string]int{}
	_, _, f.seen = r.Since(0)
	for _, t := range r.List() {
		f.tasks = append(f.tasks, &told{is: t, old: true})
	}
}

// of is what was told of one time that a task was begun.
func (f *taskFeed) of(id string, turn int) *told {
	for _, k := range f.tasks {
		if k.is.ID == id && k.is.Turn == turn {
			return k
		}
	}
	return nil
}

// drop forgets a task whose end is known.
func (f *taskFeed) drop(k *told) {
	f.over[k.is.ID] = k.is.Turn
	f.tasks = slices.DeleteFunc(f.tasks, func(o *told) bool { return o == k })
}

// FollowTasks tells of tasks until ctx ends, and then of what has become of them
// until that moment. An error is that nothing can be printed any more.
func (s *Stream) FollowTasks(ctx context.Context) error {
	for {
		changed, err := s.Pull()
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			_, err := s.Pull()
			return err
		}
	}
}

// Pull tells what is new of the tasks. The channel is closed when there is more.
func (s *Stream) Pull() (changed <-chan struct{}, err error) {
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	return s.pull()
}

// pull is Pull for who holds the lock.
func (s *Stream) pull() (changed <-chan struct{}, err error) {
	f := &s.tasks
	if f.from == nil {
		return nil, nil
	}
	var fresh []task.Task
	fresh, changed, f.seen = f.from.Since(f.seen)
	for _, t := range fresh {
		if t.Turn <= f.over[t.ID] {
			continue
		}
		k := f.of(t.ID, t.Turn)
		if k == nil {
			k = new(told)
			f.tasks = append(f.tasks, k)
		}
		k.is = t
		if err := s.advance(k, false); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// recorded goes on with tasks after a record was printed, or before one is.
func (s *Stream) recorded(r session.Record) error {
	f := &s.tasks
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.from == nil {
		return nil
	}
	switch ev := r.Event.(type) {
	case troupe.Replied:
		uses := ev.Message.ToolUses()
		for _, u := range uses {
			f.calls[r.Agent+" "+u.ID] = true
		}
		for _, k := range slices.Clone(f.tasks) {
			if len(uses) > 0 && !k.started {
				if err := s.advance(k, false); err != nil {
					return err
				}
			}
		}
	case troupe.Received:
		if _, err := s.pull(); err != nil {
			return err
		}
		for _, k := range slices.Clone(f.tasks) {
			if k.is.Status.Ended() && k.is.Notice() == ev.ID {
				return s.advance(k, true)
			}
		}
	}
	return nil
}

// advance tells what is new of a task. What must not be told yet waits for the
// record of its call, unless it is due.
func (s *Stream) advance(k *told, due bool) error {
	f := &s.tasks
	switch {
	case k.is.Held && k.is.Status.Ended(): // who waited for it knows
		f.drop(k)
		return nil
	case k.is.Held, k.old && !due:
		return nil
	case !k.started && !k.old:
		before := f.of(k.is.ID, k.is.Turn-1)
		if waits := k.is.Turn == 1 && !f.calls[k.is.Owner+" "+k.is.Call] || before != nil && !before.old; waits && !due {
			return nil
		}
		k.started, k.was = true, task.Task{Status: task.Running}
		if err := s.begun(k.is); err != nil {
			return err
		}
	}
	was, is := k.was, k.is
	k.was = is
	if is.Status != was.Status {
		if err := s.print(updated(is)); err != nil {
			return err
		}
	}
	if is.Status.Ended() {
		return s.ended(k)
	}
	if is.Calls != was.Calls || is.Usage != was.Usage {
		o := object{"type": "system", "subtype": "task_progress", "task_id": is.ID, "description": is.Title, "usage": s.taskUsage(is)}
		return s.print(with(o, "tool_use_id", is.Call, "subagent_type", is.Type, "last_tool_name", is.Last))
	}
	return nil
}

func (s *Stream) begun(t task.Task) error {
	o := ofTask(t)
	o["type"], o["subtype"], o["is_backgrounded"] = "system", "task_started", true
	if t.Depth > 0 {
		o["spawn_depth"] = t.Depth
	}
	if err := s.print(o); err != nil {
		return err
	}
	return s.set()
}

// updated is that a task has come to another stage.
func updated(t task.Task) object {
	patch := object{"status": t.Status}
	if t.Status.Ended() {
		patch["end_time"] = t.Ended.UnixMilli()
	}
	return object{"type": "system", "subtype": "task_updated", "task_id": t.ID, "patch": with(patch, "error", t.Reason)}
}

func (s *Stream) ended(k *told) error {
	t := k.is
	o := object{"type": "system", "subtype": "task_notification", "task_id": t.ID, "status": wordOf(t.Status), "output_file": t.Output,
		"summary": delegate.Summary(t), "usage": s.taskUsage(t)}
	if err := s.print(with(o, "tool_use_id", t.Call)); err != nil {
		return err
	}
	s.tasks.drop(k)
	if !k.started {
		return nil
	}
	return s.set()
}

// set tells which tasks are at work, all of them.
func (s *Stream) set() error {
	all := []object{}
	for _, k := range s.tasks.tasks {
		if k.started {
			o := ofTask(k.is)
			delete(o, "tool_use_id")
			all = append(all, o)
		}
	}
	return s.print(object{"type": "system", "subtype": "background_tasks_changed", "tasks": all})
}

// ofTask is what names a task.
func ofTask(t task.Task) object {
	o := object{"task_id": t.ID, "task_type": t.Kind, "description": t.Title}
	if t.Owner != session.Lead {
		o["parent_task_id"] = t.Owner
	}
	return with(o, "tool_use_id", t.Call, "subagent_type", t.Type, "name", t.Name)
}

func (s *Stream) taskUsage(t task.Task) object {
	return object{"total_tokens": t.Size, "tool_uses": t.Calls, "duration_ms": t.Took(s.tasks.now()).Milliseconds()}
}

// wordOf is how a task ended, in the words of a task_notification.
func wordOf(s task.Status) string {
	if s == task.Killed {
		return "stopped"
	}
	return string(s)
}

// with adds the texts that say something to o: names and texts in turn.
func with(o object, fields ...string) object {
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			o[fields[i]] = fields[i+1]
		}
	}
	return o
}

// TaskLine says of a task, in a line for a person, what has become of it or what
// it does.
func TaskLine(t task.Task, now time.Time) string {
	line := fmt.Sprintf("%s  %s", OneLine(t.ID, 40), OneLine(delegate.Summary(t), 300))
	if t.Started.IsZero() {
		return line
	}
	line += fmt.Sprintf("  (%s", took(t.Took(now)))
	if t.Kind == task.Agent {
		line += fmt.Sprintf(", %s, %s tokens", plural(t.Calls, "call"), group(t.Usage.Total()))
		if !t.Status.Ended() && t.Last != "" {
			line += ", last " + OneLine(t.Last, 40)
		}
	}
	if t.Waiting {
		line += ", waits for what it has started"
	}
	return line + ")"
}
