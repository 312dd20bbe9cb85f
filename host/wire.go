package host

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/troupe-sh/troupe/model"
)

// A wire is how all models of a process reach their servers.
type wire struct {
	client *http.Client
	idle   time.Duration // longest silence of a server; 0 is the default
	policy model.Policy
}

// newWire makes it of the variables that lookup finds: those of [model.Network],
// TROUPE_IDLE_TIMEOUT and TROUPE_REQUEST_TIMEOUT, durations such as 90s, and
// TROUPE_MAX_RETRIES.
func newWire(lookup func(string) string) (w wire, err error) {
	if v := lookup("TROUPE_IDLE_TIMEOUT"); v != "" {
		if w.idle, err = time.ParseDuration(v); err != nil || w.idle <= 0 {
			return w, fmt.Errorf("TROUPE_IDLE_TIMEOUT %q: want how long a server may be silent, as in 90s or 10m", v)
		}
	}
	if v := lookup("TROUPE_REQUEST_TIMEOUT"); v != "" {
		if w.policy.Total, err = time.ParseDuration(v); err != nil || w.policy.Total <= 0 {
			return w, fmt.Errorf("TROUPE_REQUEST_TIMEOUT %q: want how long a reply may take with all retries, as in 30m or 2h", v)
		}
	}
	if v := lookup("TROUPE_MAX_RETRIES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return w, fmt.Errorf("TROUPE_MAX_RETRIES %q: want a number, 0 for none", v)
		}
		w.policy.Attempts = n + 1
	}
	w.client, err = model.Network(lookup)
	return w, err
}
