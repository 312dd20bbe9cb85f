package delegate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/task"
)

// A child is an agent that is ready to work, or at it.
type child struct {
	parent  Scope
	scope   Scope
	input   Input
	model   string
	started troupe.Started
	first   []troupe.Event // its log begins with them; nil if it is there already
	config  troupe.Config
	box     *mail.Box
	turns   int // limit of requests
	close   func() error
	tally   *tally
	failed  error  // of the last run
	lacks   string // of its prompt
}

func (k *child) forked() bool { return k.scope.forked() }

// prepare makes a child ready, so that what cannot start fails at once.
func (a *Agent) prepare(ctx context.Context, c *troupe.Call, in Input, d troupe.Definition) (*child, error) {
	if in.Effort != "" && !ValidEffort(in.Effort) {
		return nil, fmt.Errorf("effort %q: want low, medium, high, xhigh, max or a number of tokens", in.Effort)
	}
	parent := a.scope
	parent.Policy.Mode = permission.Mode(c.Mode) // of this moment, not of when the tool was made
	if d.Name == Fork && d.Source == builtIn {
		return parent.prepareFork(ctx, c, in, d)
	}
	model, err := a.scope.Resolve(pick(in.Model, d.Model), c.Request.Model)
	if err != nil {
		return nil, fmt.Errorf("model of %s: %w", d.Name, err)
	}
	scope, err := parent.child(a.scope.NewID(), d)
	if err != nil {
		return nil, err
	}
	kit, err := scope.Equip(ctx, scope, d, nil)
	if err != nil {
		return nil, fmt.Errorf("equip %s: %w", d.Name, err)
	}
	req := troupe.Request{Model: model, Effort: pick(in.Effort, d.Effort, c.Request.Effort), System: d.Prompt}
	for _, t := range kit.Tools {
		req.Tools = append(req.Tools, t.Spec())
	}
	place := troupe.Place{Dir: c.Place.Dir, Also: c.Place.Also}
	first := troupe.Message{Role: troupe.User}
	if facts := scope.Introduce(d, place); facts != "" {
		first.Content = append(first.Content, troupe.Text(facts))
	}
	first.Content = append(first.Content, troupe.Text(in.Prompt))
	k := scope.newChild(parent, kit, troupe.Started{Agent: scope.Agent, Definition: d.Name, Parent: c.Agent, Call: c.ID, Depth: scope.depth(),
		Name: in.Name, Title: in.Description, Request: req, Mode: string(scope.Policy.Mode), Place: place})
	k.config.Model = a.scope.Join("type "+d.Name+" "+req.Model, scope.Model)
	k.input, k.first = in, []troupe.Event{troupe.Received{ID: c.ID, From: c.Agent, Message: first}}
	return k, nil
}

// newChild puts together what every child has, however it comes to be one.
func (s Scope) newChild(parent Scope, kit Kit, start troupe.Started) *child {
	d := s.Chain[len(s.Chain)-1]
	box := s.Box(s.Agent)
	return &child{
		parent: parent, scope: s, model: start.Request.Model, started: start, box: box, turns: cmp.Or(d.MaxTurns, DefaultTurns),
		config: kit.Config(troupe.Config{ID: s.Agent, Model: s.Model, Inbox: box}),
		close:  kit.Close, tally: newTally(),
	}
}

// pick returns the first that says something.
func pick(vs ...string) string {
	for _, v := range vs {
		if v != "" && !strings.EqualFold(v, "inherit") {
			return v
		}
	}
	return ""
}

