//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/troupetest"
)

// Another model is asked only where one is named, and then all that is printed
// names it: the line for a person, the stream, the result.
func TestFallbackIsNamed(t *testing.T) {
	for dialect := range dialects {
		d := dialects[dialect]
		other := d.model + "-2"
		name := strings.TrimPrefix(d.model, d.name+"/")
		b := newBench(t, dialect)
		b.env = append(b.env, "TROUPE_MAX_RETRIES=0")
		b.provider.Respond(func(r *troupetest.Request) troupetest.Reply {
			if r.Model == name {
				return troupetest.Reply{Fault: troupetest.Fault{Status: 529}}
			}
			return troupetest.Reply{Message: troupetest.Say("I am " + r.Model)}
		})
		cmd, out := b.command(t, "go", "--model", d.model)
		if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "529") || strings.Contains(out.String(), "I am") {
			t.Errorf("without a fallback: %v, %s", err, out)
		}
		cmd, out = b.command(t, "go", "--model", d.model, "--fallback-model", other)
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "I am "+name+"-2\n") ||
			!strings.Contains(out.String(), "going on with "+other+": "+d.model+" is not available: ") {
			t.Errorf("%v: %s", err, out)
		}
		cmd, out = b.command(t, "go", "--model", d.model, "--fallback-model", other, "--output-format", "json")
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), `"fallbacks":[{"from":"`+d.model+`","model":"`+other+`","reason":"`+d.model+` is not available: `) {
			t.Errorf("%v: %s", err, out)
		}
		cmd, out = b.command(t, "go", "--model", d.model, "--fallback-model", other, "--output-format", "stream-json")
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), `"modelUsage":{"`+other+`":{`) || !strings.Contains(out.String(), `"subtype":"informational"`) {
			t.Errorf("%v: %s", err, out)
		}
	}
}
