package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/troupe-sh/troupe"
)

// ErrGone reports that the client will not answer any more.
var ErrGone = errors.New("the client has closed its side")

// longestLine is in bytes: a prompt with pictures is long, and what is longer
// is a mistake.
const longestLine = 64 << 20

// fullFront is in bytes: with so many answers unread, nothing more is read.
const fullFront = 1 << 20

// object is a message; encoding sorts its keys.
type object map[string]any

// A Conn carries lines between the client and us: one JSON object each. One
// goroutine of its own writes, so that lines never mix. What is sent with send
// goes in front of what is written with Write: an answer does not wait until the
// client has read all that it does not listen to. All methods may be called at
// any time.
type Conn struct {
	in  io.Reader
	max int // bytes of a line
	out io.Writer
	end sync.WaitGroup // of the writer

	mu      sync.Mutex
	changed *sync.Cond
	front   [][]byte
	waiting int    // bytes in front
	back    []byte // the message that somebody waits for
	closing bool
	err     error // of the writer

	last    int
	asked   map[string]chan answer
	gone    bool // the input has ended
	goneNow chan struct{}
}

// An answer is what came back for a request.
type answer struct {
	response json.RawMessage
	err      error
}

// NewConn returns a Conn between in and out. The caller must Close it.
func NewConn(in io.Reader, out io.Writer) *Conn {
	c := &Conn{in: in, max: longestLine, out: out, asked: map[string]chan answer{}, goneNow: make(chan struct{})}
	c.changed = sync.NewCond(&c.mu)
	c.end.Go(c.write)
	return c
}

// Close writes what is left and returns why writing failed, if it did. Reading
// ends when the stream does.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closing = true
	c.changed.Broadcast()
	c.mu.Unlock()
	c.end.Wait()
	return c.err
}

// write is the goroutine that writes.
func (c *Conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.front) == 0 && c.back == nil && !c.closing {
			c.changed.Wait()
		}
		var line []byte
		switch {
		case len(c.front) > 0:
			line = c.front[0]
			c.front, c.waiting = c.front[1:], c.waiting-len(line)
		case c.back != nil:
			line = c.back
		default:
			return
		}
		mine := c.back != nil && &line[0] == &c.back[0]
		if c.err == nil {
			c.mu.Unlock()
			_, err := c.out.Write(line)
			c.mu.Lock()
			if err != nil {
				c.err = fmt.Errorf("write a message: %w", err)
			}
		}
		if mine {
			c.back = nil
		}
		c.changed.Broadcast()
	}
}

// Write writes whole lines and returns when they are out.
func (c *Conn) Write(lines []byte) (int, error) {
	if len(lines) == 0 {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.back != nil && !c.closing {
		c.changed.Wait()
	}
	if c.closing {
		return 0, errors.New("write a message: the connection is closed")
	}
	c.back = bytes.Clone(lines)
	mine := &c.back[0]
	c.changed.Broadcast()
	for c.back != nil && &c.back[0] == mine {
		c.changed.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	return len(lines), nil
}

// send has a line written in front of all messages. It waits only while the
// client does not read.
func (c *Conn) send(o object) {
	line, err := troupe.Encode(o)
	if err != nil { // what we send can be encoded
		return
	}
	line = append(line, '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting > fullFront && c.err == nil && !c.closing {
		c.changed.Wait()
	}
	c.front, c.waiting = append(c.front, line), c.waiting+len(line)
	c.changed.Broadcast()
}

// reply answers a request of the client.
func (c *Conn) reply(id string, response any) {
	c.send(object{"type": "control_response", "response": object{"subtype": "success", "request_id": id, "response": response}})
}

// refuse answers a request of the client with an error.
func (c *Conn) refuse(id, why string) {
	c.send(object{"type": "control_response", "response": object{"subtype": "error", "request_id": id, "error": why}})
}

// Ask makes a request to the client and waits for its answer. The end of ctx
// takes the request back.
func (c *Conn) Ask(ctx context.Context, request object) (json.RawMessage, error) {
	id, got, err := c.register()
	if err != nil {
		return nil, err
	}
	c.send(object{"type": "control_request", "request_id": id, "request": request})
	select {
	case a := <-got:
		return a.response, a.err
	case <-c.goneNow:
		return nil, ErrGone
	case <-ctx.Done():
	}
	c.mu.Lock()
	delete(c.asked, id)
	c.mu.Unlock()
	c.send(object{"type": "control_cancel_request", "request_id": id})
	return nil, context.Cause(ctx)
}

func (c *Conn) register() (id string, got chan answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return "", nil, ErrGone
	}
	c.last++
	id, got = fmt.Sprintf("req_%d", c.last), make(chan answer, 1)
	c.asked[id] = got
	return id, got, nil
}

// answered hands an answer of the client to who waits for it. It reports whether
// somebody does.
func (c *Conn) answered(id string, a answer) bool {
	c.mu.Lock()
	got, open := c.asked[id]
	delete(c.asked, id)
	c.mu.Unlock()
	if open {
		got <- a
	}
	return open
}

// lines yields the lines of the client. A line that is too long is yielded as
// an error, as the first bytes of it, and reading goes on behind it. At the end
// all that is asked ends with ErrGone.
func (c *Conn) lines() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		defer c.leave()
		r := bufio.NewReaderSize(c.in, 64<<10)
		for {
			line, err := readLine(r, c.max)
			if len(bytes.TrimSpace(line)) > 0 || errors.Is(err, errLong) {
				var bad error
				if errors.Is(err, errLong) {
					bad = err
				}
				if !yield(line, bad) {
					return
				}
			}
			if err != nil && !errors.Is(err, errLong) {
				return
			}
		}
	}
}

func (c *Conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.gone = true
		close(c.goneNow)
	}
}

var errLong = fmt.Errorf("it is longer than %d MB", longestLine>>20)

// readLine reads a line with its end. Of one that is too long it returns the
// beginning and errLong.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if len(line)+len(part) > most {
			line = bytes.Clone(line[:80])
			if full {
				err = skip(r)
			}
			if err == nil {
				err = errLong
			}
			return line, err
		}
		line = append(line, part...)
		if !full {
			return line, err
		}
	}
}

// skip drops the rest of a line.
func skip(r *bufio.Reader) error {
	for {
		_, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return err
		}
	}
}
