package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/hook"
)

// says is a hook that prints text, or fails.
func says(e hook.Event, matcher, text string) hook.Hook {
	return hook.Hook{Event: e, Matcher: matcher, Name: "test", Run: func(context.Context, hook.Input) (hook.Output, error) {
		if why, fails := strings.CutPrefix(text, "!"); fails {
			return hook.Output{}, errors.New(why)
		}
		return hook.ParseOutput([]byte(text))
	}}
}

func call(tool string) hook.Input {
	return hook.Input{Event: hook.PreToolUse, Call: &hook.Call{Tool: tool, Input: json.RawMessage(`{"a":1}`), Use: "u1"}}
}

func set(t *testing.T, hooks ...hook.Hook) *hook.Set {
	t.Helper()
	s := new(hook.Set)
	if err := s.Register("test", hooks...); err != nil {
		t.Fatal(err)
	}
	return s
}

func pre(decision, more string) string {
	return fmt.Sprintf(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":%q,"permissionDecisionReason":"%s %s"%s}}`, decision, decision, "reason", more)
}

func TestMatchers(t *testing.T) {
	for _, c := range []struct {
		matcher, tool string
		runs          bool
	}{
		{"", "Bash", true}, {"*", "Bash", true}, {"Bash", "Bash", true}, {"Bash", "BashOutput", false},
		{"Edit|Write", "Write", true}, {"Edit, Write", "Write", true}, {"Edit|Write", "NotebookEdit", false},
		{"Notebook.*", "NotebookEdit", true}, {"^Edit", "NotebookEdit", false}, {"Edit.?", "NotebookEdit", true},
		{"Task", "Agent", true}, {"Agent", "Agent", true}, {"mcp__a-b", "mcp__a-b", true}, {"mcp__.*__x", "mcp__s__x", true},
	} {
		o, err := set(t, says(hook.PreToolUse, c.matcher, pre("deny", ""))).Run(t.Context(), call(c.tool))
		if err != nil || (o.Effect == troupe.Deny) != c.runs {
			t.Errorf("%q for %s: %+v, %v", c.matcher, c.tool, o, err)
		}
	}
	for name, h := range map[string]hook.Hook{"matcher": says(hook.PreToolUse, "(", ""), "event": says("PreLunch", "", "")} {
		s := set(t, says(hook.Stop, "", ""))
		if err := s.Register("test", h); err == nil || !s.Has(hook.Stop) {
			t.Errorf("%s: a hook that cannot run was taken, or the others are gone: %v", name, err)
		}
	}
	at := hook.Input{Event: hook.Stop, Stopping: &hook.Stopping{}}
	if o, _ := set(t, says(hook.Stop, "nothing", `{"decision":"block","reason":"r"}`)).Run(t.Context(), at); o.Effect != troupe.Deny {
		t.Error("a matcher at an event that knows none counted")
	}
}

func TestWhatHooksSayTogether(t *testing.T) {
	in := `,"updatedInput":{"b":2}`
	for name, c := range map[string]struct {
		say  []string
		want hook.Outcome
	}{
		"nothing":               {[]string{"", "{}"}, hook.Outcome{}},
		"allow":                 {[]string{"", pre("allow", in)}, hook.Outcome{Effect: troupe.Allow, Reason: "allow reason", Input: []byte(`{"b":2}`)}},
		"ask beats allow":       {[]string{pre("ask", ""), pre("allow", in)}, hook.Outcome{Effect: troupe.Ask, Reason: "ask reason", Input: []byte(`{"b":2}`)}},
		"deny beats ask":        {[]string{pre("ask", in), pre("deny", ""), pre("allow", "")}, hook.Outcome{Effect: troupe.Deny, Reason: "deny reason"}},
		"block is deny":         {[]string{pre("allow", ""), `{"decision":"block","reason":"no"}`}, hook.Outcome{Effect: troupe.Deny, Reason: "no"}},
		"approve is allow":      {[]string{`{"decision":"approve","reason":"yes"}`}, hook.Outcome{Effect: troupe.Allow, Reason: "yes"}},
		"a later time is never": {[]string{pre("defer", "")}, hook.Outcome{Effect: troupe.Deny, Reason: "the hook defers the call, which is not possible here"}},
		"all contexts": {[]string{`{"hookSpecificOutput":{"additionalContext":"one"}}`, `{"hookSpecificOutput":{"additionalContext":"two"}}`},
			hook.Outcome{Add: []string{"one", "two"}}},
		"halt":              {[]string{`{"continue":false,"stopReason":"enough"}`, `{"continue":true}`}, hook.Outcome{Halt: true, Why: "enough"}},
		"word to the user":  {[]string{`{"systemMessage":"hello","suppressOutput":true}`}, hook.Outcome{Tell: []string{"hello"}}},
		"failure":           {[]string{"!broken", pre("allow", "")}, hook.Outcome{Effect: troupe.Allow, Reason: "allow reason", Tell: []string{"hook test at PreToolUse failed: broken"}}},
		"of another event":  {[]string{`{"hookSpecificOutput":{"hookEventName":"Stop"}}`}, hook.Outcome{Tell: []string{`hook test at PreToolUse failed: hookEventName is "Stop" at PreToolUse`}}},
		"unknown decision":  {[]string{pre("perhaps", "")}, hook.Outcome{Tell: []string{`hook test at PreToolUse failed: permissionDecision "perhaps": want allow, deny or ask`}}},
		"input of no kind":  {[]string{pre("allow", `,"updatedInput":[1]`)}, hook.Outcome{Tell: []string{"hook test at PreToolUse failed: updatedInput is not a JSON object"}}},
		"null is nothing":   {[]string{pre("allow", `,"updatedInput":null,"updatedToolOutput":null`)}, hook.Outcome{Effect: troupe.Allow, Reason: "allow reason"}},
		"no without a word": {[]string{`{"decision":"block"}`}, hook.Outcome{Effect: troupe.Deny, Reason: "a hook at PreToolUse said no, without a reason"}},
	} {
		var hooks []hook.Hook
		for _, text := range c.say {
			hooks = append(hooks, says(hook.PreToolUse, "", text))
		}
		got, err := set(t, hooks...).Run(t.Context(), call("Bash"))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestAStrictHookThatFailsDenies(t *testing.T) {
	h := says(hook.PreToolUse, "", "!broken")
	h.Strict = true
	o, err := set(t, says(hook.PreToolUse, "", pre("allow", "")), h).Run(t.Context(), call("Bash"))
	if err != nil || o.Effect != troupe.Deny || o.Reason != "hook test failed: broken" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestHooksRunSideBySideAndHaveTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := hook.Hook{Event: hook.PreToolUse, Name: "slow", Timeout: 3 * time.Second, Run: func(ctx context.Context, _ hook.Input) (hook.Output, error) {
			<-ctx.Done()
			return hook.Output{}, context.Cause(ctx)
		}}
		unlimited := slow
		unlimited.Timeout = 0
		for name, c := range map[string]struct {
			hooks []hook.Hook
			in    hook.Input
			want  time.Duration
		}{
			"own":     {[]hook.Hook{slow, slow, slow}, call("Bash"), 3 * time.Second},
			"default": {[]hook.Hook{unlimited}, call("Bash"), 600 * time.Second},
		} {
			start := time.Now()
			o, err := set(t, c.hooks...).Run(t.Context(), c.in)
			if took := time.Since(start); took != c.want || err != nil || o.Effect != "" || len(o.Tell) != len(c.hooks) || !strings.Contains(o.Tell[0], hook.ErrTimeout.Error()) {
				t.Errorf("%s: %v, %+v, %v", name, took, o, err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(troupe.ErrInterrupted)
		if _, err := set(t, slow).Run(ctx, call("Bash")); !errors.Is(err, troupe.ErrInterrupted) {
			t.Error(err)
		}
	})
}

func TestASourceReplacesItsHooks(t *testing.T) {
	s := set(t, says(hook.Stop, "", ""))
	if err := s.Register("other", says(hook.PreToolUse, "", "")); err != nil || !s.Has(hook.Stop) {
		t.Fatal("a source took another's hooks away", err)
	}
	if err := s.Register("test"); err != nil || s.Has(hook.Stop) || !s.Has(hook.PreToolUse) {
		t.Error("the hooks of the source are not replaced", err)
	}
	var none *hook.Set
	if o, err := none.Run(t.Context(), call("Bash")); err != nil || o.Effect != "" || none.Has(hook.Stop) {
		t.Error("a set that is not there has hooks")
	}
}

func TestAnAgentThatMayNeverStopStopsAfterEightTimes(t *testing.T) {
	var active []bool
	no := true
	s := set(t, hook.Hook{Event: hook.Stop, Name: "never", Run: func(_ context.Context, in hook.Input) (hook.Output, error) {
		active = append(active, in.Stopping.Active)
		if !no {
			return hook.Output{}, nil
		}
		return hook.Output{Decision: "block", Reason: "more"}, nil
	}})
	var g hook.Guard
	at := hook.Input{Event: hook.Stop, Stopping: &hook.Stopping{}}
	ask := func() hook.Outcome {
		t.Helper()
		o, err := g.Ask(t.Context(), s, at)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for i := range hook.MostBlocks {
		if o := ask(); o.Effect != troupe.Deny || o.Reason != "more" || active[i] != (i > 0) {
			t.Fatalf("%d: %+v, active %v", i, o, active)
		}
	}
	if o := ask(); o.Effect != "" || len(o.Tell) != 1 {
		t.Errorf("it goes on for ever: %+v", o)
	}
	if o := ask(); o.Effect != troupe.Deny || active[len(active)-1] {
		t.Errorf("the count did not begin anew: %+v", o)
	}
	no = false
	if o := ask(); o.Effect != "" {
		t.Errorf("%+v", o)
	}
	no = true
	if ask(); active[len(active)-1] {
		t.Error("blocks that are not in a row count")
	}
}

func TestInputsHaveTheFieldsOfTheirEvent(t *testing.T) {
	base := hook.Input{Session: "s", Transcript: "/t", Dir: "/d", Mode: "default"}
	with := func(e hook.Event, f func(*hook.Input)) hook.Input {
		in := base
		in.Event = e
		f(&in)
		return in
	}
	text := "focus"
	for _, c := range []struct {
		in   hook.Input
		want string
	}{
		{with(hook.PreToolUse, func(in *hook.Input) { in.Call = call("Bash").Call }), `"tool_name":"Bash","tool_input":{"a":1},"tool_use_id":"u1"`},
		{with(hook.Stop, func(in *hook.Input) { in.Stopping = &hook.Stopping{Background: []any{}, Crons: []any{}} }), `"stop_hook_active":false,"background_tasks":[],"session_crons":[]`},
		{with(hook.UserPromptSubmit, func(in *hook.Input) { in.Prompt = &hook.Prompt{Text: "hi"} }), `"prompt":"hi"`},
		{with(hook.PreCompact, func(in *hook.Input) { in.Compaction = &hook.Compaction{Trigger: "auto"} }), `"trigger":"auto","custom_instructions":null`},
		{with(hook.PreCompact, func(in *hook.Input) { in.Compaction = &hook.Compaction{Trigger: "manual", Instructions: &text} }), `"trigger":"manual","custom_instructions":"focus"`},
	} {
		got, err := json.Marshal(c.in)
		want := fmt.Sprintf(`{"session_id":"s","transcript_path":"/t","cwd":"/d","hook_event_name":%q,"permission_mode":"default",%s}`, c.in.Event, c.want)
		if err != nil || string(got) != want {
			t.Errorf("got  %s\nwant %s\n%v", got, want, err)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("ä", 10_001)
	o, err := set(t, says(hook.PreToolUse, "", `{"hookSpecificOutput":{"additionalContext":"`+long+`"}}`)).Run(t.Context(), call("Bash"))
	if err != nil || len(o.Add) != 1 || !strings.HasPrefix(o.Add[0], long[:20_000]+"\n…") || !strings.Contains(o.Add[0], "1 more characters") {
		t.Errorf("%d, %v", len(o.Add), err)
	}
}
