package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/internal/fence"
	"github.com/troupe-sh/troupe/session"
)

// ErrBlocked reports a prompt that a hook did not let in.
var ErrBlocked = errors.New("a hook has blocked the prompt")

// A watched is the part that hooks have in the life of one agent.
type watched struct {
	s           *Session
	agent, kind string
	guard       hook.Guard

	mu  sync.Mutex
	add map[string][]string // by the use of a call: what its result is to say, too
}

func (s *Session) watch(agent, kind string) *watched {
	return &watched{s: s, agent: agent, kind: kind, add: map[string][]string{}}
}

// ask runs the hooks for in, and tells the user what is for him.
func (s *Session) ask(ctx context.Context, in hook.Input) (hook.Outcome, error) {
	o, err := s.opts.Hooks.Run(ctx, s.about(in))
	o = s.quiet(o)
	s.tell(o.Tell)
	return o, err
}

func (s *Session) tell(lines []string) {
	for _, line := range lines {
		if s.opts.Tell != nil {
			s.opts.Tell(line)
		}
	}
}

// about fills in what all inputs have.
func (s *Session) about(in hook.Input) hook.Input {
	in.Session = s.ID
	in.Transcript = session.LogPath(s.path, session.Lead)
	if in.Dir == "" {
		in.Dir = s.Dir
	}
	return in
}

// input is the beginning of what hooks are told of the agent.
func (w *watched) input(e hook.Event, mode, dir string) hook.Input {
	in := hook.Input{Event: e, Mode: mode, Dir: dir}
	if w.agent != session.Lead {
		in.Agent = w.agent
	}
	if w.kind != session.Lead {
		in.AgentType = w.kind
	}
	return in
}

// before asks the hooks about a call: see [permission.Gate].
func (w *watched) before(ctx context.Context, c *troupe.Call) (troupe.Verdict, error) {
	if !w.s.opts.Hooks.Has(hook.PreToolUse) {
		return troupe.Verdict{}, nil
	}
	in := w.input(hook.PreToolUse, c.Mode, c.Place.Dir)
	in.Call = &hook.Call{Tool: c.Name, Input: c.Input, Use: c.ID}
	o, err := w.s.ask(ctx, in)
	if err != nil {
		return troupe.Verdict{}, err
	}
	v := troupe.Verdict{Effect: o.Effect, By: "hook", Reason: o.Reason, Input: o.Input}
	if o.Halt {
		w.s.halt(o.Why)
		v = troupe.Verdict{Effect: troupe.Deny, By: "hook", Reason: halted(o.Why), Stop: true}
	}
	if v.Effect == troupe.Deny {
		v.Reason = strings.Join(append([]string{v.Reason}, o.Add...), "\n")
		return v, nil
	}
	if len(o.Add) > 0 {
		w.mu.Lock()
		w.add[c.ID] = o.Add
		w.mu.Unlock()
	}
	return v, nil
}

func halted(why string) string {
	if why == "" {
		return "a hook has stopped the agents"
	}
	return "a hook has stopped the agents: " + why
}

// wrap has the hooks see the results of a tool.
func (w *watched) wrap(t troupe.Tool) troupe.Tool {
	seen := seenTool{t, w}
	if o, ok := t.(troupe.Ordered); ok {
		return seenOrdered{seen, o}
	}
	return seen
}

type seenTool struct {
	troupe.Tool
	watched *watched
}

type seenOrdered struct {
	seenTool
	ordered troupe.Ordered
}

// Lane implements [troupe.Ordered].
func (t seenOrdered) Lane(c *troupe.Call) string { return t.ordered.Lane(c) }

// Call implements [troupe.Tool].
func (t seenTool) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	start := t.watched.s.opts.Now()
	res, err := t.Tool.Call(ctx, c)
	return t.watched.after(ctx, c, res, err, t.watched.s.opts.Now().Sub(start))
}

