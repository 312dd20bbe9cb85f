package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Hide keeps other processes of the same user from this one's memory and from
// the environment that it was started with: what it runs could read keys there.
// The programs that it starts are seen as ever. See PR_SET_DUMPABLE in prctl(2).
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process from others: %w", err)
	}
	return nil
}
