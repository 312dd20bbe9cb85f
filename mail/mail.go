// Package mail is how anything reaches an agent: prompts of the user, mail of
// other agents, notices of tasks. A box is a prefix of a [store.Store], one key
// a message, so all of it survives a crash; a message is gone when the agent
// has it in its log.
package mail

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/store"
)

// A Message is what lies in a box. A message with the same ID is the same
// message: it is given to the agent once, however often it is sent.
type Message struct {
	ID   string          // a segment of a key; see [store.CheckKey] and [IDs]
	From string          // "user", or the agent that wrote it
	Kind string          `json:",omitempty"` // of the runtime's own messages; "" is text
	Text string          `json:",omitempty"`
	Body json.RawMessage `json:",omitempty"` // of the kinds that have one
}

// Send puts m into the box at prefix, which ends in a slash. It is there for
// good when Send returns; to send it again is harmless. Another message with
// its ID is store.ErrConflict, a malformed ID or prefix store.ErrKey, a message
// of more than [store.MaxValue] bytes store.ErrTooLarge.
func Send(ctx context.Context, s store.Store, prefix string, m Message) error {
	if err := check(prefix, m); err != nil {
		return err
	}
	val, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("send %s to %s: %w", m.ID, prefix, err)
	}
	if _, err := store.Create(ctx, s, prefix+m.ID, val); err != nil {
		if errors.Is(err, store.ErrTooLarge) {
			err = fmt.Errorf("%w; put what is long into a file and name it", err)
		}
		return fmt.Errorf("send to %s: %w", prefix, err)
	}
	return nil
}

func check(prefix string, m Message) error {
	if err := store.CheckPrefix(prefix); err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	if strings.Contains(m.ID, "/") {
		return fmt.Errorf("send mail: %w: ID %q", store.ErrKey, m.ID)
	}
	return nil
}

// IDs makes IDs of messages. Those of one IDs grow, so a box gives the
// messages of one sender in the order in which they were made; those of several
// senders never meet. It is safe for concurrent use.
type IDs struct {
	now func() time.Time

	mu   sync.Mutex
	last int64 // nanoseconds since 1970
}

// NewIDs returns an IDs that takes the time of now.
func NewIDs(now func() time.Time) *IDs { return &IDs{now: now} }

// New returns an ID of 16 hex digits of time, a dash and ten random letters and
// digits.
func (i *IDs) New() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = max(i.now().UnixNano(), i.last+1)
	return fmt.Sprintf("%016x-%s", i.last, strings.ToLower(rand.Text()[:10]))
}

// A Box is the receiving end. It implements [troupe.Inbox]. It is for one
// agent, which calls one method at a time.
type Box struct {
	Store  store.Store
	Prefix string // ends in a slash
	// Render makes of a message what the model reads, at the moment when it is
	// taken. A message for which ok is false is for the runtime: it goes when
	// Render has returned, and after a crash may come once more. With a nil
	// Render the model reads Text.
	Render func(ctx context.Context, m Message) (text string, ok bool)
	// Unreadable is told once of each message that cannot be read, or whose
	// sender is not who it says. Such a message stays, to be looked at, and wakes
	// nobody. It may be nil.
	Unreadable func(key string, err error)

	revs map[string]store.Rev // by ID, of what was taken
	bad  map[string]store.Rev // by key, of what cannot be read
}

// Take implements [troupe.Inbox]. The messages come in the order of their IDs.
func (b *Box) Take(ctx context.Context) ([]troupe.Received, error) {
	b.revs = map[string]store.Rev{}
	var out []troupe.Received
	for e, err := range b.Store.List(ctx, b.Prefix) {
		if err != nil {
			return nil, fmt.Errorf("look into the box %s: %w", b.Prefix, err)
		}
		id, ours := b.id(e.Key)
		if !ours || b.bad[e.Key] == e.Rev {
			continue
		}
		m, err := open(id, e)
		if err != nil {
			b.report(e, err)
			continue
		}
		b.revs[id] = e.Rev
		text, ok := m.Text, true
		if b.Render != nil {
			text, ok = b.Render(ctx, m)
		}
		if !ok {
			if err := b.Ack(ctx, []string{id}); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, troupe.Received{ID: id, From: m.From, Message: troupe.Say(troupe.User, text)})
	}
	return out, nil
}

// id is the ID of the message at key. What lies deeper is another box.
func (b *Box) id(key string) (string, bool) {
	id := strings.TrimPrefix(key, b.Prefix)
	return id, id != "" && !strings.Contains(id, "/")
}

func open(id string, e store.Entry) (m Message, err error) {
	if err := json.Unmarshal(e.Value, &m); err != nil {
		return m, fmt.Errorf("no message: %w", err)
	}
	switch {
	case m.ID != id:
		return m, fmt.Errorf("its ID is %q, and it lies there as %q", m.ID, id)
	case m.From == "":
		return m, errors.New("nobody sent it")
	case e.By != "" && e.By != m.From:
		return m, fmt.Errorf("it says that it is from %q and is from %q", m.From, e.By)
	}
	return m, nil
}

func (b *Box) report(e store.Entry, err error) {
	if b.bad == nil {
		b.bad = map[string]store.Rev{}
	}
	b.bad[e.Key] = e.Rev
	if b.Unreadable != nil {
		b.Unreadable(e.Key, err)
	}
}

// Ack implements [troupe.Inbox]. What is gone already is no error.
func (b *Box) Ack(ctx context.Context, ids []string) error {
	var errs []error
	for _, id := range ids {
		if b.revs[id] == "" {
			continue
		}
		err := b.Store.Delete(ctx, b.Prefix+id, b.revs[id])
		if err != nil && !errors.Is(err, store.ErrConflict) {
			errs = append(errs, fmt.Errorf("clear the box %s: %w", b.Prefix, err))
		}
	}
	return errors.Join(errs...)
}

// Wait returns nil when there is something to take, at once if it is there
// already; else the cause of the end of ctx, or what broke the watch.
func (b *Box) Wait(ctx context.Context) error {
	for e, err := range b.Store.Watch(ctx, b.Prefix) {
		if err != nil {
			return err
		}
		if _, ours := b.id(e.Key); ours && e.Value != nil && b.bad[e.Key] != e.Rev {
			return nil
		}
	}
	return context.Cause(ctx)
}
