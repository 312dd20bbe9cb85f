package model

// Keys is how many keys s knows.
func (s *Stagger) Keys() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups)
}