// after asks the hooks about what a call came to, and adds their words to it.
func (w *watched) after(ctx context.Context, c *troupe.Call, res troupe.Result, failed error, took time.Duration) (troupe.Result, error) {
	w.mu.Lock()
	add := w.add[c.ID]
	delete(w.add, c.ID)
	w.mu.Unlock()
	if ctx.Err() != nil {
		return res, failed
	}
	in := w.input(hook.PostToolUse, c.Mode, c.Place.Dir)
	if len(add) == 0 && !w.s.opts.Hooks.Has(hook.PostToolUse) && !w.s.opts.Hooks.Has(hook.PostToolUseFailure) {
		return res, failed
	}
	in.Call = &hook.Call{Tool: c.Name, Input: c.Input, Use: c.ID, Took: took.Milliseconds()}
	if failed != nil || res.IsError {
		in.Event = hook.PostToolUseFailure
		in.Call.Error = strings.TrimSpace(res.Content.Text() + "\n" + errorText(failed))
	} else {
		in.Call.Response = response(res)
	}
	o, err := w.s.ask(ctx, in)
	if err != nil { // the turn was stopped meanwhile; the call is done all the same
		return res, failed
	}
	if o.Output != nil && in.Event == hook.PostToolUse {
		res.Content, res.Data = troupe.Blocks{troupe.Text(*o.Output)}, nil
	}
	if o.Effect == troupe.Deny {
		add = append(add, o.Reason)
	}
	if failed != nil && len(add)+len(o.Add) > 0 { // the error comes first
		res.Content, res.IsError = append(res.Content, troupe.Text(failed.Error())), true
		failed = nil
	}
	for _, text := range append(add, o.Add...) {
		res.Content = append(res.Content, troupe.Text(framed(text)))
	}
	if o.Halt {
		w.s.halt(o.Why)
	}
	return res, failed
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// response is a result as hooks see it: its data, or else its text.
func response(res troupe.Result) json.RawMessage {
	if res.Data != nil {
		return res.Data
	}
	raw, err := troupe.Encode(res.Content.Text())
	if err != nil { // a text can always be encoded
		return nil
	}
	return raw
}

// framed is a word of a hook to the model, in a frame of its own.
func framed(text string) string { return fence.Frame("hook", text) }

// halt stops the turn of all agents.
func (s *Session) halt(why string) {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	if stop != nil {
		stop(haltError(why))
	}
}

// A haltError says why a hook has stopped the agents.
type haltError string

func (e haltError) Error() string {
	return fmt.Sprintf("%v: %s", troupe.ErrInterrupted, halted(string(e)))
}

// Unwrap returns what a run ends with that somebody has stopped.
func (haltError) Unwrap() error { return troupe.ErrInterrupted }

// Code is the word for programs.
func (haltError) Code() string { return "hook_stopped" }

// atWork is what the agent has in the background, as hooks are told of it.
func (w *watched) atWork() []any {
	out := []any{}
	for _, t := range w.s.Tasks.Background(w.agent) {
		out = append(out, map[string]any{"id": t.ID, "type": t.Kind, "status": t.Status, "description": t.Title})
	}
	return out
}

// beforeEnd asks the hooks whether the agent may stop: see [troupe.Config].
func (w *watched) beforeEnd(ctx context.Context, state *troupe.State) iter.Seq2[troupe.Event, error] {
	return func(yield func(troupe.Event, error) bool) {
		e := hook.Stop
		stopping := hook.Stopping{Last: lastText(state), Background: w.atWork(), Crons: []any{}}
		if w.agent != session.Lead {
			e, stopping.Transcript = hook.SubagentStop, session.LogPath(w.s.path, w.agent)
		}
		in := w.s.about(w.input(e, state.Mode, state.Place.Dir))
		in.Stopping = &stopping
		o, err := w.guard.Ask(ctx, w.s.opts.Hooks, in)
		o = w.s.quiet(o)
		w.s.tell(o.Tell)
		if err != nil {
			yield(nil, err)
			return
		}
		if o.Effect != troupe.Deny {
			return
		}
		text := strings.Join(append(o.Add, o.Reason), "\n")
		yield(troupe.Received{ID: w.s.opts.NewID(), From: "hook", Message: troupe.Say(troupe.User, framed(strings.TrimSpace(text)))}, nil)
	}
}

func lastText(s *troupe.State) string {
	for i := len(s.Request.Messages) - 1; i >= 0; i-- {
		if m := s.Request.Messages[i]; m.Role == troupe.Assistant {
			return m.Content.Text()
		}
	}
	return ""
}

// beforeCompact asks the hooks whether the conversation of an agent may be cut
// short. trigger is manual or auto; instructions are what the user wants kept.
// why says what they have against it; "" is nothing.
func (w *watched) beforeCompact(ctx context.Context, state *troupe.State, trigger, instructions string) (why string, err error) {
	in := w.input(hook.PreCompact, state.Mode, state.Place.Dir)
	in.Compaction = &hook.Compaction{Trigger: trigger}
	if instructions != "" {
		in.Compaction.Instructions = &instructions
	}
	o, err := w.s.ask(ctx, in)
	if err != nil || o.Effect != troupe.Deny {
		return "", err
	}
	return o.Reason, nil
}

// submit asks the hooks about a prompt and returns what is to enter.
func (s *Session) submit(ctx context.Context, content troupe.Blocks) (troupe.Blocks, error) {
	o, err := s.ask(ctx, hook.Input{Event: hook.UserPromptSubmit, Prompt: &hook.Prompt{Text: content.Text()}})
	switch {
	case err != nil:
		return nil, fmt.Errorf("hooks of a prompt: %w", err)
	case o.Effect == troupe.Deny:
		return nil, fmt.Errorf("%w: %s", ErrBlocked, o.Reason)
	case o.Halt:
		return nil, fmt.Errorf("%w: %s", ErrBlocked, halted(o.Why))
	}
	for _, text := range o.Add {
		content = append(content[:len(content):len(content)], troupe.Text(framed(text)))
	}
	return content, nil
}
