// Package prefix tells how much of what the agents of a session sent a provider
// could read from its prompt cache, and where that was not possible.
//
// A cache holds beginnings of prompts. A request can be read from it as far as its
// bytes are those of an earlier one; from the first byte that differs on everything
// is paid for again. So the bodies as they were sent are compared, without the marks
// that move, and beside that stands what the provider has counted.
package prefix

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/session"
)

// A Price returns what tokens of a model cost in dollars; known is false if there is
// no price for it.
type Price func(model string, u troupe.Usage) (dollars float64, known bool)

// A Report is what was found out about a session.
type Report struct {
	Agents []Agent // in the order in which they began
	Usage  troupe.Usage
	Notes  []string // what could not be looked at, a line each
	Cache  bool     // a provider has told of a cache
}

// An Agent is what one agent sent.
type Agent struct {
	ID, Definition, Parent string
	Depth                  int
	Usage                  troupe.Usage // as counted, also of requests that were not kept
	Requests               []Request
}

// A Request is one of an agent's.
type Request struct {
	Number  int // from 1, of those that were kept
	Sent    time.Time
	Model   string
	Bytes   int           // of the prompt, without marks
	Shared  int           // of these, that an earlier request begins with, too
	With    Ref           // that request; the zero Ref is none
	After   time.Duration // since that one was sent
	Usage   troupe.Usage  // zero if the provider has not counted
	Summary bool          // it asked for a summary of the conversation
	Break   *Break        // nil if it goes on with what was sent before
	Missed  *Loss         // nil if what is shared was read from the cache, or nearly
}

// A Ref names a request.
type Ref struct {
	Agent  string
	Number int
}

// A Break is where a request does not go on with the one before, or with that of the
// agent that it is a fork of.
type Break struct {
	Of    Ref    // that request
	At    int    // the first byte that differs, of the body as it was sent
	Part  string // what that byte belongs to
	Cause string // as far as the log tells, else ""
	Loss
}

// A Loss is what had been in the cache and was paid for again. Dollars are the price
// of it less that of reading it from the cache.
type Loss struct {
	Tokens  int // 0 is none, or not known
	Dollars float64
	Priced  bool
}

// Look reads the session in dir. What cannot be read is in the notes; an error is
// that of a session of which nothing can be.
func Look(dir string, price Price) (Report, error) {
	records, damage := session.NewReader(dir).Next()
	if len(records) == 0 && damage != nil {
		return Report{}, damage
	}
	l := &look{dir: dir, known: map[string]*walk{}, have: map[Ref]*Request{}}
	if damage != nil {
		for line := range bytes.Lines([]byte(damage.Error())) {
			l.notes = append(l.notes, string(bytes.TrimSpace(line)))
		}
	}
	for _, r := range records {
		l.agent(r.Agent).take(r)
	}
	for _, w := range l.inOrder() {
		l.requests(w)
	}
	return l.report(price), nil
}

// look is the work on one session.
type look struct {
	dir    string
	known  map[string]*walk
	walks  []*walk // in the order in which the agents began
	firsts []body  // first requests of agents, sorted by their bytes: those that share most are neighbours
	have   map[Ref]*Request
	notes  []string
}

// A body is a prompt without its marks.
type body struct {
	data []byte
	of   Ref
	sent time.Time
}

// A walk goes through what an agent did.
type walk struct {
	Agent
	records []session.Record
	began   time.Time
	first   time.Time // of its first request
	fork    bool      // it began with a conversation

	next    int // record
	model   string
	summary bool
	cause   string
	now     *Request
	last    body // that the next request is to go on with
	parent  body // the last one of the agent that started this one, before it did
}

func (l *look) agent(id string) *walk {
	w := l.known[id]
	if w == nil {
		w = &walk{Agent: Agent{ID: id}}
		l.known[id] = w
		l.walks = append(l.walks, w)
	}
	return w
}

// inOrder returns the walks in the order in which the agents sent their first
// requests: a request is compared with earlier ones.
func (l *look) inOrder() []*walk {
	for _, w := range l.walks {
		w.first = w.began
		for r, err := range session.Requests(l.dir, w.ID) {
			if err == nil {
				w.first = r.Time
			}
			break
		}
	}
	order := slices.Clone(l.walks)
	slices.SortStableFunc(order, func(a, b *walk) int { return a.first.Compare(b.first) })
	return order
}

func (w *walk) take(r session.Record) {
	if ev, ok := r.Event.(troupe.Started); ok {
		w.Definition, w.Parent, w.Depth = ev.Definition, ev.Parent, ev.Depth
		w.fork = len(ev.Request.Messages) > 0
	}
	if w.began.IsZero() {
		w.began = r.Time
	}
	w.records = append(w.records, r)
}

// until goes on to what happened at t, which is zero for the end.
func (w *walk) until(t time.Time) {
	for ; w.next < len(w.records) && (t.IsZero() || w.records[w.next].Time.Before(t)); w.next++ {
		switch ev := w.records[w.next].Event.(type) {
		case troupe.Started:
			w.model = ev.Request.Model
		case troupe.Switched:
			if ev.Model != "" {
				w.model, w.cause = ev.Model, "another model"
			}
		case troupe.Compacting:
			w.summary = true
		case troupe.NotCompacted:
			w.summary = false
		case troupe.Compacted:
			w.count(ev.Usage)
			w.summary, w.cause = false, "the conversation was put together"
		case troupe.Replied:
			w.count(ev.Usage)
		case troupe.Billed:
			w.count(ev.Usage)
		}
	}
}

