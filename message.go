package troupe

import (
	"encoding/json"
	"slices"
	"strings"
)

// A Role says who wrote a message.
type Role string

// The two roles of a conversation. Results of tools are part of a User message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one turn of a conversation. Messages are values: once a
// message has been appended to a conversation nobody changes it.
type Message struct {
	Role    Role
	Content Blocks
}

// Blocks is the content of a message; it has a JSON form of its own.
type Blocks []Block

// A Block is one piece of a message: [Text], [Image], [Thinking], [Opaque],
// [ToolUse] or [ToolResult].
type Block interface{ block() }

type (
	// Text is plain text.
	Text string
	// Image is a picture: its media type and its bytes in base64.
	Image struct{ Media, Data string }
	// Thinking is model reasoning. Provider says who can take it back; it goes
	// back to that provider unchanged, with its Signature, and to no other.
	Thinking struct{ Text, Signature, Provider string }
	// Opaque is a block that only its Provider understands. It goes back to
	// that provider byte for byte, and to no other.
	Opaque struct{ Provider, JSON string }
	// ToolUse is a model's request to call a tool. In a conversation Input is
	// a compact JSON object.
	ToolUse struct {
		ID, Name string
		Input    json.RawMessage
	}
	// ToolResult answers the ToolUse that has the same ID. Its content is Text
	// and Image.
	ToolResult struct {
		ID      string
		Content Blocks
		IsError bool `json:",omitempty"`
	}
)

func (Text) block()       {}
func (Image) block()      {}
func (Thinking) block()   {}
func (Opaque) block()     {}
func (ToolUse) block()    {}
func (ToolResult) block() {}

// Say is a message of plain text.
func Say(r Role, text string) Message { return Message{r, Blocks{Text(text)}} }

// ToolUses returns the tool calls in m, in order.
func (m Message) ToolUses() []ToolUse {
	var out []ToolUse
	for _, b := range m.Content {
		if u, ok := b.(ToolUse); ok {
			out = append(out, u)
		}
	}
	return out
}

// Text returns the text blocks of b, joined.
func (b Blocks) Text() string {
	var s strings.Builder
	for _, c := range b {
		if t, ok := c.(Text); ok {
			s.WriteString(string(t))
		}
	}
	return s.String()
}

// LastText returns the last text block of b: of a first message, in which the facts
// of the place stand in front, the prompt.
func (b Blocks) LastText() string {
	for _, c := range slices.Backward(b) {
		if t, ok := c.(Text); ok {
			return string(t)
		}
	}
	return ""
}

// estimate returns about how many tokens n bytes of text are, rather too many.
// A token is about four bytes of English or of code, and three of most scripts.
func estimate(n int) int { return (n + 2) / 3 }

// pictureTokens is what a large picture costs with most providers.
const pictureTokens = 1_600

// size estimates the tokens of b.
func (b Blocks) size() (n int) {
	for _, c := range b {
		switch c := c.(type) {
		case Text:
			n += estimate(len(c))
		case Image:
			n += pictureTokens
		case Thinking:
			n += estimate(len(c.Text))
		case Opaque:
			n += estimate(len(c.JSON))
		case ToolUse:
			n += estimate(len(c.Name) + len(c.Input))
		case ToolResult:
			n += c.Content.size()
		}
	}
	return n
}

// Size estimates how many tokens m has, rather too many than too few.
func (m Message) Size() int { return m.Content.size() }
