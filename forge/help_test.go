package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/troupetest"
)

const token = "ghp_a-token-for-tests"

var errDead = errors.New("the process died here")

// A book is what survives a process: the record, and what was told, by ID. It
// dies at a step if it is told to.
type book struct {
	record []byte
	told   []forge.Event
	again  int // events that were told before
	die    int // at this step; 0 never
	late   bool
	steps  int
}

// step does what a step does, unless the process dies before, or after it.
func (b *book) step(do func()) error {
	b.steps++
	if b.steps == b.die && !b.late {
		return errDead
	}
	do()
	if b.steps == b.die {
		return errDead
	}
	return nil
}

func (b *book) tell(_ context.Context, e forge.Event) error {
	return b.step(func() {
		if slices.ContainsFunc(b.told, func(o forge.Event) bool { return o.ID == e.ID }) {
			b.again++
			return
		}
		b.told = append(b.told, e)
	})
}

func (b *book) config(t *testing.T, f *troupetest.Forge) forge.Config {
	return forge.Config{
		API: open(t, f, token), Repository: "o/r", Number: 7, Out: t.Output(), Tell: b.tell,
		Load: func(context.Context) ([]byte, error) { return b.record, nil },
		Save: func(_ context.Context, raw []byte) error {
			if len(raw) > 512<<10 {
				t.Errorf("a record of %d bytes", len(raw))
			}
			return b.step(func() { b.record = raw })
		},
	}
}

func open(t *testing.T, f *troupetest.Forge, token string) *forge.API {
	t.Helper()
	api, err := forge.Open(forge.Server{URL: "https://forge.test/api/v3/", Token: token, Transport: f.Transport(), Now: time.Now, Rand: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// start watches until the function that it returns is called, which returns
// what Watch did.
func start(t *testing.T, c forge.Config) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- forge.Watch(ctx, c) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

// sleep lets the clock of the bubble go on.
func sleep(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// in runs a test in a bubble, with a forge that has a pull request o/r#7.
func in(t *testing.T, do func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := troupetest.NewForge(t)
		f.Token(token)
		do(t, f, f.Pull("o/r", 7, "aaaa"))
	})
}

// lines are events as short texts, in order.
func lines(events []forge.Event) (out []string) {
	for _, e := range events {
		s := fmt.Sprintf("%s %s %s %s", e.Kind, e.Title, e.State, e.Text)
		if e.Edited {
			s += " (edited)"
		}
		out = append(out, strings.Join(strings.Fields(s), " "))
	}
	return out
}

func (b *book) check(t *testing.T, want ...string) {
	t.Helper()
	if got := lines(b.told); !slices.Equal(got, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// counted returns how many requests were answered with status, for any if it is 0.
func counted(f *troupetest.Forge, status int) (n int) {
	for _, r := range f.Requests() {
		if status == 0 || r.Status == status {
			n++
		}
	}
	return n
}

func stopped(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

var _ http.RoundTripper = (*elsewhere)(nil)

// elsewhere notes which hosts requests go to, and with which token.
type elsewhere struct {
	to   http.RoundTripper
	seen []string
}

func (e *elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	e.seen = append(e.seen, r.URL.Host+" "+r.Header.Get("Authorization"))
	return e.to.RoundTrip(r)
}
