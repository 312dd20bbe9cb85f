package line

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/permission"
)

const help = `/help              this
/model [NAME]      the model that answers from the next request on
/mode [MODE]       the permission mode: %s
/compact [WORDS]   cut the conversation short; the words say what must stay
/tasks             what works in the background
/stop ID           end one of these, or all
/background        let the lead go on without the agents that it waits for
/cost              what this session has cost
/resume [ID]       the sessions of this directory, or go on with one of them
/quit              leave; so does Ctrl-D
A line that ends in \ goes on in the next one. What is typed while the agents
work is seen by the lead at its next request. Ctrl-C ends a turn; Ctrl-C again,
or at an empty prompt, leaves.`

// command does what a line with a slash says.
func (r *room) command(ctx context.Context, line string) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/help":
		var modes []string
		for _, m := range permission.Modes() {
			modes = append(modes, string(m))
		}
		r.print(fmt.Sprintf(help, strings.Join(modes, ", ")))
	case "/model":
		r.change("model", r.model, rest, troupe.Switched{Model: rest})
	case "/mode":
		r.change("mode", r.mode, rest, troupe.Switched{Mode: rest, Chosen: true})
	case "/compact":
		r.s.Compact(rest)
		if !r.running {
			r.run(ctx)
		}
	case "/tasks":
		r.tasks()
	case "/stop":
		r.stop(ctx, rest)
	case "/background":
		r.background(ctx)
	case "/cost":
		r.print(cli.Bill(r.tally))
	case "/resume":
		r.resume(ctx, rest)
	case "/quit", "/exit":
		r.leave(Quit)
	default:
		r.print(name + " is not a command; /help shows what there is")
	}
}

// change switches the model or the mode, or says which it is.
func (r *room) change(what, now, want string, to troupe.Switched) {
	if want == "" {
		r.print("the " + what + " is " + now)
		return
	}
	if err := r.s.Switch(to); err != nil {
		r.print(err.Error())
		return
	}
	r.print("the " + what + " is " + want + " from the next request on")
}

// resume lists sessions, or has another one take the place of this.
func (r *room) resume(ctx context.Context, id string) {
	if id == "" {
		all, err := r.face.Sessions()
		if err != nil {
			r.print(err.Error())
			return
		}
		for _, s := range all[:min(len(all), 10)] {
			r.print(fmt.Sprintf("%s  %s  %s", s.ID, s.Last.Local().Format("2006-01-02 15:04"), strings.Join(strings.Fields(s.Prompt), " ")))
		}
		return
	}
	if r.running || r.sending > 0 {
		r.print("a turn is running; Ctrl-C ends it")
		return
	}
	if err := r.face.Resume(ctx, id); err != nil {
		r.print(err.Error())
		return
	}
	r.leave(Resumed)
}
