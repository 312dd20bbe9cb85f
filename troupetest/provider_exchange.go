package troupetest

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/troupe-sh/troupe"
)

// exchange is the answering of one request. It lives as long as the handler.
type exchange struct {
	p       *Provider
	w       wire
	rw      http.ResponseWriter
	left    <-chan struct{} // closed when the client leaves, or the provider closes
	request *Request
}

const page = `<!DOCTYPE html>
<html><head><title>Bad Gateway</title></head><body><h1>The upstream did not answer</h1></body></html>
`

// overloaded is the status of Anthropic for "too busy".
const overloaded = 529

// refuse answers with an error in the dialect's form.
func (e *exchange) refuse(status int, message string) {
	id := fmt.Sprintf("req_%06d", e.request.Number)
	e.rw.Header().Set("Content-Type", "application/json")
	e.rw.Header().Set("Request-Id", id)
	e.rw.Header().Set("X-Request-Id", id)
	e.rw.WriteHeader(status)
	e.write(e.w.problem(status, id, message))
}

// answer plays a reply with its fault. Prompt is the usage of the prompt, and store
// puts it into the cache.
func (e *exchange) answer(reply Reply, prompt troupe.Usage, store func()) {
	f := reply.Fault
	if !e.pause(f.Delay) {
		return
	}
	if f.RetryAfter != "" {
		e.rw.Header().Set("Retry-After", f.RetryAfter)
	}
	switch {
	case f.HTML:
		e.rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		e.rw.WriteHeader(max(http.StatusOK, f.Status))
		e.write([]byte(page))
	case f.Status != 0:
		e.refuse(f.Status, "simulated: "+statusText(f.Status))
	case f.Empty:
		e.rw.Header().Set("Content-Type", "text/event-stream")
		e.rw.WriteHeader(http.StatusOK)
	default:
		if reply.Usage == (troupe.Usage{}) {
			reply.Usage = prompt
			reply.Usage.Output = tokens(outputBytes(reply.Message))
		}
		e.reply(reply, store)
	}
}

func statusText(status int) string {
	if status == overloaded {
		return "Overloaded"
	}
	return http.StatusText(status)
}

// reply plays a reply that has content. Store puts the prompt into the cache.
func (e *exchange) reply(reply Reply, store func()) {
	reply.Message = e.signed(reply.Message)
	if reply.Model == "" {
		reply.Model = e.request.Model
	}
	e.p.memory.learn(reply.Message)
	top := decodeObject(e.request.Body)
	options, _ := top["stream_options"].(object)
	a := &answer{
		Reply: reply, id: fmt.Sprintf("%06d", e.request.Number), created: e.request.Arrived.Unix(),
		includeUsage: options["include_usage"] == true,
	}
	if top["stream"] == true {
		e.stream(a, store)
		return
	}
	store()
	e.rw.Header().Set("Content-Type", "application/json")
	e.write(e.w.whole(a))
	e.charge(reply.Usage)
}

// prompt returns what it costs to read the prompt as the cache is now, and a function
// that puts it there.
func (e *exchange) prompt() (troupe.Usage, func()) {
	cached := e.p.cache.automatic
	if e.request.Dialect == Anthropic {
		cached = e.p.cache.marked
	}
	return cached(e.request.Model, e.w.prompt(e.request.Body), e.request.Arrived)
}

// signed gives a signature to reasoning that has none, as Anthropic does.
func (e *exchange) signed(m troupe.Message) troupe.Message {
	m.Content = slices.Clone(m.Content)
	for i, b := range m.Content {
		if t, ok := b.(troupe.Thinking); ok && t.Signature == "" && e.request.Dialect == Anthropic {
			t.Signature = fmt.Sprintf("sig%d.%d/+==", e.request.Number, i)
			m.Content[i] = t
		}
	}
	return m
}

func (e *exchange) charge(u troupe.Usage) {
	e.p.update(func() {
		e.request.Usage = u
		e.p.bill[e.request.Model] = e.p.bill[e.request.Model].Add(u)
	})
}

// stream sends the frames of a and strikes where its fault says.
func (e *exchange) stream(a *answer, store func()) {
	frames := e.w.frames(a)
	if !e.reachable(a.Fault, frames) || !e.strike(a.Fault, BeforeHeaders) {
		return
	}
	e.rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e.rw.Header().Set("Cache-Control", "no-cache")
	e.rw.WriteHeader(http.StatusOK)
	e.flush()
	billed, sent, whole := a.Usage, 0, false
	defer func() {
		if !whole {
			billed.Output = min(billed.Output, max(1, tokens(sent)))
		}
		e.charge(billed)
	}()
	if !e.strike(a.Fault, AfterHeaders) {
		return
	}
	for i, f := range frames {
		if i == 0 {
			store() // before the client can know of it
		}
		for _, at := range f.before {
			if !e.strike(a.Fault, at) {
				return
			}
		}
		if !e.pause(a.Fault.Pace) || !e.write(f.bytes()) {
			return
		}
		sent += f.output
	}
	whole = true
}

// reachable fails the test if the fault is at a point that the stream lacks.
func (e *exchange) reachable(f Fault, frames []frame) bool {
	body := []Point{Nowhere, AfterHeaders}
	for _, fr := range frames {
		body = append(body, fr.before...)
	}
	for _, at := range []Point{f.Stall, f.Cut, f.Truncate, f.Overload, f.Malformed} {
		early := at == BeforeHeaders && (at == f.Stall || at == f.Cut)
		if !early && !slices.Contains(body, at) {
			e.p.t.Errorf("request %d: its reply never reaches point %d of its fault", e.request.Number, at)
			e.refuse(http.StatusBadRequest, "simulated: a fault that cannot be")
			return false
		}
	}
	return true
}

// strike does what the fault says at a point. It reports whether the answer
// goes on.
func (e *exchange) strike(f Fault, at Point) bool {
	if f.Stall == at {
		select {
		case <-f.Until: // nil: never
		case <-e.left:
			return false
		}
	}
	if f.Cut == at {
		panic(http.ErrAbortHandler) // the server's way to drop a connection
	}
	if f.Malformed == at {
		e.write(frame{data: []byte(`{"type": "content_block_delta", "choices": [{`)}.bytes())
	}
	if f.Overload == at {
		e.write(e.w.overload().bytes())
		return false
	}
	return f.Truncate != at
}

// pause waits for d. It reports whether the answer goes on.
func (e *exchange) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.left:
		return false
	}
}

// write sends b at once. It reports whether the client is still there.
func (e *exchange) write(b []byte) bool {
	if _, err := e.rw.Write(b); err != nil {
		return false
	}
	e.flush()
	return true
}

// flush cannot fail in a way that the next write would not show.
func (e *exchange) flush() { _ = http.NewResponseController(e.rw).Flush() }
