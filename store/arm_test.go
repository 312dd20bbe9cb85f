//go:build failpoint

package store_test

import (
	"fmt"
	"os"

	"github.com/troupe-sh/troupe/internal/failpoint"
)

// arm has this process die at a step, if one is named.
func arm() {
	var p failpoint.Point
	var nth int
	if n, err := fmt.Sscan(os.Getenv("TEST_STORE_POINT"), &p, &nth); err == nil && n == 2 {
		failpoint.Arm(p, nth)
	}
}
