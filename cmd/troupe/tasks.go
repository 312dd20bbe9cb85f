package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/task"
)

const tasksLong = `show and stop what a session does in the background: agents, commands, watches. It is
the latest session of this directory, if none is named, whether it runs in another
terminal or has ended.`

// tasksCommand is `troupe tasks`.
func (p *program) tasksCommand() *cobra.Command {
	which := ""
	cmd := &cobra.Command{Use: "tasks", Short: "show and stop what a session does in the background", Long: tasksLong, Args: cobra.NoArgs}
	cmd.PersistentFlags().StringVar(&which, "session", "", "`ID` of the session")
	format := "text"
	list := &cobra.Command{Use: "list", Short: "list the tasks, oldest first", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		if format != "text" && format != "json" {
			return fmt.Errorf("--output-format %s: want text or json", format)
		}
		return p.atWork(c.Context(), which, func(w *work) error { return w.list(format == "json") })
	}}
	list.Flags().StringVar(&format, "output-format", "text", "`format`: text or json")
	cmd.RunE = list.RunE
	one := func(name, short string, do func(*work, context.Context, task.Task) error) *cobra.Command {
		return &cobra.Command{Use: name + " ID", Short: short, Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			return p.atWork(c.Context(), which, func(w *work) error {
				t, err := w.find(args[0])
				if err != nil {
					return err
				}
				return do(w, c.Context(), t)
			})
		}}
	}
	cmd.AddCommand(list, one("show", "show all that is known of a task", (*work).show), one("output", "print what a task has written", (*work).output),
		one("stop", "stop a task with all that it has started, and wait until it is gone", (*work).stop))
	return cmd
}

// work is what a session has in the background, as another process sees it.
type work struct {
	p     *program
	info  session.Info
	store *store.Dir
	tasks []task.Task
}

// atWork looks at a session's tasks.
func (p *program) atWork(ctx context.Context, which string, do func(*work) error) (err error) {
	var args []string
	if which != "" {
		args = []string{which}
	}
	info, err := p.named(args)
	if err != nil {
		return err
	}
	w := &work{p: p, info: info}
	if w.store, err = store.OpenDir(info.Dir); err != nil {
		return &failure{exitFailed, err}
	}
	defer func() { err = errors.Join(err, w.store.Close()) }()
	for t, err := range task.Records(ctx, w.store) {
		if err != nil {
			p.unread([]string{err.Error()})
			continue
		}
		w.tasks = append(w.tasks, t)
	}
	return do(w)
}

// find returns the task with an ID, or the newest agent of a name.
func (w *work) find(id string) (task.Task, error) {
	for _, t := range slices.Backward(w.tasks) {
		if t.ID == id || t.Name != "" && t.Name == id {
			return t, nil
		}
	}
	var there []string
	for _, t := range w.tasks[max(0, len(w.tasks)-8):] {
		there = append(there, t.ID)
	}
	if there == nil {
		return task.Task{}, fmt.Errorf("there is no task %q: nothing was left in the background of session %s", id, w.info.ID)
	}
	return task.Task{}, fmt.Errorf("there is no task %q in session %s; there are: %s", id, w.info.ID, strings.Join(there, ", "))
}

func (w *work) list(asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w.p.out)
		enc.SetIndent("", "  ")
		return enc.Encode(slices.Concat([]task.Task{}, w.tasks)) // never null
	}
	if len(w.tasks) == 0 {
		_, err := fmt.Fprintf(w.p.out, "nothing was left in the background of session %s\n", w.info.ID)
		return err
	}
	for _, t := range w.tasks {
		name := t.Type
		if t.Name != "" {
			name += " " + t.Name
		}
		if _, err := fmt.Fprintf(w.p.out, "%-10s %-10s %8s  %-24s %s\n", t.ID, t.Status, t.Took(time.Now()).Round(time.Second/10), cli.OneLine(strings.TrimSpace(name), 24), cli.OneLine(t.Title, 60)); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) show(_ context.Context, t task.Task) error {
	for _, line := range [][2]string{{"task", t.ID}, {"state", cli.OneLine(delegate.Summary(t), 400)}, {"kind", string(t.Kind)}, {"type", t.Type}, {"name", t.Name},
		{"of agent", t.Owner}, {"output", t.Output}, {"result", cli.Clean(t.Result)}} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w.p.out, "%-9s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) output(_ context.Context, t task.Task) error {
	for at := int64(0); ; {
		text, next, err := task.ReadOutput(t.Output, at, 64<<10)
		if err != nil {
			return &failure{exitFailed, err}
		}
		if len(text) == 0 {
			return nil
		}
		if _, err := io.WriteString(w.p.out, string(text)); err != nil {
			return err
		}
		at = next
	}
}

func (w *work) stop(ctx context.Context, t task.Task) error {
	if t.Status.Ended() {
		return &failure{exitFailed, fmt.Errorf("%s has ended: %s", t.ID, cli.OneLine(delegate.Summary(t), 300))}
	}
	used, err := session.InUse(w.info.Dir)
	if err != nil {
		return &failure{exitFailed, err}
	}
	if !used {
		return &failure{exitFailed, fmt.Errorf("no process runs session %s any more, and %s ended with it; troupe --resume %s goes on", w.info.ID, t.ID, w.info.ID)}
	}
	end, err := task.RequestStop(ctx, w.store, t.ID)
	if err != nil {
		return &failure{exitFailed, err}
	}
	_, err = fmt.Fprintln(w.p.out, cli.OneLine(delegate.Summary(end), 400))
	return err
}
