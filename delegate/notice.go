package delegate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe/internal/fence"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/task"
)

// longestReport is how many bytes of a result a notification has; the rest is in
// the output file.
const longestReport = 32_000

// Framed is the kind of mail of the runtime whose text stands in a frame already.
const Framed = "framed"

// taskMail is the kind of mail that has a task in it.
const taskMail = "task"

// NoticeOf is the mail by which a task's owner learns of its end. Its ID is the
// task's, so it cannot come twice.
func NoticeOf(t task.Task) (mail.Message, error) {
	body, err := json.Marshal(t)
	return mail.Message{ID: t.Notice(), From: "task", Kind: taskMail, Body: body}, err
}

// Render makes of mail to an agent what it reads; ok is false for what is not for
// it. It is called when the mail is read, so that what still runs is right.
func (s *Shared) Render(to string) func(ctx context.Context, m mail.Message) (text string, ok bool) {
	return func(_ context.Context, m mail.Message) (string, bool) {
		switch m.Kind {
		case Framed:
			return m.Text, true
		case "":
			return fence.Frame("agent-message", m.Text, fence.Attr{Name: "from", Value: s.label(m.From)}), true
		case taskMail:
			var t task.Task
			if err := json.Unmarshal(m.Body, &t); err != nil {
				return "", false
			}
			return Notification(t, s.Tasks.Background(to)), true
		}
		return "", false
	}
}

// label is an agent's ID, with its name if it has one.
func (s *Shared) label(id string) string {
	if t, err := s.Tasks.Get(id); err == nil && t.Name != "" {
		return t.Name + ", " + id
	}
	return id
}

// Notification is the news of a task's end as its owner reads it. left are those
// of the owner's that have not ended.
func Notification(t task.Task, left []task.Task) string {
	e := fence.Element{Name: "task-notification"}
	part := func(name, text string) {
		if text != "" {
			e.In = append(e.In, fence.Element{Name: name, Text: text})
		}
	}
	part("task-id", t.ID)
	part("tool-use-id", t.Call)
	part("output-file", t.Output)
	part("status", string(t.Status))
	part("summary", Summary(t))
	part("result", cut(t.Result))
	e.In = append(e.In, fence.Element{Name: "usage", In: []fence.Element{
		{Name: "total_tokens", Text: fmt.Sprint(t.Size)}, {Name: "tool_uses", Text: fmt.Sprint(t.Calls)},
		{Name: "duration_ms", Text: fmt.Sprint(t.Took(t.Ended).Milliseconds())}}})
	var names []string
	for _, l := range left {
		if l.ID != t.ID {
			names = append(names, fmt.Sprintf("%s (%q)", l.ID, l.Title))
		}
	}
	part("still-running", strings.TrimSuffix(fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", ")), ": "))
	return e.String()
}

// Summary says in a line what has become of a task.
func Summary(t task.Task) string {
	what := map[task.Kind]string{task.Agent: "Agent", task.Shell: "Command", task.Monitor: "Watch"}[t.Kind]
	if what == "" {
		what = "Task"
	}
	name := fmt.Sprintf("%s %q", what, oneLine(t.Title, 200))
	if t.Name != "" {
		name += " (" + t.Name + ")"
	}
	switch t.Status {
	case task.Completed:
		return name + " completed"
	case task.Failed:
		return name + " failed: " + oneLine(t.Reason, 2000)
	case task.Killed:
		end := name + " was killed: " + oneLine(t.Reason, 2000)
		if t.Kind == task.Agent {
			end += "; what it has done stays, and SendMessage lets it go on"
		}
		return end
	case task.Pending:
		return name + " waits for its turn"
	}
	return name + " runs"
}

func cut(text string) string {
	if len(text) <= longestReport {
		return text
	}
	return strings.ToValidUTF8(text[:longestReport], "") + fmt.Sprintf("\n[%d bytes more: see the output file, or TaskOutput]", len(text)-longestReport)
}

// oneLine is the beginning of s as one line.
func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
