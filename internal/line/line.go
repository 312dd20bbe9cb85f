// Package line is the face for a person at a terminal: a prompt, the answer as
// it comes, a line a tool call, and questions that the person answers.
//
// A [Terminal] is taken over once; a [Face] shows one session on it. All that
// models and tools say is shown as text: nothing of it moves the cursor. What
// the person types is kept apart at the foot and survives what is printed above.
package line

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

// What stands in front of the line that is typed.
const (
	idle    = "> "
	working = "· " // a turn runs; a line is seen by the lead at its next request
	more    = "+ " // the line before ended in a backslash
	asked   = "? "
)

// An Exit says why a [Face] has ended.
type Exit int

// The exits.
const (
	Quit    Exit = iota // by /quit, Ctrl-D, or the end of the context or terminal
	Broken              // by Ctrl-C, at an empty prompt or twice in a turn
	Resumed             // another session is to take the place of this one
)

// A Face shows one session. Its Watch and Tell are made for the options of the
// session; then Run is called, once.
type Face struct {
	Terminal *Terminal
	Desk     *ask.Desk
	Price    cli.Price
	Now      func() time.Time
	// Sessions lists the sessions of this directory, the newest first.
	Sessions func() ([]session.Info, error)
	// Resume makes the session with this ID, or its beginning, ready to take the
	// place of this one.
	Resume func(ctx context.Context, id string) error

	stream stream
	told   told
}

// Watch takes what happens in a turn: see [host.Options].
func (f *Face) Watch(ev troupe.Event) { f.stream.watch(ev) }

// Tell shows a line: see [host.Options].
func (f *Face) Tell(line string) { f.told.add(line) }

// told is lines to show, from any goroutine.
type told struct {
	mu    sync.Mutex
	lines []string
	fresh chan struct{} // holds one
}

func (t *told) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	wake(t.wakes())
}

// wakes is the channel that says that there are lines. The caller holds the lock.
func (t *told) wakes() chan struct{} {
	if t.fresh == nil {
		t.fresh = make(chan struct{}, 1)
	}
	return t.fresh
}

func (t *told) ready() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wakes()
}

func (t *told) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	t.lines = nil
	return lines
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run lets the person work with a session until it is left; first is a prompt
// to begin with, if any. Turns that are running then have ended, except after
// Broken. said tells whether anything was said in the session.
func (f *Face) Run(ctx context.Context, s *host.Session, first string) (exit Exit, said bool, err error) {
	defer f.Desk.Attend()()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	sending, abandon := context.WithCancelCause(ctx) // of hooks that look at prompts
	defer abandon(troupe.ErrInterrupted)
	begun := s.Begun()
	r := &room{face: f, s: s, model: begun.Request.Model, mode: begun.Mode,
		records: make(chan session.Record), questions: make(chan []ask.Question), sends: make(chan string, 64),
		sent: make(chan error, 64), ended: make(chan ended, 1), said: len(begun.Request.Messages) > 0, answered: map[string]bool{}, started: map[string]bool{}}
	r.tally = &cli.Tally{Price: f.Price, Model: r.model}
	r.steps = &cli.Steps{Tally: r.tally}
	helpers.Go(func() { r.follow(watching) })
	helpers.Go(func() { r.attend(watching) })
	helpers.Go(func() { r.deliver(sending, watching) })
	r.greet(begun)
	if first != "" {
		r.prompt(first)
	}
	for !r.left {
		r.step(ctx)
	}
	r.hush()
	if r.exit != Broken { // who is out of patience does not wait
		r.stopping.Wait()
	}
	return r.exit, r.said, r.failed
}

