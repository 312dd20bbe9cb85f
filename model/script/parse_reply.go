package script

import (
	"cmp"

	"github.com/tailscale/hujson"
)

// reply reads an answer, which may use the facts that are known.
func (p *parser) reply(v hujson.Value, known map[string]bool) (reply, error) {
	m, err := p.object(v, "content", "stop", "usage", "wait", "pace", "error", "cut", "stall")
	if err != nil {
		return reply{}, err
	}
	if err := p.checkTogether(v, m); err != nil {
		return reply{}, err
	}
	var r reply
	if content, given := m["content"]; given {
		read := func(v hujson.Value) (part, error) { return p.part(v, known) }
		if r.content, err = each(p, content, read); err != nil {
			return reply{}, err
		}
		if len(r.content) == 0 {
			return reply{}, p.errorf(content, "the content is empty")
		}
	}
	if cause, given := m["error"]; given {
		if r.fail, err = p.failure(cause, known); err != nil {
			return reply{}, err
		}
	}
	if r.broken, err = p.breakage(m); err != nil {
		return reply{}, err
	}
	return r, cmp.Or(
		set(m, "stop", &r.stop, p.word),
		set(m, "usage", &r.usage, p.usage),
		set(m, "wait", &r.wait, p.duration),
		set(m, "pace", &r.pace, p.duration),
	)
}

// checkTogether refuses members of a reply of which one would be ignored.
func (p *parser) checkTogether(v hujson.Value, m members) error {
	has := func(name string) bool { _, given := m[name]; return given }
	if has("error") {
		for _, other := range []string{"content", "stop", "usage", "pace", "cut", "stall"} {
			if has(other) {
				return p.errorf(m[other], "%s has no meaning beside error", other)
			}
		}
		return nil
	}
	if has("cut") && has("stall") {
		return p.errorf(m["stall"], "stall has no meaning beside cut")
	}
	if !has("content") && !has("cut") && !has("stall") {
		return p.errorf(v, "the reply needs content, error, cut or stall")
	}
	return nil
}

// part reads one block of a reply.
func (p *parser) part(v hujson.Value, known map[string]bool) (part, error) {
	m, err := p.object(v, "text", "thinking", "call", "input", "id")
	if err != nil {
		return part{}, err
	}
	_, isText := m["text"]
	_, isThinking := m["thinking"]
	name, isCall := m["call"]
	switch {
	case isText && len(m) == 1:
		t, err := p.template(m["text"], known)
		return part{text: t}, err
	case isThinking && len(m) == 1:
		t, err := p.template(m["thinking"], known)
		return part{thinking: t}, err
	case isCall && !isText && !isThinking:
		tool, err := p.word(name)
		if err != nil {
			return part{}, err
		}
		c, err := p.call(tool, m, known)
		return part{call: c}, err
	}
	return part{}, p.errorf(v, "here must be one of text, thinking, and call with input")
}

func (p *parser) call(tool string, m members, known map[string]bool) (*call, error) {
	c := &call{tool: tool, label: "call", input: map[string]any{}}
	if err := set(m, "id", &c.label, p.label); err != nil {
		return nil, err
	}
	input, given := m["input"]
	if !given {
		return c, nil
	}
	tree, err := p.jsonObject(input)
	if err != nil {
		return nil, err
	}
	if _, err := parseTree(tree, known); err != nil {
		return nil, p.errorf(input, "%w", err)
	}
	c.input = tree
	return c, nil
}

func (p *parser) template(v hujson.Value, known map[string]bool) (template, error) {
	s, err := p.word(v)
	if err != nil {
		return nil, err
	}
	t, err := parseTemplate(s, known)
	if err != nil {
		return nil, p.errorf(v, "%w", err)
	}
	return t, nil
}

func (p *parser) failure(v hujson.Value, known map[string]bool) (*failure, error) {
	m, err := p.object(v, "status", "retryAfter", "message")
	if err != nil {
		return nil, err
	}
	f := new(failure)
	status, given := m["status"]
	if !given {
		return nil, p.errorf(v, "the error has no status; 0 is a lost connection")
	}
	if f.status, err = p.count(status); err != nil {
		return nil, err
	}
	if f.status != 0 && (f.status < 400 || f.status > 599) {
		return nil, p.errorf(status, "the status of an error is 0 or from 400 to 599")
	}
	message, given := m["message"]
	if !given {
		return nil, p.errorf(v, "the error has no message")
	}
	if f.message, err = p.template(message, known); err != nil {
		return nil, err
	}
	return f, set(m, "retryAfter", &f.after, p.duration)
}

// breakage reads what ends a stream early; nil is nothing.
func (p *parser) breakage(m members) (*breakage, error) {
	for name, stalls := range map[string]bool{"cut": false, "stall": true} {
		v, given := m[name]
		if !given {
			continue
		}
		after, err := p.count(v)
		return &breakage{after: after, stalls: stalls}, err
	}
	return nil, nil
}
