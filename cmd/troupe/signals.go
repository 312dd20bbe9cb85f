package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/troupe-sh/troupe"
)

// signals is what becomes of the signals that are to end the program.
type signals struct {
	mu        sync.Mutex
	first     syscall.Signal
	interrupt func() // takes every SIGINT, if there is one
	restore   func() // is called before the program ends at once
}

// catch returns a context that the first signal to end interrupts. The second
// ends the program at once.
func (s *signals) catch(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	incoming := make(chan os.Signal, 2)
	// What was ignored before we came stays so: nohup means it.
	if ends := slices.DeleteFunc(endings(), signal.Ignored); len(ends) > 0 {
		signal.Notify(incoming, ends...)
	}
	go func() { // lives as long as the program
		for sig := range incoming {
			s.take(sig.(syscall.Signal), cancel) // on all systems those of package os are
		}
	}()
	return ctx
}

func (s *signals) take(sig syscall.Signal, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case sig == syscall.SIGINT && s.interrupt != nil:
		go s.interrupt() // the person's face may be busy
	case s.first == 0:
		s.first = sig
		cancel(troupe.ErrInterrupted)
	default:
		if s.restore != nil {
			s.restore()
		}
		os.Exit(128 + int(sig))
	}
}

// caught returns the signal that has interrupted the program, 0 if none has.
func (s *signals) caught() syscall.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// handle gives every SIGINT to interrupt, until stop is called. restore is called
// before a second signal of another kind ends the program at once.
func (s *signals) handle(interrupt, restore func()) (stop func()) {
	set := func(interrupt, restore func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.interrupt, s.restore = interrupt, restore
	}
	set(interrupt, restore)
	return func() { set(nil, nil) }
}
