// Package delegate holds the tools by which an agent gives work to others: Agent
// starts one, SendMessage speaks to one, TaskOutput and TaskStop look after what
// runs in the background.
//
// What an agent may hand down is its [Scope]: a value that the agent's own
// Agent tool holds, made when the agent is made. A child's scope is its
// parent's, narrowed: one level deeper, with at most the same rights. There is
// no table of live agents to look into and nobody to ask: what runs is a task in
// the session's registry, and what an agent is stands at the beginning of its log,
// from which one that has ended is taken up again.
package delegate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/budget"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/task"
)

var (
	// ErrDepth reports agents below agents below agents.
	ErrDepth = errors.New("depth limit reached")
	// ErrNested reports a definition that is among the agents above already.
	ErrNested = errors.New("an agent of this type is among those above")
	// ErrType reports an unknown or denied type of agent.
	ErrType = errors.New("no such type of agent")
	// ErrForked reports a fork inside a fork.
	ErrForked = errors.New("a fork cannot fork: do the work with the tools you have")
	// ErrNoTools reports a definition of which no tool exists.
	ErrNoTools = errors.New("none of the tools in its definition exists")
)

// DefaultTurns is the limit of requests of an agent whose definition sets none:
// nobody watches it.
const DefaultTurns = 200

// Default is the type of agent that is started when none is named.
const Default = "general-purpose"

// Shared is what all agents of a session have in common. It is not changed
// once the session runs.
type Shared struct {
	Definitions []troupe.Definition // sorted by name
	Tools       []string            // names of all tools of the session
	Depth       int                 // how deep agents may nest; the lead is at 0
	NewID       func() string       // of an agent; safe for concurrent use
	NewMailID   func() string       // of a message: later ones are greater
	// Resolve makes the full name of a model, "provider/name", of what a call
	// or a definition says; parent is the full name of the parent's.
	Resolve func(name, parent string) (string, error)
	// Window returns how many tokens a model, by its full name, takes; 0 is not known.
	Window func(model string) int
	// Equip makes the tools and the guard of a child. If like is not nil, the child
	// is to have these tools, byte for byte, also those that it may not use.
	Equip func(ctx context.Context, child Scope, d troupe.Definition, like []troupe.ToolSpec) (Kit, error)
	// Introduce returns what a child is told of the place where it works, to
	// stand in front of its first prompt; "" is nothing.
	Introduce func(d troupe.Definition, p troupe.Place) string
	// Begin makes the log of an agent with its first events, and Load reads one
	// that is there; both return what it comes to.
	Begin func(start troupe.Started, first ...troupe.Event) (*troupe.State, error)
	Load  func(agent string) (*troupe.State, error)
	// Record is troupe.Run with the agent's log around it.
	Record func(ctx context.Context, c troupe.Config) iter.Seq2[troupe.Event, error]
	// Known returns how the agents of the session started, oldest first.
	Known func() ([]troupe.Started, error)
	// Tasks are all that is at work in the session.
	Tasks *task.Registry
	// Box is an agent's mail. Post puts a message there.
	Box  func(agent string) *mail.Box
	Post func(ctx context.Context, to string, m mail.Message) error
	// Background says whether agents may work in the background; Forking, whether
	// an agent that names no type forks itself. ShellTime is how long an agent that
	// has said its last word waits for commands that it left in the background; 0 is
	// without end.
	Background, Forking bool
	ShellTime           time.Duration

	// Join has the requests of those with one key, who begin with the same, go out
	// one ahead of the others, unless the key is warm by Warm or by a request of late:
	// see model.Stagger. Asked reports whether an agent has asked its model so lately
	// that what it asked is in the provider's cache.
	Join  func(key string, m troupe.Model) troupe.Model
	Warm  func(key string)
	Asked func(agent string) bool

	// Check is how the lead's prompts for others are looked at before they go out.
	Check Level

	Lead   Scope // set once it is made
	Model  troupe.Model
	Price  budget.Price // of models; nil if none is known
	Limits Limits       // of each agent below the lead
	Now    func() time.Time
}

// Limits are what an agent may use, with all that it starts. Zero is no limit.
type Limits struct {
	budget.Limits
	Time time.Duration // from its start on
}

// A Kit is what an agent works with. Close releases all that was made for it.
type Kit struct {
	Tools []troupe.Tool
	Guard troupe.Guard
	// The runtime's part of the loop: see [troupe.Config]. Each may be nil.
	BeforeTurn, BeforeEnd func(context.Context, *troupe.State) iter.Seq2[troupe.Event, error]
	Rescue                func(context.Context, *troupe.State, error) iter.Seq2[troupe.Event, error]
	// Fork makes a kit for a fork of the agent: the same tools, and what the agent
	// has seen by then.
	Fork  func(ctx context.Context, child Scope, tools []troupe.ToolSpec) (Kit, error)
	Close func() error
}

