package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
// memory grows with them. The whole conversation has to be sent at each turn;
// what this takes a program that does nothing else is measured, too, and taken off.
func (b *bench) long(ctx context.Context, dir string) ([]figure, error) {
	const tenth = turns / 10
	figures := []figure{
		{what: fmt.Sprintf("own CPU of a turn, sending aside, turns %d to %d of a session", tenth, 2*tenth), unit: "ms"},
		{what: fmt.Sprintf("the same, turns %d to %d", turns-tenth, turns), unit: "ms"},
		{what: "the second ÷ the first", unit: "×", bar: 1.25},
		{what: fmt.Sprintf("memory that a thousand turns add, turns %d to %d", tenth, turns/2), unit: "MB"},
		{what: fmt.Sprintf("the same, turns %d to %d", turns/2, turns), unit: "MB"},
	}
	path := filepath.Join(dir, "line.txt")
	if err := os.WriteFile(path, []byte("one line\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write a file to read: %w", err)
	}
	plan := slices.Repeat([]call{{"Read", map[string]any{"file_path": path}}}, turns)
	samples := map[int]sample{}
	b.provider.look = func(n int, size int64) {
		if n%tenth == 0 {
			samples[n] = b.sample(size)
		}
	}
	_, _, err := b.run(ctx, dir, plan)
	b.provider.look = nil
	if err != nil {
		return nil, err
	}
	cpu := func(from, to int) (float64, error) {
		sending, err := b.sending(ctx, (samples[from].size+samples[to].size)/2)
		return (milliseconds(samples[to].own-samples[from].own) - sending*float64(to-from)) / float64(to-from), err
	}
	memory := func(from, to int) float64 {
		return (samples[to].memory - samples[from].memory) / float64(to-from) * 1000
	}
	early, err := cpu(tenth, 2*tenth)
	if err != nil {
		return nil, err
	}
	late, err := cpu(turns-tenth, turns)
	if err != nil {
		return nil, err
	}
	for i, v := range []float64{early, late, late / max(early, 1e-9), memory(tenth, turns/2), memory(turns/2, turns)} {
		figures[i].values = []float64{v}
	}
	return figures, nil
}

// sends is how often sendAll sends.
const sends = 100

// sending measures the own CPU, in milliseconds, of sending a body of so many bytes.
func (b *bench) sending(ctx context.Context, size int64) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find the bench itself: %w", err)
	}
	b.provider.begin(nil)
	much, err := b.start(ctx, b.dir, b.env, self, "-send", strconv.FormatInt(size, 10), b.provider.url)
	if err != nil {
		return 0, err
	}
	none, err := b.start(ctx, b.dir, b.env, self, "-nothing")
	return milliseconds(much.own-none.own) / sends, err
}

// sendAll sends size bytes to a provider, over and over.
func sendAll(url string, size int) error {
	body := bytes.Repeat([]byte("x"), size)
	for range sends {
		res, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
	}
	return nil
}

// A sample is how much a process has used so far.
type sample struct {
	own    time.Duration // CPU without the system's part
	memory float64       // resident, in MB
	size   int64         // of the request at that moment, in bytes
}

// sample looks at the process that runs, where the system shows it: see proc(5).
func (b *bench) sample(size int64) (s sample) {
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
	return sample{time.Duration(ticks) * tick, float64(pages) * float64(os.Getpagesize()) / (1 << 20), size}
}
