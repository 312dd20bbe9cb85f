package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/tool"
)

// Tools are the names of all tools there are, sorted: an agent's list keeps
// this order, so that agents with the same tools share it in a provider's cache.
func Tools() []string {
	return []string{"Agent", "AskUserQuestion", "Bash", "Edit", "EnterPlanMode", "ExitPlanMode", "Glob", "Grep", "NotebookEdit", "Read", "SendMessage", "TaskOutput", "TaskStop", "TodoWrite", "WebFetch", "Write"}
}

// Known are the names of tools that definitions written for other agents use.
// One that is known and not there is passed over; any other is a slip.
func Known() []string {
	return append(Tools(), "EnterWorktree", "ExitWorktree", "LS", "Monitor", "MultiEdit",
		"NotebookRead", "Skill", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate",
		"TeamCreate", "TeamDelete", "WebSearch", "Workflow")
}

// tools are those that the session has.
func (o *Options) tools() []string {
	return slices.DeleteFunc(Tools(), func(name string) bool { return o.Tools != nil && !slices.Contains(o.Tools, name) })
}

// policy is the lead's: the rules of all layers and the mode.
func (s *Session) policy() (permission.Policy, error) {
	p := permission.Policy{Mode: s.opts.Mode, Home: s.opts.UserHome, Protected: []string{realPath(s.opts.Home)},
		Untrusted: !s.opts.Config.Trusted}
	if p.Mode == "" {
		mode, err := permission.ParseMode(s.opts.Config.Mode.Text)
		if err != nil { // a mode of other tools: less runs without it
			s.warn("%s: %v; the mode is %s", s.opts.Config.Mode.Source, err, permission.Default)
			mode = permission.Default
		}
		p.Mode = mode
	}
	if err := s.forbids(p.Mode); err != nil {
		if s.opts.Mode != "" {
			return p, err
		}
		s.warn("%v; the mode is %s", err, permission.Default)
		p.Mode = permission.Default
	}
	for _, r := range s.opts.Config.Rules {
		rule, err := permission.ParseRule(r.Effect, r.Text, permission.Origin{Source: r.Source, Root: r.Root, Home: s.opts.UserHome})
		switch {
		case err == nil:
			p.Rules = append(p.Rules, rule)
		case r.Effect == troupe.Allow: // it would have allowed something: without it less runs
			s.warn("%v", err)
		default:
			return p, err
		}
	}
	readable := []string{s.results(), s.output(), s.outputs()}
	if s.opts.Fork { // what was said before names files of the session that this is a copy of
		readable = append(readable, filepath.Join(s.opts.Resume.Dir, "results"), filepath.Join(s.opts.Resume.Dir, "output"))
	}
	for _, dir := range readable {
		rule, err := permission.ParseRule(troupe.Allow, "Read(/"+permission.Literal(filepath.ToSlash(dir))+"/**)", permission.Origin{Source: "troupe"})
		if err != nil {
			return p, fmt.Errorf("the session's directory: %w", err)
		}
		p.Rules = append(p.Rules, rule)
	}
	return p, s.shareScratchpad(&p)
}

// results and output hold what was too long for the model; agents may read it.
func (s *Session) results() string { return filepath.Join(s.path, "results") }
func (s *Session) output() string  { return filepath.Join(s.path, "output") }

// realPath is path with its links resolved, as far as it exists.
func realPath(path string) string {
	if real, err := permission.RealPath(path); err == nil {
		return real
	}
	return path
}

// equip makes the tools and the guard of an agent. The agent has instances of
// its own of all of them: what it has read, its to-dos, what it may hand down.
//
// If like is not nil the agent has these tools, byte for byte, also those that are
// not for it: they are refused when they are called.
func (s *Session) equip(_ context.Context, scope delegate.Scope, d troupe.Definition, like []troupe.ToolSpec) (delegate.Kit, error) {
	named, err := delegate.Filter(d, scope.Offered(), scope.May())
	if err != nil {
		return delegate.Kit{}, err
	}
	return s.outfit(scope, d, named, like, tool.NewFiles(s.journal, 0))
}

