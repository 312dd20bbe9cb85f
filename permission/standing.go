package permission

import "sync"

// A Standing is the mode in which an agent is at this moment, as those below it
// need to know it: rights only shrink on the way down, also after an agent has
// started. It is safe for concurrent use.
type Standing struct {
	above *Standing
	mu    sync.Mutex
	mode  Mode
}

// NewStanding returns that of an agent in mode m below another; above is nil for
// the lead.
func NewStanding(above *Standing, m Mode) *Standing { return &Standing{above: above, mode: m} }

// Set says that the agent is in mode m from now on.
func (s *Standing) Set(m Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = m
}

// Shrink is Set if m is narrower than the present mode.
func (s *Standing) Shrink(m Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode.Wider(m) {
		s.mode = m
	}
}

// Limit returns m or, if that is narrower, the mode of the agent or of one above it.
func (s *Standing) Limit(m Mode) Mode {
	for ; s != nil; s = s.above {
		s.mu.Lock()
		if m.Wider(s.mode) {
			m = s.mode
		}
		s.mu.Unlock()
	}
	return m
}
