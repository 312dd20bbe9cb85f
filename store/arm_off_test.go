//go:build !failpoint

package store_test

func arm() {}
