package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
)

//go:embed ask.md
var askDoc string

// ErrNobody is what [AskUserQuestion] is told if no user is there.
var ErrNobody = errors.New("nobody is there to ask")

// AskUserQuestion is the tool by which the lead asks the user to choose. In a
// run without a user it answers at once that there is nobody and what to do
// instead; it does not wait.
type AskUserQuestion struct {
	// Ask brings the questions of a call to the user, waits, and returns the
	// answers by the texts of the questions. nil is a run without a user, and so is
	// ErrNobody. Any other error is told to the model.
	Ask func(ctx context.Context, c *troupe.Call) (map[string]string, error)
}

type askOption struct {
	Label       string `json:"label" jsonschema:"the answer, in a few words"`
	Description string `json:"description" jsonschema:"what it means to choose it"`
	Preview     string `json:"preview,omitempty" jsonschema:"an example of what comes of it"`
}

type askQuestion struct {
	Question    string      `json:"question" jsonschema:"the question, a whole sentence"`
	Header      string      `json:"header" jsonschema:"what it is about, in a word or two"`
	Options     []askOption `json:"options" jsonschema:"2 to 4 answers"`
	MultiSelect bool        `json:"multiSelect" jsonschema:"several answers may be chosen"`
}

type askInput struct {
	Questions []askQuestion `json:"questions" jsonschema:"1 to 4 questions"`
}

type askData struct {
	Questions []askQuestion     `json:"questions"`
	Answers   map[string]string `json:"answers"`
}

// Spec implements [troupe.Tool].
func (AskUserQuestion) Spec() troupe.ToolSpec { return define[askInput]("AskUserQuestion", askDoc) }

// Call implements [troupe.Tool].
func (t AskUserQuestion) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[askInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	if n := len(in.Questions); n < 1 || n > 4 {
		return troupe.Result{}, fmt.Errorf("there are %s; ask 1 to 4", plural(n, "question"))
	}
	for i, q := range in.Questions {
		if strings.TrimSpace(q.Question) == "" {
			return troupe.Result{}, fmt.Errorf("question %d is empty", i+1)
		}
		if n := len(q.Options); n < 2 || n > 4 {
			return troupe.Result{}, fmt.Errorf("question %d has %s; give 2 to 4", i+1, plural(n, "option"))
		}
	}
	answers, err := map[string]string{}, ErrNobody
	if t.Ask != nil {
		answers, err = t.Ask(ctx, c)
	}
	if err != nil && !errors.Is(err, ErrNobody) {
		return troupe.Result{}, err
	}
	res := answered(in.Questions, answers)
	if err != nil {
		answers = map[string]string{}
		res = troupe.Failure("Nobody can be asked: this run has no user. Choose what is safest and easiest to undo, go on, and say in your last message " +
			"what you have assumed. If no choice is safe, do the rest and end with the question as your last message.")
	}
	if res.Data, err = troupe.Encode(askData{in.Questions, answers}); err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	return res, nil
}

// answered is what the model is told of the user's answers.
func answered(questions []askQuestion, answers map[string]string) troupe.Result {
	var b strings.Builder
	b.WriteString("The user has answered:\n")
	for _, q := range questions {
		answer := strings.TrimSpace(answers[q.Question])
		if answer == "" {
			answer = "(no answer: choose yourself)"
		}
		fmt.Fprintf(&b, "%s\n→ %s\n", q.Question, answer)
	}
	return troupe.Answer(b.String())
}
