// Package host puts a session together from all the parts: it is what the
// command and users of the library call.
//
// [Open] makes the lead of a new session or takes an old one up again.
// [Session.Send] gives it a prompt, [Session.Run] lets it work until it has
// nothing left to do, and [Session.Follow] shows what all its agents do, out of
// their logs. Everything else - which tools an agent has, what it may do, whom
// it may start - follows from the configuration that Open is given.
package host

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/budget"
	"github.com/troupe-sh/troupe/compact"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/internal/secret"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/proc"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/tool"
)

// Depth is how deep agents nest: the lead is at 0.
const Depth = 3

// ErrUse reports options that make no sense together or name what there is not.
var ErrUse = errors.New("wrong use")

// Options say what to open. Home, Config, Models, Now and NewID are needed; of a
// new session Model, too.
type Options struct {
	Home        string         // troupe's own directory; see [Sessions]
	UserHome    string         // what ~ in rules means; "" is nothing
	Config      *config.Config // of the directory that the session works in
	Models      *Models
	Model       string // full name; "" on resume is the one that the session had
	Mode        permission.Mode
	Effort      string   // of the lead; "" is that of its definition, on resume the one that it had
	Tools       []string // that any agent of the session can have; nil is all, see [Tools]
	Agent       string   // definition that the lead follows; "" is our own
	System      string   // of the lead, instead of its own; "" is its own
	Append      string   // added to the lead's system prompt
	Turns       int      // limit for one Run; 0 is none
	Limits      Limits   // tokens and money of all agents together from Open on, and the time of one Run
	Each        Limits   // of each agent below the lead, with all that it starts
	Coordinator Coordinating
	Crew        Crew     // of agents below the lead, and how they work
	Fallback    []string // models to ask when the one that is to be asked is not available, in order
	Also        []string // further directories to work in, absolute

	Resume  *session.Info // session to take up again; nil is a new one
	Fork    bool          // leave the session as it is and go on in a copy
	ID      string        // of a new session or copy; "" is made by NewID
	Passing bool          // Close removes the session, which cannot be an old one

	// Desk is where what needs approval is asked; nil if nobody can be asked.
	Desk *ask.Desk
	// Classify is asked, in mode auto, about calls that would have to be asked
	// about; nil leaves them to the person.
	Classify permission.Classify
	// Hooks have their say at points of the agents' lives; nil is none.
	Hooks *hook.Set
	// Tell is called with a line for the user, from any goroutine; it may be nil.
	Tell func(line string)
	// Watch is called with each event of the lead, from the goroutine of Run, when
	// it is recorded: for what is in no log, the fragments of a reply. It may be nil.
	Watch func(troupe.Event)

	Env     []string // environment of the programs that tools run
	Secrets []string // names of variables in Env that programs do not get, besides the keys of models

	// Launcher is the path of a program that calls [proc.Confined] first of all, by
	// which the kernel's Landlock can confine commands; "" leaves only bubblewrap.
	Launcher string

	Now   func() time.Time
	NewID func() string // a UUID

	outputLimit int64 // bytes of the output of a command that are kept; 0 is the tool's own limit
}

// Sessions is the directory in which all sessions are kept.
func Sessions(home string) string { return filepath.Join(home, "sessions") }

// ledger is the directory in which running shells are noted, so that those of
// a run that was killed can be ended.
func ledger(home string) string { return filepath.Join(home, "run") }

// A Session is a lead with its sub-agents. One goroutine calls Run; the other
// methods may be called at any time.
type Session struct {
	ID       string
	Dir      string         // that it works in
	Warnings []string       // what the user should know; one line each
	Tasks    *task.Registry // all that is at work below the lead

	opts         Options
	path         string // of the session's directory
	folder       *session.Folder
	log          *session.Log
	mark         session.Mark
	lead         troupe.Config
	begun        troupe.State
	inbox        inbox
	store        *store.Dir
	starts       starts
	coordinating bool
	pullRequests *forge.Subscribe // nil if the lead watches none
	asked        asked
	leads        *watched // the lead, by hooks
	shared       delegate.Shared
	scope        delegate.Scope // the lead's
	journal      *tool.Journal
	env          []string
	granted      grants
	denials      denials
	mask         *secret.Mask   // of what no agent, no log and no face may see
	cage         *cage          // what confines commands; nil: they run free
	git          func() string  // while Open is at work: what git says of Dir
	asking       sync.WaitGroup // for git

	compactor *compact.Compactor // the lead's
	planning  *tool.Planning     // the lead's

	over     chan struct{} // closed when nothing will be written any more
	finished sync.Once

	mu       sync.Mutex
	stop     context.CancelCauseFunc // of the Run at work
	switches []troupe.Switched       // asked for, not yet in the log
	moves    []move                  // the same
	now      troupe.Switched         // model and mode of the lead at present

	models  troupe.Model    // what all requests go through
	account *budget.Account // that they are charged to
}

