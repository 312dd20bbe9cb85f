package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/hook"
	"github.com/troupe-sh/troupe/session"
)

// A line is what the client has sent.
type line struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     string          `json:"error"`
	} `json:"response"`
	Message struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	UUID        string `json:"uuid"`
	ShouldQuery *bool  `json:"shouldQuery"`

	text []byte
	err  error // why it is none
}

// Prompt is what a client would send that has one prompt and nothing to answer.
func Prompt(text string) io.Reader {
	raw, err := troupe.Encode(object{"type": "user", "message": object{"role": "user", "content": text}})
	if err != nil { // a text can always be encoded
		return strings.NewReader("")
	}
	return bytes.NewReader(append(raw, '\n'))
}

func parse(text []byte, err error) line {
	var l line
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err == nil && l.Type == "" {
		err = errors.New("it has no type")
	}
	l.text, l.err = text, err
	return l
}

// answer hands an answer of the client to who waits for it. For any goroutine.
func (s *server) answer(l line) {
	r := l.Response
	a := answer{response: r.Response}
	if r.Subtype != "success" {
		a.err = errors.New(cmp.Or(r.Error, "it answered with an error"))
	}
	if !s.conn.answered(r.RequestID, a) {
		s.tell(fmt.Sprintf("an answer to request %q is ignored: it was answered, withdrawn, or never made", r.RequestID))
	}
}

// handle does what a line asks for. An error ends the program: there is no session.
func (s *server) handle(ctx context.Context, l line) error {
	if l.err != nil {
		s.complain(l, l.err)
		return nil
	}
	switch l.Type {
	case "user":
		if err := s.open(ctx); err != nil {
			return err
		}
		s.say(ctx, l)
	case "control_request":
		return s.request(ctx, l)
	case "control_cancel_request", "keep_alive": // we answer at once: there is nothing to take back
	default:
		s.complain(l, fmt.Errorf("there is no type %q", l.Type))
	}
	return nil
}

// say queues a prompt.
func (s *server) say(ctx context.Context, l line) {
	p := prompt{id: l.UUID, quiet: l.ShouldQuery != nil && !*l.ShouldQuery}
	if p.id == "" {
		p.id = s.NewID()
	}
	p.content, p.err = contentOf(l.Message.Content)
	if p.err == nil && l.Message.Role != "user" {
		p.err = fmt.Errorf("a message with the role %q", l.Message.Role)
	}
	if p.err != nil {
		p.err = fmt.Errorf("the message cannot be taken: %w", p.err)
	} else if s.Replay {
		s.replay.keep(p.id, l.Message.Content)
	}
	s.prompts = append(s.prompts, p)
	s.submit(ctx)
}

// contentOf reads the content of a message: a text, or a list of blocks.
func contentOf(raw json.RawMessage) (troupe.Blocks, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return nil, errors.New("it is empty")
		}
		return troupe.Blocks{troupe.Text(text)}, nil
	}
	var blocks []struct {
		Type, Text string
		Source     struct {
			Type  string
			Media string `json:"media_type"`
			Data  string
		}
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, errors.New("its content is neither a text nor a list of blocks")
	}
	var out troupe.Blocks
	for _, b := range blocks {
		switch {
		case b.Type == "text":
			out = append(out, troupe.Text(b.Text))
		case b.Type == "image" && b.Source.Type == "base64":
			out = append(out, troupe.Image{Media: b.Source.Media, Data: b.Source.Data})
		case b.Type == "document" && b.Source.Type == "text":
			out = append(out, troupe.Text(b.Source.Data))
		default:
			return nil, fmt.Errorf("blocks of type %q %s are not supported", b.Type, b.Source.Type)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it is empty")
	}
	return out, nil
}