// outfit is equip with what the agent knows of files already.
func (s *Session) outfit(scope delegate.Scope, d troupe.Definition, named []string, like []troupe.ToolSpec, files *tool.Files) (delegate.Kit, error) {
	w := s.watch(scope.Agent, d.Name)
	compactor := s.compacts(scope, d, w)
	if scope.Agent == session.Lead {
		s.leads, s.compactor = w, compactor
	}
	policy := func(mode string) permission.Policy {
		p := s.granted.add(scope.Policy)
		p.Mode = scope.Standing.Limit(permission.Mode(mode))
		return p
	}
	kit := delegate.Kit{
		Guard:      &permission.Gate{Policy: policy, Hook: w.before, Classify: s.opts.Classify, Ask: s.asker(d.Name, policy)},
		BeforeTurn: s.beforeTurn(scope, compactor),
		BeforeEnd:  w.beforeEnd,
		Rescue:     compactor.Rescue,
		Close:      func() error { return s.folder.Release(scope.Agent) },
	}
	kit.Fork = func(_ context.Context, child delegate.Scope, tools []troupe.ToolSpec) (delegate.Kit, error) {
		d := delegate.ForkDefinition()
		named, err := delegate.Filter(d, child.Offered(), false)
		if err != nil {
			return delegate.Kit{}, err
		}
		return s.outfit(child, d, named, tools, files.Clone())
	}
	planning := &tool.Planning{Forbids: func(mode string) error { return s.forbids(permission.Mode(mode)) }}
	if scope.Agent == session.Lead {
		s.planning = planning
	}
	place := troupe.Place{Dir: s.Dir, Also: s.opts.Also}
	add := func(t troupe.Tool) {
		kit.Tools = append(kit.Tools, w.wrap(tool.Cap(tool.Hide(t, s.mask), s.results(), 0)))
	}
	for _, name := range named {
		t, err := s.tool(name, scope, kit, files, planning, place)
		if err != nil {
			return delegate.Kit{}, err
		}
		if like == nil {
			add(t)
		} else if i := slices.IndexFunc(like, func(l troupe.ToolSpec) bool { return l.Name == name }); i >= 0 {
			add(tool.As(t, like[i]))
		}
	}
	for _, l := range like {
		if !slices.Contains(named, l.Name) {
			add(tool.Refused(l, "this tool is not for a fork"))
		}
	}
	kit.Guard = quietGuard{kit.Guard, s.mask}
	return kit, nil
}

func (s *Session) tool(name string, scope delegate.Scope, kit delegate.Kit, files *tool.Files, planning *tool.Planning, place troupe.Place) (troupe.Tool, error) {
	switch name {
	case "Agent":
		return delegate.NewAgent(scope, kit), nil
	case "AskUserQuestion":
		return tool.AskUserQuestion{Ask: s.chooser(session.Lead)}, nil
	case "Bash":
		b := &tool.Bash{Env: s.env, Output: s.output(), Limit: s.opts.outputLimit, Mask: s.mask, Ledger: ledger(s.opts.Home)}
		if s.cage != nil {
			b.Confine = s.cage.confine
		}
		if !s.opts.Crew.Foreground {
			b.Background = s.inBackground
		}
		return b, nil
	case "Edit":
		return tool.Edit{Files: files}, nil
	case "EnterPlanMode":
		return tool.EnterPlanMode{Planning: planning}, nil
	case "ExitPlanMode":
		return tool.ExitPlanMode{Planning: planning}, nil
	case "Glob":
		return &tool.Glob{Hide: scope.Policy.Hidden(place)}, nil
	case "Grep":
		return &tool.Grep{Hide: scope.Policy.Hidden(place)}, nil
	case "NotebookEdit":
		return tool.NotebookEdit{Files: files}, nil
	case "Read":
		return tool.Read{Files: files}, nil
	case "SendMessage":
		return delegate.NewSendMessage(scope), nil
	case "TaskOutput":
		return delegate.NewTaskOutput(scope), nil
	case "TaskStop":
		return delegate.NewTaskStop(scope), nil
	case "subscribe_pr_activity":
		if s.pullRequests == nil {
			s.pullRequests = s.subscriptions()
		}
		return s.pullRequests, nil
	case "TodoWrite":
		return &tool.TodoWrite{}, nil
	case "WebFetch":
		return tool.WebFetch{Private: scope.Policy.NamesHost, Transport: s.opts.Models.Transport}, nil
	case "Write":
		return tool.Write{Files: files}, nil
	}
	return nil, fmt.Errorf("there is no tool %q", name)
}

// without returns env less the variables named.
func without(env, names []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return isOneOf(name, names)
	})
}
