package troupetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/troupe-sh/troupe"
)

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// conversation is one that troupe holds valid and that is not easy to say in
// every dialect.
type conversation struct {
	name     string
	messages []troupe.Message
}

func conversations() []conversation {
	user := func(content ...troupe.Block) troupe.Message {
		return troupe.Message{Role: troupe.User, Content: content}
	}
	assistant := func(content ...troupe.Block) troupe.Message {
		return troupe.Message{Role: troupe.Assistant, Content: content}
	}
	call := func(id string) troupe.ToolUse {
		return troupe.ToolUse{ID: id, Name: "Read", Input: []byte(`{"file_path":"/tmp/a"}`)}
	}
	result := func(id string, content ...troupe.Block) troupe.ToolResult {
		return troupe.ToolResult{ID: id, Content: content}
	}
	text, picture := troupe.Text("some text"), troupe.Image{Media: "image/png", Data: pixel}
	foreign := troupe.Thinking{Text: "as another says", Signature: "c2ln", Provider: "elsewhere"}
	opaque := troupe.Opaque{Provider: "elsewhere", JSON: `{"type":"secret","data":"x"}`}
	return []conversation{
		{"a picture", []troupe.Message{user(text, picture)}},
		{"only a picture", []troupe.Message{user(picture)}},
		{"two messages of the user", []troupe.Message{user(text), user(text)}},
		{"two messages of the assistant", []troupe.Message{user(text), assistant(text), assistant(text), user(text)}},
		{"results and text", []troupe.Message{user(text), assistant(text, call("a"), call("b")), user(result("a", text), result("b", text), text)}},
		{"a result without content", []troupe.Message{user(text), assistant(call("a")), user(result("a"))}},
		{"a failed result", []troupe.Message{user(text), assistant(call("a")), user(troupe.ToolResult{ID: "a", Content: troupe.Blocks{text}, IsError: true})}},
		{"a picture as result", []troupe.Message{user(text), assistant(call("a"), call("b")), user(result("a", text, picture), result("b", picture))}},
		{"ids of another dialect", []troupe.Message{user(text), assistant(call("functions.Read:0"), call("functions Read/0")), user(result("functions.Read:0", text), result("functions Read/0", text))}},
		{"a tool no longer offered", []troupe.Message{user(text), assistant(troupe.ToolUse{ID: "a", Name: "Gone", Input: []byte(`{}`)}), user(result("a", text))}},
		{"reasoning of another provider", []troupe.Message{user(text), assistant(foreign, opaque, text), user(text)}},
		{"nothing but reasoning of another provider", []troupe.Message{user(text), assistant(foreign), user(text)}},
		{"reasoning of another provider before a call", []troupe.Message{user(text), assistant(foreign, call("a")), user(result("a", text))}},
		{"a call after a turn", []troupe.Message{user(text), assistant(text), user(text), assistant(call("a")), user(result("a", text)), assistant(text), user(text)}},
	}
}

// checkConversations: whatever troupe holds valid, the provider takes.
func checkConversations(ctx context.Context, m troupe.Model, p *Provider) error {
	for _, c := range conversations() {
		p.Say("yes")
		_, err := answered(ctx, m, asking(c.messages...))
		if last := p.Last(); last.Refused != "" {
			return fmt.Errorf("%s: refused for %s: %s", c.name, last.Refused, last.Complaint)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	bare := hello()
	bare.System, bare.Tools, bare.MaxTokens = "", nil, 0
	p.Say("yes")
	if _, err := answered(ctx, m, bare); err != nil {
		return fmt.Errorf("no system text, no tools, no limit: %w", err)
	}
	for _, effort := range []string{"low", "high", "2048"} {
		req := hello()
		req.Effort = effort
		p.Say("yes")
		if _, err := answered(ctx, m, req); err != nil {
			return fmt.Errorf("effort %s: %w", effort, err)
		}
	}
	return nil
}

// checkReasoning sends a reply with reasoning back, with the results of its
// calls, twice, and looks whether it arrives as it was.
func checkReasoning(ctx context.Context, m troupe.Model, p *Provider) error {
	talk := hello().Messages
	for range 2 {
		first := calling()
		for i, b := range first.Content {
			if u, ok := b.(troupe.ToolUse); ok {
				u.ID = fmt.Sprintf("%s_%d", u.ID, len(talk))
				first.Content[i] = u
			}
		}
		p.Queue(Reply{Message: first})
		o, err := answered(ctx, m, asking(talk...))
		if err != nil {
			return err
		}
		results := troupe.Message{Role: troupe.User}
		for _, u := range o.reply.Message.ToolUses() {
			results.Content = append(results.Content, troupe.ToolResult{ID: u.ID, Content: troupe.Blocks{troupe.Text("done")}})
		}
		talk = append(slices.Clip(talk), o.reply.Message, results)
	}
	p.Say("done")
	if _, err := answered(ctx, m, asking(talk...)); err != nil {
		return err
	}
	for _, got := range p.Last().Messages {
		if got.Role == troupe.Assistant && reasoned(got) != reasoned(calling()) {
			return fmt.Errorf("reasoning %q came back as %q", reasoned(calling()), reasoned(got))
		}
	}
	return nil
}
