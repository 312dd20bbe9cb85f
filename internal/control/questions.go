package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
)

// questions brings what lies on the desk to the client until it has closed its
// side or the loop ends. Then nobody sits at the desk any more.
func (s *server) questions(ctx context.Context, leave func()) {
	defer leave()
	ctx, done := s.untilQuit(ctx)
	defer done()
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		select {
		case <-s.conn.goneNow:
			gone()
		case <-ctx.Done():
		}
	})
	asked := map[string]context.CancelFunc{}
	for open := range s.desk.Watch(ctx) {
		if len(open) == 0 {
			s.requires(false)
		}
		for id, withdraw := range asked {
			if !slices.ContainsFunc(open, func(q ask.Question) bool { return q.ID == id }) {
				withdraw()
				delete(asked, id)
			}
		}
		for _, q := range open {
			if asked[q.ID] != nil {
				continue
			}
			qctx, withdraw := context.WithCancel(ctx)
			asked[q.ID] = withdraw
			wg.Go(func() { s.ask(qctx, q) })
		}
	}
	for _, withdraw := range asked {
		withdraw()
	}
}

// requires tells the client whether the work waits for it.
func (s *server) requires(action bool) {
	if action == s.waits.Swap(action) {
		return
	}
	state := "running"
	if action {
		state = "requires_action"
	}
	s.conn.send(object{"type": "system", "subtype": "session_state_changed", "state": state, "uuid": s.NewID(), "session_id": s.session.ID})
}

// ask has the client answer one question, after it was shown what it is about.
func (s *server) ask(ctx context.Context, q ask.Question) {
	s.shown.wait(ctx, call{q.Agent, q.Call.ID})
	if ctx.Err() != nil {
		return
	}
	s.requires(true)
	raw, err := s.conn.Ask(ctx, s.question(q))
	if ctx.Err() != nil || errors.Is(err, ErrGone) {
		return // it was withdrawn, or nobody sits at the desk any more
	}
	a := s.decision(ctx, q, raw, err)
	if err := s.desk.Answer(q.ID, a); err != nil && !errors.Is(err, ask.ErrAnswered) {
		s.tell(err.Error())
	}
}

// question is the request that a question becomes.
func (s *server) question(q ask.Question) object {
	o := object{"subtype": "can_use_tool", "tool_name": q.Call.Name, "input": q.Call.Input, "tool_use_id": q.Call.ID,
		"display_name": q.Call.Name, "decision_reason": q.Why, "decision_reason_type": reasonType(q.By)}
	if q.Agent != session.Lead {
		o["agent_id"] = q.Agent
	}
	if path := pathOf(q.Call); path != "" && q.By == "workingDir" {
		o["blocked_path"] = path
	}
	if q.Kind == ask.Permission {
		o["permission_suggestions"] = s.suggestions(q)
	}
	return o
}

func reasonType(by string) string {
	switch by {
	case "rule", "mode", "workingDir", "safetyCheck", "hook", "classifier":
		return by
	}
	return "other"
}

func pathOf(c troupe.Call) string {
	var in struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
	}
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	for _, p := range []string{in.File, in.Notebook, in.Path} {
		if p != "" {
			return p
		}
	}
	return ""
}

// suggestions are what the client can answer with, to be asked less.
func (s *server) suggestions(q ask.Question) []host.PermissionUpdate {
	out := []host.PermissionUpdate{}
	if len(q.Rules) == 0 {
		return out
	}
	if slices.Contains([]string{"Edit", "Write", "NotebookEdit"}, q.Call.Name) && q.By == "mode" {
		out = append(out, host.PermissionUpdate{Type: "setMode", Mode: "acceptEdits", Destination: "session"})
	}
	add := host.PermissionUpdate{Type: "addRules", Behavior: troupe.Allow, Destination: "localSettings"}
	if !s.session.Trusted() { // there it would not count
		add.Destination = "session"
	}
	for _, r := range q.Rules {
		tool, spec, _ := strings.Cut(r, "(")
		add.Rules = append(add.Rules, host.RuleValue{Tool: tool, Spec: strings.TrimSuffix(spec, ")")})
	}
	return append(out, add)
}

// decision reads the client's answer. What is not understood is no.
func (s *server) decision(ctx context.Context, q ask.Question, raw json.RawMessage, err error) ask.Answer {
	deny := func(why string) ask.Answer {
		return ask.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user", Reason: why}}
	}
	if err != nil {
		return deny("the client could not answer: " + err.Error())
	}
	var in struct {
		Behavior    string                  `json:"behavior"`
		Input       json.RawMessage         `json:"updatedInput"`
		Permissions []host.PermissionUpdate `json:"updatedPermissions"`
		Message     string                  `json:"message"`
		Interrupt   bool                    `json:"interrupt"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return deny("the answer of the client was not understood: " + err.Error())
	}
	switch in.Behavior {
	case "allow":
	case "deny":
		if in.Message == "" {
			in.Message = "the user said no"
		}
		a := deny(in.Message)
		a.Stop = in.Interrupt
		return a
	default:
		return deny(fmt.Sprintf("the answer of the client was not understood: behavior %q, want allow or deny", in.Behavior))
	}
	a := ask.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}}
	if b := bytes.TrimSpace(in.Input); len(b) > 0 && string(b) != "null" {
		if b[0] != '{' {
			return deny("the answer of the client was not understood: updatedInput is not an object")
		}
		a.Input = in.Input
	}
	for _, u := range in.Permissions {
		if u.Type == "setMode" && u.Mode == "bypassPermissions" && !s.Bypass {
			s.tell("not done: " + noBypass)
			continue
		}
		if err := s.session.Permit(ctx, u); err != nil {
			s.tell("a permission of the answer has no effect: " + err.Error())
		}
	}
	return a
}
