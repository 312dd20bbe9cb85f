package delegate

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
)

// Fork is the type of an agent that goes on from the conversation of the one that
// starts it.
const Fork = "fork"

//go:embed fork.md
var forkRules string

// forkMark begins what a fork is told. A conversation in which it stands is a
// fork's, whoever carries it on.
const forkMark = "<fork>\n"

// handedOver is the result that each call of the reply has in a fork.
const handedOver = "This call is the other's: a fork has no result of it."

// forkOf returns the conversation of a fork that carries on from a call. All forks
// of one reply have the same but for the directive at the very end, so a provider
// reads what is before it from its cache.
func forkOf(c *troupe.Call, directive string) (*troupe.Request, error) {
	if c.Reply == nil {
		return nil, errors.New("a fork needs the reply that asks for it")
	}
	req := *c.Request
	if isFork(req.Messages) {
		return nil, ErrForked
	}
	answer := troupe.Message{Role: troupe.User}
	for _, u := range c.Reply.Message.ToolUses() {
		answer.Content = append(answer.Content, troupe.ToolResult{ID: u.ID, Content: troupe.Blocks{troupe.Text(handedOver)}})
	}
	answer.Content = append(answer.Content, troupe.Text(forkMark+strings.TrimSpace(forkRules)+"\n</fork>"), troupe.Text(directive))
	n := len(req.Messages)
	req.Messages = append(req.Messages[:n:n], c.Reply.Message, answer)
	req.Scratch = nil
	return &req, troupe.Valid(req.Messages)
}

// isFork reports whether a conversation is a fork's.
func isFork(msgs []troupe.Message) bool {
	for _, m := range msgs {
		for _, b := range m.Content {
			if t, ok := b.(troupe.Text); ok && m.Role == troupe.User && strings.HasPrefix(string(t), forkMark) {
				return true
			}
		}
	}
	return false
}

// prepareFork makes a fork ready. Whatever a provider's cache depends on is its
// parent's: model, effort, prompt, tools.
func (s Scope) prepareFork(ctx context.Context, c *troupe.Call, in Input, d troupe.Definition) (*child, error) {
	switch {
	case s.forked():
		return nil, ErrForked
	case !s.Background:
		return nil, errors.New("a fork works in the background, and that is switched off here: start an agent of another type")
	case in.Model != "" && in.Model != c.Request.Model, in.Effort != "" && in.Effort != c.Request.Effort:
		return nil, fmt.Errorf("a fork has the model and the effort of the one it is a fork of (%s): leave them out, or start an agent of another type", c.Request.Model)
	}
	req, err := forkOf(c, in.Prompt)
	if err != nil {
		return nil, err
	}
	scope, err := s.child(s.NewID(), d)
	if err != nil {
		return nil, err
	}
	kit, err := s.fork(ctx, scope, req.Tools)
	if err != nil {
		return nil, fmt.Errorf("equip a fork: %w", err)
	}
	k := scope.newChild(s, kit, troupe.Started{Agent: scope.Agent, Definition: d.Name, Parent: c.Agent, Call: c.ID, Depth: scope.depth(),
		Name: in.Name, Title: in.Description, Request: *req, Counted: c.Reply.Usage.Total(), Mode: string(scope.Policy.Mode), Place: c.Place})
	k.input = in
	together := "fork " + c.Agent + " " + c.Reply.Message.ToolUses()[0].ID
	if s.Asked(c.Agent) {
		s.Warm(together)
	}
	k.config.Model = s.Join(together, scope.Model)
	return k, nil
}

// ForkDefinition is the definition of forks, which only names them: what a fork is
// told and has is its parent's.
func ForkDefinition() troupe.Definition {
	return troupe.Definition{Name: Fork, Source: builtIn,
		Description: "A copy of you that goes on from this very conversation with a directive of its own, in the background. It knows all that you know, and begins at once, at little cost. For side work that needs what was said and read here."}
}
