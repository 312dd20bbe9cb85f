//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

func endings() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }

// ignorePipe makes a closed output an error of the write instead of the sudden
// end of the program: what tools have started must be ended first.
func ignorePipe() { signal.Ignore(syscall.SIGPIPE) }
