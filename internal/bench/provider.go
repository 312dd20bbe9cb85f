package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A provider answers requests in the protocol of Anthropic's, at once, and
// notes when they come. It checks nothing: the tests do that.
type provider struct {
	now    func() time.Time
	url    string
	server *http.Server
	ended  chan error

	look  func(n int, size int64) // called at the n-th request of a run, of so many bytes; may be nil
	other http.Handler            // answers in its place, if it is not nil

	mu    sync.Mutex
	plan  []call // what the model of the present run does before its last word
	times []exchange
}

// A call is a tool call of the model.
type call struct {
	Tool  string
	Input map[string]any
}

// An exchange is a request and its reply.
type exchange struct {
	asked    time.Time // the first byte of the request has come
	answered time.Time // the reply is with the kernel
}

func startProvider(now func() time.Time) (*provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	p := &provider{now: now, url: "http://" + listener.Addr().String(), ended: make(chan error, 1)}
	p.server = &http.Server{Handler: p, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateActive { // one byte of a request has been read
			p.mu.Lock()
			defer p.mu.Unlock()
			p.times = append(p.times, exchange{asked: p.now()})
		}
	}}
	go func() { p.ended <- p.server.Serve(listener) }()
	return p, nil
}

func (p *provider) close() error {
	err := p.server.Close()
	if ended := <-p.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// begin says what the model does in the next run.
func (p *provider) begin(plan []call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.times = plan, nil
}

// exchanges returns those of the run.
func (p *provider) exchanges() []exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.times
}

// ServeHTTP implements [http.Handler].
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.other != nil {
		p.other.ServeHTTP(w, r)
		return
	}
	size, _ := io.Copy(io.Discard, r.Body) // what is cut short shows in the run
	p.mu.Lock()
	n, plan := len(p.times), p.plan
	p.mu.Unlock()
	if p.look != nil {
		p.look(n, size)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if n <= len(plan) {
		stream(w, n, plan[n-1])
	} else {
		stream(w, n)
	}
	_ = http.NewResponseController(w).Flush()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n <= len(p.times) {
		p.times[n-1].answered = p.now()
	}
}

// stream writes the n-th reply: calls, or the model's last word.
func stream(w io.Writer, n int, calls ...call) {
	event := func(name string, fields map[string]any) {
		fields["type"] = name
		text, _ := json.Marshal(fields) // of strings and numbers
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text)
	}
	block := func(index int, block, delta map[string]any) {
		event("content_block_start", map[string]any{"index": index, "content_block": block})
		event("content_block_delta", map[string]any{"index": index, "delta": delta})
		event("content_block_stop", map[string]any{"index": index})
	}
	event("message_start", map[string]any{"message": map[string]any{"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6",
		"content": []any{}, "usage": map[string]any{"input_tokens": 100, "output_tokens": 1}}})
	stop := "tool_use"
	if len(calls) == 0 {
		stop = "end_turn"
		block(0, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "Done."})
	}
	for i, c := range calls {
		input, _ := json.Marshal(c.Input)
		block(i, map[string]any{"type": "tool_use", "id": fmt.Sprintf("call_%d_%d", n, i), "name": c.Tool, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": string(input)})
	}
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": map[string]any{"output_tokens": 20}})
	event("message_stop", map[string]any{})
}
