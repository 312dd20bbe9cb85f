package host

import (
	"context"
	"slices"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/failpoint"
)

// prompts is the inbox of a lead: what the user of this process says to it.
// It is safe for concurrent use.
type prompts struct {
	mu     sync.Mutex
	before troupe.Blocks // stands in front of the first prompt
	left   []troupe.Received
}

func (p *prompts) introduce(b troupe.Blocks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = b
}

func (p *prompts) put(id string, content troupe.Blocks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := troupe.Message{Role: troupe.User, Content: append(p.before, content...)}
	p.before = nil
	p.left = append(p.left, troupe.Received{ID: id, From: "user", Message: m})
}

// Take implements [troupe.Inbox].
func (p *prompts) Take(context.Context) ([]troupe.Received, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.left) > 0 {
		failpoint.Here(failpoint.InboxTaken)
	}
	return slices.Clone(p.left), nil
}

// Ack implements [troupe.Inbox].
func (p *prompts) Ack(_ context.Context, ids []string) error {
	p.remove(ids)
	failpoint.Here(failpoint.InboxAcked)
	return nil
}

func (p *prompts) remove(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = slices.DeleteFunc(p.left, func(r troupe.Received) bool { return slices.Contains(ids, r.ID) })
}

func (p *prompts) ids() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.left {
		ids = append(ids, r.ID)
	}
	return ids
}
