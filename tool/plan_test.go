package tool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

// The tools of plan mode change the mode, back to what it was, and nothing where
// there is nothing to do.
func TestPlanMode(t *testing.T) {
	p := new(Planning)
	for i, step := range []struct {
		tool       troupe.Tool
		mode, plan string
		to, fails  string
	}{
		{ExitPlanMode{p}, "default", "p", "", "not in plan mode"},
		{EnterPlanMode{p}, "acceptEdits", "", "plan", ""},
		{EnterPlanMode{p}, "plan", "", "", "already"},
		{ExitPlanMode{p}, "plan", " ", "", "empty"},
		{ExitPlanMode{p}, "plan", "p", "acceptEdits", ""},
		{ExitPlanMode{p}, "plan", "p", "default", ""}, // it was begun in plan mode
	} {
		input := []byte(`{}`)
		if step.plan != "" {
			input = []byte(`{"plan":"` + step.plan + `"}`)
		}
		res, err := step.tool.Call(t.Context(), &troupe.Call{ToolUse: troupe.ToolUse{Name: step.tool.Spec().Name, Input: input}, Mode: step.mode})
		if (err != nil) != (step.fails != "") || err != nil && !strings.Contains(err.Error(), step.fails) {
			t.Errorf("%d: %v", i, err)
			continue
		}
		var want []troupe.Event
		if step.to != "" {
			sw := troupe.Switched{Mode: step.to}
			if step.to == "plan" {
				sw.Before = step.mode
			}
			want = []troupe.Event{sw}
		}
		if diff := cmp.Diff(want, res.Then); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	if _, err := (ExitPlanMode{p}).Call(t.Context(), &troupe.Call{ToolUse: troupe.ToolUse{Name: "ExitPlanMode", Input: []byte(`{}`)}, Mode: "plan"}); err == nil {
		t.Error("a plan without a plan is taken")
	}
}
