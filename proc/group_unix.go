//go:build linux || darwin

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A group is a program, the leader, and all that descends from it.
//
// The leader heads a session of its own, and a session can be left but not
// entered. So whoever shares a session with a process of the group is of the
// group. While the leader has not been waited for, its pid cannot be given
// to another.
type group struct {
	leader Identity
	mark   string
	exited <-chan struct{} // closed when the leader has ended; nil if that is not known
	known  map[int]uint64  // start by pid of all that were ever seen in the group
}

// start starts cmd as the leader of a group.
func start(cmd *exec.Cmd, mark string) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	p, err := inspect(pid) // not Of: it may have ended already
	var boot string
	if err == nil {
		boot, err = bootID()
	}
	if err != nil {
		_ = unix.Kill(-pid, unix.SIGKILL)
		_ = cmd.Wait()
		return nil, fmt.Errorf("identify process %d: %w", pid, err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		awaitExit(pid)
	}()
	g := &group{leader: Identity{pid, p.start, boot}, mark: mark, exited: exited, known: map[int]uint64{pid: p.start}}
	return g, nil
}

func (g *group) close() {}

// members returns the processes of g that run and remembers them: one that
// is known stays of the group whatever becomes of its parents.
func (g *group) members() ([]process, error) {
	var found []process
	// A process that is born while the table is read may be missing in it,
	// and its parent, gone by then, too. So "nobody" has to be confirmed.
	for range 4 {
		before := newestPID()
		if before == g.leader.PID && g.leaderDone() {
			return nil, nil // nobody was born after the leader, and he is gone
		}
		table, err := processes()
		if err != nil {
			return nil, fmt.Errorf("look for processes left: %w", err)
		}
		found = g.pick(table, func(pid int) bool { return hasMark(environment(pid), g.mark) })
		if len(found) > 0 || before > 0 && newestPID() == before {
			break
		}
	}
	for _, p := range found {
		g.known[p.pid] = p.start
	}
	return found, nil
}

func (g *group) leaderDone() bool {
	select {
	case <-g.exited:
		return true
	default:
		return false
	}
}

// pick returns the processes in table that are of g and run.
func (g *group) pick(table []process, marked func(pid int) bool) []process {
	in := make(map[int]bool)
	sessions := make(map[int]bool)
	add := func(p process) {
		in[p.pid] = true
		sessions[p.session] = true
	}
	var young []process // no descendant is older than its ancestor
	for _, p := range table {
		if p.start < g.leader.Start {
			continue
		}
		start, known := g.known[p.pid]
		known = known && start == p.start
		if p.pid == g.leader.PID && p.start == g.leader.Start && p.session == p.pid {
			sessions[p.pid] = true // also when all but its number is gone
		}
		if p.zombie {
			if known {
				reap(p, g.leader)
			}
			continue
		}
		young = append(young, p)
		if known || marked(p.pid) {
			add(p)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range young {
			if !in[p.pid] && (in[p.ppid] || sessions[p.session]) {
				add(p)
				grown = true
			}
		}
	}
	return slices.DeleteFunc(young, func(p process) bool { return !in[p.pid] })
}

// reap takes note of the end of an orphan that was given to this process, as
// happens to the first process of a container.
func reap(p process, leader Identity) {
	if p.ppid == os.Getpid() && p.pid != leader.PID {
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
	}
}

func (g *group) empty() (bool, error) {
	m, err := g.members()
	return err == nil && len(m) == 0, err
}

// settled waits a moment for g to end by itself. What is gone when it returns
// is forgotten.
func (g *group) settled(ctx context.Context) (bool, error) {
	empty, err := poll(ctx.Done(), settle, g.empty)
	if !empty && err == nil {
		g.known = make(map[int]uint64)
		empty, err = g.empty()
	}
	return empty, err
}

// end ends every process of g and returns how many there were.
func (g *group) end() (int, error) {
	m, err := g.members()
	if err != nil {
		g.signalGroup(unix.SIGKILL) // blind, but better than nothing
		return 0, err
	}
	g.signalGroup(unix.SIGTERM)
	for _, p := range m {
		if p.group != g.leader.PID {
			signal(p, unix.SIGTERM)
		}
		signal(p, unix.SIGCONT) // one that is stopped would not see it
	}
	if gone, err := poll(nil, grace, g.empty); gone || err != nil {
		return len(g.known), err
	}
	return g.kill()
}

// kill ends g by force. First all are stopped, so that nobody can start
// another or lose the parent by which he is known between the look and the
// blow.
func (g *group) kill() (int, error) {
	stopped := make(map[int]bool)
	for range 10 {
		m, err := g.members()
		if err != nil {
			return 0, err
		}
		m = slices.DeleteFunc(m, func(p process) bool { return stopped[p.pid] })
		if len(m) == 0 {
			break
		}
		g.signalGroup(unix.SIGSTOP)
		for _, p := range m {
			signal(p, unix.SIGSTOP)
			stopped[p.pid] = true
		}
	}
	var last []process
	gone, err := poll(nil, stubborn, func() (bool, error) {
		var err error
		last, err = g.members()
		g.signalGroup(unix.SIGKILL)
		for _, p := range last {
			signal(p, unix.SIGKILL)
		}
		return err == nil && len(last) == 0, err
	})
	if gone || err != nil {
		return len(g.known), err
	}
	alive := &SurvivorsError{}
	for _, p := range last {
		alive.PIDs = append(alive.PIDs, p.pid)
	}
	return len(g.known), alive
}

// signalGroup signals the leader's process group at once, if its number is
// still the leader's.
func (g *group) signalGroup(sig unix.Signal) {
	if p, err := inspect(g.leader.PID); err == nil && p.start == g.leader.Start && p.session == p.pid {
		_ = unix.Kill(-g.leader.PID, sig)
	}
}

// same reports whether p still is the process that has its pid.
func same(p process) bool {
	now, err := inspect(p.pid)
	return err == nil && now.start == p.start && p.pid != os.Getpid()
}

// left returns what there is of a group whose owner is dead; leader may be
// zero. The error is errInside if this process is a part of it.
func left(leader Identity, mark string) (*group, error) {
	g := &group{leader: leader, mark: mark, known: make(map[int]uint64)}
	if p, err := inspect(leader.PID); err == nil && p.start == leader.Start && p.session == p.pid {
		g.known[p.pid] = p.start
	}
	m, err := g.members()
	if err != nil {
		return nil, err
	}
	for _, p := range m {
		if p.pid == os.Getpid() {
			return nil, errInside
		}
	}
	return g, nil
}

// sameVariable reports whether two names of environment variables mean the
// same one.
func sameVariable(a, b string) bool { return a == b }

// makePrivate takes the rights of others from a directory of this user.
func makePrivate(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return errors.New("it is a link or not a directory; remove it")
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to the user %d; choose another directory", st.Uid)
	}
	if st.Mode&0o077 == 0 {
		return nil
	}
	return unix.Fchmod(fd, 0o700)
}

// readOwn reads a file if it is a regular one of this user and no link, up to
// limit bytes.
func readOwn(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s is not a file of this user", path)
	}
	return readUpTo(f, limit)
}
