package host

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/tool"
)

// A Crew says how many agents there may be below the lead, and how they work.
type Crew struct {
	Most  int // at work at one moment; the others wait. 0 is [MostAgents]
	Total int // started in one run; 0 is [TotalAgents]
	Depth int // how deep they nest; 0 is [Depth]
	// Foreground keeps agents and commands from working in the background.
	Foreground bool
	// Forking has an agent that names no type fork itself.
	Forking bool
	// ShellTime is how long an agent that has said its last word waits for commands
	// that it left in the background; 0 is [ShellTime].
	ShellTime time.Duration
}

// What a [Crew] has that says nothing.
const (
	MostAgents  = 8
	TotalAgents = 200
	ShellTime   = time.Hour
)

// share fills in what all agents of the session have in common.
func (s *Session) share(ctx context.Context) {
	crew := s.opts.Crew
	ids, stagger := mail.NewIDs(s.opts.Now), model.NewStagger(s.opts.Now)
	s.shared = delegate.Shared{
		Tools: s.offered(), Depth: cmp.Or(crew.Depth, Depth), NewID: func() string { return task.NewID(task.Agent) }, NewMailID: ids.New,
		Resolve: s.opts.Models.Resolve, Window: s.opts.Models.Window, Equip: s.equip,
		Begin: s.beginAgent, Load: s.loadAgent, Record: s.record, Known: s.starts.all,
		Box: s.box, Post: s.post, Background: !crew.Foreground, Forking: crew.Forking, ShellTime: cmp.Or(crew.ShellTime, ShellTime),
		Check: s.level(),
		Model: s.models, Price: s.opts.Models.Price, Limits: s.opts.Each, Now: s.opts.Now,
		Join: stagger.Join, Warm: stagger.Warm, Asked: s.asked.lately,
		Introduce: func(d troupe.Definition, p troupe.Place) string { return s.introduce(ctx, d, p) },
	}
	for _, d := range s.crewOf(s.opts.Config.Definitions) {
		d.Prompt = s.mask.Text(strings.TrimRight(d.Prompt, "\n") + "\n" + subagentPrompt)
		d.Description, d.First = s.mask.Text(d.Description), s.mask.Text(d.First)
		s.shared.Definitions = append(s.shared.Definitions, d)
	}
	if !crew.Foreground && !s.coordinating && !slices.ContainsFunc(s.shared.Definitions, func(d troupe.Definition) bool { return d.Name == delegate.Fork }) {
		s.shared.Definitions = append(s.shared.Definitions, delegate.ForkDefinition())
		slices.SortFunc(s.shared.Definitions, func(a, b troupe.Definition) int { return strings.Compare(a.Name, b.Name) })
	}
}

// offered are the names of the tools that agents of the session can have.
func (s *Session) offered() []string {
	names := s.opts.tools()
	if s.coordinating {
		names = append(names, "subscribe_pr_activity")
		for _, name := range delegate.CoordinatorTools() { // whatever the others have
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	if s.opts.Coordinator.Simple && !s.coordinating {
		names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(simpleTools(), n) })
	}
	return names
}

// attend opens what the session keeps besides its logs, and takes up what earlier
// runs have left there.
func (s *Session) attend(ctx context.Context) (err error) {
	s.starts.dir = s.folder.Dir
	if s.store, err = store.OpenDir(s.folder.Dir); err != nil {
		return err
	}
	if err := s.scratch(); err != nil {
		return err
	}
	s.inbox.box = s.box(session.Lead)
	crew := s.opts.Crew
	s.Tasks = task.New(ctx, task.Options{
		Store: s.store, Dir: s.outputs(), Now: s.opts.Now,
		Most:  map[task.Kind]int{task.Agent: cmp.Or(crew.Most, MostAgents)},
		Total: map[task.Kind]int{task.Agent: cmp.Or(crew.Total, TotalAgents)},
		Tell: func(ctx context.Context, t task.Task) error {
			if goesOn(t) {
				return nil
			}
			m, err := delegate.NoticeOf(t)
			if err != nil {
				return err
			}
			return s.post(ctx, t.Owner, m)
		},
		Warn: func(line string) { s.tell([]string{s.mask.Text(line)}) },
	})
	s.shared.Tasks, s.shared.Lead = s.Tasks, s.scope
	if s.opts.Resume == nil {
		return nil
	}
	heard := func(t task.Task) bool { return goesOn(t) || t.Owner != session.Lead || s.lead.State.Seen(t.Notice()) }
	if err := s.Tasks.Restore(ctx, s.partial, heard); err != nil {
		s.warn("tasks of earlier runs: %v", err)
	}
	if err := s.watchOn(ctx); err != nil {
		s.warn("%v", err)
	}
	return nil
}

