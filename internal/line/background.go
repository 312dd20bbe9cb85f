package line

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/task"
)

// A listening is the wait for news of the background while the lead is idle. Nobody
// waits while it works: it takes its mail itself.
type listening struct {
	come chan struct{} // closed when there is news; nil: nobody listens
	stop context.CancelFunc
	gone chan struct{} // closed when the wait has ended
}

// listen begins to wait for news, unless somebody does.
func (r *room) listen(ctx context.Context) {
	if r.news.come != nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	come, gone := make(chan struct{}), make(chan struct{})
	r.news = listening{come, stop, gone}
	go func() { // hush waits for it
		defer close(gone)
		switch err := r.s.News(ctx); {
		case err == nil:
			close(come)
		case ctx.Err() == nil:
			r.face.Tell("news of the background cannot be seen until the next turn: " + err.Error())
		}
	}()
}

// hush ends the wait for news.
func (r *room) hush() {
	if r.news.come != nil {
		r.news.stop()
		<-r.news.gone
	}
	r.news = listening{}
}

// heard prints in a line what the lead is told of, by the ID of the notice.
func (r *room) heard(notice string) {
	for _, t := range r.s.Tasks.List() {
		if t.Status.Ended() && t.Notice() == notice {
			r.print(cli.OneLine(delegate.Summary(t), 200))
		}
	}
}

// tasks prints what is at work in the background.
func (r *room) tasks() {
	n := 0
	for _, t := range r.s.Tasks.List() {
		if t.Status.Ended() || t.Held {
			continue
		}
		n++
		r.print(fmt.Sprintf("%s  %s  %s", t.ID, cli.OneLine(delegate.Summary(t), 120), t.Took(r.face.Now()).Round(time.Second)))
	}
	if n == 0 {
		r.print("nothing runs in the background")
	}
}

// stop ends a task, or all. What becomes of it is told when it is gone.
func (r *room) stop(ctx context.Context, id string) {
	var ids []string
	for _, t := range r.s.Tasks.List() {
		if !t.Status.Ended() && !t.Held && (id == "all" || t.ID == id || t.Name != "" && t.Name == id) {
			ids = append(ids, t.ID)
		}
	}
	if ids == nil {
		r.print("/stop needs the ID or the name of what runs, or all; /tasks shows it")
		return
	}
	for _, id := range ids {
		r.stopping.Go(func() {
			if _, _, err := r.s.Tasks.Stop(ctx, id, "the user"); err != nil && ctx.Err() == nil {
				r.face.Tell(err.Error())
			}
		})
	}
}

// background lets the lead go on without the agents that it waits for.
func (r *room) background(ctx context.Context) {
	n := 0
	for _, t := range r.s.Tasks.List() {
		if t.Held && !t.Status.Ended() && t.Kind == task.Agent && t.Owner == session.Lead {
			if err := r.s.Tasks.Detach(ctx, t.ID); err != nil {
				r.print(err.Error())
				continue
			}
			n++
		}
	}
	if n == 0 {
		r.print("the lead waits for no agent that could go on in the background")
	}
}
