package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// resumes measures how soon a session with much behind it goes on: one whose log
// has ten megabytes.
func (b *bench) resumes(ctx context.Context) ([]figure, error) {
	const megabytes, size = 10, 24 << 10
	dir := filepath.Join(b.dir, "resumed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for a long session: %w", err)
	}
	var plan []call
	for i := range megabytes << 20 / size {
		path := filepath.Join(dir, fmt.Sprintf("file%d.txt", i))
		text := source(i, size/30)
		if err := os.WriteFile(path, []byte(text[:min(len(text), size)]), 0o600); err != nil {
			return nil, fmt.Errorf("write a file for a long session: %w", err)
		}
		plan = append(plan, call{"Read", map[string]any{"file_path": path}})
	}
	if _, _, err := b.run(ctx, dir, plan); err != nil {
		return nil, err
	}
	logs, err := filepath.Glob(filepath.Join(b.troupeHome(), "sessions", "resumed-*", "*", "lead.jsonl"))
	if err != nil || len(logs) != 1 {
		return nil, fmt.Errorf("find the log of the long session: %v, %w", logs, err)
	}
	info, err := os.Stat(logs[0])
	if err != nil {
		return nil, fmt.Errorf("look at the log of the long session: %w", err)
	}
	figures := []figure{{what: fmt.Sprintf("start to the first byte of the first request of a session that goes on, its log of %d MB", info.Size()>>20), unit: "ms", bar: 250}}
	return b.repeat(ctx, b.runs, figures, func() ([]float64, error) {
		p, times, err := b.run(ctx, dir, nil, "--continue")
		if err != nil {
			return nil, err
		}
		return []float64{milliseconds(times[0].asked.Sub(p.began))}, nil
	})
}

// turns is how long the longest session is.
const turns = 10_000

// long measures whether a turn costs more the more turns were before it, and how
// memory grows with them. Of the CPU only the process's own part is looked at:
// the system's is for sending the conversation, which must be sent.
func (b *bench) long(ctx context.Context, dir string) ([]figure, error) {
	figures := []figure{
		{what: fmt.Sprintf("own CPU of a turn, turns %d to %d of a session", turns/10, turns/5), unit: "ms"},
		{what: fmt.Sprintf("the same, turns %d to %d", turns-turns/10, turns), unit: "ms"},
		{what: "the second ÷ the first", unit: "×", bar: 1.25},
		{what: fmt.Sprintf("memory that %d turns add, for each thousand, the first half", turns), unit: "MB"},
		{what: "the same, the second half", unit: "MB"},
	}
	path := filepath.Join(dir, "line.txt")
	if err := os.WriteFile(path, []byte("one line\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write a file to read: %w", err)
	}
	plan := slices.Repeat([]call{{"Read", map[string]any{"file_path": path}}}, turns)
	var samples map[int]sample
	b.provider.look = func(n int) {
		if n%(turns/10) == 0 {
			samples[n] = b.sample()
		}
	}
	defer func() { b.provider.look = nil }()
	return b.repeat(ctx, 1, figures, func() ([]float64, error) {
		samples = map[int]sample{}
		if _, _, err := b.run(ctx, dir, plan); err != nil {
			return nil, err
		}
		cpu := func(from, to int) float64 { return milliseconds(samples[to].cpu-samples[from].cpu) / float64(to-from) }
		memory := func(from, to int) float64 {
			return (samples[to].memory - samples[from].memory) / float64(to-from) * 1000
		}
		early, late := cpu(turns/10, turns/5), cpu(turns-turns/10, turns)
		return []float64{early, late, late / max(early, 1e-9), memory(turns/10, turns/2), memory(turns/2, turns)}, nil
	})
}

// A sample is how much a process has used so far.
type sample struct {
	cpu    time.Duration // its own, without the system's for it
	memory float64       // resident, in MB
}

// sample looks at the process that runs, where the system shows it: see proc(5).
func (b *bench) sample() (s sample) {
	proc := fmt.Sprintf("/proc/%d/", b.pid.Load())
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		return s
	}
	const utime, rss = 14 - 3, 24 - 3 // fields, counted from the one after the name
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks, pages int64
	fmt.Sscan(fields[utime], &ticks)
	fmt.Sscan(fields[rss], &pages)
	const tick = 10 * time.Millisecond
	return sample{time.Duration(ticks) * tick, float64(pages) * float64(os.Getpagesize()) / (1 << 20)}
}
