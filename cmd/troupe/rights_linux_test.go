package main

import (
	"os"
	"os/exec"
	"syscall"
)

// ownMounts has the command run as the root of a namespace of its own, in which
// it can mount things. It reports false where the system forbids that.
func ownMounts(cmd *exec.Cmd) bool {
	namespace(cmd, 0, syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS)
	probe := exec.Command("mount", "-t", "tmpfs", "none", "/mnt")
	namespace(probe, 0, syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS)
	return probe.Run() == nil
}

// modesCount has the command run as a user to whom the modes of files apply. It
// reports false where the system forbids that.
func modesCount(cmd *exec.Cmd) bool {
	if os.Getuid() != 0 {
		return true
	}
	namespace(cmd, 1000, syscall.CLONE_NEWUSER)
	probe := exec.Command("true")
	namespace(probe, 1000, syscall.CLONE_NEWUSER)
	return probe.Run() == nil
}

// namespace gives the command new namespaces in which we have the ID uid.
func namespace(cmd *exec.Cmd, uid int, flags uintptr) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getgid(), Size: 1}},
	}
}
