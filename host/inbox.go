package host

import (
	"context"
	"slices"
	"sync"

	"github.com/troupe-sh/troupe"
)

// prompts is the inbox of a lead: what the user of this process says to it.
// It is safe for concurrent use.
type prompts struct {
	mu   sync.Mutex
	left []troupe.Received
}

func (p *prompts) put(r troupe.Received) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, r)
}

// Take implements [troupe.Inbox].
func (p *prompts) Take(context.Context) ([]troupe.Received, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.left), nil
}

// Ack implements [troupe.Inbox].
func (p *prompts) Ack(_ context.Context, ids []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = slices.DeleteFunc(p.left, func(r troupe.Received) bool { return slices.Contains(ids, r.ID) })
	return nil
}
