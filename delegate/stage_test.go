package delegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/store"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// A modelFunc is a model that one function plays.
type modelFunc func(context.Context, *troupe.Request) iter.Seq2[troupe.Chunk, error]

func (f modelFunc) Stream(ctx context.Context, r *troupe.Request) iter.Seq2[troupe.Chunk, error] {
	return f(ctx, r)
}

// says is a finished reply.
func says(r troupe.Reply) iter.Seq2[troupe.Chunk, error] {
	return func(yield func(troupe.Chunk, error) bool) { yield(r, nil) }
}

// task is the last text of the first message: what the agent was told to do.
func task(r *troupe.Request) string {
	first := r.Messages[0].Content
	return string(first[len(first)-1].(troupe.Text))
}

// A stage is what agents of a test work on, and what it saw of them.
type stage struct {
	shared *delegate.Shared
	kit    func() delegate.Kit // what Equip returns, but for Close and Agent tools

	store  *store.Mem
	mu     sync.Mutex
	ids    int
	closed map[string]int // by agent
	logs   map[string][]troupe.Event
}

// newStage has the types finder and writer, both a user's, and one of our own.
func newStage(t *testing.T, m troupe.Model) *stage {
	t.Helper()
	s := &stage{store: new(store.Mem), closed: map[string]int{}, logs: map[string][]troupe.Event{}}
	s.kit = func() delegate.Kit { return delegate.Kit{Guard: troupetest.Allow{}} }
	s.shared = &delegate.Shared{
		Definitions: []troupe.Definition{
			{Name: "finder", Description: "finds\n  things", Tools: []string{"Agent", "Read"}, Source: "finder.md", Prompt: "You find."},
			{Name: "general-purpose", Description: "anything", Source: "built-in", Tools: []string{"*", "Agent"}},
			{Name: "planner", Description: "plans", Source: "planner.md", Mode: "plan", Disallowed: []string{"Bash"}},
			{Name: "writer", Description: "writes", Source: "writer.md", Mode: "bypassPermissions", Model: "p/own", Effort: "high", MaxTurns: 2},
		},
		Tools: []string{"Agent", "Read"}, Depth: 3, Model: m,
		NewID:     s.newID,
		Resolve:   resolve,
		Window:    func(string) int { return 0 },
		Equip:     s.equip,
		Introduce: func(d troupe.Definition, p troupe.Place) string { return "at " + p.Dir },
		Begin:     s.begin,
		Record:    s.record,
		Join:      func(_ string, m troupe.Model) troupe.Model { return m },
		Warm:      func(string) {},
		Asked:     func(string) bool { return true },
		Box:       func(agent string) *mail.Box { return &mail.Box{Store: s.store, Prefix: "mail/" + agent + "/"} },
		Post: func(ctx context.Context, to string, m mail.Message) error {
			return mail.Send(ctx, s.store, "mail/"+to+"/", m)
		},
		Now: func() time.Time { return time.Unix(0, 0) },
	}
	s.shared.Tasks = jobs.New(t.Context(), jobs.Options{Store: s.store, Dir: filepath.Join(t.TempDir(), "tasks"), Now: s.shared.Now,
		Tell: func(ctx context.Context, end jobs.Task) error {
			m, err := delegate.NoticeOf(end)
			return errors.Join(err, s.shared.Post(ctx, end.Owner, m))
		}})
	t.Cleanup(s.shared.Tasks.Close)
	s.shared.Lead = s.lead(permission.Default)
	return s
}

func resolve(name, parent string) (string, error) {
	switch name {
	case "":
		return parent, nil
	case "nonsense":
		return "", errors.New("unknown model")
	}
	return name, nil
}

func (s *stage) newID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return fmt.Sprintf("a%d", s.ids)
}

func (s *stage) equip(_ context.Context, scope delegate.Scope, d troupe.Definition, _ []troupe.ToolSpec) (delegate.Kit, error) {
	named, err := delegate.Filter(d, s.shared.Tools, scope.May())
	if err != nil {
		return delegate.Kit{}, err
	}
	kit := s.kit()
	if slices.Contains(named, "Agent") {
		a := delegate.NewAgent(scope, delegate.Kit{})
		kit.Tools = append(kit.Tools, a)
	}
	inner := kit.Close
	kit.Close = func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed[scope.Agent]++
		if inner != nil {
			return inner()
		}
		return nil
	}
	return kit, nil
}

// begin and record keep the events of an agent in memory.
func (s *stage) begin(start troupe.Started, first ...troupe.Event) (*troupe.State, error) {
	state := new(troupe.State)
	for _, ev := range append([]troupe.Event{start}, first...) {
		state.Apply(ev)
		s.keep(start.Agent, ev)
	}
	return state, nil
}

func (s *stage) record(ctx context.Context, c troupe.Config) iter.Seq2[troupe.Event, error] {
	return func(yield func(troupe.Event, error) bool) {
		for ev, err := range troupe.Run(ctx, c) {
			if err == nil {
				s.keep(c.ID, ev)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func (s *stage) keep(agent string, ev troupe.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[agent] = append(s.logs[agent], ev)
}

// lead is the scope of a lead in a mode.
func (s *stage) lead(mode permission.Mode) delegate.Scope {
	return s.shared.Root("lead", troupe.Definition{Name: "lead", Source: "built-in"}, permission.Policy{Mode: mode}, nil)
}

// call has the agent with scope start another.
func (s *stage) call(ctx context.Context, t *testing.T, scope delegate.Scope, in delegate.Input) (troupe.Result, error) {
	t.Helper()
	a := delegate.NewAgent(scope, delegate.Kit{})
	return a.Call(ctx, callOf(t, scope, in))
}

func callOf(t *testing.T, scope delegate.Scope, in delegate.Input) *troupe.Call {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return &troupe.Call{ToolUse: troupe.ToolUse{ID: "c1", Name: "Agent", Input: raw}, Agent: scope.Agent, Mode: string(scope.Policy.Mode),
		Place: troupe.Place{Dir: "/here", Also: []string{"/there"}}, Request: &troupe.Request{Model: "p/parent", Effort: "low"}}
}

// data is the structured result.
type data struct {
	Status, AgentID, AgentType, ResolvedModel, Prompt, Error string
	Content                                                  []struct{ Type, Text string }
	TotalToolUseCount, TotalTokens                           int
	Usage                                                    struct {
		Input      int `json:"input_tokens"`
		Output     int `json:"output_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
	}
	ToolsUsed map[string]int
}

func (d data) usage() troupe.Usage {
	return troupe.Usage{Input: d.Usage.Input, Output: d.Usage.Output, CacheRead: d.Usage.CacheRead, CacheWrite: d.Usage.CacheWrite}
}

func dataOf(t *testing.T, r troupe.Result) (d data) {
	t.Helper()
	if err := json.Unmarshal(r.Data, &d); err != nil {
		t.Fatalf("%s: %v", r.Data, err)
	}
	return d
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in:\n%s", p, text)
		}
	}
}
