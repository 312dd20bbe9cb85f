//go:build !failpoint

package failpoint

import "io"

// Here is a step.
func Here(Point) {}

// Torn is a step at which the beginning of b may be written to w and no more.
func Torn(Point, io.Writer, []byte) {}
