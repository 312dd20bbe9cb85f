package tool

import (
	"encoding/json"
	"strings"
	"testing"
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
	five := []any{question(option, option), question(option, option), question(option, option), question(option, option), question(option, option)}
	for want, questions := range map[string][]any{
		"there are 0 questions": {}, "there are 5 questions": five, "question 2 has 1 option": {question(option, option), question(option)},
		"question 1 has 5 options": {question(option, option, option, option, option)}, "question 1 is empty": {args{"question": " ", "header": "", "options": []any{option, option}, "multiSelect": true}},
	} {
		_, err := d.call(AskUserQuestion{}, args{"questions": questions})
		wantErr(t, err, nil, want)
	}
}
