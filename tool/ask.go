package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
)

//go:embed ask.md
var askDoc string

// AskUserQuestion is the tool by which the lead asks the user to choose. Nobody
// can be asked in a run without a user, so it answers at once that there is
// nobody and what to do instead; it never waits.
type AskUserQuestion struct{}

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
func (AskUserQuestion) Call(_ context.Context, c *troupe.Call) (troupe.Result, error) {
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
	res := troupe.Failure("Nobody can be asked: this run has no user. Choose what is safest and easiest to undo, go on, and say in your last message " +
		"what you have assumed. If no choice is safe, do the rest and end with the question as your last message.")
	if res.Data, err = troupe.Encode(askData{in.Questions, map[string]string{}}); err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	return res, nil
}
