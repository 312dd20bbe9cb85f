package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/task"
)

// Coordinating is how a session is led by a lead that only delegates.
type Coordinating struct {
	On bool // of a new session; an old one goes on as it began
	// Check is how prompts of the coordinator are looked at before they go out; ""
	// is [delegate.Warn].
	Check delegate.Level
	// NoScratchpad leaves out the directory that workers share.
	NoScratchpad bool
	// Simple leaves workers Bash, Read and Edit.
	Simple bool
	// Forge is the server that pull requests are watched on.
	Forge forge.Server
	// Poll is how often it is asked; 0 is its own wish, or the usual.
	Poll time.Duration
}

// coordinator is the name of the definition that a coordinator follows. No file can
// define one of this name: a definition of one's own has no colon in it.
const coordinator = "mode:coordinator"

// coordinates settles whether the lead is a coordinator: an old session goes on as
// it began, whatever is asked for now, and says so.
func (s *Session) coordinates() error {
	asked := s.opts.Coordinator.On
	s.coordinating = asked
	if s.opts.Resume != nil {
		name, err := s.agent()
		if err != nil {
			return err
		}
		s.coordinating = name == coordinator
		switch {
		case s.coordinating && !asked:
			s.warn("the session goes on in coordinator mode, as it began")
		case !s.coordinating && asked:
			s.warn("the session goes on without coordinator mode, as it began; start a new one for that")
		}
	} else if asked && s.opts.Agent != "" {
		return fmt.Errorf("%w: a session is led by a coordinator or by agent %q", ErrUse, s.opts.Agent)
	}
	if s.coordinating {
		s.opts.Crew.Forking = false
		if !s.opts.Coordinator.NoScratchpad {
			s.opts.Also = append(slices.Clip(s.opts.Also), s.scratchpad())
		}
	}
	return nil
}

// scratchpad is the directory that the workers of a coordinator share.
func (s *Session) scratchpad() string { return filepath.Join(s.path, "scratchpad") }

// scratch makes the scratchpad.
func (s *Session) scratch() error {
	if !s.coordinating || s.opts.Coordinator.NoScratchpad {
		return nil
	}
	if err := os.MkdirAll(s.scratchpad(), 0o700); err != nil {
		return fmt.Errorf("make the scratchpad: %w", statefile.Explain(err))
	}
	return nil
}

// shareScratchpad lets agents write to the scratchpad without asking, and to
// nothing beside it.
func (s *Session) shareScratchpad(p *permission.Policy) error {
	if !s.coordinating || s.opts.Coordinator.NoScratchpad {
		return nil
	}
	dir := realPath(s.scratchpad())
	p.Shared = append(p.Shared, dir)
	for _, tool := range []string{"Read", "Edit"} {
		rule, err := permission.ParseRule(troupe.Allow, tool+"(/"+permission.Literal(filepath.ToSlash(dir))+"/**)", permission.Origin{Source: "troupe"})
		if err != nil {
			return fmt.Errorf("the scratchpad: %w", err)
		}
		p.Rules = append(p.Rules, rule)
	}
	return nil
}

// coordinatorDefinition is what a coordinator follows: what it is told of its
// workers is what they have at its start.
func (s *Session) coordinatorDefinition() troupe.Definition {
	pad := ""
	if !s.opts.Coordinator.NoScratchpad {
		pad = s.scratchpad()
	}
	d := delegate.WorkerDefinition()
	if s.opts.Coordinator.Simple {
		d.Tools = simpleTools()
	}
	tools, err := delegate.Filter(d, s.opts.tools(), false)
	if err != nil { // none of them is offered
		tools = nil
	}
	return troupe.Definition{Name: coordinator, Source: config.BuiltIn, Tools: delegate.CoordinatorTools(),
		Prompt: delegate.CoordinatorPrompt() + delegate.CoordinatorFacts(tools, nil, pad)}
}

func simpleTools() []string { return []string{"Bash", "Edit", "Read"} }

// crewOf returns the types of agents that the lead may start.
func (s *Session) crewOf(all []troupe.Definition) []troupe.Definition {
	if !s.coordinating {
		return all
	}
	all = delegate.CoordinatorDefinitions(all)
	if s.opts.Coordinator.Simple {
		for i := range all {
			if all[i].Name == delegate.Worker && all[i].Source == config.BuiltIn {
				all[i].Tools = simpleTools()
			}
		}
	}
	return all
}

// level is how prompts of the lead are looked at.
func (s *Session) level() delegate.Level {
	switch {
	case !s.coordinating:
		return delegate.Off
	case s.opts.Coordinator.Check == "":
		return delegate.Warn
	}
	return s.opts.Coordinator.Check
}

// pulls is where the store has what is watched of pull requests.
const pulls = "pulls/"

// subscriptions make the tool by which a coordinator watches pull requests.
func (s *Session) subscriptions() *forge.Subscribe {
	server := s.opts.Coordinator.Forge
	return &forge.Subscribe{
		Interval: s.opts.Coordinator.Poll,
		Open: sync.OnceValues(func() (*forge.API, error) {
			transport, err := s.opts.Models.Transport()
			if err != nil {
				return nil, err
			}
			if server.Transport == nil {
				server.Transport = transport
			}
			server.Now = s.opts.Now
			return forge.Open(server)
		}),
		Start: func(ctx context.Context, c *troupe.Call, title string, run func(context.Context, io.Writer) (string, error)) (string, error) {
			t, err := s.Tasks.Start(ctx, task.Task{Kind: task.Monitor, Title: title, Owner: c.Agent, Call: c.ID},
				func(ctx context.Context, w *task.Work) (string, error) { return run(ctx, w.Writer()) })
			return t.ID, err
		},
		Stop: func(ctx context.Context, id string) error {
			_, _, err := s.Tasks.Stop(ctx, id, "the agent that watched")
			return err
		},
		Stopped: task.ErrStopped,
		Tell: func(ctx context.Context, e forge.Event) error {
			return s.post(ctx, session.Lead, mail.Message{ID: e.ID, From: "forge", Text: forge.Render(e), Kind: delegate.Framed})
		},
		Load: func(ctx context.Context, key string) ([]byte, error) {
			e, err := s.store.Get(ctx, pulls+key)
			if errors.Is(err, store.ErrNotFound) {
				return nil, nil
			}
			return e.Value, err
		},
		Save: func(ctx context.Context, key string, record []byte) error {
			if record != nil {
				return store.Update(ctx, s.store, pulls+key, func([]byte) ([]byte, error) { return record, nil })
			}
			e, err := s.store.Get(ctx, pulls+key)
			if err == nil {
				err = s.store.Delete(ctx, pulls+key, e.Rev)
			}
			if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
				return nil
			}
			return err
		},
	}
}

// watchOn goes on with the pull requests that earlier runs watched.
func (s *Session) watchOn(ctx context.Context) error {
	if s.pullRequests == nil || s.opts.Resume == nil {
		return nil
	}
	var records [][]byte
	for e, err := range s.store.List(ctx, pulls) {
		if err != nil {
			return fmt.Errorf("look for the pull requests that are watched: %w", err)
		}
		records = append(records, e.Value)
	}
	if records == nil {
		return nil
	}
	return s.pullRequests.Resume(ctx, &troupe.Call{Agent: session.Lead}, records...)
}
