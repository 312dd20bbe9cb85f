package troupe

import (
	"context"
	"encoding/json"
)

// A Tool is something the model can call.
//
// Call must honour ctx. An error from Call is reported to the model as a
// failed result, after what content there is, and the run goes on; only the
// end of ctx ends the run. Calls of one reply run side by side. An agent has
// its own instances of its tools; what they know of it (its cache of files, its
// children's rights) they were given when they were made.
type Tool interface {
	Spec() ToolSpec
	Call(ctx context.Context, c *Call) (Result, error)
}

// An Ordered is a [Tool] of which some calls must not overtake each other.
type Ordered interface {
	Tool
	// Lane names what the call works on: a file, the shell. Calls of one
	// reply in one lane run one after another, in the order asked; "" is none.
	Lane(c *Call) string
}

// A Call is one use of a tool. Request is what the model saw when it made it, and
// Reply what it said then: the call is one of those in it.
type Call struct {
	ToolUse
	Agent   string // ID of the calling agent
	Mode    string // its permission mode at this moment
	Place   Place
	Request *Request
	Reply   *Reply
}

// A Place is where an agent works. Relative paths start at Dir, an absolute
// path. Also holds further directories that it may work in as in Dir.
type Place struct {
	Dir  string
	Also []string `json:",omitempty"`
}

// A Result is what a tool gives back to the model.
type Result struct {
	Content Blocks
	IsError bool            `json:",omitempty"`
	Data    json.RawMessage `json:",omitempty"` // for faces and callers, not for the model
	// Then is what the call changes of its own agent: [Switched] or [Moved].
	// It counts from the next request on, and only if the call was allowed.
	Then []Event `json:"-"`
}

// Answer is a Result of text.
func Answer(text string) Result { return Result{Content: Blocks{Text(text)}} }

// Failure is a Result that tells the model of an error.
func Failure(text string) Result { return Result{Content: Blocks{Text(text)}, IsError: true} }

// A Guard decides whether a call may run.
type Guard interface {
	Check(ctx context.Context, c *Call) (Verdict, error)
}

// An Effect is what a guard makes of a call. The zero value runs nothing.
type Effect string

// The effects. [Run] takes Ask for Deny: somebody should have asked.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// A Verdict is a guard's decision.
type Verdict struct {
	Effect Effect
	By     string // rule, mode, workingDir, safetyCheck, classifier, hook, user, runtime
	Reason string `json:",omitempty"`
	// Input takes the place of the call's input if the call is allowed. Who
	// changes it has checked what it is then.
	Input json.RawMessage `json:",omitempty"`
	// Stop ends the run, and the other calls of the reply. It goes with Deny.
	Stop bool `json:",omitempty"`
}

// An Inbox holds messages that arrive while the agent works or waits.
//
// A message that was taken and not acknowledged is given again to the next
// run; its ID tells that it is the same.
type Inbox interface {
	// Take returns what has arrived, in order. It never blocks.
	Take(ctx context.Context) ([]Received, error)
	// Ack removes messages for good. Run calls it when whoever ranges over
	// it has taken the Received event and asks for the next: by then the
	// event must be in the log.
	Ack(ctx context.Context, ids []string) error
}
