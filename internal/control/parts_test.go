package control

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// A fragment waits for the records before it, and the record of a reply for its
// fragments, however late the one or the other is printed.
func TestFragmentsAndRecordsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts()
		var mu sync.Mutex
		var printed []string
		print := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			printed = append(printed, what)
		}
		events := []troupe.Event{
			troupe.Received{ID: "r"},
			troupe.Streaming{Delta: troupe.Delta{Text: "a"}}, troupe.Streaming{Delta: troupe.Delta{Text: "b"}},
			troupe.Streaming{Delta: troupe.Delta{Text: "c", Thinking: true}},
			troupe.Replied{}, troupe.ToolEnded{},
			troupe.Streaming{Delta: troupe.Delta{Text: "d"}}, troupe.Replied{}, troupe.Ended{},
		}
		for _, e := range events { // all has happened before anybody prints
			p.watch(e)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 6 { // ab, c, end, d, end, over
				next, err := p.next(t.Context())
				switch {
				case err != nil:
					t.Error(err)
				case next.delta != nil:
					print(next.delta.Text)
				case next.reply != nil:
					print("end")
					p.printed(nil)
				default:
					print("over")
				}
			}
		})
		synctest.Wait() // the fragments wait for the first record
		for _, e := range events {
			if !counts(e) {
				continue
			}
			r := session.Record{Agent: session.Lead, Event: e}
			if err := p.settle(t.Context(), r); err != nil {
				t.Error(err)
			}
			print(typeName(e))
			p.recorded(r)
			synctest.Wait()
		}
		wg.Wait()
		const want = "received ab c end replied toolEnded d end over replied"
		if got := strings.Join(printed, " "); got != want && got != "received ab c end replied toolEnded d end replied over" {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

func typeName(e troupe.Event) string {
	switch e.(type) {
	case troupe.Received:
		return "received"
	case troupe.Replied:
		return "replied"
	case troupe.ToolEnded:
		return "toolEnded"
	}
	return "other"
}

func TestNoFragmentsAreNoWait(t *testing.T) {
	var p *parts
	if err := p.settle(t.Context(), session.Record{Agent: session.Lead, Event: troupe.Replied{}}); err != nil {
		t.Error(err)
	}
	p.recorded(session.Record{Agent: session.Lead, Event: troupe.Replied{}})
}

func TestAReplyWaitsForItsFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts()
		p.watch(troupe.Replied{})
		settled := make(chan error, 1)
		go func() { settled <- p.settle(t.Context(), session.Record{Agent: session.Lead, Event: troupe.Replied{}}) }()
		synctest.Wait()
		select {
		case <-settled:
			t.Error("the reply is printed before its fragments are")
		default:
		}
		if _, err := p.next(t.Context()); err != nil {
			t.Error(err)
		}
		p.printed(nil)
		if err := <-settled; err != nil {
			t.Error(err)
		}
	})
}
