package forge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/troupetest"
)

var errStopped = errors.New("task stopped")

// tasks runs what runs in the background, as a host does.
type tasks struct {
	ctx     context.Context
	wg      sync.WaitGroup
	mu      sync.Mutex
	stop    []context.CancelCauseFunc
	results []string
	refuse  error
}

func (b *tasks) start(_ context.Context, _ *troupe.Call, title string, run func(context.Context, io.Writer) (string, error)) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return "", b.refuse
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	b.stop = append(b.stop, cancel)
	b.wg.Go(func() {
		text, err := run(ctx, io.Discard)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.results = append(b.results, fmt.Sprintf("%s: %s: %v", title, text, err))
	})
	return fmt.Sprint("m", len(b.stop)), nil
}

func (b *tasks) end(_ context.Context, id string) error {
	var n int
	if _, err := fmt.Sscanf(id, "m%d", &n); err != nil {
		return err
	}
	b.stop[n-1](errStopped)
	return nil
}

// shelf holds the records of a session.
type shelf map[string][]byte

// lead is an agent with the tool, in one process.
type lead struct {
	tool  *forge.Subscribe
	tasks *tasks
	die   context.CancelFunc
}

func newLead(t *testing.T, f *troupetest.Forge, kept shelf, b *book) *lead {
	ctx, cancel := context.WithCancel(t.Context())
	l := &lead{tasks: &tasks{ctx: ctx}, die: cancel}
	api := open(t, f, token)
	var mu sync.Mutex
	l.tool = &forge.Subscribe{
		Open: func() (*forge.API, error) { return api, nil }, Start: l.tasks.start, Stop: l.tasks.end, Stopped: errStopped, Tell: b.tell,
		Load: func(_ context.Context, key string) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			return kept[key], nil
		},
		Save: func(ctx context.Context, key string, record []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if kept[key] = record; record == nil {
				delete(kept, key)
			}
			return ctx.Err()
		},
	}
	t.Cleanup(func() {
		cancel()
		l.tasks.wg.Wait()
	})
	return l
}

func (l *lead) call(t *testing.T, input string) (string, error) {
	t.Helper()
	res, err := l.tool.Call(t.Context(), &troupe.Call{ToolUse: troupe.ToolUse{ID: "c", Name: forge.ToolName, Input: json.RawMessage(input)}})
	synctest.Wait()
	return res.Content.Text(), err
}

func (l *lead) must(t *testing.T, input, want string) {
	t.Helper()
	if text, err := l.call(t, input); err != nil || !strings.Contains(text, want) {
		t.Errorf("%s: %q, %v", input, text, err)
	}
}

func (l *lead) fails(t *testing.T, input, want string) {
	t.Helper()
	if text, err := l.call(t, input); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %q, %v", input, text, err)
	}
}

const (
	subscribe   = `{"repository":"o/r","pull_request":7}`
	unsubscribe = `{"repository":"O/R","pull_request":7,"unsubscribe":true}`
)

func TestSubscribeAndUnsubscribe(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		kept := shelf{}
		l := newLead(t, f, kept, &b)
		l.fails(t, unsubscribe, "you are not subscribed")
		l.must(t, subscribe, "the task is m1")
		l.fails(t, subscribe, "subscribed to o/r#7 already")
		l.fails(t, `{"repository":"O/r","pull_request":7}`, "already")
		p.Comment("ann", "one")
		sleep(t, minute)
		l.must(t, unsubscribe, "nothing more of it will be told")
		n := counted(f, 0)
		p.Comment("ann", "unheard")
		sleep(t, time.Hour)
		if counted(f, 0) != n || len(kept) != 0 {
			t.Errorf("%d requests after the end, %d records", counted(f, 0)-n, len(kept))
		}
		b.check(t, "comment one")
		if got := strings.Join(l.tasks.results, "\n"); got != "pull request o/r#7: news told: 1: task stopped" {
			t.Errorf("the task ended with %q", got)
		}
		l.must(t, subscribe, "m2")
		p.Comment("ann", "two")
		sleep(t, minute)
		b.check(t, "comment one", "comment two")
	})
}

