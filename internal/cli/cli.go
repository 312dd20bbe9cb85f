// Package cli is the face of troupe without a screen: it makes of the records
// of a session what `troupe -p` prints, in three formats, and the timeline
// that a person follows.
//
// A [Face] is told of every record of every agent, in order, and at the end of
// the outcome. It holds no rule of the product: what it prints is what the
// log says.
package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/task"
)

// A Face prints a run. It is used by one goroutine.
type Face interface {
	// Record is called for each record, in order. An error ends the run: what
	// is printed can no longer be read.
	Record(r session.Record) error
	// Finish prints the result. The last call.
	Finish(o Outcome) error
}

// An Outcome is how a run ended.
type Outcome struct {
	Ended troupe.Ended
	Tally *Tally
	Took  time.Duration
	// Stopped is what the lead had left in the background and nobody waited for.
	Stopped []task.Task
	News    bool // the run was begun by news of the background, and by no prompt
}

// Text is the face for people and pipes: the answer on out, and one line about
// the run on notes.
type Text struct {
	Out, Notes io.Writer
	Session    string
}

// patience is the wait for a provider from which on a person is told of it.
const patience = 2 * time.Second

// Record implements [Face]: it tells of long waits, of another model and of what went
// wrong on the way.
func (t Text) Record(r session.Record) error {
	var line string
	switch ev := r.Event.(type) {
	case troupe.Compacted:
		line = fmt.Sprintf("agent %s goes on with a summary of its conversation (%s)", OneLine(r.Agent, 20), OneLine(ev.Trigger, 20))
	case troupe.NotCompacted:
		line = "the conversation could not be put together and stays as it is: " + OneLine(ev.Err, 200)
	case troupe.Retrying:
		if ev.After < patience {
			return nil
		}
		line = fmt.Sprintf("waiting %s for the provider (%d of %d): %s", took(ev.After), ev.Attempt, ev.Of, OneLine(ev.Cause, 200))
	case troupe.Waiting:
		if ev.For > 0 && ev.For < patience {
			return nil
		}
		line = waiting(ev, 200)
	case troupe.Switched:
		if ev.Cause == "" || ev.Model == "" {
			return nil
		}
		line = switched(ev, 300)
	default:
		return nil
	}
	_, err := fmt.Fprintln(t.Notes, line)
	return err
}

// waiting tells of a wait for the limit of an account.
func waiting(ev troupe.Waiting, limit int) string {
	long := ""
	if ev.For > 0 {
		long = " for about " + took(ev.For)
	}
	return fmt.Sprintf("waiting%s for the account's rate limit: %s", long, OneLine(ev.Cause, limit))
}

// switched tells of a model that nobody has named at this moment.
func switched(ev troupe.Switched, limit int) string {
	return fmt.Sprintf("going on with %s: %s", OneLine(ev.Model, 60), OneLine(ev.Cause, limit))
}

// Finish implements [Face].
func (t Text) Finish(o Outcome) error {
	if o.Ended.Text != "" {
		if _, err := fmt.Fprintln(t.Out, o.Ended.Text); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	for _, s := range o.Stopped {
		if _, err := fmt.Fprintln(t.Notes, StoppedLine(s)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(t.Notes, Summary(o, t.Session))
	return err
}

// StoppedLine names a task that did not come to its end.
func StoppedLine(t task.Task) string {
	return "stopped " + OneLine(t.ID, 40) + ": " + OneLine(delegate.Summary(t), 400)
}

// Summary is the line about a run: what Turn says of it, denials, session.
func Summary(o Outcome, id string) string {
	parts := []string{Turn(o)}
	if d := len(o.Tally.Denials); d > 0 {
		parts = append(parts, plural(d, "call")+" denied: "+denied(o.Tally.Denials))
	}
	return strings.Join(append(parts, "session "+id), " · ")
}

// Turn says how a run ended if not well, and what it took: requests of the lead,
// tokens and cost of all agents.
func Turn(o Outcome) string {
	var parts []string
	if o.Ended.Reason != troupe.Done {
		parts = append(parts, ending(o.Ended))
	}
	switch StopReason(o.Ended.Stop) {
	case "max_tokens":
		parts = append(parts, "the answer was cut off at the longest reply of the model")
	case "refusal":
		parts = append(parts, "the model or its provider refused to answer")
	}
	return strings.Join(append(parts, plural(o.Ended.Turns, "turn"), tokens(o.Tally.Usage())+" tokens", Money(o.Tally.Cost())), " · ")
}

// ending says why a run did not complete, in one line.
func ending(e troupe.Ended) string {
	if e.Err == "" || e.Err == string(e.Reason) {
		return OneLine(string(e.Reason), 20)
	}
	return OneLine(string(e.Reason), 20) + ": " + OneLine(e.Err, 400)
}

// denied names the tools that were denied, and the reason of the first.
func denied(ds []Denial) string {
	var names []string
	seen := map[string]bool{}
	for _, d := range ds {
		if !seen[d.Tool] {
			seen[d.Tool] = true
			names = append(names, OneLine(d.Tool, 40))
		}
	}
	return strings.Join(names, ", ") + " (" + OneLine(ds[0].Verdict.Reason, 200) + ")"
}

// Money is a cost in dollars; what is not known is never shown as nothing.
func Money(dollars float64, known bool) string {
	switch {
	case !known:
		return "cost unknown"
	case dollars > 0 && dollars < 0.01:
		return fmt.Sprintf("$%.4f", dollars)
	}
	return fmt.Sprintf("$%.2f", dollars)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func tokens(u troupe.Usage) string { return group(u.Total()) }

// group writes a number with a comma at each thousand.
func group(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// OneLine is the beginning of s as one line that a screen can show.
func OneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}
