package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leastABI is the version of Landlock from which on it knows all ways to change
// what is in a file; before, any file could be cut to nothing.
const leastABI = 3

// abiScoped is the version from which on it also keeps a program from signalling
// others, and from abstract sockets.
const abiScoped = 6

// Rights are the rights to write, of files and of directories.
const (
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeDir  = writeFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
)

// devices are what every program may write to, as bubblewrap has them.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"}
}

// landlockABI is the version of Landlock that the kernel has; 0 is none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Confined makes a program a launcher for [FindSandbox]: it calls Confined first
// of all with its arguments, os.Args, and its environment. If the arguments are
// those of a launcher the program becomes another that is confined, and Confined
// does not return; if that fails it ends. Else Confined does nothing.
func Confined(args, env []string) {
	if len(args) < 3 || args[1] != confinedArg {
		return
	}
	err := become(args[2], args[2:], env)
	fmt.Fprintf(os.Stderr, "troupe: the sandbox could not be set up, so the command did not run: %v\n", err)
	os.Exit(126)
}

// become reads the limits, confines the calling thread and turns the process
// into another program. That the other threads are free does not matter: they
// end with the change.
func become(path string, args, env []string) error {
	f := os.NewFile(rulesFD, "limits")
	var limits Limits
	err := json.NewDecoder(f).Decode(&limits)
	_ = f.Close()
	if err != nil {
		return fmt.Errorf("read the limits: %w", err)
	}
	runtime.LockOSThread()
	if err := limits.enforce(); err != nil {
		return err
	}
	return syscall.Exec(path, args, env)
}

// enforce takes from this thread, and what it becomes, the right to write
// anywhere but where l says.
func (l Limits) enforce() error {
	abi := landlockABI()
	if abi < leastABI {
		return fmt.Errorf("Landlock version %d is too old", abi)
	}
	// An older kernel takes what it does not know, as long as it is zero.
	attr := unix.LandlockRulesetAttr{Handled_access_fs: writeDir}
	if abi >= abiScoped {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("make a set of rules: %w", errno)
	}
	defer unix.Close(int(set))
	for _, p := range append(devices(), l.Write...) {
		if err := permit(int(set), p); err != nil {
			return fmt.Errorf("permit writing in %s: %w", p, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new rights: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// permit adds to a set of rules that path and what is below it may be written.
// A path that is not there, or has become a link, is passed over.
func permit(set int, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: writeFile, Parent_fd: int32(fd)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		rule.Allowed_access = writeDir
	case unix.S_IFLNK:
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
