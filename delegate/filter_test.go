package delegate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
)

func TestFilter(t *testing.T) {
	all := []string{"Agent", "Bash", "Glob", "Grep", "Read", "mcp__a__x", "mcp__b__y"}
	but := func(names ...string) (left []string) {
		for _, n := range all {
			if !slices.Contains(names, n) {
				left = append(left, n)
			}
		}
		return left
	}
	for name, c := range map[string]struct {
		tools, disallowed []string
		leaf              bool // its place is too deep to start others
		want              []string
		err               error
	}{
		"no list is all but agents":            {want: but("Agent")},
		"an empty list is none":                {tools: []string{}},
		"star is all but agents":               {tools: []string{"*"}, want: but("Agent")},
		"star and the tool by name":            {tools: []string{"*", "Agent"}, want: all},
		"named, in the order of the session":   {tools: []string{"Read", "Bash"}, want: []string{"Bash", "Read"}},
		"a prefix":                             {tools: []string{"mcp__a__*", "G*"}, want: []string{"Glob", "Grep", "mcp__a__x"}},
		"a prefix of Agent does not mean it":   {tools: []string{"A*", "Read"}, want: []string{"Read"}},
		"names are exact":                      {tools: []string{"read", "Glob"}, want: []string{"Glob"}},
		"named but too deep":                   {tools: []string{"Agent", "Read"}, leaf: true, want: []string{"Read"}},
		"with types":                           {tools: []string{"Agent(a, b)", "Read"}, want: []string{"Agent", "Read"}},
		"with types but too deep":              {tools: []string{"Agent(a,b)"}, leaf: true},
		"types not closed":                     {tools: []string{"Agent(a", "Read"}, want: []string{"Read"}},
		"disallowed":                           {disallowed: []string{"Bash"}, want: but("Agent", "Bash")},
		"disallowed by prefix":                 {disallowed: []string{"mcp__*"}, want: but("Agent", "mcp__a__x", "mcp__b__y")},
		"disallowed beats named":               {tools: []string{"Bash", "Read"}, disallowed: []string{"Bash"}, want: []string{"Read"}},
		"disallowed agents":                    {tools: []string{"*", "Agent"}, disallowed: []string{"Agent"}, want: but("Agent")},
		"disallowed in part is disallowed":     {disallowed: []string{"Bash(rm *)"}, want: but("Agent", "Bash")},
		"allowed in part is not allowed":       {tools: []string{"Bash(ls *)", "Read"}, want: []string{"Read"}},
		"all that exist are disallowed":        {tools: []string{"Read"}, disallowed: []string{"*"}, err: delegate.ErrNoTools},
		"some do not exist":                    {tools: []string{"Reed", "Grep"}, want: []string{"Grep"}},
		"none exists":                          {tools: []string{"Reed", "Grpe"}, err: delegate.ErrNoTools},
		"no prefix fits":                       {tools: []string{"mcp__c__*"}, err: delegate.ErrNoTools},
		"an empty name is no prefix of others": {tools: []string{""}, err: delegate.ErrNoTools},
	} {
		d := troupe.Definition{Name: "d", Source: "d.md", Tools: c.tools, Disallowed: c.disallowed}
		got, err := delegate.Filter(d, all, !c.leaf)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", name, err, c.err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err != nil && !(strings.Contains(err.Error(), "d.md") && strings.Contains(err.Error(), c.tools[0])) {
			t.Errorf("%s: %v does not say which definition and which tools", name, err)
		}
	}
}

// The tools that exist no longer count if the session does not offer them.
func TestFilterOfAToolThatTheSessionLacks(t *testing.T) {
	d := troupe.Definition{Name: "d", Tools: []string{"Bash"}}
	if got, err := delegate.Filter(d, []string{"Read"}, true); !errors.Is(err, delegate.ErrNoTools) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTypes(t *testing.T) {
	for _, c := range []struct{ tools, want []string }{
		{nil, nil},
		{[]string{"*", "Agent"}, nil},
		{[]string{"Agent(a, b)", "Read"}, []string{"a", "b"}},
		{[]string{"Agent(a)", "Agent(b)"}, []string{"a", "b"}},
		{[]string{"Agent(a"}, nil},
		{[]string{"Agents(a)"}, nil},
		// Nothing in the parentheses names no type: it must not mean any.
		{[]string{"Agent()"}, []string{""}},
	} {
		if diff := cmp.Diff(c.want, delegate.Types(troupe.Definition{Tools: c.tools})); diff != "" {
			t.Errorf("%v: %s", c.tools, diff)
		}
	}
}

func TestValidEffort(t *testing.T) {
	for s, want := range map[string]bool{
		"low": true, "medium": true, "high": true, "xhigh": true, "max": true, "1": true, "32000": true,
		"": false, "High": false, "none": false, "0": false, "007": false, "-1": false, "+1": false, "1.5": false, "1e3": false, " 1": false, "1\n": false, "١": false,
	} {
		if got := delegate.ValidEffort(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
