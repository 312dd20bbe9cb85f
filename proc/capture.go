package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
)

// cutMark is what a file of output ends with if it could not take all.
const cutMark = "\n[the output was longer than %d bytes; the rest was not kept]\n"

// A Capture takes the output of a program and keeps what is needed of it: the
// beginning and the end in memory, and all of it in a file, up to a limit, once
// memory does not hold it. It takes and drops what comes beyond, so that the
// program runs on.
//
// Its methods may be called concurrently. Set the fields before the first
// Write.
type Capture struct {
	// Dir is the directory of the file, which is made private; "" keeps no
	// file.
	Dir string
	// Memory is the number of bytes kept in memory, half of it for the
	// beginning; 0 is 100 KiB.
	Memory int
	// Limit is the size of the file in bytes; 0 is 64 MiB.
	Limit int64

	mu     sync.Mutex
	closed bool
	head   []byte
	ring   []byte // the latest bytes after the head; the oldest is at next
	next   int
	size   int64 // of all that was written
	file   *os.File
	filed  int64 // bytes of the output in the file
	full   bool  // the file has reached its limit
	err    error // of the file; the first one
}

// Output is what a [Capture] has kept.
type Output struct {
	Head, Tail []byte // without anything between them if Missing is 0
	Missing    int64  // bytes between Head and Tail
	Size       int64  // bytes that the program wrote
	Path       string // of the file that has all or, if Cut, the beginning; "" if there is none
	Cut        bool   // the file does not have all
}

// Write takes p. It never fails.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return len(p), nil
	}
	if c.file == nil && c.err == nil && c.size+int64(len(p)) > int64(c.memory()) {
		c.open()
	}
	c.store(p)
	c.keep(p)
	return len(p), nil
}

// File makes sure that there is a file of what has been written so far and
// of what will be.
func (c *Capture) File() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil && c.err == nil && !c.closed {
		c.open()
	}
	return c.err
}

// Output returns what was kept so far.
func (c *Capture) Output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Output{Head: bytes.Clone(c.head), Tail: c.tail(), Size: c.size}
	out.Missing = out.Size - int64(len(out.Head)+len(out.Tail))
	if c.file != nil {
		out.Path, out.Cut = c.file.Name(), c.filed < c.size
	}
	return out
}

// Close ends the capture: writes after it are dropped. The error says why
// there is no file, or only a part of it; what [Capture.Output] returns is
// valid then too.
func (c *Capture) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil && !c.closed {
		if err := c.file.Close(); c.err == nil {
			c.err = err
		}
	}
	c.closed = true
	if c.err != nil {
		return fmt.Errorf("keep the output in a file: %w", c.err)
	}
	return nil
}

func (c *Capture) memory() int {
	if c.Memory > 0 {
		return c.Memory
	}
	return 100 << 10
}

func (c *Capture) limit() int64 {
	if c.Limit > 0 {
		return c.Limit
	}
	return 64 << 20
}

// open makes the file and puts into it what there is. Until then memory holds
// all.
func (c *Capture) open() {
	if c.Dir == "" {
		return
	}
	if c.err = PrivateDir(c.Dir); c.err != nil {
		return
	}
	// CreateTemp opens with O_EXCL, which follows no link, and mode 0600.
	if c.file, c.err = os.CreateTemp(c.Dir, "*.output"); c.err != nil {
		return
	}
	c.store(c.head)
	c.store(c.tail())
}

// store appends p to the file, as far as its limit allows.
func (c *Capture) store(p []byte) {
	if c.file == nil || c.err != nil || c.full || len(p) == 0 {
		return
	}
	if room := c.limit() - c.filed; int64(len(p)) > room {
		p, c.full = p[:room], true
	}
	n, err := c.file.Write(p)
	c.filed += int64(n)
	if err == nil && c.full {
		_, err = fmt.Fprintf(c.file, cutMark, c.limit())
	}
	c.err = err
}

// keep takes p into memory: the head until it is full, then the ring.
func (c *Capture) keep(p []byte) {
	c.size += int64(len(p))
	headRoom := c.memory()/2 - len(c.head)
	n := min(headRoom, len(p))
	c.head = append(c.head, p[:n]...)
	p = p[n:]

	most := c.memory() - c.memory()/2
	p = p[max(0, len(p)-most):]
	n = min(most-len(c.ring), len(p))
	c.ring = append(c.ring, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(c.ring[c.next:], p)
		c.next = (c.next + n) % most
	}
}

// tail returns what the ring holds, in order.
func (c *Capture) tail() []byte {
	return slices.Concat(c.ring[c.next:], c.ring[:c.next])
}
