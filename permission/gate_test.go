package permission

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/troupe-sh/troupe"
)

func bashCall(mode Mode, command string) *troupe.Call {
	in, _ := json.Marshal(map[string]string{"command": command})
	return &troupe.Call{ToolUse: troupe.ToolUse{ID: "1", Name: "Bash", Input: in}, Mode: string(mode), Place: troupe.Place{Dir: "/repo"}}
}

func rules(t *testing.T, effect troupe.Effect, texts ...string) (out []Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(effect, text, Origin{Root: "/repo"})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// Nobody can allow what one before has denied: rule, hook, mode, person.
func TestTheOrderOfTheGate(t *testing.T) {
	deny, askRule, allowRule := rules(t, troupe.Deny, "Bash(make *)"), rules(t, troupe.Ask, "Bash(make *)"), rules(t, troupe.Allow, "Bash(make *)")
	says := func(e troupe.Effect) *troupe.Verdict { return &troupe.Verdict{Effect: e, By: "x"} }
	for name, c := range map[string]struct {
		rules        []Rule
		mode         Mode
		hook, person *troupe.Verdict
		want         troupe.Effect
		hooked       int
		asked        int
	}{
		"nobody there":                             {want: troupe.Deny},
		"the person allows":                        {person: says(troupe.Allow), want: troupe.Allow, asked: 1},
		"the person denies":                        {person: says(troupe.Deny), want: troupe.Deny, asked: 1},
		"the person says nothing":                  {person: says(""), want: troupe.Deny, asked: 1},
		"a rule allows":                            {rules: allowRule, person: says(troupe.Deny), want: troupe.Allow},
		"a rule denies":                            {rules: deny, hook: says(troupe.Allow), person: says(troupe.Allow), want: troupe.Deny},
		"a rule denies in bypass":                  {rules: deny, mode: Bypass, hook: says(troupe.Allow), want: troupe.Deny},
		"the hook allows":                          {hook: says(troupe.Allow), person: says(troupe.Deny), want: troupe.Allow, hooked: 1},
		"the hook has no opinion":                  {hook: says(""), person: says(troupe.Allow), want: troupe.Allow, hooked: 1, asked: 1},
		"the hook denies what a rule allows":       {rules: allowRule, hook: says(troupe.Deny), person: says(troupe.Allow), want: troupe.Deny, hooked: 1},
		"the hook asks about what a rule allows":   {rules: allowRule, hook: says(troupe.Ask), person: says(troupe.Deny), want: troupe.Deny, hooked: 1, asked: 1},
		"the hook cannot lift what a rule asks":    {rules: askRule, hook: says(troupe.Allow), person: says(troupe.Deny), want: troupe.Deny, hooked: 1, asked: 1},
		"the hook cannot lift the mode plan":       {mode: Plan, hook: says(troupe.Allow), person: says(troupe.Allow), want: troupe.Deny},
		"bypass does not ask, and the hook denies": {mode: Bypass, hook: says(troupe.Deny), want: troupe.Deny, hooked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			hooked, asked := 0, 0
			g := &Gate{Policy: func(m string) Policy { return Policy{Mode: Mode(m), Rules: c.rules} }}
			if c.hook != nil {
				g.Hook = func(context.Context, *troupe.Call) (troupe.Verdict, error) { hooked++; return *c.hook, nil }
			}
			if c.person != nil {
				g.Ask = func(_ context.Context, _ *troupe.Call, v troupe.Verdict) (troupe.Verdict, error) {
					if asked++; v.Effect != troupe.Ask {
						t.Errorf("asked about %+v", v)
					}
					return *c.person, nil
				}
			}
			v, err := g.Check(t.Context(), bashCall(c.mode, "make all"))
			if err != nil || v.Effect != c.want || hooked != c.hooked || asked != c.asked {
				t.Errorf("%+v, %v; the hook was called %d times, the person asked %d", v, err, hooked, asked)
			}
		})
	}
}

// Whoever changes the input, what is then called went through the rules.
func TestAChangedInputIsCheckedAgain(t *testing.T) {
	set := append(rules(t, troupe.Deny, "Bash(rm *)"), rules(t, troupe.Allow, "Bash(make *)")...)
	changed := func(command string) troupe.Verdict {
		return troupe.Verdict{Effect: troupe.Allow, By: "x", Input: bashCall("", command).Input}
	}
	nothing := troupe.Verdict{}
	for name, c := range map[string]struct {
		command      string
		hook, person troupe.Verdict
		want         troupe.Effect
		input        string // that runs; "" as asked
	}{
		"hook to a denied one":                    {"make all", changed("rm x"), nothing, troupe.Deny, ""},
		"hook to an allowed one":                  {"curl x", changed("make all"), nothing, troupe.Allow, "make all"},
		"person to a denied one":                  {"curl x", nothing, changed("true; rm x"), troupe.Deny, ""},
		"person to another":                       {"curl x", nothing, changed("curl y"), troupe.Allow, "curl y"},
		"hook, and the person takes what it made": {"curl x", troupe.Verdict{Input: changed("curl z").Input}, troupe.Verdict{Effect: troupe.Allow}, troupe.Allow, "curl z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Gate{Policy: func(m string) Policy { return Policy{Mode: Mode(m), Rules: set} },
				Hook: func(context.Context, *troupe.Call) (troupe.Verdict, error) { return c.hook, nil },
				Ask:  func(context.Context, *troupe.Call, troupe.Verdict) (troupe.Verdict, error) { return c.person, nil }}
			v, err := g.Check(t.Context(), bashCall(Default, c.command))
			if err != nil || v.Effect != c.want {
				t.Fatalf("%+v, %v", v, err)
			}
			var want json.RawMessage
			if c.input != "" {
				want = bashCall("", c.input).Input
			}
			if v.Effect == troupe.Allow && string(v.Input) != string(want) {
				t.Errorf("runs %s, want %s", v.Input, want)
			}
		})
	}
}

func TestABrokenHookOrDeskRunsNothing(t *testing.T) {
	bad := errors.New("broken")
	policy := func(string) Policy { return Policy{} }
	for _, g := range []*Gate{
		{Policy: policy, Hook: func(context.Context, *troupe.Call) (troupe.Verdict, error) {
			return troupe.Verdict{Effect: troupe.Allow}, bad
		}},
		{Policy: policy, Ask: func(context.Context, *troupe.Call, troupe.Verdict) (troupe.Verdict, error) {
			return troupe.Verdict{Effect: troupe.Allow}, bad
		}},
	} {
		if v, err := g.Check(t.Context(), bashCall(Default, "make")); !errors.Is(err, bad) || v.Effect == troupe.Allow {
			t.Errorf("%+v, %v", v, err)
		}
	}
}
