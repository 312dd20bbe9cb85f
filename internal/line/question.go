package line

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/internal/cli"
)

// A question is one that waits for the person.
type question struct {
	ask.Question
	choices []choice // of a Choice, in the order asked
	answers map[string]string
	next    int // of choices
	posed   bool
}

// A choice is one of the questions of a model.
type choice struct {
	Question    string
	Header      string
	MultiSelect bool
	Options     []struct{ Label, Description string }
}

// asked takes in what is asked now. The oldest question is shown; those behind
// it wait.
func (r *room) asked(open []ask.Question) {
	shown, was := "", r.posed()
	if len(r.open) > 0 {
		shown = r.open[0].ID
	}
	var now []question
	for _, q := range open {
		if r.answered[q.ID] { // the desk has not heard of it yet
			continue
		}
		if i := slices.IndexFunc(r.open, func(o question) bool { return o.ID == q.ID }); i >= 0 {
			now = append(now, r.open[i])
			continue
		}
		now = append(now, question{Question: q})
	}
	r.open = now
	if len(now) > 0 && now[0].ID == shown {
		return
	}
	if shown != "" && was {
		r.print("that question needs no answer any more")
	}
	r.pose()
}

// posed reports whether a question was shown and waits.
func (r *room) posed() bool { return len(r.open) > 0 && r.open[0].posed }

// pose shows the oldest question, if there is one that was not shown, and not
// before what led to it: questions come faster than records.
func (r *room) pose() {
	if len(r.open) == 0 || r.posed() || !r.started[r.open[0].Call.Agent+" "+r.open[0].Call.ID] {
		return
	}
	q := &r.open[0]
	q.posed = true
	who := cli.Clean(q.Name)
	switch q.Kind {
	case ask.Choice:
		var in struct{ Questions []choice }
		_ = json.Unmarshal(q.Call.Input, &in) // the tool has looked at it before it asked
		q.choices, q.answers = in.Questions, map[string]string{}
		r.poseChoice()
		return
	case ask.Plan:
		var in struct{ Plan string }
		_ = json.Unmarshal(q.Call.Input, &in) // without a plan there is nothing to show
		r.print(who + " has a plan:")
		r.print(strings.TrimSpace(in.Plan))
		r.print("  y  go on with it\n  n  no; n and a note tell what to change")
		return
	}
	r.print(who + " asks for leave:")
	for _, line := range cli.Describe(q.Call.ToolUse) {
		r.print("  | " + line)
	}
	why, _, _ := strings.Cut(q.Why, "; use --") // here one answers instead
	why, _, _ = strings.Cut(why, "; add --")
	if why != "" {
		r.print("  " + strings.Join(strings.Fields(why), " "))
	}
	r.print("  y  yes, this once")
	if rules := strings.Join(q.Rules, ", "); rules != "" {
		r.print("  s  yes, and in this session all of " + rules)
		if r.s.Trusted() { // elsewhere what is written down does not count
			r.print("  a  yes, and always in this project all of " + rules)
		}
	}
	r.print("  n  no; n and a note tell the agent why")
	if n := len(r.open) - 1; n > 0 {
		r.print(fmt.Sprintf("  (%d more after this one)", n))
	}
}

// poseChoice shows the next of the questions of a model that has no answer.
func (r *room) poseChoice() {
	q := r.open[0]
	if q.next >= len(q.choices) {
		return
	}
	c := q.choices[q.next]
	r.print(cli.Clean(q.Name) + " asks: " + strings.TrimSpace(c.Question))
	for i, o := range c.Options {
		r.print(strings.TrimRight(fmt.Sprintf("  %d  %s  %s", i+1, o.Label, o.Description), " "))
	}
	how := "a number, or an answer of your own"
	if c.MultiSelect {
		how = "numbers, as in 1 3, or an answer of your own"
	}
	r.print("  " + how + "; nothing leaves it to the agent")
}

// answer takes what was typed for an answer to the oldest question.
func (r *room) answer(ctx context.Context, text string) {
	q := r.open[0]
	if q.Kind == ask.Choice {
		r.choose(text)
		return
	}
	word, note, _ := strings.Cut(strings.TrimSpace(text), " ")
	var err error
	switch offered := len(q.Rules) > 0; {
	case word == "y" && note == "":
	case word == "s" && note == "" && offered:
		err = r.s.Allow(q.Rules...)
	case word == "a" && note == "" && offered && r.s.Trusted():
		var path string
		if path, err = r.s.AllowAlways(ctx, q.Rules...); err == nil {
			r.print("written to " + path)
		}
	case word == "n":
		reason := "the user said no"
		if note = strings.TrimSpace(note); note != "" {
			reason += ": " + note
		}
		r.reply(ask.Answer{Verdict: troupe.Verdict{Effect: troupe.Deny, By: "user", Reason: reason}, Text: note})
		return
	default:
		r.print("that is no answer to the question above; what was typed comes back with the up arrow")
		return
	}
	if err != nil {
		r.print(err.Error())
		return
	}
	r.reply(ask.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}})
}

// reply answers the oldest question. A rule may have answered it already, and
// another face may have been faster.
func (r *room) reply(a ask.Answer) {
	id := r.open[0].ID
	r.answered[id] = true
	r.open = r.open[1:]
	_ = r.face.Desk.Answer(id, a)
	r.pose()
}

// choose takes what was typed for an answer to a question of a model.
func (r *room) choose(text string) {
	q := &r.open[0]
	if q.next < len(q.choices) {
		c := q.choices[q.next]
		q.answers[c.Question] = c.pick(text)
		q.next++
	}
	if q.next < len(q.choices) {
		r.poseChoice()
		return
	}
	var in map[string]any
	if err := json.Unmarshal(q.Call.Input, &in); err != nil {
		in = map[string]any{}
	}
	in["answers"] = q.answers
	raw, err := json.Marshal(in)
	if err != nil {
		r.print(err.Error())
		return
	}
	r.reply(ask.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user", Input: raw}})
}

// pick is the answer that a person means: the options of these numbers, or the
// text itself.
func (c choice) pick(text string) string {
	var labels []string
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(c.Options) || len(labels) > 0 && !c.MultiSelect {
			return strings.TrimSpace(text)
		}
		labels = append(labels, c.Options[n-1].Label)
	}
	return strings.Join(labels, ", ")
}
