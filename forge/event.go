package forge

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/troupe-sh/troupe/internal/fence"
)

// MaxText is how much of a comment is told, in bytes. The rest is
// where the event's URL leads.
const MaxText = 8000

// A Kind says what an [Event] is about.
type Kind string

// The kinds.
const (
	Comment       Kind = "comment"        // in the conversation
	ReviewComment Kind = "review_comment" // on a line
	Review        Kind = "review"
	Check         Kind = "check"      // a check run that is over
	Commit        Kind = "status"     // a commit status that is not pending
	Closed        Kind = "closed"     // without a merge
	Merged        Kind = "merged"     //
	Unreadable    Kind = "unreadable" // a kind of news that will not be told, and why
)

// An Event is something new in a pull request.
type Event struct {
	// ID names the event for good. It is a segment of a store's key and begins, as
	// those of mail do, with the time in hexadecimal nanoseconds: of two events the
	// later one's is greater, as far as the server's clock tells.
	ID         string
	Kind       Kind
	Repository string
	Number     int    // of the pull request
	Edited     bool   `json:",omitempty"` // the same was told before, or was there before the subscription
	Author     string `json:",omitempty"`
	Title      string `json:",omitempty"` // of a check or status: its name
	State      string `json:",omitempty"` // of a review: its verdict; of a check or status: its conclusion
	Commit     string `json:",omitempty"` // that a check, status or review is about
	Path       string `json:",omitempty"`
	Line       int    `json:",omitempty"` // 0 if it is about the file, or the line is gone
	URL        string `json:",omitempty"`
	Time       time.Time
	Text       string `json:",omitempty"` // at most about MaxText
}

// Render returns e as the element that a model reads. Nothing in e can end the
// element or look like the beginning of another one.
func Render(e Event) string {
	var attrs []fence.Attr
	for _, a := range []fence.Attr{
		{Name: "kind", Value: string(e.Kind)}, {Name: "repository", Value: e.Repository}, {Name: "pull-request", Value: number(e.Number)},
		{Name: "edited", Value: yes(e.Edited)}, {Name: "author", Value: e.Author}, {Name: "name", Value: e.Title}, {Name: "state", Value: e.State},
		{Name: "commit", Value: e.Commit}, {Name: "path", Value: e.Path}, {Name: "line", Value: number(e.Line)}, {Name: "url", Value: e.URL},
	} {
		if a.Value = oneLine(a.Value, 300); a.Value != "" {
			attrs = append(attrs, a)
		}
	}
	text := clip(e.Text)
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText], "") + "\n[cut; the rest is at the url]"
	}
	return fence.Frame("pr-activity", text, attrs...)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// seen reports whether r leaves something to be seen, or joins what does.
func seen(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return true
	case '\u2028', '\u2029':
		return false
	}
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
}

// clip is text for an event: without what cannot be seen, and of what is more than
// will be told, a little.
func clip(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !seen(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
	if len(text) <= MaxText {
		return text
	}
	return strings.ToValidUTF8(text[:MaxText], "") + "…"
}
