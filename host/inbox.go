package host

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/failpoint"
	"github.com/troupe-sh/troupe/mail"
)

// An inbox is a lead's: what the user of this process says to it, and its mail.
type inbox struct {
	prompts
	box *mail.Box
}

// Take implements [troupe.Inbox].
func (in *inbox) Take(ctx context.Context) ([]troupe.Received, error) {
	said, err := in.prompts.Take(ctx)
	if err != nil {
		return nil, err
	}
	mail, err := in.box.Take(ctx)
	return append(said, mail...), err
}

// Ack implements [troupe.Inbox].
func (in *inbox) Ack(ctx context.Context, ids []string) error {
	return errors.Join(in.prompts.Ack(ctx, ids), in.box.Ack(ctx, ids))
}

// wait waits until there is something to take, or ctx ends. It is called between
// the lead's runs.
func (in *inbox) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	said := in.prompts.await()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-said:
			cancel(errSaid)
		case <-stop:
		}
	}()
	err := in.box.Wait(ctx)
	close(stop)
	<-done
	if errors.Is(context.Cause(ctx), errSaid) {
		return nil
	}
	return err
}

var errSaid = errors.New("the user has said something")

// prompts are what the user of this process says to a lead. They are safe for
// concurrent use.
type prompts struct {
	mu     sync.Mutex
	before troupe.Blocks // stands in front of the first prompt
	left   []troupe.Received
	heard  chan struct{} // closed when there is something; nil if nobody waits
}

// await returns a channel that is closed when there is a prompt.
func (p *prompts) await() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard == nil {
		p.heard = make(chan struct{})
	}
	heard := p.heard
	if len(p.left) > 0 {
		close(p.heard)
		p.heard = nil
	}
	return heard
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
	if p.heard != nil {
		close(p.heard)
		p.heard = nil
	}
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
