package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/troupetest"
)

// When the limit is used up nothing is asked until the server's reset, and then
// all is told that came meanwhile.
func TestRateLimit(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		f.Limit(9, time.Hour) // one poll, and a half
		began := time.Now()
		var b book
		stop := start(t, b.config(t, f))
		p.Comment("ann", "one")
		p.ReviewComment("ann", "a.go", 1, "two")
		p.Review("ann", "APPROVED", "three")
		p.Status("aaaa", "lint", "success", "four")
		sleep(t, 3*time.Hour)
		stopped(t, stop())
		if len(b.told) != 4 {
			t.Errorf("told %q", lines(b.told))
		}
		if n := counted(f, http.StatusForbidden); n != 0 {
			t.Errorf("%d requests beyond the limit", n)
		}
		spent := 0
		for _, r := range f.Requests() {
			if r.At.Sub(began) < time.Hour && r.Status == http.StatusOK {
				spent++
			}
		}
		if spent > 9 {
			t.Errorf("%d requests in the first hour", spent)
		}
	})
}

// The small limit of who has no token is spread over its time and not used up in
// the first minutes.
func TestSmallLimitIsSpread(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		f.Token("")
		f.Limit(60, time.Hour)
		var b book
		c := b.config(t, f)
		c.API = open(t, f, "")
		stop := start(t, c)
		sleep(t, 3*time.Hour)
		longest, last := time.Duration(0), f.Requests()[0].At
		for _, r := range f.Requests() {
			longest, last = max(longest, r.At.Sub(last)), r.At
		}
		if longest > 10*minute {
			t.Errorf("nothing was asked for %s", longest)
		}
		stopped(t, stop())
	})
}

// Whatever form a refusal for too many requests has, nothing is asked before its
// time.
func TestWaitsAsLongAsItIsAsked(t *testing.T) {
	secondary := `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`
	for name, c := range map[string]struct {
		fault troupetest.ForgeFault
		wait  time.Duration
	}{
		"secondary, no time":  {troupetest.ForgeFault{Status: 403, Body: secondary}, time.Minute},
		"secondary, a time":   {troupetest.ForgeFault{Status: 403, Body: secondary, Header: map[string]string{"Retry-After": "700"}}, 700 * time.Second},
		"429":                 {troupetest.ForgeFault{Status: 429}, time.Minute},
		"429, a time":         {troupetest.ForgeFault{Status: 429, Header: map[string]string{"Retry-After": "90"}}, 90 * time.Second},
		"503, a time":         {troupetest.ForgeFault{Status: 503, Header: map[string]string{"Retry-After": "400"}}, 400 * time.Second},
		"403, nothing left":   {troupetest.ForgeFault{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(bubble + 1800)}}, 30 * time.Minute},
		"a wait of a century": {troupetest.ForgeFault{Status: 429, Header: map[string]string{"Retry-After": "3000000000"}}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
				f.Fail(c.fault)
				var b book
				stop := start(t, b.config(t, f))
				sleep(t, c.wait-time.Second)
				if n := counted(f, 0); n != 1 {
					t.Errorf("%d requests while it was to wait", n)
				}
				sleep(t, 30*time.Second)
				if n := counted(f, 200); n != 6 {
					t.Errorf("%d answers after it", n)
				}
				stopped(t, stop())
			})
		})
	}
}

// bubble is when the clock of a bubble begins.
const bubble = 946684800

// The end of the first limits of one watch is the end of those of another: they
// share the account.
func TestWatchesShareALimit(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		f.Pull("o/r", 8, "cccc")
		var b, other book
		c := b.config(t, f)
		d := other.config(t, f)
		d.API, d.Number = c.API, 8
		f.Fail(troupetest.ForgeFault{Status: 429, Header: map[string]string{"Retry-After": "600"}})
		stop := start(t, c)
		stopOther := start(t, d)
		sleep(t, 599*time.Second)
		if n := counted(f, 0); n != 1 {
			t.Errorf("%d requests", n)
		}
		sleep(t, minute)
		if n := counted(f, 200); n < 12 {
			t.Errorf("%d answers after it", n)
		}
		stopped(t, stop())
		stopped(t, stopOther())
	})
}

