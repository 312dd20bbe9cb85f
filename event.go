package troupe

import "time"

// An Event is something that happened in a run. All but [Streaming] and [Sent]
// belong in the log; [State.Apply] makes the conversation of them.
type Event interface{ event() }

type (
	// Started is the first event of a log: what the agent began with.
	Started struct {
		Agent      string
		Definition string
		Parent     string `json:",omitempty"` // agent that started it
		Call       string `json:",omitempty"` // the parent's tool use
		Depth      int    `json:",omitempty"` // 0 is the lead
		Name       string `json:",omitempty"` // that the agent can be spoken to by, besides its ID
		Title      string `json:",omitempty"` // what it is to do, in a few words
		// Request may have a conversation to begin with. Counted is how many tokens
		// the provider counted of it, all messages but the last included.
		Request Request
		Counted int `json:",omitempty"`
		Mode    string
		Chosen  bool `json:",omitempty"` // the user named the mode for this session
		Place   Place
	}
	// Received carries a message that entered the conversation. From says
	// on whose behalf: "user", or the ID of the agent that wrote it. Only what
	// comes from the user can carry a permission.
	Received struct {
		ID      string `json:",omitempty"`
		From    string
		Message Message
	}
	// Sent carries the exact bytes of a request's body, before they go out: see
	// [Sending].
	Sent Sending
	// Streaming carries a fragment of the reply in progress.
	Streaming struct{ Delta }
	// Replied carries a finished assistant message, or what there was of it
	// when the run was stopped.
	Replied struct{ Reply }
	// ToolStarted is the beginning of a tool call, which Use names by its ID.
	ToolStarted struct{ Use, Name string }
	// Decided says what the guard made of a call.
	Decided struct {
		Use     string
		Verdict Verdict
	}
	// ToolEnded is the end of a call, whether it ran or not.
	ToolEnded struct {
		Use    string
		Result Result
		Took   time.Duration
	}
	// Switched changes what is not empty in it. Cause says why, if it was not
	// for the user's word.
	Switched struct {
		Model  string `json:",omitempty"`
		Effort string `json:",omitempty"`
		Mode   string `json:",omitempty"`
		Chosen bool   `json:",omitempty"` // goes with Mode, as in Started
		Before string `json:",omitempty"` // goes with Mode: the one to go back to, of an agent that went into it by itself
		Cause  string `json:",omitempty"`
	}
	// Moved changes where the agent works.
	Moved struct{ Place Place }
	// Compacting says that the conversation is about to be cut short. Trigger
	// is auto or manual, Tokens its size as far as it is known.
	Compacting struct {
		Trigger string
		Tokens  int `json:",omitempty"`
	}
	// Compacted puts Summary in the place of all messages but the last Keep.
	// What it cost is Usage, of Model. A cut between a call and its result is
	// moved in front of the call.
	Compacted struct {
		Trigger string
		Summary Message
		Keep    int
		Usage   Usage
		Model   string
		Took    time.Duration
	}
	// NotCompacted says why the conversation stays as it is.
	NotCompacted struct{ Trigger, Err string }
	// Ended is the last event of a run, unless its consumer left first.
	// Text is the last non-empty text of the agent in this run. Code is a word
	// for programs that says what went wrong: that of the error, if it has a
	// method Code, or model_error for any other of the model's.
	Ended struct {
		Reason Reason
		Text   string
		Stop   string `json:",omitempty"` // why the model stopped last, in the provider's words
		Turns  int
		Usage  Usage
		Err    string `json:",omitempty"`
		Code   string `json:",omitempty"`
	}
)

// A Reason says why a run ended.
type Reason string

// The reasons. All but Done come with an error.
const (
	Done        Reason = "completed"
	OutOfTurns  Reason = "max_turns"
	OverBudget  Reason = "over_budget"
	OutOfTime   Reason = "out_of_time"
	Interrupted Reason = "interrupted"
	Failed      Reason = "failed"
)

func (Started) event()      {}
func (Received) event()     {}
func (Sent) event()         {}
func (Streaming) event()    {}
func (Replied) event()      {}
func (ToolStarted) event()  {}
func (Decided) event()      {}
func (ToolEnded) event()    {}
func (Switched) event()     {}
func (Moved) event()        {}
func (Compacting) event()   {}
func (Compacted) event()    {}
func (NotCompacted) event() {}
func (Retrying) event()     {}
func (Waiting) event()      {}
func (Billed) event()       {}
func (Ended) event()        {}