// A request is what a client wants. Each field belongs to some of the requests.
type request struct {
	Subtype string `json:"subtype"`
	// initialize
	Hooks        map[string][]matcher `json:"hooks"`
	System       stringOrList         `json:"systemPrompt"`
	Append       string               `json:"appendSystemPrompt"`
	Agents       json.RawMessage      `json:"agents"`
	SDKServers   []string             `json:"sdkMcpServers"`
	Servers      map[string]any       `json:"mcpServers"`
	Plugins      []any                `json:"plugins"`
	Schema       map[string]any       `json:"jsonSchema"`
	Skills       []string             `json:"skills"`
	Aliases      map[string]string    `json:"toolAliases"`
	Instructions string               `json:"planModeInstructions"`
	// others
	Mode         string  `json:"mode"`
	Model        *string `json:"model"`
	Thinking     *int    `json:"max_thinking_tokens"`
	CancelQueued bool    `json:"cancel_queued"`
	Task         string  `json:"task_id"`
	Use          string  `json:"tool_use_id"`
}

// A matcher is some hooks of the client for one event.
type matcher struct {
	Matcher   string   `json:"matcher"`
	IDs       []string `json:"hookCallbackIds"`
	Timeout   float64  `json:"timeout"` // in seconds
	OnFailure string   `json:"onFailure"`
}

// stringOrList is a text, or several.
type stringOrList []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *stringOrList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*s = stringOrList{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(s))
}

const noBypass = "the mode bypassPermissions has to be allowed at the start, by --allow-dangerously-skip-permissions"

// request answers a request of the client.
func (s *server) request(ctx context.Context, l line) error {
	var r request
	if err := json.Unmarshal(l.Request, &r); err != nil {
		s.conn.refuse(l.RequestID, "the request was not understood: "+err.Error())
		return nil
	}
	if r.Subtype == "initialize" {
		return s.initialize(ctx, l.RequestID, r)
	}
	if err := s.open(ctx); err != nil {
		s.conn.refuse(l.RequestID, err.Error())
		return err
	}
	switch r.Subtype {
	case "stop_task", "background_tasks", "get_task_output":
		s.wg.Go(func() {
			response, err := s.ofTasks(ctx, r)
			s.respond(l.RequestID, response, err)
		})
	default:
		response, err := s.do(r)
		s.respond(l.RequestID, response, err)
	}
	return nil
}

// respond answers a request of the client, for any goroutine.
func (s *server) respond(id string, response any, err error) {
	if err != nil {
		s.conn.refuse(id, err.Error())
		return
	}
	s.conn.reply(id, response)
}

// do does what a request asks for.
func (s *server) do(r request) (any, error) {
	switch r.Subtype {
	case "interrupt":
		return s.interrupt(r.CancelQueued), nil
	case "set_permission_mode":
		if r.Mode == "bypassPermissions" && !s.Bypass {
			return nil, errors.New(noBypass)
		}
		if err := s.session.Switch(troupe.Switched{Mode: r.Mode, Chosen: true}); err != nil {
			return nil, err
		}
		_, mode := s.session.Next()
		return object{"mode": mode}, nil
	case "set_model":
		model := s.model
		if r.Model != nil && *r.Model != "" && *r.Model != "default" {
			model = *r.Model
		}
		return object{}, s.session.Switch(troupe.Switched{Model: model})
	case "set_max_thinking_tokens":
		if r.Thinking == nil || *r.Thinking <= 0 {
			return nil, errors.New("max_thinking_tokens: want a positive number; how much the model thinks by itself is known to nobody")
		}
		return object{}, s.session.Switch(troupe.Switched{Effort: fmt.Sprint(*r.Thinking)})
	case "mcp_status":
		return object{"mcpServers": []any{}}, nil
	}
	return nil, fmt.Errorf("this version does not know the request %q; doc/compat.md lists those it does", r.Subtype)
}

