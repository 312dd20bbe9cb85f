package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB of sys/proc.h

// processes returns all processes.
func processes() ([]process, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	table := make([]process, 0, len(all))
	for i := range all {
		table = append(table, entry(&all[i]))
	}
	return table, nil
}

// inspect returns the entry of one process. The error is [os.ErrProcessDone]
// if there is none.
func inspect(pid int) (process, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) { // EIO: an answer of no entries
		return process{}, os.ErrProcessDone
	}
	if err != nil {
		return process{}, err
	}
	p := entry(k)
	if p.pid != pid {
		return process{}, os.ErrProcessDone
	}
	return p, nil
}

func entry(k *unix.KinfoProc) process {
	pid := int(k.Proc.P_pid)
	session, err := unix.Getsid(pid)
	if err != nil {
		session = -pid // one of its own, which is nobody else's
	}
	start := k.Proc.P_starttime
	return process{
		pid:     pid,
		ppid:    int(k.Eproc.Ppid),
		group:   int(k.Eproc.Pgid),
		session: session,
		start:   uint64(start.Sec)*1e6 + uint64(start.Usec),
		zombie:  k.Proc.P_stat == zombie,
	}
}

// environment returns the arguments and the environment with which a process
// was started, or nothing if they may not be seen.
func environment(pid int) []byte {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil
	}
	return args
}

// newestPID is not known here, and not needed: the table is a snapshot.
func newestPID() int { return -1 }

// bootID names the present run of the machine.
func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

// where names the space in which a pid means something.
func where() (string, error) { return os.Hostname() }

// awaitExit returns when the child pid has ended, and leaves it to be waited
// for.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(queue)
	want := []unix.Kevent_t{{Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}}
	unix.SetKevent(&want[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	got := make([]unix.Kevent_t, 1)
	for {
		// ESRCH, in the error or in the event, says that it has ended already.
		if _, err := unix.Kevent(queue, want, got, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// signal sends sig to p. That it is gone, or not ours to signal, shows when
// one looks for it again.
func signal(p process, sig unix.Signal) {
	if same(p) {
		_ = unix.Kill(p.pid, sig)
	}
}
