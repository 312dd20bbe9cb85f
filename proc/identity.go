package proc

import (
	"errors"
	"fmt"
	"os"
)

// An Identity tells a process from every other that had or will have its
// pid.
type Identity struct {
	PID int `json:"pid"`
	// Start is when it started, in a unit that depends on the system: clock
	// ticks since the boot (Linux), microseconds (macOS) or 100 ns (Windows)
	// of the calendar. It is to be compared, not to be read.
	Start uint64 `json:"start"`
	// Boot names the run of the machine in which PID and Start mean something.
	// It is empty on Windows, where Start is enough.
	Boot string `json:"boot,omitempty"`
}

// Self is the identity of this process.
func Self() (Identity, error) { return Of(os.Getpid()) }

// Of returns the identity of the process that has pid now. The error wraps
// [os.ErrProcessDone] if there is none, or none any more that runs.
func Of(pid int) (Identity, error) {
	p, err := inspect(pid)
	if err == nil && p.zombie {
		err = os.ErrProcessDone
	}
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	boot, err := bootID()
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Identity{PID: pid, Start: p.start, Boot: boot}, nil
}

// Alive reports whether the process with this identity runs. With an error
// the answer is not known.
func Alive(id Identity) (bool, error) {
	now, err := Of(id.PID)
	if errors.Is(err, os.ErrProcessDone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return now == id, nil
}

// A process is a line of the system's table of processes.
type process struct {
	pid, ppid, group, session int
	start                     uint64
	zombie                    bool // has ended and waits for its parent to notice
}
