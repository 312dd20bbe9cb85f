// Package hook lets programs of the user have their say at points of an
// agent's life: before a call, after it, when a prompt comes in, when an agent
// wants to stop, before a conversation is cut short.
//
// A [Hook] is a func with the event it is for and a matcher. What the func
// does - ask the client of a control protocol, run a command - is a matter of
// whoever registers it in the [Set] of the session. [Set.Run] runs all that
// match, side by side, and makes one [Outcome] of what they say: deny beats ask
// beats allow. The forms of inputs and outputs are those that hooks of other
// agents have, so that they work unchanged.
package hook

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
)

// An Event is a point at which hooks run.
type Event string

// The events.
const (
	PreToolUse         Event = "PreToolUse"
	PostToolUse        Event = "PostToolUse"
	PostToolUseFailure Event = "PostToolUseFailure"
	UserPromptSubmit   Event = "UserPromptSubmit"
	Stop               Event = "Stop"
	SubagentStop       Event = "SubagentStop"
	PreCompact         Event = "PreCompact"
)

// Events returns the events there are.
func Events() []Event {
	return []Event{PreToolUse, PostToolUse, PostToolUseFailure, UserPromptSubmit, Stop, SubagentStop, PreCompact}
}

// How long a hook may take that sets no time of its own.
const (
	timeout       = 600 * time.Second
	promptTimeout = 30 * time.Second
)

// ErrTimeout is the cause of the end of a hook's context when its time is up.
var ErrTimeout = errors.New("the hook took too long")

// A Hook is one thing to do at an event.
type Hook struct {
	Event Event
	// Matcher selects by tool, type of agent or trigger; "" and "*" are all.
	// Letters, digits, _ - , | and spaces make a list of exact names, anything
	// else is a regular expression that may match anywhere.
	Matcher string
	Name    string        // for messages
	Timeout time.Duration // 0 is the default of the event
	Strict  bool          // a failure denies, instead of having no say
	// Run must return soon after the end of ctx. An error is a failure.
	Run func(ctx context.Context, in Input) (Output, error)
}

// A Set is the hooks of a session. The zero value is empty; a nil one, too. It
// is safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	hooks []registered
}

type registered struct {
	Hook
	source  string
	matches func(string) bool
}

// Register replaces all hooks of a source. It fails, and changes nothing, if
// one of them is for an event there is not or has a matcher that cannot be read.
func (s *Set) Register(source string, hooks ...Hook) error {
	var add []registered
	for _, h := range hooks {
		if !slices.Contains(Events(), h.Event) {
			return fmt.Errorf("hook %s: there is no event %q; there are: %s", h.Name, h.Event, names())
		}
		m, err := matcher(h.Matcher)
		if err != nil {
			return fmt.Errorf("hook %s: matcher %q: %w", h.Name, h.Matcher, err)
		}
		add = append(add, registered{h, source, m})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(s.hooks), func(r registered) bool { return r.source == source })
	s.hooks = append(kept, add...)
	return nil
}

func names() string {
	var out []string
	for _, e := range Events() {
		out = append(out, string(e))
	}
	return strings.Join(out, ", ")
}

// matcher reads the matcher of a hook.
func matcher(pattern string) (func(string) bool, error) {
	if pattern == "" || pattern == "*" {
		return func(string) bool { return true }, nil
	}
	if strings.IndexFunc(pattern, func(r rune) bool {
		return r > 0x7f || !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_- ,|", r))
	}) < 0 {
		list := strings.FieldsFunc(pattern, func(r rune) bool { return r == ',' || r == '|' })
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		return func(s string) bool { return slices.Contains(list, s) }, nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}

// Has reports whether there is a hook for the event.
func (s *Set) Has(e Event) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.hooks, func(r registered) bool { return r.Event == e })
}

// matching returns the hooks that in is for.
func (s *Set) matching(in Input) []Hook {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Hook
	for _, r := range s.hooks {
		if r.Event == in.Event && in.matchedBy(r.matches) {
			out = append(out, r.Hook)
		}
	}
	return out
}

