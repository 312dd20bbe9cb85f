package proc

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleVar makes a copy of the test program play a part in a test of another.
const roleVar = "PROC_TEST_ROLE"

// TestMain fails if the tests leave a process or a goroutine.
func TestMain(m *testing.M) {
	Confined(os.Args, os.Environ())
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		code = 1
	}
	if err := processesLeft(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// play plays a part and returns its exit code.
func play(role string) int {
	var err error
	switch role {
	case "owner": // of a group that outlives it
		_, err = Run(context.Background(), Command{
			Path: "/bin/sh", Args: []string{"-c", os.Getenv("PROC_TEST_SCRIPT")},
			Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Ledger: os.Getenv("PROC_TEST_LEDGER"),
		})
	case "sweeper": // sweeps until it has something to tell
		var swept Swept
		_, err = poll(nil, time.Minute, func() (bool, error) {
			var err error
			swept, err = Sweep(context.Background(), os.Getenv("PROC_TEST_LEDGER"))
			return swept.Groups+len(swept.Kept) > 0, err
		})
		if err == nil {
			err = os.WriteFile(os.Getenv("PROC_TEST_RESULT"), fmt.Appendf(nil, "%v\n", swept), 0o600)
		}
	case "parent of orphans":
		err = adoptOrphans()
	default:
		err = fmt.Errorf("no part %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
