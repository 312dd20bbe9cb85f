package main

import (
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/host"
)

// coordinating is what flags and variables say of a lead that only delegates. The
// server of pull requests, and who asks there, is the user's word alone: what a
// project's settings put into the environment does not count.
func (p *program) coordinating(f *flags) (c host.Coordinating, err error) {
	c = host.Coordinating{On: f.coordinator || p.isOn("TROUPE_COORDINATOR_MODE"), Simple: p.isOn("TROUPE_SIMPLE"),
		NoScratchpad: p.isOn("TROUPE_DISABLE_SCRATCHPAD"), Forge: forge.Server{}.From(p.lookupBefore)}
	if name := p.lookup("TROUPE_DELEGATION_CHECK"); name != "" {
		if c.Check, err = delegate.ParseLevel(name); err != nil {
			return c, fmt.Errorf("TROUPE_DELEGATION_CHECK: %w", err)
		}
	}
	return c, nil
}

// isOn reports whether a variable switches something on.
func (p *program) isOn(name string) bool {
	switch strings.ToLower(p.lookup(name)) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

// lookupBefore is a variable as the user has set it.
func (p *program) lookupBefore(name string) string {
	env := p.before
	if env == nil {
		env = p.env
	}
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}
