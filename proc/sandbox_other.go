//go:build !linux

package proc

import (
	"errors"
	"os/exec"
)

func findBubblewrap(string, []string) (*Sandbox, error) {
	return nil, errors.New("commands can be confined on Linux only")
}

func findLandlock(string, []string) (*Sandbox, error) {
	return nil, errors.New("use a container or a virtual machine")
}

func (c Command) confine(*exec.Cmd) error { return ErrNoSandbox }

// Confined does nothing: there is nothing here that could confine a program.
func Confined(_, _ []string) {}

// Denied returns nil: nothing is confined here.
func (s *Sandbox) Denied(Limits, string, string) []string { return nil }
