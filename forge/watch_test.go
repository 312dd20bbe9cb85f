package forge_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/troupetest"
)

const minute = time.Minute

// Whatever is new is told once, with what belongs to it; what was there is not,
// and a restart neither repeats nor loses anything.
func TestEachIsToldOnce(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		p.Comment("ann", "old")
		p.ReviewComment("ann", "a.go", 3, "old")
		p.Review("ann", "COMMENTED", "old")
		p.Check("aaaa", "old", "success", "")
		p.Check("aaaa", "build", "", "")
		p.Status("aaaa", "old", "success", "")
		p.Status("aaaa", "lint", "pending", "")
		var b book
		stop := start(t, b.config(t, f))
		sleep(t, minute)
		b.check(t)

		p.Comment("ann", "one")
		sleep(t, time.Second)
		p.ReviewComment("bob", "dir/a.go", 12, "two")
		sleep(t, time.Second)
		p.Review("bob", "CHANGES_REQUESTED", "three")
		p.Review("bob", "COMMENTED", "")
		p.Review("me", "PENDING", "not handed in")
		sleep(t, time.Second)
		p.Check("aaaa", "build", "failure", "2 tests fail")
		p.Check("aaaa", "slow", "", "")
		sleep(t, time.Second)
		p.Status("aaaa", "lint", "error", "no linter")
		sleep(t, 2*minute)
		want := []string{"comment one", "review_comment two", "review changes_requested three", "check build failure 2 tests fail", "status lint error no linter"}
		b.check(t, want...)
		if e := b.told[1]; e.Author != "bob" || e.Path != "dir/a.go" || e.Line != 12 || e.Repository != "o/r" || e.Number != 7 || e.URL == "" || e.Time.IsZero() {
			t.Errorf("an event without what belongs to it: %+v", e)
		}
		stopped(t, stop())

		p.Comment("", "while nobody looked")
		stop = start(t, b.config(t, f))
		sleep(t, 2*minute)
		b.check(t, append(want, "comment while nobody looked")...)
		if b.told[5].Author != "ghost" || b.again != 0 {
			t.Errorf("%d events told again; the last one by %q", b.again, b.told[5].Author)
		}
		stopped(t, stop())

		key := regexp.MustCompile(`^[a-z0-9_-]{1,128}$`)
		ids := []string{}
		for _, e := range b.told {
			ids = append(ids, e.ID)
			if !key.MatchString(e.ID) {
				t.Errorf("%q is no segment of a key", e.ID)
			}
		}
		if !slices.IsSorted(ids) {
			t.Errorf("IDs do not grow:\n%s", strings.Join(ids, "\n"))
		}
	})
}

// A death at any step, before or after its effect, and also if the thing changes
// before the next start: all is told, and nothing twice.
func TestDeathAtAnyStep(t *testing.T) {
	deaths := 0
	for die := 1; die < 100; die++ {
		for _, late := range []bool{false, true} {
			in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
				b := book{}
				stop := start(t, b.config(t, f)) // the baseline is read
				b.steps, b.die, b.late = 0, die, late
				var last int64
				for i := range 10 { // more than a batch
					last = p.Comment("ann", fmt.Sprint("n", i))
				}
				sleep(t, minute)
				err := stop()
				if errors.Is(err, errDead) {
					deaths++
				}
				p.Touch(last)
				b.die = 0
				stop = start(t, b.config(t, f))
				sleep(t, minute)
				stopped(t, stop())
				var want []string
				for i := range 10 {
					want = append(want, fmt.Sprint("comment n", i))
				}
				b.check(t, want...)
			})
		}
		if deaths < 2*die { // there are no more steps
			if die < 13 {
				t.Errorf("only %d steps", die)
			}
			return
		}
	}
	t.Error("it never ends")
}

func TestPages(t *testing.T) {
	t.Run("many", func(t *testing.T) {
		in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
			f.PageSize(2)
			var first int64
			for i := range 4 {
				first = max(first, p.Comment("ann", fmt.Sprint("old", i)))
				p.Check("aaaa", fmt.Sprint("old", i), "success", "")
			}
			var b book
			stop := start(t, b.config(t, f))
			p.Comment("ann", "new") // behind a page that was full
			sleep(t, minute)
			p.Delete(first) // the pages move
			sleep(t, minute)
			p.Check("aaaa", "new", "success", "")
			p.Comment("ann", "newer")
			sleep(t, minute)
			b.check(t, "comment new", "comment newer", "check new success")
			stopped(t, stop())
		})
	})
	t.Run("a full one that does not change", func(t *testing.T) {
		in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
			for i := range 100 {
				p.Comment("ann", fmt.Sprint("old", i))
			}
			var b book
			stop := start(t, b.config(t, f))
			sleep(t, minute)
			p.Comment("ann", "new")
			sleep(t, minute)
			b.check(t, "comment new")
			stopped(t, stop())
		})
	})
}

// A poll that finds nothing new costs nothing.
func TestUnchangedIsNotSentAgain(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		f.Limit(5000, time.Hour)
		p.Comment("ann", "old")
		var b book
		stop := start(t, b.config(t, f))
		first := counted(f, 0)
		sleep(t, 10*minute)
		all := counted(f, 0)
		if full := counted(f, 200); full != first || all != first*21 || counted(f, 304) != all-full {
			t.Errorf("%d of %d requests were answered in full, %d at the first poll", full, all, first)
		}
		stopped(t, stop())
		if b.again != 0 || b.steps != 1 {
			t.Errorf("%d steps for one reading", b.steps)
		}
	})
}

