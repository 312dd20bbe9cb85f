//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// What a provider refuses for the moment is asked again, and told; what it cut
// off is never taken for an answer.
func TestRetries(t *testing.T) {
	for dialect := range dialects {
		for name, fault := range map[string]troupetest.Fault{
			"429":              {Status: 429, RetryAfter: "0"},
			"529":              {Status: 529},
			"503":              {Status: 503},
			"cut in a call":    {Cut: troupetest.InCall},
			"overloaded later": {Overload: troupetest.Midway},
		} {
			t.Run(dialects[dialect].name+"/"+name, func(t *testing.T) {
				t.Parallel() // each waits a second before it asks again
				b := newBench(t, dialect)
				b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Bash", `{"command":"touch ran"}`)), Fault: fault})
				if name == "overloaded later" {
					b = newBench(t, dialect)
					b.provider.Queue(troupetest.Reply{Message: troupetest.Say("half an answer"), Fault: fault})
				}
				b.provider.Say("done")
				cmd, out := b.command(t, "go", "--model", b.model, "--output-format", "stream-json")
				if err := cmd.Run(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if !strings.Contains(out.String(), `"subtype":"api_retry"`) || !strings.Contains(out.String(), `"result":"done"`) {
					t.Errorf("got %s", out)
				}
				if n := len(b.provider.Requests()); n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
			})
		}
	}
}

// What will not get better is said at once.
func TestRefusals(t *testing.T) {
	for dialect := range dialects {
		b := newBench(t, dialect, troupetest.RefusalsExpected())
		for i, kv := range b.env {
			if name, _, _ := strings.Cut(kv, "="); name == dialects[dialect].key {
				b.env[i] = name + "=wrong"
			}
		}
		p := b.provider
		cmd, out := b.command(t, "go", "--model", b.model)
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%v", err)
		}
		if !strings.Contains(out.String(), "401") || !strings.Contains(out.String(), dialects[dialect].key) || strings.Contains(out.String(), "wrong") {
			t.Errorf("the error names the variable and not the key: %s", out)
		}
		if n := len(p.Requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	}
}
