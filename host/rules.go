package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/permission"
)

// ErrUntrusted reports that a rule was to be kept for a repository that the
// user does not trust: it would not count there.
var ErrUntrusted = errors.New("this folder is not trusted, so what its settings allow does not count; troupe trust changes that")

// grants are the rules that the user has given a running session. They are safe
// for concurrent use.
type grants struct {
	mu      sync.Mutex
	permits []permit       // in order
	waiting map[int]func() // called when there are new rules
	last    int
}

// add gives p the rules there are now.
func (g *grants) add(p permission.Policy) permission.Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.permits) == 0 {
		return p
	}
	p.Rules = slices.Clone(p.Rules)
	for _, c := range g.permits {
		if c.gone != nil {
			p.Rules = slices.DeleteFunc(p.Rules, c.gone)
		}
		p.Rules = append(p.Rules, c.come...)
	}
	return p
}

// A permit is one change of the rules: some go, then some come.
type permit struct {
	gone func(permission.Rule) bool
	come []permission.Rule
}

// put makes a change and tells those who wait.
func (g *grants) put(p permit) {
	g.mu.Lock()
	g.permits = append(g.permits, p)
	waiting := slices.Collect(maps.Values(g.waiting))
	g.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// wait has f called whenever there are new rules, until stop is called. f must
// not wait for anything.
func (g *grants) wait(f func()) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = map[int]func(){}
	}
	g.last++
	n := g.last
	g.waiting[n] = f
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.waiting, n)
	}
}

// Allow gives all agents of the session allow rules until it is closed. They
// count from the next call on, and for calls that somebody is being asked about.
// Deny and ask rules stay above them.
func (s *Session) Allow(rules ...string) error {
	var parsed []permission.Rule
	for _, text := range rules {
		r, err := permission.ParseRule(troupe.Allow, text, permission.Origin{Source: ofSession, Root: s.opts.Config.Root, Home: s.opts.UserHome})
		if err != nil {
			return err
		}
		parsed = append(parsed, r)
	}
	s.granted.put(permit{come: parsed})
	return nil
}

// AllowAlways is Allow for this session and those to come in the repository. It
// returns the settings file that the rules were written to, or ErrUntrusted.
func (s *Session) AllowAlways(ctx context.Context, rules ...string) (path string, err error) {
	if !s.opts.Config.Trusted {
		return "", ErrUntrusted
	}
	path = config.LocalSettings(s.opts.Config.Root)
	if err := config.AddRules(ctx, s.opts.Home, path, troupe.Allow, rules...); err != nil {
		return "", err
	}
	if err := s.Allow(rules...); err != nil {
		return "", fmt.Errorf("use the rules at once: %w", err)
	}
	return path, nil
}