// Run runs all hooks that match, side by side, and returns what they say. The
// error is the cause of the end of ctx, if it has ended meanwhile.
func (s *Set) Run(ctx context.Context, in Input) (Outcome, error) {
	hooks := s.matching(in)
	if len(hooks) == 0 {
		return Outcome{}, nil
	}
	said := make([]answer, len(hooks))
	var wg sync.WaitGroup
	for i, h := range hooks {
		wg.Go(func() { said[i] = h.run(ctx, in) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return Outcome{}, err
	}
	return outcome(in.Event, said), nil
}

// An answer is what one hook has said.
type answer struct {
	hook Hook
	out  Output
	err  error
}

func (h Hook) run(ctx context.Context, in Input) answer {
	limit := h.Timeout
	if limit <= 0 {
		limit = timeout
		if h.Event == UserPromptSubmit {
			limit = promptTimeout
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrTimeout)
	defer cancel()
	out, err := h.Run(ctx, in)
	if err == nil {
		err = out.check(h.Event)
	}
	return answer{h, out, err}
}

// An Outcome is what the hooks of an event have said together.
type Outcome struct {
	// Effect is Deny for a call that is not to run, a prompt that is not to
	// enter, an agent that is not to stop, a conversation that is not to be cut
	// short, and a result that is not good. The zero value is no opinion.
	Effect troupe.Effect
	Reason string   // of all that decided, one a line
	Input  []byte   // of the call, instead of what it was; a JSON object
	Output *string  // text of the result, instead of what it was
	Add    []string // for the model to know
	// Halt says that the agents are to stop, for the reason Why.
	Halt bool
	Why  string
	Tell []string // for the user to know: words of hooks, and failures of hooks
}

// outcome joins what hooks have said. Of several inputs the last counts.
func outcome(e Event, said []answer) (o Outcome) {
	var reasons = map[troupe.Effect][]string{}
	for _, a := range said {
		effect, reason := a.out.decision()
		if a.err != nil {
			o.Tell = append(o.Tell, fmt.Sprintf("hook %s at %s failed: %v", a.hook.Name, e, a.err))
			if !a.hook.Strict {
				continue
			}
			a.out, effect, reason = Output{}, troupe.Deny, fmt.Sprintf("hook %s failed: %v", a.hook.Name, a.err)
		}
		if weight(effect) > weight(o.Effect) {
			o.Effect = effect
		}
		reasons[effect] = append(reasons[effect], short(reason))
		o.take(a.out)
	}
	o.Reason = strings.Join(slices.DeleteFunc(reasons[o.Effect], func(s string) bool { return s == "" }), "\n")
	if o.Effect == troupe.Deny {
		o.Input = nil
		if o.Reason == "" {
			o.Reason = "a hook at " + string(e) + " said no, without a reason"
		}
	}
	return o
}

// take adds what is not a decision.
func (o *Outcome) take(out Output) {
	sp := out.Specific
	if sp.UpdatedInput != nil && !null(sp.UpdatedInput) {
		o.Input = sp.UpdatedInput
	}
	if text, ok := sp.output(); ok {
		o.Output = &text
	}
	if strings.TrimSpace(sp.AdditionalContext) != "" {
		o.Add = append(o.Add, short(sp.AdditionalContext))
	}
	if out.Continue != nil && !*out.Continue {
		o.Halt, o.Why = true, short(out.StopReason)
	}
	if out.SystemMessage != "" {
		o.Tell = append(o.Tell, short(out.SystemMessage))
	}
}

func weight(e troupe.Effect) int {
	return slices.Index([]troupe.Effect{"", troupe.Allow, troupe.Ask, troupe.Deny}, e)
}

// longest is the most characters of a text of a hook that are used.
const longest = 10_000

func short(s string) string {
	if len(s) <= longest {
		return s
	}
	r := []rune(s)
	if len(r) <= longest {
		return s
	}
	return fmt.Sprintf("%s\n… (%d more characters of the hook were left out)", string(r[:longest]), len(r)-longest)
}
