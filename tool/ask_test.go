package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// Nobody is there: the answer comes at once, is no choice of anybody, and says
// what to do.
func TestAskUserQuestion(t *testing.T) {
	option := args{"label": "a", "description": "b"}
	question := func(options ...any) args {
		return args{"question": "Which?", "header": "Way", "options": options, "multiSelect": false}
	}
	d := newDesk(t)
	res, err := d.call(AskUserQuestion{}, args{"questions": []any{question(option, option)}, "answers": args{"Which?": "a"}})
	if err != nil || !res.IsError || !strings.Contains(res.Content.Text(), "Nobody can be asked") || !strings.Contains(res.Content.Text(), "go on") {
		t.Errorf("%v %v %q", err, res.IsError, res.Content.Text())
	}
	var data struct {
		Questions []askQuestion
		Answers   map[string]string
	}
	if err := json.Unmarshal(res.Data, &data); err != nil || len(data.Questions) != 1 || data.Answers == nil || len(data.Answers) != 0 {
		t.Errorf("data %s (%v)", res.Data, err)
	}
	d.answered(t, question(option, option))
	five := []any{question(option, option), question(option, option), question(option, option), question(option, option), question(option, option)}
	for want, questions := range map[string][]any{
		"there are 0 questions": {}, "there are 5 questions": five, "question 2 has 1 option": {question(option, option), question(option)},
		"question 1 has 5 options": {question(option, option, option, option, option)}, "question 1 is empty": {args{"question": " ", "header": "", "options": []any{option, option}, "multiSelect": true}},
	} {
		_, err := d.call(AskUserQuestion{}, args{"questions": questions})
		wantErr(t, err, nil, want)
	}
}

// answered calls the tool where a user is, who answers one of two questions.
func (d desk) answered(t *testing.T, q args) {
	t.Helper()
	other := args{"question": "And how?", "header": "How", "options": q["options"], "multiSelect": true}
	there := AskUserQuestion{Ask: func(_ context.Context, c *troupe.Call) (map[string]string, error) {
		return map[string]string{"Which?": "the second"}, nil
	}}
	res, err := d.call(there, args{"questions": []any{q, other}})
	if text := res.Content.Text(); err != nil || res.IsError || !strings.Contains(text, "Which?\n→ the second") || !strings.Contains(text, "And how?\n→ (no answer") {
		t.Errorf("%v %v %q", err, res.IsError, text)
	}
	if !strings.Contains(string(res.Data), `"answers":{"Which?":"the second"}`) {
		t.Errorf("data %s", res.Data)
	}
	there.Ask = func(context.Context, *troupe.Call) (map[string]string, error) {
		return nil, errors.New("the user did not answer: later")
	}
	if _, err := d.call(there, args{"questions": []any{q}}); err == nil || !strings.Contains(err.Error(), "later") {
		t.Error(err)
	}
}
