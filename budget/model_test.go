package budget

import (
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// What is counted piece by piece is what would be counted at once, whatever
// becomes of the conversation.
func TestSizeOfAConversationThatGoesOn(t *testing.T) {
	m := &metered{}
	req := troupe.Request{System: "system", Tools: []troupe.ToolSpec{{Name: "a", Description: "does"}}}
	other := []troupe.Message{troupe.Say(troupe.User, "a summary"), troupe.Say(troupe.User, "go on")}
	for i := range 40 {
		req.Messages = append(req.Messages, troupe.Message{Role: troupe.User, Content: troupe.Blocks{troupe.Text(strings.Repeat("x", i)), troupe.Image{}}})
		switch {
		case i == 20:
			req.Messages = other
		case i == 25:
			longer := make([]troupe.Message, 60)
			for n := range longer {
				longer[n] = troupe.Say(troupe.User, "another conversation")
			}
			req.Messages = longer
		case i == 30:
			req.Messages = req.Messages[:1]
		}
		if got, want := m.size(&req), (&metered{}).size(&req); got != want {
			t.Fatalf("after %d messages %d, want %d", i+1, got, want)
		}
	}
}