// ValidEffort reports whether s is a level or a number of tokens.
func ValidEffort(s string) bool {
	switch s {
	case "low", "medium", "high", "xhigh", "max":
		return true
	}
	return s != "" && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

// live is the child's life, from its first request to the moment when it has said
// its last word and waits for nothing any more: it is a [task.Func].
func (k *child) live(ctx context.Context, w *task.Work) (text string, err error) {
	defer func() { // also after a panic
		k.scope.Tasks.Release(k.scope.Agent)
		if cerr := k.close(); cerr != nil {
			cerr = fmt.Errorf("release agent %s: %w", k.scope.Agent, cerr)
			err, k.failed = errors.Join(err, cerr), errors.Join(k.failed, cerr)
		}
	}()
	if limit := k.scope.Limits.Time; limit > 0 {
		over := fmt.Errorf("%w: agent %s may work for %s", troupe.ErrOutOfTime, k.scope.Agent, limit)
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, limit, over)
		defer cancel()
	}
	if err := context.Cause(ctx); err != nil {
		return "", fmt.Errorf("it had not begun: %w", err)
	}
	if err := k.begin(); err != nil {
		k.failed = err
		return "", err
	}
	for {
		if err := k.run(ctx, w); err != nil {
			return k.words(), err
		}
		over, err := k.rest(ctx, w)
		if over || err != nil {
			k.failed = err
			return k.words(), err
		}
	}
}

// words are the child's last ones, with what the reader must know of them.
func (k *child) words() string {
	text := k.unproven() + k.tally.end.Text
	if about := k.remarks(); about != "" {
		text += "\n\n[" + strings.TrimPrefix(about, "; ") + "]"
	}
	return text
}

// unproven is what stands before a verdict that rests on nothing that was run.
func (k *child) unproven() string {
	d := k.scope.Chain[len(k.scope.Chain)-1]
	if d.Name != Verification || d.Source != builtIn || k.tally.end.Reason != troupe.Done {
		return ""
	}
	proven, reason := Proven(k.tally.end.Text, k.tally.ran)
	if proven {
		return ""
	}
	return "UNPROVEN: this verdict does not count, as " + reason + ".\n\n"
}

// begin opens the child's conversation.
func (k *child) begin() (err error) {
	if k.config.State == nil {
		k.config.State, err = k.scope.Begin(k.started, k.first...)
		k.first = nil
	}
	return err
}

// run lets the child work until it has said its last word for now.
func (k *child) run(ctx context.Context, w *task.Work) error {
	if k.config.MaxTurns = k.turns - k.tally.turns; k.config.MaxTurns <= 0 {
		k.tally.cutShort(troupe.OutOfTurns, fmt.Errorf("%w: %d", troupe.ErrMaxTurns, k.turns))
		return k.told(ctx)
	}
	start := k.scope.Now()
	k.failed = nil
	for ev, err := range k.scope.Record(ctx, k.config) {
		if err != nil {
			k.failed = err
			continue
		}
		k.tally.add(ev)
		k.show(ev, w)
		if to, ok := ev.(troupe.Switched); ok && to.Mode != "" {
			k.scope.Standing.Set(permission.Mode(to.Mode))
		}
	}
	k.tally.took += k.scope.Now().Sub(start)
	return k.told(ctx)
}

// told is the error of a run that did not complete, in words.
func (k *child) told(ctx context.Context) error {
	switch end := k.tally.end; {
	case !k.tally.hasEnded: // the log could not be written
		return k.failed
	case end.Reason == troupe.Interrupted && ctx.Err() == nil: // whoever was asked about a call did not let it go on
		return fmt.Errorf("%w: %s", task.ErrStopped, strings.TrimPrefix(end.Err, troupe.ErrInterrupted.Error()+": "))
	case end.Reason == troupe.Failed:
		return errors.New(end.Err)
	case end.Reason != troupe.Done:
		return fmt.Errorf("%s: %s", end.Reason, end.Err)
	}
	return nil
}

// show tells of the child's work to whoever looks at its task.
func (k *child) show(ev troupe.Event, w *task.Work) {
	switch ev := ev.(type) {
	case troupe.ToolStarted:
		w.Progress(func(p *task.Progress) { p.Last, p.Calls = ev.Name, p.Calls+1 })
	case troupe.Replied:
		w.Progress(func(p *task.Progress) {
			if n := ev.Usage.Total(); n > 0 { // nobody counts what was cut off
				p.Size = n
			}
			p.Usage = p.Usage.Add(ev.Usage)
		})
		if text := strings.TrimSpace(ev.Message.Content.Text()); text != "" {
			fmt.Fprintln(w.Writer(), text)
		}
	case troupe.Compacted:
		w.Progress(func(p *task.Progress) { p.Usage = p.Usage.Add(ev.Usage) })
	case troupe.Billed:
		w.Progress(func(p *task.Progress) { p.Usage = p.Usage.Add(ev.Usage) })
	}
}

