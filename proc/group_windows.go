package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is a job object, which a process cannot leave. It is made so that
// the kernel ends the job when its last handle is closed, which the death of
// this process does too.
type group struct {
	leader Identity
	exited <-chan struct{} // closed when the first program has ended
	job    windows.Handle  // 0 for a group whose owner has died
	first  windows.Handle  // the first program
}

// start starts cmd stopped, puts it into a job and lets it go.
func start(cmd *exec.Cmd, mark string) (*group, error) {
	job, err := newJob()
	if err != nil {
		return nil, fmt.Errorf("make a job object: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
	}
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	g := &group{job: job}
	if err := g.release(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		g.close()
		_ = cmd.Wait()
		return nil, err
	}
	exited := make(chan struct{})
	g.exited = exited
	go func() {
		defer close(exited)
		_, _ = windows.WaitForSingleObject(g.first, windows.INFINITE)
	}()
	return g, nil
}

// newJob makes a job object that ends with its last handle.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limit windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limit.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limit)), uint32(unsafe.Sizeof(limit)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// release puts the stopped process pid into the job and starts its threads.
func (g *group) release(pid int) error {
	var err error
	if g.leader, err = Of(pid); err != nil {
		return err
	}
	const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.SYNCHRONIZE
	if g.first, err = windows.OpenProcess(access, false, uint32(pid)); err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	if err := windows.AssignProcessToJobObject(g.job, g.first); err != nil {
		return fmt.Errorf("put process %d into a job: %w", pid, err)
	}
	return resume(uint32(pid))
}

// resume lets the threads of a process run that was started stopped.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
	var t windows.ThreadEntry32
	t.Size = uint32(unsafe.Sizeof(t))
	for err = windows.Thread32First(snapshot, &t); err == nil; err = windows.Thread32Next(snapshot, &t) {
		if t.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, t.ThreadID)
		if err != nil {
			return fmt.Errorf("open a thread of process %d: %w", pid, err)
		}
		_, err = windows.ResumeThread(thread)
		_ = windows.CloseHandle(thread)
		if err != nil {
			return fmt.Errorf("start process %d: %w", pid, err)
		}
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return fmt.Errorf("list threads: %w", err)
	}
	return nil
}

func (g *group) close() {
	if g.first != 0 {
		_ = windows.CloseHandle(g.first)
	}
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
}

// size is the number of processes in the job.
func (g *group) size() (int, error) {
	if g.job == 0 {
		return 0, nil
	}
	// JOBOBJECT_BASIC_ACCOUNTING_INFORMATION of winnt.h.
	var info struct {
		totalUser, totalKernel, periodUser, periodKernel int64
		pageFaults, total, active, terminated            uint32
	}
	err := windows.QueryInformationJobObject(g.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	if err != nil {
		return 0, fmt.Errorf("look for processes left: %w", err)
	}
	return int(info.active), nil
}

func (g *group) empty() (bool, error) {
	n, err := g.size()
	return err == nil && n == 0, err
}

// settled waits a moment for g to end by itself.
func (g *group) settled(ctx context.Context) (bool, error) {
	return poll(ctx.Done(), settle, g.empty)
}

// end ends every process of g and returns how many there were. There is no
// way here to ask a program without a window to end.
func (g *group) end() (int, error) {
	n, err := g.size()
	if n == 0 || err != nil {
		return 0, err
	}
	if err := windows.TerminateJobObject(g.job, 1); err != nil {
		return n, fmt.Errorf("end a job: %w", err)
	}
	gone, err := poll(nil, stubborn, g.empty)
	if err == nil && !gone {
		err = &SurvivorsError{PIDs: []int{g.leader.PID}}
	}
	return n, err
}

// left returns what there is of a group whose owner is dead: nothing.
func left(Identity, string) (*group, error) { return &group{}, nil }

// inspect returns what is needed of one process to identify it. The error is
// [os.ErrProcessDone] if there is none.
func inspect(pid int) (process, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return process{}, os.ErrProcessDone
	}
	if err != nil {
		return process{}, err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return process{}, err
	}
	event, err := windows.WaitForSingleObject(h, 0)
	if err != nil {
		return process{}, err
	}
	return process{
		pid:    pid,
		start:  uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime),
		zombie: event == windows.WAIT_OBJECT_0, // somebody still has a handle
	}, nil
}

// bootID is not needed: the time of creation is one of the calendar.
func bootID() (string, error) { return "", nil }

// where names the space in which a pid means something.
func where() (string, error) { return os.Hostname() }

// sameVariable reports whether two names of environment variables mean the
// same one.
func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }

// makePrivate leaves a directory as it is: it has the rights of the user's
// profile, in which it lies.
func makePrivate(dir string) error {
	st, err := os.Lstat(dir)
	if err == nil && !st.IsDir() {
		err = errors.New("it is a link or not a directory; remove it")
	}
	return err
}

// readOwn reads a regular file, up to limit bytes.
func readOwn(path string, limit int64) ([]byte, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readUpTo(io.Reader(f), limit)
}
