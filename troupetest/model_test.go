package troupetest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/troupe-sh/troupe"
)

func openReference(t *testing.T, f flaw, opts ...Option) (*reference, *Provider) {
	t.Helper()
	transport := &http.Transport{}
	p := NewProvider(t, opts...)
	m := &reference{url: p.URL(), client: &http.Client{Transport: transport}, flaw: f}
	t.Cleanup(func() {
		for _, body := range m.held {
			body.Close()
		}
		transport.CloseIdleConnections()
	})
	return m, p
}

func TestSoundModelPasses(t *testing.T) {
	TestModel(t, func(t *testing.T) (troupe.Model, *Provider) { return openReference(t, "") })
}

// Each clause of the contract is broken once, and found by the check it
// belongs to.
func TestFlawsAreFound(t *testing.T) {
	found := map[string]bool{}
	checks := map[string]modelCheck{}
	for _, c := range modelChecks() {
		checks[c.name] = c
	}
	for f, check := range map[flaw]string{
		"no input":                   "odd answers",
		"no fragments":               "fragments",
		"never opened":               "reply",
		"goes on":                    "reply",
		"other bytes":                "sending",
		"sends first":                "sending",
		"volatile":                   "same bytes",
		"rewrites history":           "append only",
		"raw ids":                    "hard conversations",
		"drops reasoning":            "reasoning goes back",
		"takes what there was":       "broken streams",
		"takes a stream without end": "broken streams",
		"skips what it cannot read":  "broken streams",
		"ignores errors":             "broken streams",
		"hides what it costs":        "what a broken stream costs",
		"takes any status":           "refusals",
		"one for all":                "concurrent",
		"holds the connection":       "leave",
		"own error":                  "ctx ends",
		"deaf":                       "ctx ends",
		"sends in any case":          "ctx over",
	} {
		found[check] = true
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			// What hangs for ever in a flawed model hangs until here.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			m, p := openReference(t, f, RefusalsExpected())
			defer context.AfterFunc(ctx, p.Close)()
			if err := checks[check].run(ctx, m, p); err == nil {
				t.Errorf("the check %q does not see it", check)
			} else {
				t.Log(err)
			}
		})
	}
	for name := range checks {
		if !found[name] {
			t.Errorf("nothing shows that the check %q finds a fault", name)
		}
	}
}
