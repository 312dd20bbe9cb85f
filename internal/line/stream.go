package line

import (
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
)

// A stream is what the lead says while it says it. The log has whole replies
// only, so fragments come by another way than records. The two are brought
// together by a number: a reply that was finished, or that is asked for again,
// is followed by the next one. It is safe for concurrent use.
type stream struct {
	mu      sync.Mutex
	number  int // of the reply that comes in
	replies map[int]*partial
	fresh   chan struct{} // holds one
}

// A partial is what has come in of a reply.
type partial struct {
	text string
	out  int // bytes that were handed out
}

// watch takes an event of the lead.
func (s *stream) watch(ev troupe.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch ev := ev.(type) {
	case troupe.Streaming:
		if ev.Thinking {
			return
		}
		if s.replies == nil {
			s.replies = map[int]*partial{}
		}
		if s.replies[s.number] == nil {
			s.replies[s.number] = &partial{}
		}
		s.replies[s.number].text += ev.Text
		wake(s.wakes())
	case troupe.Retrying, troupe.Replied:
		s.number++
	}
}

// wakes is the channel that says that there is something new. The caller holds
// the lock.
func (s *stream) wakes() chan struct{} {
	if s.fresh == nil {
		s.fresh = make(chan struct{}, 1)
	}
	return s.fresh
}

func (s *stream) ready() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wakes()
}

// fragment returns what has come in of a reply since it was asked last.
func (s *stream) fragment(number int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.replies[number]
	if p == nil {
		return ""
	}
	text := p.text[p.out:]
	p.out = len(p.text)
	return text
}

// settle returns what is missing of a reply that is whole now. If something else
// was handed out before, that is the whole reply, on a line of its own.
func (s *stream) settle(number int, whole string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.replies[number]
	delete(s.replies, number)
	wake(s.wakes()) // there may be fragments of the next one already
	if p == nil {
		return whole
	}
	out := p.text[:p.out]
	switch {
	case strings.HasPrefix(whole, out):
		return whole[len(out):]
	case strings.HasPrefix(out, whole):
		return ""
	}
	return "\n" + whole
}

// rows cuts text that comes in pieces into lines that fit a window: so it is
// seen soon, and what is typed stays below it. Lines of code are not cut.
type rows struct {
	left   string
	fenced bool
}

// add returns the lines that are full now.
func (r *rows) add(text string, width int) (out []string) {
	r.left += text
	for {
		line, rest, ended := strings.Cut(r.left, "\n")
		if at := r.fold(line, width); at > 0 {
			out, r.left = append(out, line[:at]), r.left[at+1:]
			continue
		}
		if !ended {
			return out
		}
		out, r.left = append(out, line), rest
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			r.fenced = !r.fenced
		}
	}
}

// fold returns where the space is at which a line is cut, 0 if it is not.
func (r *rows) fold(line string, width int) int {
	runes := []rune(line)
	if r.fenced || len(runes) < width || strings.HasPrefix(line, "    ") {
		return 0
	}
	return max(0, strings.LastIndexByte(string(runes[:width]), ' '))
}

// rest returns what is left of a text that is over, with an end of line.
func (r *rows) rest() string {
	defer func() { r.fenced = false }()
	if r.left == "" {
		return ""
	}
	return "\n"
}
