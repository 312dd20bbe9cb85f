package main

import (
	"cmp"
	"context"
	"os"

	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/proc"
)

// sandboxFinding tells what confines commands here, found by a trial, and what
// the settings make of it.
func (p *program) sandboxFinding(ctx context.Context, c *config.Config) finding {
	set := cmp.Or(c.Sandbox.Mode.Text, config.SandboxOff)
	if c.Sandbox.Mode.Source != "" {
		set += " (" + c.Sandbox.Mode.Source + ")"
	}
	launcher, err := os.Executable()
	if err != nil {
		launcher = ""
	}
	found, err := host.FindSandbox(ctx, launcher, p.env)
	if err != nil {
		return finding{c.Sandbox.Mode.Text != config.SandboxRequired, "sandbox", set + "; " + err.Error()}
	}
	detail := set + "; " + found.Name() + " works: it denied a write on trial. It holds writing outside of the writable directories"
	if lacks := found.Lacks(proc.Limits{Write: []string{"/a"}, NoWrite: []string{"/a/b"}, NoRead: []string{"/c"}, NoNetwork: true}); lacks == nil {
		detail += ", settings and git hooks in them, what must not be read, and the network"
	} else {
		detail += ", and not settings and git hooks in them, nor reading, nor the network (bubblewrap would)"
	}
	return finding{true, "sandbox", detail}
}
