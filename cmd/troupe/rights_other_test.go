//go:build unix && !linux

package main

import (
	"os"
	"os/exec"
)

// ownMounts reports that there is no way to mount things for one command alone.
func ownMounts(*exec.Cmd) bool { return false }

// modesCount reports whether the modes of files apply to the command.
func modesCount(*exec.Cmd) bool { return os.Getuid() != 0 }