// A room is a session while a person is in it. Its own goroutine alone uses it;
// helpers talk to it by the channels.
type room struct {
	face *Face
	s    *host.Session

	records   chan session.Record
	questions chan []ask.Question
	sends     chan string // prompts on their way into the session
	sent      chan error
	ended     chan ended

	tally, turn *cli.Tally // of all, and of this turn
	steps       *cli.Steps
	model, mode string // that the lead goes on with
	rows        rows
	replies     int // of the lead that were seen

	running    bool
	began      time.Time
	end        *ended          // of the turn, if Run has returned
	closing    bool            // the record of the turn's end was seen
	sending    int             // prompts on their way
	waiting    int             // prompts that the lead has not taken yet
	stopped    bool            // the person has interrupted this turn
	draft      string          // lines so far that ended in a backslash
	news       listening       // for the background
	stopping   sync.WaitGroup  // of tasks that the person has stopped
	open       []question      // that wait for the person
	answered   map[string]bool // questions, by their IDs
	started    map[string]bool // calls, by agent and ID
	leaving    bool            // when the turn has ended
	left, said bool
	exit       Exit
	failed     error
}

// ended is how a turn ended.
type ended struct {
	end troupe.Ended
	err error
}

// follow hands on what the agents do.
func (r *room) follow(ctx context.Context) {
	for rec, err := range r.s.Follow(ctx) {
		if err != nil {
			continue // damage of old records was told when the session was opened
		}
		select {
		case r.records <- rec:
		case <-ctx.Done():
			return
		}
	}
}

// attend hands on what is asked.
func (r *room) attend(ctx context.Context) {
	for open := range r.face.Desk.Watch(ctx) {
		select {
		case r.questions <- open:
		case <-ctx.Done():
			return
		}
	}
}

// deliver gives the session its prompts, in order. Hooks may take their time.
func (r *room) deliver(ctx, watching context.Context) {
	for {
		select {
		case text := <-r.sends:
			r.sent <- r.s.Send(ctx, text)
		case <-watching.Done():
			return
		}
	}
}

// step waits for something to happen and does what it asks for.
func (r *room) step(ctx context.Context) {
	r.face.Terminal.ask(r.foot())
	gone := ctx.Done()
	if r.leaving {
		gone = nil
	}
	select {
	case in := <-r.face.Terminal.lines:
		r.input(ctx, in)
	case rec := <-r.records:
		r.record(rec)
	case <-r.face.stream.ready():
		r.show(r.face.stream.fragment(r.replies))
	case <-r.face.told.ready():
		for _, line := range r.face.told.take() {
			r.print(line)
		}
	case open := <-r.questions:
		r.asked(open)
	case err := <-r.sent:
		r.delivered(err)
	case end := <-r.ended:
		r.end = &end
	case <-r.news.come:
		r.run(ctx)
	case <-gone:
		r.leave(Quit)
	}
	r.settle(ctx)
}

// foot is what stands in front of the line that is typed.
func (r *room) foot() string {
	switch {
	case r.draft != "":
		return more
	case r.posed():
		return asked
	case r.running || r.sending > 0:
		return working
	}
	return idle
}

// print shows a line.
func (r *room) print(line string) {
	if _, err := r.face.Terminal.Write([]byte(line + "\n")); err != nil {
		r.leave(Quit)
		r.failed = errors.Join(r.failed, err)
	}
}