// Open makes a session, or takes one up again. The caller must Close it.
func Open(ctx context.Context, o Options) (*Session, error) {
	secrets := slices.Concat(o.Secrets, o.Models.Secrets())
	s := &Session{over: make(chan struct{}), asked: asked{now: o.Now}, opts: o, Dir: o.Config.Dir, journal: tool.NewJournal(o.Now), env: o.programs(secrets),
		mask: o.Models.hide(slices.Concat(o.Env, o.Config.Environ(nil)), secrets)}
	err := s.mask.Error(s.assemble(ctx))
	s.git = nil // agents to come ask anew
	if err != nil {
		s.asking.Wait()
		return nil, err
	}
	return s, nil
}

// programs is the environment of the programs that tools run: with the variables
// of the settings, and with no key of a provider but those that settings pass.
func (o *Options) programs(secrets []string) []string {
	passed := func(name string) bool {
		return slices.ContainsFunc(o.Config.PassKeys, func(v config.Value) bool { return strings.EqualFold(v.Text, name) })
	}
	return without(o.Config.Environ(o.Env), slices.DeleteFunc(slices.Clone(secrets), passed))
}

// assemble puts the lead together and begins its log.
func (s *Session) assemble(ctx context.Context) error {
	s.locate()
	if err := s.check(); err != nil {
		return err
	}
	if err := s.coordinates(); err != nil {
		return err
	}
	if err := s.charge(); err != nil {
		return err
	}
	policy, err := s.policy()
	if err != nil {
		return err
	}
	if err := s.enclose(ctx, &policy); err != nil {
		return err
	}
	s.tellOfAuto(policy)
	d, err := s.leadDefinition()
	if err != nil {
		return err
	}
	if s.opts.Resume == nil && !d.OmitContextFiles {
		s.askEarly(ctx)
	}
	s.share(ctx)
	s.scope = s.shared.Root(session.Lead, d, policy, s.account)
	kit, err := s.equip(ctx, s.scope, d, nil)
	if err != nil {
		return err
	}
	s.lead = kit.Config(troupe.Config{ID: session.Lead, Model: s.scope.Model, Inbox: &s.inbox, MaxTurns: s.opts.Turns})
	if d.MaxTurns > 0 && s.opts.Turns == 0 {
		s.lead.MaxTurns = d.MaxTurns
	}
	s.sweep(ctx)
	return s.begin(ctx, d)
}

// sweep ends the shells of runs that were killed.
func (s *Session) sweep(ctx context.Context) {
	swept, err := proc.Sweep(ctx, ledger(s.opts.Home))
	if swept.Ended > 0 {
		s.warn("ended %d processes that a killed run of troupe had left behind", swept.Ended)
	}
	for _, kept := range slices.Concat(swept.Kept, []error{err}) {
		if kept != nil {
			s.warn("%v", kept)
		}
	}
}

func (s *Session) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, s.mask.Text(fmt.Sprintf(format, args...)))
}

// leadDefinition is the definition that the lead follows.
func (s *Session) leadDefinition() (troupe.Definition, error) {
	d := troupe.Definition{Name: session.Lead, Prompt: leadPrompt, Source: config.BuiltIn}
	agent, err := s.agent()
	if err != nil {
		return d, err
	}
	if s.coordinating {
		d, agent = s.coordinatorDefinition(), ""
	}
	if agent != "" {
		i := slices.IndexFunc(s.opts.Config.Definitions, func(d troupe.Definition) bool { return d.Name == agent })
		if i < 0 {
			return d, fmt.Errorf("%w: there is no agent %q; there are: %s", ErrUse, agent, names(s.opts.Config.Definitions))
		}
		d = s.opts.Config.Definitions[i]
	}
	if d.Tools == nil { // a main agent has all tools, this one included
		d.Tools = []string{"*", "Agent"}
	}
	if s.opts.Tools != nil && len(s.opts.tools()) == 0 {
		d.Tools = []string{}
	}
	if s.opts.System != "" {
		d.Prompt = s.opts.System
	}
	if crew := s.opts.Crew; crew.Forking && !crew.Foreground {
		d.Prompt = strings.TrimRight(d.Prompt, "\n") + "\n\n" + delegate.ForkAdvice()
	}
	if s.opts.Append != "" {
		d.Prompt = strings.TrimRight(d.Prompt, "\n") + "\n\n" + s.opts.Append
	}
	d.Prompt, d.First = s.mask.Text(d.Prompt), s.mask.Text(d.First)
	return d, nil
}

