package gitignore

import "strings"

// wildmatch tells whether all of text matches pattern. If slashes count (they
// do in a path, a single name has none), only "**" between slashes or at an
// end matches a slash. Both are seen as bytes, as git sees them.
//
// Ignore files come from strangers, so the work is bounded: a matcher gives up
// whole groups of tries where another star can not help, and from some number
// of tries on it remembers which it has made.
func wildmatch(pattern, text string, slashes bool) bool {
	m := matcher{pattern: pattern, text: text, slashes: slashes}
	return m.match(0, 0) == matched
}

// An outcome of a try. The last two end the tries of the stars further left,
// because these could only offer less text.
type outcome int

const (
	matched outcome = iota
	failed
	failedToStars // no text is left for what follows: no single star helps
	failedForGood
)

type matcher struct {
	pattern, text string
	slashes       bool
	tries         int
	made          map[[2]int]outcome // tries of a star, by places in pattern and text
}

// fewTries is what honest patterns need; remembering would cost them more.
const fewTries = 500

// try is match for the rest behind a star.
func (m *matcher) try(p, t int) outcome {
	m.tries++
	if m.tries < fewTries {
		return m.match(p, t)
	}
	if o, ok := m.made[[2]int{p, t}]; ok {
		return o
	}
	o := m.match(p, t)
	if m.made == nil {
		m.made = make(map[[2]int]outcome)
	}
	m.made[[2]int{p, t}] = o
	return o
}

// match compares pattern[p:] with text[t:].
func (m *matcher) match(p, t int) outcome {
	for ; p < len(m.pattern); p++ {
		c := m.pattern[p]
		if t == len(m.text) && c != '*' {
			return failedForGood
		}
		switch c {
		case '\\':
			p++
			if p == len(m.pattern) || m.text[t] != m.pattern[p] {
				return failed
			}
		case '?':
			if m.slashes && m.text[t] == '/' {
				return failed
			}
		case '*':
			return m.star(p, t)
		case '[':
			in, end := inClass(m.pattern, p, m.text[t])
			if end < 0 {
				return failedForGood
			}
			if !in || m.slashes && m.text[t] == '/' {
				return failed
			}
			p = end
		default:
			if m.text[t] != c {
				return failed
			}
		}
		t++
	}
	if t < len(m.text) {
		return failed
	}
	return matched
}

// star matches from the star at pattern[p] on.
func (m *matcher) star(p, t int) outcome {
	end := p
	for end < len(m.pattern) && m.pattern[end] == '*' {
		end++
	}
	rest := m.pattern[end:]
	overSlash := !m.slashes
	if m.slashes && end-p > 1 && (p == 0 || m.pattern[p-1] == '/') &&
		(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)) {
		overSlash = true
		// "**/" matches no directory as well.
		if rest != "" && rest[0] == '/' && m.try(end+1, t) == matched {
			return matched
		}
	}
	if rest == "" {
		if !overSlash && strings.Contains(m.text[t:], "/") {
			return failedToStars
		}
		return matched
	}
	if !overSlash && rest[0] == '/' {
		i := strings.IndexByte(m.text[t:], '/')
		if i < 0 {
			return failedForGood
		}
		return m.try(end+1, t+i+1)
	}
	for ; t < len(m.text); t++ {
		switch o := m.try(end, t); {
		case o == failed, o == failedToStars && overSlash:
		default:
			return o
		}
		if !overSlash && m.text[t] == '/' {
			return failedToStars
		}
	}
	return failedForGood
}

// inClass tells whether b is in the class that begins at pattern[p], and where
// the class ends; the end is -1 if it has none or names an unknown class.
func inClass(pattern string, p int, b byte) (in bool, end int) {
	p++
	negated := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negated {
		p++
	}
	prev := byte(0) // 0: what stands before can not begin a range
	for first := true; ; first = false {
		if p >= len(pattern) {
			return false, -1
		}
		c := pattern[p]
		switch {
		case c == ']' && !first:
			return in != negated, p
		case c == '\\':
			p++
			if p >= len(pattern) {
				return false, -1
			}
			c = pattern[p]
			in = in || b == c
			prev = c
		case c == '-' && prev != 0 && p+1 < len(pattern) && pattern[p+1] != ']':
			p++
			if pattern[p] == '\\' {
				p++
				if p >= len(pattern) {
					return false, -1
				}
			}
			in = in || prev <= b && b <= pattern[p]
			prev = 0
		case c == '[' && p+1 < len(pattern) && pattern[p+1] == ':':
			stop := strings.IndexByte(pattern[p+2:], ']')
			if stop < 0 {
				return false, -1
			}
			name, named := strings.CutSuffix(pattern[p+2:p+2+stop], ":")
			if !named {
				in = in || b == '[' // not a named class after all
				prev = '['
				break
			}
			has, known := namedClass(name, b)
			if !known {
				return false, -1
			}
			in = in || has
			p += 2 + stop
			prev = 0
		default:
			in = in || b == c
			prev = c
		}
		p++
	}
}

// namedClass tells whether b is in a class like [:digit:], and whether there
// is one of that name. Only ASCII belongs to classes.
func namedClass(name string, b byte) (has, known bool) {
	lower, upper := 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z'
	digit := '0' <= b && b <= '9'
	graph := '!' <= b && b <= '~'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return b == ' ' || b == '\t', true
	case "cntrl":
		return b < ' ' || b == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || b == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return b == ' ' || '\t' <= b && b <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F', true
	}
	return false, false
}
