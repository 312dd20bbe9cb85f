package host

import "github.com/troupe-sh/troupe"

// MoveOn is what happens before a request of the lead to the moves that were asked for.
func (s *Session) MoveOn(yield func(troupe.Event, error) bool) bool {
	return s.moveOn(s.lead.State, yield)
}

// AskGit is what git is asked about a directory, and what an agent is told if the
// answer is this.
func (s *Session) AskGit(dir, answer string) (args []string, told string) {
	q := s.askGit(gitData(dir))
	return q.args, q.told([]string{answer})
}

// LimitOutput sets how many bytes of the output of a command are kept.
func (o *Options) LimitOutput(bytes int64) { o.outputLimit = bytes }