func (w *walk) count(u troupe.Usage) {
	w.Usage = w.Usage.Add(u)
	if w.now != nil {
		w.now.Usage = w.now.Usage.Add(u)
	}
}

// requests goes through what an agent has sent.
func (l *look) requests(w *walk) {
	var children []*walk
	for _, c := range l.walks {
		if c.Parent == w.ID && c != w {
			children = append(children, c)
		}
	}
	slices.SortStableFunc(children, func(a, b *walk) int { return a.began.Compare(b.began) })
	lost, why := 0, error(nil)
	for r, err := range session.Requests(l.dir, w.ID) {
		if err != nil {
			if lost++; why == nil {
				why = err
			}
			continue
		}
		for len(children) > 0 && children[0].began.Before(r.Time) {
			children[0].parent, children = w.last, children[1:]
		}
		w.until(r.Time)
		l.request(w, r)
	}
	for _, c := range children {
		c.parent = w.last
	}
	w.until(time.Time{})
	w.last = body{}
	switch {
	case errors.Is(why, fs.ErrNotExist):
		l.notes = append(l.notes, fmt.Sprintf("agent %s: its requests were not kept", w.ID))
	case why != nil:
		l.notes = append(l.notes, fmt.Sprintf("agent %s: what cannot be restored of its requests: %d; %v", w.ID, lost, why))
	}
}

// request compares one request with those before.
func (l *look) request(w *walk, r session.Request) {
	b := body{unmarked(r.Body), Ref{w.ID, len(w.Requests) + 1}, r.Time}
	req := Request{Number: b.of.Number, Sent: r.Time, Model: w.model, Bytes: len(b.data), Summary: w.summary}
	before := w.last
	if b.of.Number == 1 && w.fork {
		before, w.cause = w.parent, "a fork"
	}
	req.share(b, before)
	if n := common(b.data, before.data); before.data != nil && !goesOn(before.data, n) {
		req.Break = &Break{Of: before.of, At: sent(r.Body, n), Part: part(b.data, n), Cause: w.cause}
	}
	if b.of.Number == 1 || req.Break != nil {
		req.share(b, w.parent)
		at := l.place(b)
		for _, i := range []int{at - 1, at} {
			if i >= 0 && i < len(l.firsts) {
				req.share(b, l.firsts[i])
			}
		}
		if b.of.Number == 1 {
			l.firsts = slices.Insert(l.firsts, at, b)
		}
	}
	w.Requests = append(w.Requests, req)
	w.now = &w.Requests[len(w.Requests)-1]
	if !w.summary {
		w.last, w.cause = b, ""
	}
}

// place is where b belongs among the first requests.
func (l *look) place(b body) int {
	at, _ := slices.BinarySearchFunc(l.firsts, b, func(x, y body) int { return bytes.Compare(x.data, y.data) })
	return at
}

// share notes what b has in common with an earlier one, if it is more than is known.
func (r *Request) share(b, earlier body) {
	if n := common(b.data, earlier.data); n > r.Shared {
		r.Shared, r.With, r.After = n, earlier.of, b.sent.Sub(earlier.sent)
	}
}

// report adds up and finds out what was lost.
func (l *look) report(price Price) Report {
	out := Report{Notes: l.notes}
	for _, w := range l.walks {
		out.Usage = out.Usage.Add(w.Usage)
		for i := range w.Requests {
			l.have[Ref{w.ID, w.Requests[i].Number}] = &w.Requests[i]
		}
	}
	out.Cache = out.Usage.CacheRead+out.Usage.CacheWrite > 0
	for _, w := range l.walks {
		for i := range w.Requests {
			r := &w.Requests[i]
			if r.Break != nil {
				r.Break.Loss = r.loss(l.again(r), price)
			}
			if missed := r.missed(); out.Cache && missed > 0 {
				loss := r.loss(missed, price)
				r.Missed = &loss
			}
		}
		out.Agents = append(out.Agents, w.Agent)
	}
	return out
}

// input is how many tokens of prompt were counted.
func input(u troupe.Usage) int { return u.Input + u.CacheRead + u.CacheWrite }

// again is about how many tokens the broken request has, from the break on, that were
// in the cache.
func (l *look) again(r *Request) int {
	of := l.have[r.Break.Of]
	if of == nil || of.Bytes == 0 {
		return 0
	}
	return int(int64(input(of.Usage)) * int64(of.Bytes-min(r.Shared, of.Bytes)) / int64(of.Bytes))
}

// least is the shortest beginning, in tokens, that providers keep.
const least = 1024

// missed is about how many tokens r could have read from the cache and has not. What
// is counted by tokens and compared by bytes cannot be exact: less than half is told.
func (r *Request) missed() int {
	if r.Bytes == 0 {
		return 0
	}
	could := int(int64(input(r.Usage)) * int64(r.Shared) / int64(r.Bytes))
	if could < least || 2*r.Usage.CacheRead >= could {
		return 0
	}
	return could - r.Usage.CacheRead
}

// loss is that of so many tokens, or of those that r was charged with in full.
func (r *Request) loss(tokens int, price Price) Loss {
	full := r.Usage.Input + r.Usage.CacheWrite
	tokens = max(0, min(tokens, full))
	if tokens == 0 {
		return Loss{Priced: true}
	}
	written := int(int64(tokens) * int64(r.Usage.CacheWrite) / int64(full))
	paid, known := price(r.Model, troupe.Usage{Input: tokens - written, CacheWrite: written})
	cached, _ := price(r.Model, troupe.Usage{CacheRead: tokens})
	return Loss{Tokens: tokens, Dollars: max(0, paid-cached), Priced: known}
}
