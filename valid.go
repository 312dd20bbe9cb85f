package troupe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Valid reports what a provider would refuse in a conversation: nil means
// that it begins with the user, that no message or text is empty, that each
// call has an ID of its own and exactly one result, in the order asked, at the
// beginning of the next message, and that all text is valid UTF-8.
//
// Whatever [State] holds is valid but for calls that are still open.
func Valid(msgs []Message) error {
	if len(msgs) == 0 {
		return errors.New("the conversation is empty")
	}
	if msgs[0].Role != User {
		return errors.New("the conversation does not begin with the user")
	}
	ids := map[string]bool{}
	var open []ToolUse
	for i, m := range msgs {
		if err := validMessage(m, open, ids); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		open = m.ToolUses()
	}
	if len(open) > 0 {
		return fmt.Errorf("call %s has no result", open[0].ID)
	}
	return nil
}

func validMessage(m Message, open []ToolUse, ids map[string]bool) error {
	if len(m.Content) == 0 {
		return errors.New("no content")
	}
	if len(m.Content) < len(open) {
		return fmt.Errorf("call %s has no result", open[len(m.Content)].ID)
	}
	for i, b := range m.Content {
		res, isResult := b.(ToolResult)
		switch {
		case i < len(open) && (!isResult || m.Role != User || res.ID != open[i].ID):
			return fmt.Errorf("call %s has no result in its place", open[i].ID)
		case i >= len(open) && isResult:
			return fmt.Errorf("result %s without a call", res.ID)
		}
		if err := validBlock(m.Role, b, ids); err != nil {
			return err
		}
	}
	return nil
}

func validBlock(role Role, b Block, ids map[string]bool) error {
	switch b := b.(type) {
	case Text:
		if blank(string(b)) || !utf8.ValidString(string(b)) {
			return errors.New("text is empty or not UTF-8")
		}
	case ToolResult:
		if len(b.Content) == 0 {
			return fmt.Errorf("result %s is empty", b.ID)
		}
		for _, c := range b.Content {
			switch c.(type) {
			case Text, Image:
			default:
				return fmt.Errorf("result %s holds a %T", b.ID, c)
			}
			if err := validBlock(role, c, ids); err != nil {
				return fmt.Errorf("result %s: %w", b.ID, err)
			}
		}
	case ToolUse:
		if role != Assistant || b.ID == "" || ids[b.ID] || b.Name != cleanName(b.Name) || !isObject(b.Input) {
			return fmt.Errorf("call %q of %q: wrong role, ID, name or input", b.ID, b.Name)
		}
		ids[b.ID] = true
	case Thinking, Opaque:
		if role != Assistant {
			return errors.New("reasoning in a message of the user")
		}
	}
	return nil
}

// Clean returns a reply of the model as the conversation can hold it: text in
// valid UTF-8 and not empty; calls with IDs that are new to s, a usable name
// and a JSON object as input; a call that came twice only once.
func (s *State) Clean(m Message) Message {
	out := Message{Role: Assistant}
	var uses []ToolUse
	taken := map[string]bool{}
	for _, b := range m.Content {
		switch b := b.(type) {
		case Text:
			out.Content = appendText(out.Content, string(b))
		case Thinking:
			b.Text = validText(b.Text)
			if b.Text != "" || b.Signature != "" {
				out.Content = append(out.Content, b)
			}
		case Opaque:
			b.JSON = validText(b.JSON)
			if b.JSON != "" {
				out.Content = append(out.Content, b)
			}
		case ToolUse:
			b.Name, b.Input = cleanName(b.Name), cleanInput(b.Input)
			if repeated(uses, b) {
				continue
			}
			uses = append(uses, b)
			b.ID = s.freshID(strings.ToValidUTF8(b.ID, "_"), taken)
			taken[b.ID] = true
			out.Content = append(out.Content, b)
		}
	}
	return out
}

func repeated(uses []ToolUse, u ToolUse) bool {
	for _, v := range uses {
		if u.ID != "" && v.ID == u.ID && v.Name == u.Name && bytes.Equal(v.Input, u.Input) {
			return true
		}
	}
	return false
}

// freshID returns id, or one made of it that no call in s or in taken has.
func (s *State) freshID(id string, taken map[string]bool) string {
	if id == "" {
		id = "call"
	} else if !s.ids[id] && !taken[id] {
		return id
	}
	for n := len(s.ids) + len(taken) + 1; ; n++ {
		fresh := id + "_" + strconv.Itoa(n)
		if !s.ids[fresh] && !taken[fresh] {
			return fresh
		}
	}
}

// unreadable is the only field of the input of a call whose input was no JSON
// object; it holds what the model wrote.
const unreadable = "unreadable_input"

func cleanInput(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	if isObject(raw) {
		if out := compact(bytes.ToValidUTF8(raw, []byte("\uFFFD"))); out != nil {
			return out
		}
	}
	wrapped, err := Encode(map[string]string{unreadable: validText(string(raw))})
	if err != nil {
		return json.RawMessage("{}")
	}
	return wrapped
}

// compact keeps the order and the spelling of raw, unless it has escaped
// surrogates: half a pair is no text, and providers refuse it.
func compact(raw []byte) json.RawMessage {
	if bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			return nil
		}
		out, err := Encode(v)
		if err != nil {
			return nil
		}
		return out
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// cleanName makes name one that every provider takes: letters, digits, _ and -.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), 128)]
}

func cleanUser(m Message) Message {
	out := Message{Role: User}
	for _, b := range m.Content {
		switch b := b.(type) {
		case Text:
			out.Content = appendText(out.Content, string(b))
		case Image:
			out.Content = append(out.Content, b)
		}
	}
	return out
}

func cleanResult(b Blocks) Blocks {
	if out := cleanUser(Message{Content: b}).Content; len(out) > 0 {
		return out
	}
	return Blocks{Text("(no output)")}
}

func appendText(b Blocks, text string) Blocks {
	if blank(text) {
		return b
	}
	return append(b, Text(validText(text)))
}

// validText replaces each byte that is not UTF-8 as encoding/json does, so that
// a live conversation is what its log folds to.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