// input does what the person did.
func (r *room) input(ctx context.Context, in input) {
	switch in.kind {
	case interrupt:
		r.interrupt()
		return
	case over:
		r.leave(Quit)
		return
	}
	text := r.draft + in.text
	if rest, ok := strings.CutSuffix(text, `\`); ok {
		r.draft = rest + "\n"
		return
	}
	r.draft = ""
	switch {
	case r.posed() && !strings.HasPrefix(text, "/"):
		r.answer(ctx, text)
	case strings.TrimSpace(text) == "":
	case strings.HasPrefix(text, "/"):
		r.command(ctx, text)
	default:
		r.prompt(text)
	}
}

// interrupt is Ctrl-C at an empty line: it ends the turn; the next one, or one
// with nothing to end, leaves.
func (r *room) interrupt() {
	switch {
	case r.draft != "":
		r.draft = ""
	case !r.running && r.sending == 0:
		r.leave(Broken)
	case r.stopped:
		r.exit, r.left = Broken, true
	default:
		r.stopped = true
		r.s.Interrupt()
		r.print("interrupted; Ctrl-C again leaves")
	}
}

// leave ends the face, and a turn that is running before.
func (r *room) leave(exit Exit) {
	if r.leaving {
		return
	}
	r.leaving, r.exit = true, exit
	r.s.Interrupt()
}

// prompt gives the session a prompt. One in the middle of a turn is seen by the
// lead at its next request.
func (r *room) prompt(text string) {
	r.sending++
	select {
	case r.sends <- text:
	default:
		r.sending--
		r.print("too many prompts are waiting; that one was not taken")
	}
}

func (r *room) delivered(err error) {
	r.sending--
	if err != nil {
		r.print(err.Error())
		return
	}
	r.waiting++
	r.said = true
	if !r.running {
		r.end = nil // a new turn, however the last one ended
	}
}

// run begins a turn.
func (r *room) run(ctx context.Context) {
	r.hush()
	r.running, r.stopped, r.closing, r.end = true, false, false, nil
	r.began = r.face.Now()
	r.turn = &cli.Tally{Price: r.face.Price, Model: r.model}
	go func() { // ends with the turn; Run waits for it, but not when the person is out of patience
		end, err := r.s.Run(ctx)
		r.ended <- ended{end, err}
	}()
}

// settle goes on where something was waited for: after a turn, and before one.
func (r *room) settle(ctx context.Context) {
	if r.running && r.end != nil && (r.closing || errors.Is(r.end.err, session.ErrLog)) {
		r.running = false
		r.show(r.rows.rest())
		if r.end.end.Reason != troupe.Done && r.end.err != nil && !r.closing {
			r.print(r.end.err.Error())
		}
		r.print(cli.Turn(cli.Outcome{Ended: r.end.end, Tally: r.turn, Took: r.face.Now().Sub(r.began)}))
	}
	switch {
	case r.running:
	case r.leaving:
		r.left = true
	case r.waiting > 0 && (r.end == nil || again(r.end.end.Reason)):
		r.run(ctx)
	default:
		r.listen(ctx)
	}
}

// again reports whether after a turn that ended so prompts that it has not seen
// are to have one of their own.
func again(reason troupe.Reason) bool { return reason == troupe.Done || reason == troupe.Interrupted }

// record shows what an agent did.
func (r *room) record(rec session.Record) {
	r.tally.Add(rec)
	if r.turn != nil {
		r.turn.Add(rec)
	}
	lead := rec.Agent == session.Lead
	switch ev := rec.Event.(type) {
	case troupe.Received:
		if lead && ev.From == "user" && r.waiting > 0 {
			r.waiting--
		}
		if lead && ev.From == "task" {
			r.heard(ev.ID)
		}
	case troupe.Replied:
		if lead {
			r.show(r.face.stream.settle(r.replies, ev.Message.Content.Text()))
			r.show(r.rows.rest())
			r.replies++
		}
	case troupe.Switched:
		if lead && ev.Model != "" {
			r.model = ev.Model
		}
		if lead && ev.Mode != "" {
			r.mode = ev.Mode
		}
	case troupe.Retrying:
		if lead { // what came of the reply so far does not count
			r.show(r.rows.rest())
			r.face.stream.settle(r.replies, "")
			r.replies++
		}
	case troupe.Ended:
		r.closing = r.closing || lead
	}
	for _, line := range r.steps.Lines(rec) {
		r.print(line)
	}
	if ev, ok := rec.Event.(troupe.ToolStarted); ok {
		r.started[rec.Agent+" "+ev.Use] = true
		r.pose()
	}
}

// show prints text of the lead as far as it fills lines.
func (r *room) show(text string) {
	for _, row := range r.rows.add(text, r.face.Terminal.fit()) {
		r.print(row)
	}
}

// greet says where the person is.
func (r *room) greet(begun troupe.State) {
	r.print(fmt.Sprintf("%s in %s, mode %s. /help shows what can be said; Ctrl-D leaves.", begun.Request.Model, r.s.Dir, begun.Mode))
	for i := len(begun.Request.Messages) - 1; i >= 0; i-- {
		if m := begun.Request.Messages[i]; m.Role == troupe.Assistant && m.Content.Text() != "" {
			r.print("The last answer was:")
			r.print(strings.TrimSpace(m.Content.Text()))
			return
		}
	}
}
