package main

import (
	"os"
	"syscall"
)

func endings() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func ignorePipe() {}
