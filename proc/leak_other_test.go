//go:build !linux

package proc

func hasTestMark(int) bool { return false }
