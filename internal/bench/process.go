package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// A bench is what the measurements share.
type bench struct {
	troupe   string // the binary, absolute
	dir      string // for all that is written
	runs     int
	wait     time.Duration // longest wait for a quiet moment before a run
	now      func() time.Time
	env      []string
	provider *provider
	notes    []string // what should be known of the figures

	waits, inVain int          // for a quiet moment
	pid           atomic.Int64 // of the process that runs
}

// A process is one that has ended, and what it took.
type process struct {
	began  time.Time
	took   time.Duration
	cpu    time.Duration // of itself and of what it started
	own    time.Duration // of that, without the system's part
	memory float64       // peak in MB; 0 is not known
}

// start runs a program to its end. It is not started by package proc, whose own
// work, such as the look for what a program leaves behind, would be measured
// with it.
func (b *bench) start(ctx context.Context, dir string, env []string, path string, args ...string) (p process, err error) {
	if err := ctx.Err(); err != nil {
		return p, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return p, err
	}
	defer null.Close()
	said, err := os.Create(filepath.Join(b.dir, "stderr"))
	if err != nil {
		return p, err
	}
	defer said.Close()
	name := filepath.Base(path)
	p.began = b.now()
	child, err := os.StartProcess(path, append([]string{name}, args...), &os.ProcAttr{Dir: dir, Env: env, Files: []*os.File{null, null, said}})
	if err != nil {
		return p, fmt.Errorf("start %s: %w", name, err)
	}
	b.pid.Store(int64(child.Pid))
	state, err := child.Wait()
	p.took = b.now().Sub(p.began)
	if err != nil {
		return p, fmt.Errorf("wait for %s: %w", name, err)
	}
	p.cpu, p.own, p.memory = state.UserTime()+state.SystemTime(), state.UserTime(), peak(state)
	if !state.Success() {
		text, _ := os.ReadFile(said.Name())
		return p, fmt.Errorf("%s %s: %s: %s", name, strings.Join(args, " "), state, strings.TrimSpace(string(text)))
	}
	return p, nil
}

// home is the environment of troupe's runs: it has a home of its own, so that
// nothing of the user's counts, and the provider is the one that is played.
func (b *bench) home() []string {
	home := filepath.Join(b.dir, "home")
	env := []string{"HOME=" + home, "USERPROFILE=" + home, "TROUPE_HOME=" + b.troupeHome(),
		"ANTHROPIC_BASE_URL=" + b.provider.url, "ANTHROPIC_API_KEY=bench"}
	for _, kv := range b.env {
		switch name, _, _ := strings.Cut(kv, "="); strings.ToUpper(name) {
		case "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR":
			env = append(env, kv)
		}
	}
	return env
}

func (b *bench) troupeHome() string { return filepath.Join(b.dir, "home", "troupe") }

// run lets troupe answer a prompt in dir, with a model that makes the calls of
// plan.
func (b *bench) run(ctx context.Context, dir string, plan []call, flags ...string) (process, []exchange, error) {
	b.provider.begin(plan)
	p, err := b.start(ctx, dir, b.home(), b.troupe, append(flags, "-p", "Go on.", "--allowed-tools", "Bash(true)")...)
	if err != nil {
		return p, nil, err
	}
	times := b.provider.exchanges()
	if len(times) != len(plan)+1 {
		return p, nil, fmt.Errorf("the run made %d requests, want %d", len(times), len(plan)+1)
	}
	return p, times, nil
}
