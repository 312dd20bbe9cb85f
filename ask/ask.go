// Package ask brings questions to people: may this call run, is this plan
// good, which of these.
//
// A [Desk] is where the questions of a session lie. Any agent may put one
// there, whatever it is and wherever it runs; any face may look and answer. The
// first answer is the answer. A question goes when its asker goes.
//
//	answer, err := desk.Ask(ctx, ask.Question{Kind: ask.Permission, Agent: "lead", Call: call, Why: "no rule allows it"})
//
// and on the other side
//
//	for questions := range desk.Watch(ctx) {
//		err := desk.Answer(questions[0].ID, ask.Answer{Verdict: troupe.Verdict{Effect: troupe.Allow, By: "user"}})
//	}
package ask

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
)

var (
	// ErrAnswered reports a question that has its answer already, was
	// withdrawn, or never was.
	ErrAnswered = errors.New("there is no such open question: it was answered or withdrawn")
	// ErrNobody reports that nobody is there to answer.
	ErrNobody = errors.New("nobody is there to ask")
)

// A Kind says what a question is about.
type Kind string

// The kinds.
const (
	Permission Kind = "permission" // may Call run
	Plan       Kind = "plan"       // is the plan in the input of Call good
	Choice     Kind = "choice"     // the questions in the input of Call
)

// A Question waits for an answer.
type Question struct {
	ID    string // given by the desk
	Kind  Kind
	Agent string // ID of who asks
	Name  string // of who asks, for people
	Call  troupe.Call
	By    string // what makes it a question: see [troupe.Verdict]
	Why   string
	Rules []string // allow rules that would answer it from now on; none: it must be asked each time
	Since time.Time
}

// An Answer ends a question. Its verdict is Allow (yes, approved, answered) or
// Deny. Its Input is the input to call with instead; that of a Choice is the
// call's with a field answers, an object of the answers by the texts of the
// questions.
type Answer struct {
	troupe.Verdict
	Text string // a note of the person
	Mode string // permission mode to work in from now on; "" leaves it
}

// A Desk holds the open questions of a session. It is safe for concurrent use.
type Desk struct {
	now func() time.Time

	mu      sync.Mutex
	last    int
	open    []*pending
	faces   int
	changed chan struct{} // closed at the next change
}

type pending struct {
	Question
	answer chan Answer // holds one
}

// NewDesk returns an empty desk, at which nobody sits yet.
func NewDesk(now func() time.Time) *Desk { return &Desk{now: now, changed: make(chan struct{})} }

// Ask puts q on the desk and waits for the answer. The end of ctx withdraws the
// question. ErrNobody says that no face attends, or that the last one has left.
func (d *Desk) Ask(ctx context.Context, q Question) (Answer, error) {
	p, err := d.put(q)
	if err != nil {
		return Answer{}, err
	}
	defer d.remove(p)
	select {
	case a, ok := <-p.answer:
		if !ok {
			return Answer{}, ErrNobody
		}
		return a, nil
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
}

func (d *Desk) put(q Question) (*pending, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.faces == 0 {
		return nil, ErrNobody
	}
	d.last++
	q.ID, q.Since = fmt.Sprintf("q%d", d.last), d.now()
	p := &pending{q, make(chan Answer, 1)}
	d.open = append(d.open, p)
	d.wake()
	return p, nil
}

func (d *Desk) remove(p *pending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.open, p); i >= 0 {
		d.open = slices.Delete(d.open, i, i+1)
		d.wake()
	}
}

// wake tells those who watch. The caller holds the lock.
func (d *Desk) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Answer answers the question with this ID, or returns ErrAnswered.
func (d *Desk) Answer(id string, a Answer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.open, func(p *pending) bool { return p.ID == id })
	if i < 0 {
		return fmt.Errorf("%w: %s", ErrAnswered, id)
	}
	d.open[i].answer <- a
	d.open = slices.Delete(d.open, i, i+1)
	d.wake()
	return nil
}

// Attend says that somebody is there who answers, until leave is called. When
// the last one leaves, what is open ends with ErrNobody.
func (d *Desk) Attend() (leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faces++
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.faces--; d.faces > 0 {
			return
		}
		for _, p := range d.open {
			close(p.answer)
		}
		d.open = nil
		d.wake()
	})
}

// Watch yields the open questions, oldest first, now and whenever they change,
// until ctx ends. Who is slow sees the newest state and not all before it.
func (d *Desk) Watch(ctx context.Context) iter.Seq[[]Question] {
	return func(yield func([]Question) bool) {
		for {
			open, changed := d.look()
			if ctx.Err() != nil || !yield(open) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (d *Desk) look() ([]Question, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var open []Question
	for _, p := range d.open {
		open = append(open, p.Question)
	}
	return open, d.changed
}
