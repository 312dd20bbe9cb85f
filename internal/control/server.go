// Package control is the control protocol: a program drives a session over
// stdin and stdout, one JSON object a line.
//
// Beside the messages of stream-json, which say what happens, both sides make
// requests that the other answers: the client sets modes and models and
// interrupts, we ask whether a call may run and call the client's hooks. The
// form is that of the public agent SDKs; doc/compat.md says what of it there is.
//
// [Run] is one loop that owns all that changes. It never waits for the client:
// what is printed is printed by the goroutine that follows the logs.
package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

// Options say how to serve a client.
type Options struct {
	In  io.Reader
	Out io.Writer
	// Open makes the session, as soon as it is known what the client wants of it.
	Open func(context.Context, Setup) (Opened, error)
	// Ask says that the client answers what needs approval.
	Ask     bool
	Partial bool // print fragments of replies
	Replay  bool // print the prompts, too, when they enter
	// Bypass says that the client may switch to the mode bypassPermissions.
	Bypass bool
	Now    func() time.Time
	NewID  func() string // a UUID
}

// Setup is what the client wants of the session, and what belongs into
// [host.Options].
type Setup struct {
	System, Append, Agents string

	Desk  *ask.Desk
	Hooks *hook.Set
	Tell  func(string)
	Watch func(troupe.Event)
}

// Opened is a session that is ready. Tally is at zero.
type Opened struct {
	Session *host.Session
	About   cli.About
	Tally   *cli.Tally
	// Patience is how long, once the client has closed its side, is waited for what
	// works in the background.
	Patience host.Patience
}

// A server is one call of Run. What is not said to be of another goroutine is
// of the loop.
type server struct {
	Options
	conn   *Conn
	desk   *ask.Desk
	hooks  *hook.Set
	parts  *parts
	replay *replay
	shown  *shown
	wg     sync.WaitGroup
	quit   chan struct{}           // closed when the loop has ended
	stop   context.CancelCauseFunc // ends all; for any goroutine
	waits  atomic.Bool             // a question is open
	paper  sync.Mutex              // of the stream and what it counts: agents in the background have records between turns

	setup   Setup
	session *host.Session // nil before it is open
	wait    host.Patience
	stream  *cli.Stream
	id      atomic.Value // of the session, a string
	model   string       // that the session began with

	prompts   []prompt        // not yet submitted
	refusals  []error         // of prompts, each to be answered by a result
	quiet     map[string]bool // prompts that are no reason to begin a turn
	following bool
	checking  string             // the one of them that is with the hooks; "" is none
	dropped   string             // it, if it is not to enter
	turn      context.CancelFunc // of the turn at work; nil is none
	news      watch              // for news while nothing is at work
	eof       bool
	finished  bool           // nothing is left in the background, and nothing will come
	lingered  chan lingered  // of the wait for the background, once the client has closed its side; nil is none
	printed   sync.WaitGroup // of what follows the logs
	submitted chan submission
	ran       chan ran // from the turn to the follower
	ended     chan turnEnd
	last      turnEnd
}

// A turnEnd is how a turn ended, when all of it is printed.
type turnEnd struct {
	ended troupe.Ended
	fatal error // nothing can go on
}

// Run serves a client until it closes its side and nothing is left to do, or
// ctx ends. It returns how the last turn ended. An error of Open, which the
// client was told as well, is returned as it is.
func Run(ctx context.Context, o Options) (troupe.Ended, error) {
	s := &server{Options: o, conn: NewConn(o.In, o.Out), desk: ask.NewDesk(o.Now), hooks: new(hook.Set),
		submitted: make(chan submission), ran: make(chan ran, 1), ended: make(chan turnEnd), quit: make(chan struct{}),
		quiet: map[string]bool{}, shown: newShown(), replay: newReplay()}
	s.setup = Setup{Hooks: s.hooks, Tell: s.tell}
	if o.Ask {
		s.setup.Desk = s.desk
	}
	if o.Partial {
		s.parts = newParts()
		s.setup.Watch = s.parts.watch
	}
	ctx, s.stop = context.WithCancelCause(ctx)
	err := s.loop(ctx)
	s.news.end()
	if s.session != nil && s.last.fatal == nil { // what is stopped now is shown, too
		s.session.Finish()
		s.printed.Wait()
	}
	close(s.quit)
	s.stop(nil)
	s.wg.Wait()
	if s.session != nil {
		err = errors.Join(err, s.session.Close())
	}
	return s.last.ended, errors.Join(err, s.conn.Close())
}

