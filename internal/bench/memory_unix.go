//go:build linux || darwin

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peak returns the most memory that a process has held, in MB. What this
// program held when it started the process is the least that the system tells.
func peak(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return float64(usage.Maxrss) / (1 << 20) // bytes
	}
	return float64(usage.Maxrss) / (1 << 10) // kilobytes
}
