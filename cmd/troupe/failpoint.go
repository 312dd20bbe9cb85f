//go:build failpoint

package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/troupe-sh/troupe/internal/failpoint"
)

// A program that was built for it dies at the step that TROUPE_FAILPOINT names,
// as in log.appended:3, when it comes by for the third time.
func init() {
	name, count, _ := strings.Cut(os.Getenv("TROUPE_FAILPOINT"), ":")
	if n, err := strconv.Atoi(count); err == nil {
		failpoint.Arm(failpoint.Point(name), n)
	}
}
