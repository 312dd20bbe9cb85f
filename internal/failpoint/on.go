//go:build failpoint

package failpoint

import (
	"io"
	"os"
	"sync/atomic"
)

// armed is the step to die at; left is how many times it is passed until then.
var (
	armed atomic.Value
	left  atomic.Int64
)

// Arm has the process die when it comes by p for the nth time, counted from 1.
func Arm(p Point, nth int) {
	left.Store(int64(nth))
	armed.Store(p)
}

func due(p Point) bool { return armed.Load() == p && left.Add(-1) == 0 }

// Here is a step.
func Here(p Point) {
	if due(p) {
		die()
	}
}

// Torn is a step at which the beginning of b may be written to w and no more.
func Torn(p Point, w io.Writer, b []byte) {
	if due(p) {
		_, _ = w.Write(b[:len(b)/2]) // this is the end, one way or the other
		die()
	}
}

func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until the kill arrives
}