// Faults are waited for, longer and longer, and what came meanwhile is told.
func TestBackOff(t *testing.T) {
	for name, fault := range map[string]troupetest.ForgeFault{
		"fault":      {Status: 502, Body: "<html>", Always: true},
		"lost":       {Status: 0, Always: true},
		"one of all": {Path: "/reviews", Status: 500, Always: true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
				var b book
				stop := start(t, b.config(t, f))
				f.Fail(fault)
				p.Comment("ann", "one")
				sleep(t, 2*time.Hour)
				tries := counted(f, fault.Status)
				if tries < 15 || tries > 50 {
					t.Errorf("%d tries in two hours", tries)
				}
				if fault.Path != "" {
					b.check(t, "comment one") // the rest does not wait for what fails
				}
				f.Heal()
				sleep(t, 6*minute)
				b.check(t, "comment one")
				n := counted(f, 0)
				sleep(t, minute)
				if counted(f, 0) <= n+6 {
					t.Error("it does not poll as before")
				}
				stopped(t, stop())
			})
		})
	}
}

func TestPollIntervalOfTheServer(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		f.PollInterval(5 * minute)
		var b book
		stop := start(t, b.config(t, f))
		n := counted(f, 0)
		sleep(t, 299*time.Second)
		if counted(f, 0) != n {
			t.Error("polled before the time that the server asks for")
		}
		sleep(t, 2*time.Second)
		if counted(f, 0) == n {
			t.Error("not polled")
		}
		stopped(t, stop())
	})
}

// What waiting does not mend ends the watch, in one line with a remedy and
// without the token.
func TestWhatEndsAWatch(t *testing.T) {
	for name, c := range map[string]struct {
		fault troupetest.ForgeFault
		want  string
		is    error
	}{
		"token":   {troupetest.ForgeFault{Status: 401, Body: `{"message":"Bad credentials ` + token + `"}`}, "set GITHUB_TOKEN", forge.ErrToken},
		"rights":  {troupetest.ForgeFault{Status: 403, Body: `{"message":"Resource not\naccessible"}`}, "must be allowed to read pull requests", forge.ErrToken},
		"missing": {troupetest.ForgeFault{Status: 404, Body: `{"message":"Not Found"}`}, "check repository and number", forge.ErrNotFound},
		"page":    {troupetest.ForgeFault{Status: 200, Body: "<html>"}, "check GITHUB_API_URL", nil},
		"other":   {troupetest.ForgeFault{Status: 200, Body: `{"a":1}`}, "check GITHUB_API_URL", nil},
		"list":    {troupetest.ForgeFault{Path: "/comments", Status: 200, Body: `{"a":1}`}, "check GITHUB_API_URL", nil},
		"large":   {troupetest.ForgeFault{Status: 200, Body: strings.Repeat(" ", 33<<20)}, "more than 32 MB", nil},
		"gone":    {troupetest.ForgeFault{Status: 410, Body: token}, "410 Gone", nil},
		"unasked": {troupetest.ForgeFault{Status: 304}, "304", nil},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
				f.Fail(c.fault)
				var b book
				err := forge.Watch(t.Context(), b.config(t, f))
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "o/r#7") || c.is != nil && !errors.Is(err, c.is) {
					t.Fatalf("ended with %v", err)
				}
				if strings.Contains(fmt.Sprintf("%+v", err), token) || strings.Contains(err.Error(), "\n") {
					t.Errorf("an error that is not fit to be shown: %q", err)
				}
			})
		})
	}
	t.Run("record", func(t *testing.T) {
		in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
			b := book{record: []byte("{")}
			if err := forge.Watch(t.Context(), b.config(t, f)); err == nil || !strings.Contains(err.Error(), "subscribe anew") {
				t.Errorf("ended with %v", err)
			}
		})
	})
}
