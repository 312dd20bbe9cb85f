package compact

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/fence"
)

//go:embed summary.md
var ask string

// question is what the model is asked at the end of the conversation.
func question(instructions string) string {
	if instructions == "" {
		return ask
	}
	return ask + "\nFor this summary the user adds:\n" + instructions
}

// tail returns how many of the last messages stay as they are: those that have
// at most limit tokens together and are not the larger half, and always the last
// one, so that an agent which has nothing to do still has nothing to do.
func tail(msgs []troupe.Message, limit int) int {
	keep, size, all := 0, 0, 0
	for _, m := range msgs {
		all += m.Size()
	}
	limit = min(limit, all/2)
	for _, m := range slices.Backward(msgs) {
		if size += m.Size(); keep > 0 && size > limit {
			break
		}
		keep++
	}
	return whole(msgs, keep)
}

// whole makes the last keep messages begin with no result of a call before them.
func whole(msgs []troupe.Message, keep int) int {
	for keep < len(msgs) && keep > 0 && hasResults(msgs[len(msgs)-keep]) {
		keep++
	}
	return keep
}

func hasResults(m troupe.Message) bool {
	return slices.ContainsFunc(m.Content, func(b troupe.Block) bool { _, ok := b.(troupe.ToolResult); return ok })
}

// shorter returns the conversation as a model may be asked to sum it up, from
// all of it, which is in the provider's cache, to less and less of it: with long
// results cut, then only the newer half, then the newest quarter.
func shorter(msgs []troupe.Message) [][]troupe.Message {
	cut := make([]troupe.Message, len(msgs))
	for i, m := range msgs {
		cut[i] = troupe.Message{Role: m.Role, Content: shortResults(m.Content)}
	}
	out := [][]troupe.Message{slices.Clip(msgs), cut}
	for _, part := range []int{2, 4} {
		newer := cut[len(cut)-whole(cut, max(1, len(cut)/part)):]
		begin := troupe.Say(troupe.User, "(The beginning of this conversation is left out.)")
		out = append(out, append([]troupe.Message{begin}, newer...))
	}
	return out
}

// longResult is how many bytes of a result are left where room is scarce.
const longResult = 2_000

func shortResults(b troupe.Blocks) troupe.Blocks {
	out := slices.Clone(b)
	for i, c := range out {
		if r, ok := c.(troupe.ToolResult); ok && r.Content.Text() != "" {
			if text := r.Content.Text(); len(text) > longResult {
				text = strings.ToValidUTF8(text[:longResult/2], "") + "\n…\n" + strings.ToValidUTF8(text[len(text)-longResult/2:], "")
				r.Content = troupe.Blocks{troupe.Text(text)}
			}
			out[i] = r
		}
	}
	return out
}

// What a summary carries on word for word, each in a frame of its own, because
// it must not depend on how well the model tells it.
const (
	firstPrompt = "first-prompt"
	todos       = "todos"
	plan        = "plan"
)

// longestPrompt is how many bytes of the first prompt are carried on.
const longestPrompt = 8_000

// carried returns what is to be carried on from msgs, in frames.
func carried(msgs []troupe.Message) (frames []string) {
	if text := frame(msgs[:1], firstPrompt); text != "" {
		frames = append(frames, text)
	} else if prompt := msgs[0].Content.LastText(); prompt != "" {
		if len(prompt) > longestPrompt {
			prompt = strings.ToValidUTF8(prompt[:longestPrompt], "") + " …"
		}
		frames = append(frames, fence.Frame(firstPrompt, prompt))
	}
	for name, tool := range map[string]string{todos: "TodoWrite", plan: "ExitPlanMode"} {
		switch input := lastDone(msgs, tool); {
		case input != nil:
			frames = append(frames, fence.Frame(name, string(input)))
		default:
			if text := frame(msgs[:1], name); text != "" {
				frames = append(frames, text)
			}
		}
	}
	slices.Sort(frames)
	return frames
}

// lastDone returns the input of the newest call of a tool that came to something:
// a plan that was declined is none.
func lastDone(msgs []troupe.Message, tool string) json.RawMessage {
	done := map[string]bool{}
	for _, m := range slices.Backward(msgs) {
		for _, b := range slices.Backward(m.Content) {
			switch b := b.(type) {
			case troupe.ToolResult:
				done[b.ID] = !b.IsError
			case troupe.ToolUse:
				if b.Name == tool && done[b.ID] {
					return b.Input
				}
			}
		}
	}
	return nil
}

// frame returns the frame of that name that a summary among msgs carries, whole.
func frame(msgs []troupe.Message, name string) string {
	for _, m := range msgs {
		for _, b := range m.Content {
			t, ok := b.(troupe.Text)
			if ok && strings.HasPrefix(string(t), "<"+name+">\n") && strings.HasSuffix(string(t), "\n</"+name+">") {
				return string(t)
			}
		}
	}
	return ""
}

// isSummary reports whether m was made by summary.
func isSummary(m troupe.Message) bool {
	return m.Role == troupe.User && strings.HasPrefix(m.Content.LastText(), taken)
}

// taken begins the last block of a summary.
const taken = "The conversation so far was put together to save room. "

// summary is the message that takes the place of the older ones.
func summary(before, text string, frames []string) troupe.Message {
	m := troupe.Message{Role: troupe.User}
	if before != "" {
		m.Content = append(m.Content, troupe.Text(before))
	}
	for _, f := range frames {
		m.Content = append(m.Content, troupe.Text(f))
	}
	m.Content = append(m.Content, troupe.Text(taken+"Go on from here as if it had not been; "+
		"what is not in the summary can be read again.\n"+fence.Frame("summary", text)))
	return m
}
