package troupetest

import (
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// A Way is one way in which an agent comes to run. Whatever holds for calls must
// hold in all of them.
type Way struct {
	Name string
	// Runs and Starts are the functions that range over [troupe.Run] and that
	// make the [troupe.Started] of such an agent.
	Runs, Starts string
	// Apart says that it runs beside the lead, which does not wait for it: what ends
	// the lead's turn does not end it.
	Apart bool
}

// lead is the function that runs a lead.
const lead = "host.Session.Run"

// Lead reports whether the agent is the lead of its session, and so answers to the
// user; any other is told of to the one that started it.
func (w Way) Lead() bool { return w.Runs == lead }

// Ways are all ways there are. Who writes a new one adds its row here, and to
// every [Callers]; a test of the house finds the functions that no row names.
func Ways() []Way {
	const start = "host.Session.start"
	const sub, prepare = "host.Session.record", "delegate.Agent.prepare"
	return []Way{
		{"lead", lead, start, false},
		{"lead with a definition", lead, start, false},
		{"resumed lead", lead, start, false},
		{"fork of a session", lead, start, false},
		{"sub-agent", sub, prepare, false},
		{"sub-agent with a wider mode of its own", sub, prepare, false},
		{"sub-agents side by side", sub, prepare, false},
		{"nested sub-agent", sub, prepare, false},
		{"sub-agent of a resumed lead", sub, prepare, false},
		{"sub-agent of a fork", sub, prepare, false},
		{"sub-agent of a lead with a definition", sub, prepare, false},
		{"background sub-agent", sub, prepare, true},
		{"sub-agent of a background one", sub, prepare, true},
		{"resumed sub-agent", sub, prepare, true},
		{"sub-agent of a resumed one", sub, prepare, true},
		{"fork", sub, "delegate.Scope.prepareFork", true},
		{"resumed fork", sub, "delegate.Scope.prepareFork", true},
	}
}

// Made is what became of a call.
type Made struct {
	Agent      string // that made it
	Definition string // it follows
	Mode       string // it was in
	Verdict    troupe.Verdict
	Result     troupe.Result
}

// Denied reports whether the call was denied, and its agent told so.
func (m Made) Denied() bool {
	return m.Verdict.Effect == troupe.Deny && m.Result.IsError && strings.HasPrefix(m.Result.Content.Text(), "Permission denied")
}

// A Caller starts an agent in one of the [Ways], as setting says, has it make
// calls, one after another, and returns what became of them by their IDs.
type Caller[Setting any] func(t *testing.T, setting Setting, calls ...troupe.ToolUse) map[string]Made

// Callers is the table of callers of a package, by the names of [Ways]. Each
// test about what an agent may do runs over all of them.
type Callers[Setting any] map[string]Caller[Setting]

// Each runs f for each way there is, and fails for one without a caller.
func (c Callers[Setting]) Each(t *testing.T, f func(t *testing.T, way Way, call Caller[Setting])) {
	t.Helper()
	names := map[string]bool{}
	for _, way := range Ways() {
		names[way.Name] = true
		t.Run(way.Name, func(t *testing.T) {
			call, ok := c[way.Name]
			if !ok {
				t.Fatalf("no caller starts an agent this way: %s", way.Name)
			}
			f(t, way, call)
		})
	}
	for name := range c {
		if !names[name] {
			t.Errorf("%q is no way to start an agent", name)
		}
	}
}
