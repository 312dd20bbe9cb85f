package host_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/troupe-sh/troupe/proc"
)

func TestMain(m *testing.M) {
	proc.Confined(os.Args, os.Environ())
	goleak.VerifyTestMain(m)
}
