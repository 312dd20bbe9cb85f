package host

// AskGit is what git is asked about a directory, and what an agent is told if the
// answer is this.
func (s *Session) AskGit(dir, answer string) (args []string, told string) {
	q := s.askGit(gitData(dir))
	return q.args, q.told([]string{answer})
}
