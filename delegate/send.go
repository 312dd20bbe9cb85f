package delegate

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/schema"
	"github.com/troupe-sh/troupe/mail"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/store"
	"github.com/troupe-sh/troupe/task"
)

// ErrNobody reports a message to an agent that does not exist or may not have it.
var ErrNobody = errors.New("no such agent")

//go:embed send.md
var sendDoc string

type sendInput struct {
	To      string `json:"to" jsonschema:"ID or name of the agent, or main for the one that speaks with the user"`
	Message string `json:"message" jsonschema:"what it is to know or to do; it sees nothing of this conversation"`
	Summary string `json:"summary,omitempty" jsonschema:"the message in a few words, for the user"`
}

// SendMessage is the tool by which an agent speaks to another: to one at work it
// comes before its next request, and one that has ended is taken up again, with
// the conversation that it had.
type SendMessage struct{ scope Scope }

// NewSendMessage returns the tool of the agent with scope s.
func NewSendMessage(s Scope) SendMessage { return SendMessage{s} }

// Spec implements [troupe.Tool].
func (SendMessage) Spec() troupe.ToolSpec {
	return troupe.ToolSpec{Name: "SendMessage", Description: strings.TrimSpace(sendDoc), Schema: schema.Of[sendInput]()}
}

// Call implements [troupe.Tool].
func (t SendMessage) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	var in sendInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return troupe.Result{}, fmt.Errorf("the input of SendMessage: %w", err)
	}
	if strings.TrimSpace(in.Message) == "" {
		return troupe.Result{}, errors.New("the message is empty: say what the agent is to know or to do")
	}
	s := t.scope
	m := mail.Message{ID: s.NewMailID(), From: c.Agent, Text: in.Message}
	lead := s.Shared.Lead.Agent
	if strings.EqualFold(in.To, Main) || in.To == lead {
		if c.Agent == lead {
			return troupe.Result{}, fmt.Errorf("%w: you are %s; what you write reaches the user anyway", ErrNobody, Main)
		}
		if err := s.Post(ctx, lead, m); err != nil {
			return troupe.Result{}, err
		}
		return sent(lead, "", "it comes before the lead's next request")
	}
	to, err := s.seek(in.To)
	if err != nil {
		return troupe.Result{}, err
	}
	if to.Agent == c.Agent {
		return troupe.Result{}, fmt.Errorf("%w: %q is you", ErrNobody, in.To)
	}
	state, err := s.deliver(ctx, c, to, m)
	if err != nil {
		return troupe.Result{}, err
	}
	s.contacts.met(to.Name, to.Agent)
	return sent(to.Agent, to.Name, state)
}

func sent(id, name, state string) (troupe.Result, error) {
	who := id
	if name != "" {
		who = fmt.Sprintf("%s (%s)", name, id)
	}
	res := troupe.Answer(fmt.Sprintf("Sent to %s: %s.", who, state))
	var err error
	res.Data, err = json.Marshal(map[string]any{"success": true, "agentId": id, "message": state})
	return res, err
}

// deliver puts a message into an agent's box, and sees to it that somebody reads
// it there: the agent at work, or the agent taken up again. However many send at
// one moment, one loop takes all they have sent.
func (s Scope) deliver(ctx context.Context, c *troupe.Call, to troupe.Started, m mail.Message) (state string, err error) {
	if !s.Tasks.Open(to.Agent) {
		if err := s.resumable(to); err != nil {
			return "", err
		}
	}
	if err := s.Post(ctx, to.Agent, m); err != nil {
		return "", err
	}
	for {
		if s.Tasks.Open(to.Agent) {
			return "it works, and reads it before its next request", nil
		}
		if err := s.Tasks.Gone(ctx, to.Agent); err != nil {
			return "", fmt.Errorf("agent %s is being stopped; the message waits for it in its box: %w", to.Agent, err)
		}
		switch err := s.resume(ctx, c, to); {
		case errors.Is(err, task.ErrRunning): // somebody else was faster
		case err != nil:
			return "", errors.Join(fmt.Errorf("agent %s has ended and cannot be taken up again: %w", to.Agent, err), s.withdraw(ctx, to.Agent, m.ID))
		default:
			return "it had ended and goes on in the background; you are told when it ends again", nil
		}
	}
}

