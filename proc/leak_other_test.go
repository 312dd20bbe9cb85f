//go:build !linux

package proc

func processesLeft() error { return nil }

func adoptOrphans() error { return nil }
