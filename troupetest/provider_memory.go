package troupetest

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/troupe-sh/troupe"
)

// memory is the reasoning that a service has signed: it must come back as it
// was, or not at all.
type memory struct {
	mu        sync.Mutex
	messages  int
	signed    map[string]origin // by signature, or by the data of a redacted block
	reasoning map[string]bool   // text of unsigned reasoning (OpenAI)
	calls     map[string][]turn // by tool use; ids may be used in several conversations
}

// origin says where a piece of reasoning was made.
type origin struct {
	text     string
	message  int
	position int
}

// turn is what is remembered of a message that calls tools.
type turn struct {
	reasoning []string // signatures and redacted data, in order
	first     bool     // the message starts with reasoning
}

func newMemory() *memory {
	return &memory{signed: map[string]origin{}, reasoning: map[string]bool{}, calls: map[string][]turn{}}
}

// learn remembers the reasoning of m.
func (y *memory) learn(m troupe.Message) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.messages++
	var made turn
	joined := map[string]string{}
	for i, b := range m.Content {
		signature, said := signature(b)
		if signature != "" {
			y.signed[signature] = origin{said, y.messages, i}
			made.reasoning = append(made.reasoning, signature)
			made.first = made.first || i == 0
		}
		if t, ok := b.(troupe.Thinking); ok {
			y.reasoning[t.Text] = true
			joined[t.Provider] += t.Text
		}
	}
	for _, whole := range joined {
		y.reasoning[whole] = true
	}
	for _, u := range m.ToolUses() {
		y.calls[u.ID] = append(y.calls[u.ID], made)
	}
}

// signature returns what identifies reasoning, and its text.
func signature(b troupe.Block) (id, said string) {
	switch b := b.(type) {
	case troupe.Thinking:
		return b.Signature, b.Text
	case troupe.Opaque:
		var redacted struct{ Type, Data string }
		if json.Unmarshal([]byte(b.JSON), &redacted) == nil && redacted.Type == "redacted_thinking" {
			return redacted.Data, ""
		}
	}
	return "", ""
}

func (y *memory) origin(signature string) (origin, bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	o, ok := y.signed[signature]
	return o, ok
}

func (y *memory) reasoned(text string) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.reasoning[text]
}

// keeps reports whether reasoning, as it stands in a message that calls the
// tool use id, is what there was when the call was made. A call that nobody
// told of may have any.
func (y *memory) keeps(id string, reasoning []string, first bool) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	turns := y.calls[id]
	return len(turns) == 0 || slices.ContainsFunc(turns, func(made turn) bool {
		return subsequence(made.reasoning, reasoning) && (first || !made.first)
	})
}

func subsequence(part, whole []string) bool {
	for _, s := range part {
		i := slices.Index(whole, s)
		if i < 0 {
			return false
		}
		whole = whole[i+1:]
	}
	return true
}
