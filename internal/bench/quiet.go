package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	look     = 100 * time.Millisecond // how long others are watched
	quietest = 0.1                    // share of the processors that others may use
)

// quiet waits until others leave the machine alone, at most as long as the user
// said. Runs for which it waited in vain are counted. Where the system does not
// tell, it does not wait.
func (b *bench) quiet(ctx context.Context) error {
	if b.wait == 0 {
		return ctx.Err()
	}
	b.waits++
	for end := b.now().Add(b.wait); b.now().Before(end); {
		idle, all, ok := ticks()
		if !ok {
			return ctx.Err()
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
		idleNow, allNow, _ := ticks()
		if all != allNow && float64(idleNow-idle) >= (1-quietest)*float64(allNow-all) {
			return nil
		}
	}
	b.inVain++
	return ctx.Err()
}

// ticks returns how long the processors have been idle, and how long they have
// been, in a unit of the system's.
func ticks() (idle, all int, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, err := strconv.Atoi(field)
		if i == 0 || err != nil {
			continue // the name of the line
		}
		all += n
		if i == 4 || i == 5 { // idle, and idle while a disk works
			idle += n
		}
	}
	return idle, all, all > 0
}