// Who has unsubscribed is told nothing more, also not what is just being told.
func TestUnsubscribeWaits(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		kept := shelf{}
		l := newLead(t, f, kept, &b)
		gate := make(chan bool)
		l.tool.Tell = func(ctx context.Context, e forge.Event) error {
			<-gate
			return b.tell(ctx, e)
		}
		l.must(t, subscribe, "m1")
		p.Comment("ann", "one")
		sleep(t, minute)
		left := make(chan error, 1)
		go func() {
			_, err := l.tool.Call(t.Context(), &troupe.Call{ToolUse: troupe.ToolUse{Input: json.RawMessage(unsubscribe)}})
			left <- err
		}()
		synctest.Wait()
		if len(left) != 0 {
			t.Error("it has returned while an event is being told")
		}
		close(gate)
		if err := <-left; err != nil || len(kept) != 0 {
			t.Errorf("%v, %d records", err, len(kept))
		}
		b.check(t, "comment one")
	})
}

// A process that ends leaves the subscription, and the next one goes on with it,
// by itself or when the agent subscribes again.
func TestSubscriptionAfterRestart(t *testing.T) {
	for _, how := range []string{"resumed", "subscribed"} {
		in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
			var b book
			kept := shelf{}
			l := newLead(t, f, kept, &b)
			l.must(t, subscribe, "m1")
			p.Comment("ann", "one")
			sleep(t, minute)
			l.die()
			l.tasks.wg.Wait()
			p.Comment("ann", "two")
			l = newLead(t, f, kept, &b)
			if how == "resumed" {
				var records [][]byte
				for _, r := range kept {
					records = append(records, r)
				}
				err := l.tool.Resume(t.Context(), &troupe.Call{}, append([][]byte{[]byte("{}")}, records...)...)
				if err == nil || !strings.Contains(err.Error(), "cannot be read") {
					t.Errorf("a record that is none: %v", err)
				}
				synctest.Wait()
				l.fails(t, subscribe, "already")
			} else {
				l.must(t, subscribe, "m1")
			}
			b.check(t, "comment one", "comment two")
			l.must(t, unsubscribe, "Unsubscribed")
			if len(kept) != 0 {
				t.Errorf("%d records are left", len(kept))
			}
		})
	}
}

// A task that was stopped in another way is a subscription less, too.
func TestStoppedTaskIsForgotten(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		kept := shelf{}
		l := newLead(t, f, kept, &b)
		l.must(t, subscribe, "m1")
		l.tasks.stop[0](errStopped)
		synctest.Wait()
		if len(kept) != 0 {
			t.Errorf("%d records are left", len(kept))
		}
		p.Comment("ann", "between")
		l.must(t, subscribe, "m2")
		sleep(t, minute)
		b.check(t)
	})
}

func TestMergeEndsSubscription(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		kept := shelf{}
		l := newLead(t, f, kept, &b)
		l.must(t, subscribe, "m1")
		p.Merge("ann")
		sleep(t, minute)
		if got := strings.Join(l.tasks.results, "\n"); got != "pull request o/r#7: o/r#7 is merged; news told: 1: <nil>" || len(kept) != 0 {
			t.Errorf("the task ended with %q, %d records", got, len(kept))
		}
		l.fails(t, subscribe, "o/r#7 is closed")
		l.fails(t, unsubscribe, "you are not subscribed")
	})
}

// What is wrong is told by the call, and no task is started; afterwards it can
// be tried again.
func TestSubscribeFails(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		l := newLead(t, f, shelf{}, &b)
		l.fails(t, `[]`, "give repository as a text")
		l.fails(t, `{"repository":"o/r","pull_request":"7"}`, "pull_request as a number")
		l.fails(t, `{"repository":"o/r"}`, "0 is no pull request")
		l.fails(t, `{"repository":"r","pull_request":7}`, "as in owner/name")
		l.fails(t, `{"repository":"o/r","pull_request":8}`, "check repository and number")
		f.Fail(troupetest.ForgeFault{Status: 502})
		l.fails(t, subscribe, "502 Bad Gateway")
		f.Fail(troupetest.ForgeFault{Status: 429, Header: map[string]string{"Retry-After": "90"}})
		l.fails(t, subscribe, "try again in 1m30s")
		sleep(t, 2*minute)
		l.tasks.refuse = errors.New("no more tasks")
		l.fails(t, subscribe, "watch o/r#7: no more tasks")
		l.tasks.refuse = nil
		if len(l.tasks.stop) != 0 {
			t.Errorf("%d tasks were started", len(l.tasks.stop))
		}
		l.must(t, subscribe, "m1")
	})
}

func TestSubscribeSpec(t *testing.T) {
	spec := (&forge.Subscribe{}).Spec()
	if spec.Name != "subscribe_pr_activity" || !strings.Contains(string(spec.Schema), `"required":["repository","pull_request"]`) || !strings.Contains(spec.Description, "pr-activity") {
		t.Errorf("%s %s %s", spec.Name, spec.Schema, spec.Description)
	}
}
