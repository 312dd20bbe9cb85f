package troupe

import "slices"

// A State is what a conversation has come to: the fold of its events. Run
// makes its requests of it, resume makes it again from the log; so both send
// the same bytes.
type State struct {
	Request Request // what the next request says
	Mode    string
	Chosen  bool   // the user named the mode for this session
	Before  string // the mode to go back to, if the user named it and the agent left it by itself
	Place   Place
	Usage   Usage
	Turns   int

	open    []ToolUse // calls of the last reply, until all have a result
	results map[string]ToolResult
	late    []Message       // received before all had one
	seen    map[string]bool // IDs of received messages
	ids     map[string]bool // of all calls

	counted   int // tokens of the first countedAt messages and what is before them, as the provider counted
	countedAt int
}

// Size is about how many tokens the next request has: what the provider counted
// with its last reply, and an estimate of what came after it, rather too high
// than too low.
func (s *State) Size() int {
	n := s.counted
	if n == 0 {
		n = estimate(len(s.Request.System))
		for _, t := range s.Request.Tools {
			n += estimate(len(t.Name) + len(t.Description) + len(t.Schema))
		}
	}
	for _, m := range s.Request.Messages[s.countedAt:] {
		n += m.Content.size()
	}
	return n
}

// Seen reports whether the message with this ID is in the conversation.
func (s *State) Seen(id string) bool { return id != "" && s.seen[id] }

// Idle reports whether the model has said its last word: nothing is to be sent.
func (s *State) Idle() bool {
	n := len(s.Request.Messages)
	return n == 0 || s.Request.Messages[n-1].Role == Assistant && s.open == nil
}

// Open returns the calls that have no result yet, in the order asked.
func (s *State) Open() []ToolUse {
	return slices.DeleteFunc(slices.Clone(s.open), func(u ToolUse) bool { _, ok := s.results[u.ID]; return ok })
}

// Apply carries s on by one event. It is total: any sequence of events leaves
// a state whose conversation is [Valid] once [State.Repair] has run.
func (s *State) Apply(e Event) {
	switch e := e.(type) {
	case Started:
		s.start(e)
	case Received:
		s.receive(e)
	case Replied:
		s.reply(e)
	case ToolEnded:
		if slices.ContainsFunc(s.open, func(u ToolUse) bool { return u.ID == e.Use }) {
			s.results[e.Use] = ToolResult{ID: e.Use, Content: cleanResult(e.Result.Content), IsError: e.Result.IsError}
			s.close()
		}
	case Switched:
		set(&s.Request.Model, e.Model)
		set(&s.Request.Effort, e.Effort)
		if e.Mode != "" {
			s.switchMode(e)
		}
	case Billed:
		s.Usage = s.Usage.Add(e.Usage)
	case Moved:
		s.Place = e.Place
	case Compacted:
		s.compact(e)
	}
}

func (s *State) switchMode(e Switched) {
	was := s.Before
	if s.Before = ""; e.Before == s.Mode && s.Chosen {
		s.Before = e.Before
	}
	s.Mode, s.Chosen = e.Mode, e.Chosen || e.Mode == was // back again, it is the user's as before
}

// compact puts a summary in the place of the oldest messages. Requests that
// were sent keep theirs: the list is a new one.
func (s *State) compact(e Compacted) {
	s.Usage = s.Usage.Add(e.Usage)
	summary := cleanUser(e.Summary)
	if len(summary.Content) == 0 {
		return
	}
	msgs := s.Request.Messages
	first := min(max(0, len(msgs)-e.Keep), len(msgs))
	if s.open != nil { // the calls of the last message will get results
		first = min(first, len(msgs)-1)
	}
	for first > 0 && first < len(msgs) && hasResults(msgs[first]) {
		first--
	}
	s.Request.Messages = append([]Message{summary}, msgs[first:]...)
	s.counted, s.countedAt = 0, 0
}

func hasResults(m Message) bool {
	return slices.ContainsFunc(m.Content, func(b Block) bool { _, ok := b.(ToolResult); return ok })
}

// start takes what an agent begins with. A log whose first record was lost
// gets a new one later; what was said before stays.
func (s *State) start(e Started) {
	said, given := s.Request.Messages, e.Request.Messages
	s.Request, s.Mode, s.Chosen, s.Place = e.Request, e.Mode, e.Chosen, e.Place
	s.Request.Messages = said
	if said == nil && s.open == nil && Valid(given) == nil {
		s.inherit(given, e.Counted)
		return
	}
	for _, m := range given {
		s.hear(m)
	}
}

// inherit begins with the conversation of another, byte for byte.
func (s *State) inherit(given []Message, counted int) {
	s.Request.Messages = slices.Clip(given) // what stands behind it is its owner's
	for _, m := range given {
		for _, u := range m.ToolUses() {
			s.known(u)
		}
	}
	if counted > 0 {
		s.counted, s.countedAt = counted, len(given)-1
	}
}

// known notes that the ID of a call is taken.
func (s *State) known(u ToolUse) {
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[u.ID] = true
}

func (s *State) receive(e Received) {
	if s.Seen(e.ID) {
		return
	}
	if e.ID != "" {
		if s.seen == nil {
			s.seen = map[string]bool{}
		}
		s.seen[e.ID] = true
	}
	s.hear(e.Message)
}

// hear takes a message of the user in, after the results that are still due.
func (s *State) hear(m Message) {
	m = cleanUser(m)
	if s.open != nil {
		s.late = append(s.late, m)
		return
	}
	s.add(m)
}

func (s *State) reply(e Replied) {
	s.Turns++
	s.Usage = s.Usage.Add(e.Usage)
	for _, lost := range s.Repair() { // a reply can only follow results
		s.Apply(lost)
	}
	m := s.Clean(e.Message)
	if len(m.Content) == 0 {
		return
	}
	if len(s.Request.Messages) == 0 {
		s.add(Say(User, "(The beginning of this conversation is lost.)"))
	}
	s.add(m)
	if n := e.Usage.Total(); n > 0 {
		s.counted, s.countedAt = n, len(s.Request.Messages)
	}
	s.open = m.ToolUses()
	if s.open == nil {
		return
	}
	s.results = map[string]ToolResult{}
	for _, u := range s.open {
		s.known(u)
	}
}

// close answers the last reply once every call has a result, in the order asked.
func (s *State) close() {
	if len(s.results) < len(s.open) {
		return
	}
	m := Message{Role: User}
	for _, u := range s.open {
		m.Content = append(m.Content, s.results[u.ID])
	}
	late := s.late
	s.open, s.results, s.late = nil, nil, nil
	s.add(m)
	for _, l := range late {
		s.add(l)
	}
}

// add appends in place: requests that were sent end before it.
func (s *State) add(m Message) {
	if len(m.Content) > 0 {
		s.Request.Messages = append(s.Request.Messages, m)
	}
}

// Repair returns the events that make the conversation valid again after the
// run that wrote it was cut off. The caller logs and applies them.
func (s *State) Repair() []Event {
	var out []Event
	for _, u := range s.Open() {
		out = append(out, ToolEnded{Use: u.ID,
			Result: Failure("The run was cut off while this call was open. It may or may not have had its effect.")})
	}
	return out
}

func set(p *string, v string) {
	if v != "" {
		*p = v
	}
}