// initialize opens the session as the client wants it. Later ones can change
// the hooks alone.
func (s *server) initialize(ctx context.Context, id string, r request) error {
	strange, err := s.register(r.Hooks)
	if err != nil {
		s.conn.refuse(id, err.Error())
		return nil
	}
	again := s.session != nil
	if !again {
		s.setup.System, s.setup.Append = strings.Join(r.System, "\n\n"), r.Append
		if a := strings.TrimSpace(string(r.Agents)); a != "" && a != "null" && a != "{}" {
			s.setup.Agents = a
		}
	}
	if err := s.open(ctx); err != nil {
		s.conn.refuse(id, err.Error())
		return err
	}
	state := s.session.Begun()
	agents := []object{}
	for _, a := range s.session.Definitions() {
		o := object{"name": a.Name, "description": a.Description}
		if a.Model != "" {
			o["model"] = a.Model
		}
		agents = append(agents, o)
	}
	response := object{"commands": []any{}, "agents": agents, "output_style": "default", "available_output_styles": []string{"default"},
		"models":  []object{{"value": state.Request.Model, "displayName": state.Request.Model, "description": "the model of this session"}},
		"account": object{}, "hook_on_failure_supported": true, "troupe_version": s.stream.About.Version}
	if r.Hooks != nil {
		response["hooks_applied"] = true
	}
	s.conn.reply(id, response)
	for _, what := range append(strange, r.unused(again)...) {
		s.tell("initialize: " + what)
	}
	return nil
}

// unused says what of an initialize has no effect.
func (r request) unused(again bool) (out []string) {
	for what, there := range map[string]bool{
		"sdkMcpServers and mcpServers are not started by this version":  len(r.SDKServers)+len(r.Servers) > 0,
		"plugins are not loaded by this version":                        len(r.Plugins) > 0,
		"jsonSchema is not enforced by this version":                    len(r.Schema) > 0,
		"skills are not loaded by this version":                         len(r.Skills) > 0,
		"toolAliases are not applied by this version":                   len(r.Aliases) > 0,
		"planModeInstructions are not used by this version":             r.Instructions != "",
		"the session is open: its prompts and agents stay as they were": again && (len(r.System) > 0 || r.Append != "" || len(r.Agents) > 0),
	} {
		if there {
			out = append(out, what)
		}
	}
	sort.Strings(out)
	return out
}

// register makes hooks of what the client has registered. Of events that there
// are not here it says so; a hook there that must not be missed is an error.
func (s *server) register(events map[string][]matcher) (strange []string, err error) {
	var hooks []hook.Hook
	for name, matchers := range events {
		e := hook.Event(name)
		known := slices.Contains(hook.Events(), e)
		for _, m := range matchers {
			if !known && m.OnFailure == "block" {
				return nil, fmt.Errorf("hooks at %s are not run by this version, and they are set to block", name)
			}
			for _, id := range m.IDs {
				hooks = append(hooks, s.callback(e, m, id))
			}
		}
		if !known {
			hooks = slices.DeleteFunc(hooks, func(h hook.Hook) bool { return h.Event == e })
			strange = append(strange, fmt.Sprintf("hooks at %s are not run by this version", name))
		}
	}
	sort.Strings(strange)
	return strange, s.hooks.Register("client", hooks...)
}

// callback is a hook that the client runs. A call that it cannot have its say on
// does not run: it is there to guard.
func (s *server) callback(e hook.Event, m matcher, id string) hook.Hook {
	return hook.Hook{Event: e, Matcher: m.Matcher, Name: id, Timeout: time.Duration(m.Timeout * float64(time.Second)), Strict: m.OnFailure == "block",
		Run: func(ctx context.Context, in hook.Input) (hook.Output, error) {
			o := object{"subtype": "hook_callback", "callback_id": id, "input": in}
			if in.Call != nil {
				o["tool_use_id"] = in.Use
				s.shown.wait(ctx, call{cmp.Or(in.Agent, session.Lead), in.Use})
			}
			raw, err := s.conn.Ask(ctx, o)
			if e == hook.PreToolUse && (errors.Is(err, hook.ErrTimeout) || errors.Is(err, ErrGone)) {
				return hook.Output{Decision: "block", Reason: fmt.Sprintf("the hook %s of the client has not answered: %v", id, err)}, nil
			}
			if err != nil {
				return hook.Output{}, err
			}
			return hook.ParseOutput(raw)
		}}
}