// Config returns c with the kit in it.
func (k Kit) Config(c troupe.Config) troupe.Config {
	c.Tools, c.Guard, c.BeforeTurn, c.BeforeEnd, c.Rescue = k.Tools, k.Guard, k.BeforeTurn, k.BeforeEnd, k.Rescue
	return c
}

// A Scope is what one agent may hand down.
type Scope struct {
	*Shared
	Agent  string
	Chain  []troupe.Definition // from the lead down to this agent
	Policy permission.Policy   // what its definition keeps it from is in there
	Types  []string            // the only types it may start; nil is no limit

	Account *budget.Account // that what it and its children use is charged to; nil is none
	Model   troupe.Model    // Shared's, charged to the account
	// Standing is the mode that the agent is in at present; nil is no limit.
	Standing *permission.Standing

	contacts *contacts
	fork     func(ctx context.Context, child Scope, tools []troupe.ToolSpec) (Kit, error)
}

// Root is the scope of the lead.
func (s *Shared) Root(agent string, d troupe.Definition, p permission.Policy, account *budget.Account) Scope {
	return Scope{Shared: s, Agent: agent, Chain: []troupe.Definition{d}, Policy: p.Without(d.Disallowed, d.Source), Types: Types(d),
		Account: account, Model: account.Wrap(s.Model, s.Price), Standing: permission.NewStanding(nil, p.Mode), contacts: new(contacts)}
}

// Depth is how deep the agent is: 0 for the lead.
func (s Scope) depth() int { return len(s.Chain) - 1 }

// May reports whether the agent can start others at all.
func (s Scope) May() bool { return s.depth() < s.Shared.Depth && len(s.Startable()) > 0 }

// forked reports whether the agent, or one above it, is a fork.
func (s Scope) forked() bool {
	return slices.ContainsFunc(s.Chain, func(d troupe.Definition) bool { return d.Name == Fork && d.Source == builtIn })
}

// Startable returns the definitions that the agent may start.
func (s Scope) Startable() []troupe.Definition {
	var out []troupe.Definition
	for _, d := range s.Definitions {
		if (s.Types == nil || slices.Contains(s.Types, d.Name)) && !s.Policy.DeniesAgent(d.Name) {
			out = append(out, d)
		}
	}
	return out
}

// find returns the definition of a type that the agent may start.
func (s Scope) find(name string) (troupe.Definition, error) {
	var names []string
	for _, d := range s.Startable() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return troupe.Definition{}, fmt.Errorf("%w: %q; there are: %s", ErrType, name, strings.Join(names, ", "))
}

// builtIn is the source of definitions that come with troupe.
const builtIn = "built-in"

// child narrows s for an agent of definition d. Types of our own making nest
// up to the limit; a user's type would only meet itself again.
func (s Scope) child(id string, d troupe.Definition) (Scope, error) {
	if s.depth() >= s.Shared.Depth {
		return Scope{}, fmt.Errorf("%w: agents nest %d deep at most", ErrDepth, s.Shared.Depth)
	}
	if d.Source != builtIn && slices.ContainsFunc(s.Chain, func(c troupe.Definition) bool { return c.Name == d.Name }) {
		return Scope{}, fmt.Errorf("%w: %s", ErrNested, d.Name)
	}
	c := s
	c.Agent = id
	c.Chain = append(slices.Clip(s.Chain), d)
	c.Policy = s.Policy.Narrow(permission.Mode(d.Mode)).Without(d.Disallowed, d.Source)
	c.Standing = permission.NewStanding(s.Standing, c.Policy.Mode)
	_, c.Types = splitTypes(d.Tools)
	c.contacts = new(contacts)
	c.Account = s.Account.Open(fmt.Sprintf("agent %s (%s)", id, d.Name), s.Limits.Limits)
	c.Model = c.Account.Wrap(s.Shared.Model, s.Price)
	return c, nil
}

// otherMode says in which mode the agent of definition d works and why, if it
// is not the one that d asks for; else "".
func (s Scope) otherMode(d troupe.Definition) string {
	mode, want := s.Policy.Mode, permission.Mode(d.Mode)
	switch {
	case want == "" || mode == want:
		return ""
	case slices.Index(permission.Modes(), want) < slices.Index(permission.Modes(), mode):
		return fmt.Sprintf("; it ran in mode %s, its caller's, instead of its own (%s)", mode, want)
	}
	return fmt.Sprintf("; it ran in mode %s, as its own (%s) is not within its caller's", mode, want)
}