// goesOn reports whether a task ended with its run only to go on in the next one:
// there is nothing to tell of that.
func goesOn(t task.Task) bool { return t.Kind == task.Monitor && t.Reason == task.ErrClosing.Error() }

// outputs is where tasks leave what they print; agents may read it.
func (s *Session) outputs() string { return session.TasksPath(s.path) }

// partial is the text that there is of a task that was cut off.
func (s *Session) partial(t task.Task) string {
	if t.Kind != task.Agent {
		return ""
	}
	state, _, err := session.Load(session.LogPath(s.folder.Dir, t.ID))
	if err != nil {
		return ""
	}
	for _, m := range slices.Backward(state.Request.Messages) {
		if text := strings.TrimSpace(m.Content.Text()); m.Role == troupe.Assistant && text != "" {
			return text
		}
	}
	return ""
}

// box is the mail of an agent.
func (s *Session) box(agent string) *mail.Box {
	return &mail.Box{Store: s.store, Prefix: "mail/" + agent + "/", Render: s.shared.Render(agent),
		Unreadable: func(key string, err error) {
			s.tell([]string{fmt.Sprintf("mail that cannot be read was left in %s: %v", key, err)})
		}}
}

// post puts a message into an agent's box. No key of a provider is in it.
func (s *Session) post(ctx context.Context, to string, m mail.Message) error {
	m.Text = s.mask.Text(m.Text)
	if err := mail.Send(ctx, s.store, "mail/"+to+"/", m); err != nil {
		return fmt.Errorf("the message to %s: %w", to, err)
	}
	failpoint.Here(failpoint.MailSent)
	return nil
}

// beginAgent makes the log of an agent below the lead.
func (s *Session) beginAgent(start troupe.Started, first ...troupe.Event) (*troupe.State, error) {
	log, err := s.folder.Log(start.Agent)
	if err != nil {
		return nil, err
	}
	state := new(troupe.State)
	for _, ev := range append([]troupe.Event{start}, first...) {
		state.Apply(ev)
		if err := log.Append(ev); err != nil {
			return nil, err
		}
	}
	s.starts.add(start)
	failpoint.Here(failpoint.AgentBegun)
	return state, nil
}

// loadAgent folds the log of an agent that has ended.
func (s *Session) loadAgent(agent string) (*troupe.State, error) {
	state, bad, err := session.Load(session.LogPath(s.folder.Dir, agent))
	if err != nil {
		return nil, fmt.Errorf("read the log of agent %s: %w", agent, err)
	}
	if len(bad) > 0 {
		s.tell([]string{fmt.Sprintf("records of agent %s that could not be read and were skipped: %d; the first: %v", agent, len(bad), bad[0])})
	}
	return state, nil
}

// record runs an agent below the lead with its log around it.
func (s *Session) record(ctx context.Context, c troupe.Config) iter.Seq2[troupe.Event, error] {
	return func(yield func(troupe.Event, error) bool) {
		log, err := s.folder.Log(c.ID)
		if err != nil {
			yield(nil, err)
			return
		}
		log.Record(troupe.Run(ctx, c))(yield)
	}
}

// asked is when each agent has asked its model last.
type asked struct {
	now func() time.Time
	at  sync.Map // time.Time by agent
}

func (a *asked) note(agent string) { a.at.Store(agent, a.now()) }

// lately reports whether a provider still has what the agent asked in its cache.
func (a *asked) lately(agent string) bool {
	at, ok := a.at.Load(agent)
	return ok && a.now().Sub(at.(time.Time)) < model.DefaultTTL
}

// starts are how the agents of the session have started. Those of earlier runs are
// looked for when somebody asks.
type starts struct {
	mu     sync.Mutex
	dir    string
	loaded bool
	known  []troupe.Started
}

func (s *starts) add(start troupe.Started) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded { // else its log is read with the others
		start.Request.Messages = nil
		s.known = append(s.known, start)
	}
}

func (s *starts) all() ([]troupe.Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded {
		known, err := session.Starts(s.dir)
		if err != nil && known == nil {
			return nil, err
		}
		s.known, s.loaded = known, true
	}
	return slices.Clone(s.known), nil
}

// inBackground makes a task of a command: see [tool.Bash].
func (s *Session) inBackground(ctx context.Context, c *troupe.Call, j tool.Job) (id, output string, err error) {
	t, err := s.Tasks.Start(ctx, task.Task{Kind: task.Shell, Title: j.Title, Owner: c.Agent, Call: c.ID},
		func(ctx context.Context, w *task.Work) (string, error) { return j.Run(ctx, w.Writer()) })
	return t.ID, t.Output, err
}
