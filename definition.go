package troupe

// A Definition says what kind of agent an agent is. It is data only: read
// from files, compared, printed, sent to another machine.
type Definition struct {
	Name        string
	Description string   // when to use it
	Prompt      string   // system prompt
	Model       string   // "" or "inherit" means the parent's
	Effort      string   // a level or a number of tokens; "" means the parent's
	Tools       []string // nil: all that an agent of its place may have; empty: none
	Disallowed  []string
	Mode        string // permission mode; "" means the parent's
	MaxTurns    int    // 0 is no limit
	Background  bool   // it works in the background, whether asked to or not
	First       string // first prompt when it runs as the main agent
	// OmitContextFiles leaves out CLAUDE.md, AGENTS.md and the state of the
	// repository.
	OmitContextFiles bool
	Source           string // file it came from, "built-in" or "command line"
}
