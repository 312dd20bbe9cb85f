package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// errKernel is the answer to the question for a thread of the kernel.
var errKernel = errors.New("a thread of the kernel")

// processes returns all processes that this one can see, without threads of
// the kernel.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	table := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := inspect(pid); err == nil {
			table = append(table, p)
		} else if !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, errKernel) {
			return nil, err
		}
	}
	return table, nil
}

// inspect returns the entry of one process. The error is [os.ErrProcessDone]
// if there is none.
func inspect(pid int) (process, error) {
	var buf [1024]byte
	stat, err := readProc(pid, "stat", buf[:])
	if err != nil {
		return process{}, err
	}
	return parseStat(stat)
}

// parseStat reads the content of /proc/PID/stat, which proc_pid_stat(5)
// describes. The name of the program, in parentheses, may hold anything.
func parseStat(stat []byte) (process, error) {
	id, rest, ok := bytes.Cut(stat, []byte(" ("))
	end := bytes.LastIndexByte(rest, ')')
	if !ok || end < 0 {
		return process{}, fmt.Errorf("unknown form of a process's state: %.40q", stat)
	}
	f := strings.Fields(string(rest[end+1:])) // f[0] is field 3
	if len(f) < 20 {
		return process{}, fmt.Errorf("unknown form of a process's state: %.40q", stat)
	}
	if f[2] == "-1" || f[3] == "-1" { // it was waited for while its line was written
		return process{}, os.ErrProcessDone
	}
	var bad error
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		bad = errors.Join(bad, err)
		return n
	}
	const kernelThread = 0x00200000 // PF_KTHREAD
	if flags := number(f[6]); flags&kernelThread != 0 {
		return process{}, errKernel
	}
	p := process{
		pid:     int(number(string(id))),
		ppid:    int(number(f[1])),
		group:   int(number(f[2])),
		session: int(number(f[3])),
		start:   number(f[19]),
		// A first thread that has ended is no end of the others.
		zombie: f[0] == "X" || f[0] == "Z" && number(f[17]) <= 1,
	}
	if bad != nil {
		return process{}, fmt.Errorf("unknown form of a process's state: %w", bad)
	}
	return p, nil
}

// environment returns the environment with which a process was started, or
// nothing if it may not be seen.
func environment(pid int) []byte {
	var env []byte
	// It looks empty for a moment while a process changes its program.
	_, _ = poll(nil, 5*time.Millisecond, func() (bool, error) {
		const limit = 8 << 20 // more than the kernel takes
		var err error
		for size := 16 << 10; size <= limit; size *= 8 {
			if env, err = readProc(pid, "environ", make([]byte, size)); len(env) < size {
				break
			}
		}
		return len(env) > 0, err
	})
	return env
}

// readProc reads a file of /proc/PID into buf and returns what there was of
// it. It does without package os, whose files are made for more.
func readProc(pid int, file string, buf []byte) ([]byte, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/" + file
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		if _, err := os.Stat("/proc/self/stat"); err != nil {
			return nil, fmt.Errorf("the file system /proc is needed: %w", err)
		}
		return nil, os.ErrProcessDone
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	n := 0
	for n < len(buf) {
		k, err := unix.Read(fd, buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ESRCH):
			return nil, os.ErrProcessDone
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		case k == 0:
			return buf[:n], nil
		}
		n += k
	}
	return buf, nil
}

// newestPID is the pid that was given out last, or -1 if that is not known.
// A pid in use is never given out again.
func newestPID() int {
	text, err := os.ReadFile("/proc/sys/kernel/ns_last_pid")
	if err != nil {
		return -1
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return pid
}

// bootID names the present run of the kernel; see random(4).
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// where names the space in which a pid means something: two containers of
// one machine have the same boot and other processes.
func where() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	return host + " " + space, err
}

// awaitExit returns when the child pid has ended, and leaves it to be waited
// for.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// signal sends sig to p and to no other. That it is gone, or not ours to
// signal, shows when one looks for it again.
func signal(p process, sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil { // gone, or an old kernel
		if same(p) {
			_ = unix.Kill(p.pid, sig)
		}
		return
	}
	defer unix.Close(fd)
	if same(p) { // then fd is p, whatever happens to the pid
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}