func names(ds []troupe.Definition) string {
	var out []string
	for _, d := range ds {
		out = append(out, d.Name)
	}
	return strings.Join(out, ", ")
}

// Send gives the lead a prompt of the user. If it works, it sees the prompt at
// its next request. Hooks are asked first; ErrBlocked says that they refuse. A key
// of a provider is masked: it would be in every request from then on, and in the log.
func (s *Session) Send(ctx context.Context, prompt string) error {
	return s.Put(ctx, s.opts.NewID(), troupe.Blocks{troupe.Text(prompt)})
}

// Put is Send of a message that has an ID already, so that the same one does
// not enter twice, and of more than text.
func (s *Session) Put(ctx context.Context, id string, content troupe.Blocks) error {
	content, err := s.submit(ctx, s.masked(content))
	if err == nil {
		s.inbox.put(id, content)
	}
	return err
}

// Run lets the lead work until it has said its last word, a limit is reached
// or ctx ends. What the user stopped can go on with another Send and Run.
func (s *Session) Run(ctx context.Context) (end troupe.Ended, err error) {
	ctx, done := s.running(ctx)
	defer done()
	ctx, cancel := s.timed(ctx)
	defer cancel()
	s.leads.guard = hook.Guard{} // what another run came to counts no more
	before := s.lead.State.Turns
	var used troupe.Usage
	for ev, e := range s.log.Record(troupe.Run(ctx, s.lead)) {
		if e != nil {
			err = e
			continue
		}
		if s.opts.Watch != nil {
			s.opts.Watch(ev)
		}
		switch ev := ev.(type) {
		case troupe.Streaming:
			failpoint.Here(failpoint.ReplyStreaming)
		case troupe.Replied:
			used = used.Add(ev.Usage)
		case troupe.Switched:
			if ev.Mode != "" {
				s.scope.Standing.Set(permission.Mode(ev.Mode))
			}
			s.switched(ev)
		case troupe.Ended:
			end = ev
		}
	}
	if end.Reason == "" { // the log could not be written
		end = troupe.Ended{Reason: troupe.Failed, Err: err.Error(), Turns: s.lead.State.Turns - before, Usage: used}
	}
	return end, err
}

// Follow yields what the agents of the session do, from Open on, until ctx
// ends, or the session is finished: the records of all logs, in order.
func (s *Session) Follow(ctx context.Context) iter.Seq2[session.Record, error] {
	return s.folder.Follow(ctx, s.mark, s.over)
}

// Begun is what the lead has begun or goes on with: its model, mode and tools.
func (s *Session) Begun() troupe.State { return s.begun }

// Agents are the names of the agents that the lead can start.
func (s *Session) Agents() []string {
	var out []string
	for _, d := range s.Definitions() {
		out = append(out, d.Name)
	}
	return out
}

// Trusted reports whether the user trusts the directory that the session works in.
func (s *Session) Trusted() bool { return s.opts.Config.Trusted }

// Definitions are those of the agents that the lead can start.
func (s *Session) Definitions() []troupe.Definition { return s.scope.Startable() }

// Queued are the IDs of the prompts that have not entered yet.
func (s *Session) Queued() []string { return s.inbox.ids() }

// Recall takes prompts back that have not entered yet.
func (s *Session) Recall(ids []string) { s.inbox.remove(ids) }

// Path is the directory of the session's logs.
func (s *Session) Path() string { return s.path }

// Close ends the session's use by this process: what is at work is stopped, and
// nothing of it is left.
func (s *Session) Close() error {
	s.Finish()
	s.asking.Wait()
	s.cage.leave()
	err := errors.Join(s.store.Close(), s.folder.Close())
	if s.opts.Passing {
		err = errors.Join(err, session.Remove(s.path))
	}
	return err
}
