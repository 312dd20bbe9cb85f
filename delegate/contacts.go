package delegate

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/troupe-sh/troupe"
)

// Main is the name by which every agent can speak to the lead.
const Main = "main"

// contacts are the agents that one agent has started or spoken to by name. A name
// can pass to another agent; what is meant for the one must not reach the other.
type contacts struct {
	mu sync.Mutex
	of map[string]string // IDs by name
}

func (c *contacts) met(name, id string) {
	if name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]string{}
	}
	c.of[name] = id
}

// other returns the ID of another agent that was known by this name.
func (c *contacts) other(name, id string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.of[name]
	return known, ok && known != id
}

var goodName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
var likeID = regexp.MustCompile(`^[abrtwmd][0-9a-z]{8}$`)

// named reports a name that an agent cannot have.
func (s Scope) named(name string) error {
	switch {
	case name == "":
		return nil
	case !goodName.MatchString(name):
		return fmt.Errorf("name %q: want a letter, then letters, digits, - and _, 64 in all at most", name)
	case strings.EqualFold(name, Main), strings.EqualFold(name, s.Shared.Lead.Agent), likeID.MatchString(name):
		return fmt.Errorf("name %q: it means somebody else; choose another", name)
	}
	return nil
}

// seek returns the agent that a name or an ID means.
func (s Scope) seek(to string) (troupe.Started, error) {
	all, err := s.Known()
	if err != nil {
		return troupe.Started{}, fmt.Errorf("look for agent %s: %w", to, err)
	}
	var found *troupe.Started
	for i := range all {
		if all[i].Agent == to {
			return all[i], nil
		}
		if all[i].Name == to {
			found = &all[i] // the newest counts
		}
	}
	if found == nil {
		return troupe.Started{}, fmt.Errorf("%w: %q; %s", ErrNobody, to, whoIsThere(to, all))
	}
	if before, ok := s.contacts.other(to, found.Agent); ok {
		return troupe.Started{}, fmt.Errorf("%w: %q was agent %s when you spoke to it, and is now the newer agent %s; say the ID of the one you mean", ErrNobody, to, before, found.Agent)
	}
	return *found, nil
}

// whoIsThere suggests names: those that are like the one that was looked for, or
// the newest.
func whoIsThere(to string, all []troupe.Started) string {
	var like, newest []string
	for i := len(all) - 1; i >= 0; i-- {
		label := all[i].Agent
		if all[i].Name != "" {
			label = fmt.Sprintf("%s (%s)", all[i].Name, all[i].Agent)
		}
		if near(to, all[i].Name) || near(to, all[i].Agent) {
			like = append(like, label)
		} else if len(newest) < 8 {
			newest = append(newest, label)
		}
	}
	switch {
	case like != nil:
		return "did you mean " + strings.Join(like[:min(len(like), 8)], ", ") + "?"
	case newest == nil:
		return "no agent was started yet"
	}
	return "there are: " + strings.Join(append(newest, Main), ", ")
}

// near reports whether two names differ by little: their case, one part, or two
// letters at most.
func near(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == "" || b == "" {
		return false
	}
	return strings.Contains(a, b) || strings.Contains(b, a) || len(a) > 3 && distance(a, b) <= 2
}

// distance is the number of letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
