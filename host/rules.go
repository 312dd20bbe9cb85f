package host

import (
	"context"
	"errors"
	"fmt"
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
	rules   []permission.Rule
	waiting map[int]func() // called when there are new rules
	last    int
}

// add gives p the rules there are now.
func (g *grants) add(p permission.Policy) permission.Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.Rules = slices.Concat(p.Rules, g.rules)
	return p
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
		r, err := permission.ParseRule(troupe.Allow, text, permission.Origin{Source: "this session", Root: s.opts.Config.Root, Home: s.opts.UserHome})
		if err != nil {
			return err
		}
		parsed = append(parsed, r)
	}
	s.granted.mu.Lock()
	s.granted.rules = append(s.granted.rules, parsed...)
	var waiting []func()
	for _, f := range s.granted.waiting {
		waiting = append(waiting, f)
	}
	s.granted.mu.Unlock()
	for _, f := range waiting {
		f()
	}
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