func TestEdits(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		old := p.Comment("ann", "old")
		review := p.Review("bob", "APPROVED", "fine")
		var b book
		stop := start(t, b.config(t, f))
		p.Edit(old, "changed")
		sleep(t, minute)
		p.Touch(old)
		sleep(t, minute)
		p.Edit(old, "old") // it is news, too, that it is back
		sleep(t, minute)
		p.Edit(review, "fine!")
		sleep(t, 3*minute)
		b.check(t, "comment changed (edited)", "comment old (edited)", "review approved fine! (edited)")
		stopped(t, stop())
	})
}

// Results are those of the head commit; the same result again is a new one if
// the check ran again, and no news if it did not.
func TestChecksOfTheHead(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		p.Check("aaaa", "build", "success", "")
		p.Status("aaaa", "lint", "success", "ok")
		var b book
		stop := start(t, b.config(t, f))
		p.Check("aaaa", "build", "", "")
		sleep(t, minute)
		p.Check("aaaa", "build", "success", "again")
		sleep(t, minute)
		p.Push("bbbb") // without what was before
		p.Check("bbbb", "build", "failure", "")
		p.Status("bbbb", "lint", "success", "ok")
		p.Check("aaaa", "build", "failure", "of another commit")
		sleep(t, minute)
		p.Status("bbbb", "lint", "success", "ok")
		sleep(t, minute)
		p.Status("bbbb", "lint", "pending", "")
		sleep(t, minute)
		p.Status("bbbb", "lint", "success", "ok")
		sleep(t, minute)
		p.Check("bbbb", "build", "failure", "") // it was under way between two polls
		sleep(t, minute)
		b.check(t, "check build success again", "check build failure", "status lint success ok", "status lint success ok", "check build failure")
		if b.told[1].Commit != "bbbb" {
			t.Errorf("a check of %q", b.told[1].Commit)
		}
		stopped(t, stop())
	})
}

func TestEndOfPullRequest(t *testing.T) {
	for name, end := range map[string]func(p *troupetest.ForgePull){
		"merged": func(p *troupetest.ForgePull) { p.Merge("ann") },
		"closed": func(p *troupetest.ForgePull) { p.Close() },
	} {
		in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
			var b book
			ended := make(chan error, 1)
			c := b.config(t, f)
			go func() { ended <- forge.Watch(t.Context(), c) }()
			synctest.Wait()
			p.Comment("ann", "last words")
			sleep(t, time.Second)
			end(p)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			b.check(t, "comment last words", name)
			n := counted(f, 0)
			sleep(t, time.Hour)
			if counted(f, 0) != n {
				t.Error("it is polled after its end")
			}
			if err := forge.Watch(t.Context(), b.config(t, f)); err != nil || len(b.told) != 2 {
				t.Errorf("watched again: %v, %d events", err, len(b.told))
			}
		})
	}
}

// Who waits for results is told that none will come, once; the rest goes on.
func TestListsThatCannotBeRead(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		f.Fail(troupetest.ForgeFault{Path: "/check-runs", Status: 403, Body: `{"message":"Resource not accessible by personal access token"}`, Always: true})
		var b book
		stop := start(t, b.config(t, f))
		sleep(t, 10*minute)
		p.Comment("ann", "one")
		sleep(t, minute)
		if got := lines(b.told); len(got) != 2 || !strings.Contains(got[0], "Resource not accessible") || got[1] != "comment one" {
			t.Errorf("told %q", got)
		}
		stopped(t, stop())
		stop = start(t, b.config(t, f))
		sleep(t, 10*minute)
		stopped(t, stop())
		if len(b.told) != 2 || b.again != 0 {
			t.Errorf("told again after a restart: %q", lines(b.told))
		}
	})
}

// The first reading of what is empty is one, too.
func TestRestartAfterNothing(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		stopped(t, start(t, b.config(t, f))())
		p.Comment("ann", "one")
		stop := start(t, b.config(t, f))
		b.check(t, "comment one")
		stopped(t, stop())
	})
}

// Pages that move while they are read list a thing twice.
func TestListedTwice(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		stop := start(t, b.config(t, f))
		f.Fail(troupetest.ForgeFault{Path: "/issues/7/comments", Status: 200, Body: `[{"id":1,"body":"x"},{"id":1,"body":"x"},{"id":2,"body":null}]`})
		sleep(t, minute)
		b.check(t, "comment x", "comment")
		if b.again != 0 {
			t.Errorf("%d told again", b.again)
		}
		stopped(t, stop())
	})
}

// Large things are cut before they are kept: a record stays within a value of a
// store, which the book checks.
func TestMuchAtOnce(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		for i := range 3000 {
			p.Comment("ann", fmt.Sprint(i))
		}
		var b book
		stop := start(t, b.config(t, f))
		for i := range 250 {
			p.Comment("ann", fmt.Sprint(i)+strings.Repeat("\"\\\n", 4000))
		}
		sleep(t, minute)
		if len(b.told) != 250 {
			t.Errorf("told %d", len(b.told))
		}
		for _, e := range b.told {
			if len(e.Text) > forge.MaxText+10 {
				t.Fatalf("an event of %d bytes", len(e.Text))
			}
		}
		stopped(t, stop())
	})
}