// rest waits for what the child has left at work, and returns when there is
// something new for it, or with true when there is nothing and will be nothing.
// What reaches it before that it takes in; what comes later finds it ended.
func (k *child) rest(ctx context.Context, w *task.Work) (over bool, err error) {
	for {
		news := false
		over, err = w.Over(func() (bool, error) {
			left := k.scope.Tasks.Background(k.scope.Agent) // checked first: when it is gone, its notice is there
			mail, err := k.box.Take(ctx)
			news = len(mail) > 0
			return len(left) == 0 && !news, err
		})
		if over || news || err != nil {
			return over, err
		}
		if err := k.wait(ctx, w); err != nil {
			return false, err
		}
	}
}

// errLate ends the wait for commands that nobody needs an answer from.
var errLate = errors.New("the commands in the background have had their time")

// wait waits for mail, or until nothing is at work that could send some. Commands
// that run on and on are stopped in the end.
func (k *child) wait(ctx context.Context, w *task.Work) error {
	defer w.Await()()
	limited, cancel := ctx, func() {}
	left := k.scope.Tasks.Background(k.scope.Agent)
	if k.scope.ShellTime > 0 && !slices.ContainsFunc(left, func(t task.Task) bool { return t.Kind != task.Shell }) {
		limited, cancel = context.WithTimeoutCause(ctx, k.scope.ShellTime, errLate)
	}
	defer cancel()
	while, release := k.scope.Tasks.While(limited, k.scope.Agent)
	defer release()
	err := k.box.Wait(while)
	switch why := context.Cause(while); {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.Is(why, task.ErrQuiet):
		return nil
	case errors.Is(why, errLate):
		k.scope.Tasks.Release(k.scope.Agent) // their notices are the mail
		return nil
	}
	return err
}

// A tally is what the runs of a child did, for its result.
type tally struct {
	end      troupe.Ended // of the last run
	turns    int          // of all
	usage    troupe.Usage
	last     troupe.Usage // of the last request and its reply
	model    string       // that it went on with instead of its own
	fallback []string     // all of these, each with the reason
	calls    int
	took     time.Duration
	byTool   map[string]int
	open     map[string]string // commands that run, by their calls
	ran      []Command
	hasEnded bool
}

func newTally() *tally { return &tally{byTool: map[string]int{}, open: map[string]string{}} }

func (t *tally) add(ev troupe.Event) {
	switch ev := ev.(type) {
	case troupe.Replied:
		if ev.Usage.Total() > 0 { // nobody counts what was cut off
			t.last = ev.Usage
		}
		for _, u := range ev.Message.ToolUses() {
			t.begun(u)
		}
	case troupe.ToolEnded:
		if command, ok := t.open[ev.Use]; ok {
			t.ran = append(t.ran, Command{Text: command, Output: ev.Result.Content.Text(), Failed: ev.Result.IsError})
			delete(t.open, ev.Use)
		}
	case troupe.Switched:
		if ev.Model != "" && ev.Cause != "" {
			t.model = ev.Model
			t.fallback = append(t.fallback, fmt.Sprintf("from then on %s answered, as %s", ev.Model, ev.Cause))
		}
	case troupe.ToolStarted:
		t.calls++
		t.byTool[ev.Name]++
	case troupe.Ended:
		t.ended(ev)
	}
}

// begun notes a command, which a verdict may rest on.
func (t *tally) begun(u troupe.ToolUse) {
	var in struct {
		Command string `json:"command"`
	}
	if u.Name == "Bash" && json.Unmarshal(u.Input, &in) == nil {
		t.open[u.ID] = in.Command
	}
}

// ended takes the end of a run in. A run that said nothing leaves the last words
// of the one before.
func (t *tally) ended(e troupe.Ended) {
	if strings.TrimSpace(e.Text) == "" {
		e.Text = t.end.Text
	}
	t.turns, t.usage = t.turns+e.Turns, t.usage.Add(e.Usage)
	t.end, t.hasEnded = e, true
}

// cutShort ends a child that did not come to another run.
func (t *tally) cutShort(why troupe.Reason, err error) {
	t.end.Reason, t.end.Err = why, err.Error()
}
