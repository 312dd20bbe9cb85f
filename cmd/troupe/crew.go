package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
)

// crew is how the agents below the lead work, and how long -p waits for what works
// in the background: by the flags, else by the environment, else by the settings.
func (p *program) crew(f *flags, c config.Crew) (host.Crew, host.Patience, error) {
	crew := host.Crew{Most: c.Concurrent, Total: c.Total, Depth: c.Depth, Foreground: c.Foreground, Forking: c.Fork != nil && *c.Fork}
	wait := host.Usual()
	if c.Wait > 0 {
		wait.Agents = c.Wait
	}
	if c.WaitOthers > 0 {
		wait.Others = c.WaitOthers
	}
	if off, err := p.truth("TROUPE_DISABLE_BACKGROUND_TASKS", false); err != nil {
		return crew, wait, err
	} else if off {
		crew.Foreground = true
	}
	var err error
	if crew.Forking, err = p.truth("TROUPE_FORK", crew.Forking); err != nil {
		return crew, wait, err
	}
	crew.Forking = crew.Forking || f.forking
	for name, to := range map[string]*time.Duration{"TROUPE_BACKGROUND_WAIT": &wait.Agents, "TROUPE_BACKGROUND_WAIT_OTHERS": &wait.Others} {
		if v := p.lookup(name); v != "" {
			if *to, err = time.ParseDuration(v); err != nil || *to < 0 {
				return crew, wait, fmt.Errorf("%s %q: want how long to wait, as in 90s or 1h; 0s for not at all", name, v)
			}
		}
	}
	return crew, wait, nil
}

// truth reads a variable that is on or off; unset is what else counts.
func (p *program) truth(name string, unset bool) (bool, error) {
	v := p.lookup(name)
	if v == "" {
		return unset, nil
	}
	yes, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("%s %q: want 1 or 0", name, v)
	}
	return yes, nil
}