// withdraw takes back a message that nobody will read.
func (s *Shared) withdraw(ctx context.Context, agent, id string) error {
	box := s.Box(agent)
	e, err := box.Store.Get(ctx, box.Prefix+id)
	if err == nil {
		err = box.Store.Delete(ctx, e.Key, e.Rev)
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// resumable reports why an agent that has ended cannot go on.
func (s Scope) resumable(to troupe.Started) error {
	if !s.Background {
		return fmt.Errorf("agent %s has ended, and would go on in the background, which is switched off here: start another with the Agent tool", to.Agent)
	}
	if to.Definition == Verification {
		return fmt.Errorf("agent %s has given its verdict; who verifies has seen nothing before: start another of this type", to.Agent)
	}
	return nil
}

// resume takes up an agent that has ended: its conversation, model, directory and
// ancestry come from the logs, its rights from the lead as it is now.
func (s Scope) resume(ctx context.Context, c *troupe.Call, start troupe.Started) error {
	if err := s.resumable(start); err != nil {
		return err
	}
	all, err := s.Known()
	if err != nil {
		return err
	}
	known := map[string]troupe.Started{}
	for _, k := range all {
		known[k.Agent] = k
	}
	scope, parent, err := s.again(start, known)
	if err != nil {
		return err
	}
	state, err := s.Load(start.Agent)
	if err != nil {
		return err
	}
	d := scope.Chain[len(scope.Chain)-1]
	var like []troupe.ToolSpec
	if scope.forked() {
		like = state.Request.Tools
	}
	kit, err := scope.Equip(ctx, scope, d, like)
	if err != nil {
		return fmt.Errorf("equip %s: %w", d.Name, err)
	}
	k := scope.newChild(parent, kit, start)
	k.model, k.config.State = state.Request.Model, state
	k.input.Prompt = start.Title
	t := k.task(c)
	t.Owner, t.Call = s.heir(start, known), start.Call
	if _, err := k.start(ctx, t); err != nil {
		return err
	}
	return nil
}

// again is the scope that an agent had, made of what the logs say of it and of
// those above it.
func (s *Shared) again(start troupe.Started, known map[string]troupe.Started) (scope, parent Scope, err error) {
	parent = s.Lead
	if start.Parent != s.Lead.Agent {
		above, ok := known[start.Parent]
		if !ok || above.Depth >= start.Depth { // no log leads in a circle
			return scope, parent, fmt.Errorf("the log of agent %s, which started it, is missing", start.Parent)
		}
		if parent, _, err = s.again(above, known); err != nil {
			return scope, parent, err
		}
	}
	parent.Policy.Mode = parent.Standing.Limit(permission.Bypass)
	for _, d := range s.Definitions {
		if d.Name != start.Definition {
			continue
		}
		scope, err = parent.child(start.Agent, d)
		if mode := permission.Mode(start.Mode); scope.Policy.Mode.Wider(mode) {
			scope.Policy.Mode = mode
			scope.Standing.Set(mode)
		}
		return scope, parent, err
	}
	return scope, parent, fmt.Errorf("%w: %q, which it is of", ErrType, start.Definition)
}

// heir is who is told of the end of an agent: who started it or, if that one has
// ended, the nearest above it that has not.
func (s *Shared) heir(start troupe.Started, known map[string]troupe.Started) string {
	for up := start.Parent; up != s.Lead.Agent && up != ""; up = known[up].Parent {
		if s.Tasks.Open(up) {
			return up
		}
	}
	return s.Lead.Agent
}