// read passes the client's lines on; it ends with the stream. A program that ends
// before does not wait for it.
func (s *server) read(ctx context.Context, lines chan<- line) {
	defer close(lines)
	for text, err := range s.conn.lines() {
		l := parse(text, err)
		if l.Type == "control_response" { // who waits for it may be what the loop waits for
			s.answer(l)
			continue
		}
		select {
		case lines <- l:
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) loop(ctx context.Context) error {
	lines := make(chan line)
	go s.read(ctx, lines)
	done := ctx.Done()
	for {
		if s.idle(done == nil) && (done == nil || s.session == nil || s.nothingLeft(ctx)) {
			return context.Cause(ctx)
		}
		select {
		case l, ok := <-lines:
			if !ok {
				s.eof, lines = true, nil
				continue
			}
			if err := s.handle(ctx, l); err != nil {
				return err
			}
		case sub := <-s.submitted:
			s.checked(ctx, sub)
		case end := <-s.ended:
			s.last = end
			s.turn()
			s.turn = nil
			if end.fatal != nil {
				return end.fatal
			}
			if done != nil {
				s.goOn(ctx)
			}
		case <-s.news.come:
			s.news.end()
			if done != nil {
				s.work(ctx, true)
			}
		case l := <-s.lingered:
			if err := s.left(ctx, l); err != nil {
				return err
			}
		case <-done:
			done = nil // what runs ends by itself now
		}
	}
}

// idle reports whether nothing is at work and nothing will come of the client; of
// one that is interrupted prompts do not count.
func (s *server) idle(interrupted bool) bool {
	return (s.eof || interrupted) && s.turn == nil && s.checking == "" && (len(s.prompts) == 0 || interrupted)
}

// goOn begins what is to be done next, unless something is being done.
func (s *server) goOn(ctx context.Context) {
	switch {
	case s.turn != nil:
	case len(s.refusals) > 0:
		cause := s.refusals[0]
		s.refusals, s.turn = s.refusals[1:], func() {}
		s.wg.Go(func() { s.end(s.refused(cause)) })
	case s.due():
		s.work(ctx, false)
	case s.eof: // who waits then, waits for an end
	default:
		s.listen(ctx)
	}
}

// due reports whether there are prompts to work on.
func (s *server) due() bool {
	return slices.ContainsFunc(s.session.Queued(), func(id string) bool { return !s.quiet[id] })
}

// open makes the session, if it is not there yet.
func (s *server) open(ctx context.Context) error {
	if s.session != nil {
		return nil
	}
	o, err := s.Open(ctx, s.setup)
	if err != nil {
		return err
	}
	s.session, s.model, s.wait = o.Session, o.Session.Begun().Request.Model, o.Patience
	s.id.Store(s.session.ID)
	o.About.Capabilities = []string{"interrupt_receipt_v1", "interrupt_cancel_queued_v1"}
	s.stream = &cli.Stream{Out: s.conn, Tally: o.Tally, About: o.About}
	if s.Ask {
		leave := s.desk.Attend()
		s.wg.Go(func() { s.questions(ctx, leave) })
	}
	return nil
}

// A prompt is a message of the client on its way to the lead.
type prompt struct {
	id      string
	content troupe.Blocks
	quiet   bool  // no reason to begin a turn
	err     error // why it cannot be taken
}

// A submission is a prompt that hooks have seen.
type submission struct {
	prompt
	err error
}

// submit lets hooks see the next prompt. They are the client's, and answer by
// the same way that prompts come in.
func (s *server) submit(ctx context.Context) {
	if s.checking != "" || len(s.prompts) == 0 {
		return
	}
	p := s.prompts[0]
	s.prompts, s.checking = s.prompts[1:], p.id
	s.wg.Go(func() {
		err := p.err
		if err == nil {
			err = s.session.Put(ctx, p.id, p.content)
		}
		select {
		case s.submitted <- submission{p, err}:
		case <-s.quit:
		}
	})
}

// checked goes on with a prompt that hooks have seen. One that has not entered
// is answered by a result like any other: the client waits for one.
func (s *server) checked(ctx context.Context, sub submission) {
	dropped := s.dropped == sub.id
	s.checking, s.dropped = "", ""
	defer s.submit(ctx)
	if dropped {
		s.replay.take(sub.id)
		s.session.Recall([]string{sub.id})
		return
	}
	if sub.err != nil {
		s.replay.take(sub.id)
		s.tell(sub.err.Error())
		s.refusals = append(s.refusals, sub.err)
		s.goOn(ctx)
		return
	}
	s.quiet[sub.id] = sub.quiet
	s.goOn(ctx)
}

// refused prints the result of a turn that was none.
func (s *server) refused(cause error) turnEnd {
	end := troupe.Ended{Reason: troupe.Done, Text: cause.Error(), Stop: "end_turn"}
	if !errors.Is(cause, host.ErrBlocked) {
		end = troupe.Ended{Reason: troupe.Failed, Err: cause.Error()}
	}
	err := s.begin()
	if err == nil {
		err = s.finish(ran{end: end})
	}
	return turnEnd{end, err}
}

// work begins a turn; news says that no prompt is its reason.
func (s *server) work(ctx context.Context, news bool) {
	s.news.end()
	if !s.following {
		s.following = true
		s.stream.WatchTasks(s.session.Tasks, s.Now)
		s.printed.Add(1)
		s.wg.Go(func() { defer s.printed.Done(); s.follow(ctx) })
		s.wg.Go(func() { s.tasks(ctx) })
		s.wg.Go(func() { s.fragments(ctx) })
	}
	turn, cancel := context.WithCancelCause(ctx)
	s.turn = func() { cancel(troupe.ErrInterrupted) }
	s.wg.Go(func() {
		if err := s.begin(); err != nil {
			s.end(turnEnd{fatal: err})
			return
		}
		start := s.Now()
		end, err := s.session.Run(turn)
		r := ran{end, s.Now().Sub(start), news}
		if errors.Is(err, session.ErrLog) { // the follower will see no end
			s.end(turnEnd{end, errors.Join(err, s.finish(r))})
			return
		}
		s.ran <- r
	})
}

// end tells the loop that a turn is over.
func (s *server) end(e turnEnd) {
	select {
	case s.ended <- e:
	case <-s.quit:
	}
}

// interrupt stops the turn and says which prompts are still to come.
func (s *server) interrupt(cancelQueued bool) object {
	ids := s.session.Queued()
	if s.checking != "" && !slices.Contains(ids, s.checking) {
		ids = append(ids, s.checking)
	}
	for _, p := range s.prompts {
		ids = append(ids, p.id)
	}
	if s.turn != nil {
		s.turn()
	}
	if !cancelQueued {
		return object{"still_queued": named(ids)}
	}
	s.session.Recall(ids)
	s.prompts, s.dropped = nil, s.checking
	return object{"still_queued": []string{}, "cancelled": named(ids)}
}

func named(ids []string) []string {
	return slices.DeleteFunc(append([]string{}, ids...), func(id string) bool { return id == "" })
}

// tell has the client know something that is not an answer.
func (s *server) tell(text string) {
	id, _ := s.id.Load().(string) // none before it is open
	s.conn.send(object{"type": "system", "subtype": "informational", "level": "warning", "content": text, "uuid": s.NewID(), "session_id": id})
}

func (s *server) complain(l line, err error) {
	begin := string(l.text)
	if len(begin) > 80 {
		begin = begin[:80] + "…"
	}
	s.tell(fmt.Sprintf("a line was not understood and is passed over: %v: %s", err, begin))
}
