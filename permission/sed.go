package permission

import "strings"

// sedHazard accepts sed as long as its commands neither run programs (e) nor
// read or write files of their own (r, w).
func sedHazard(words []word) string {
	const odd = "sed can run commands and write files, and this script may"
	var scripts []string
	first, given, options := "", false, true
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch text := w.text; {
		case options && mayBeOption(w):
			return "sed is given a word that is not known before and may be an option"
		case options && text == "--":
			options = false
		case options && len(text) > 1 && text[0] == '-':
			if text == "-e" || text == "-ne" || text == "--expression" {
				if i++; i == len(words) || !words[i].known() {
					return odd
				}
				scripts, given = append(scripts, words[i].text), true
				continue
			}
			if !sedOption(text) {
				return "sed with " + text + " is not known to be harmless"
			}
		case first == "":
			first = text
			if !given && !w.known() {
				return odd
			}
		}
	}
	if !given {
		scripts = []string{first}
	}
	for _, s := range scripts {
		if !sedOnlyEdits(s) {
			return odd
		}
	}
	return ""
}

// sedOption reports whether an option of sed is harmless and takes no word of
// its own.
func sedOption(text string) bool {
	if suffix, ok := strings.CutPrefix(text, "-i"); ok {
		return !strings.ContainsAny(suffix, "/*")
	}
	switch text {
	case "--in-place", "--quiet", "--silent", "--regexp-extended", "--separate", "--null-data", "--unbuffered", "--posix", "--sandbox":
		return true
	}
	return !strings.HasPrefix(text, "--") && strings.Trim(text[1:], "nErsuz") == ""
}

// sedOnlyEdits reports whether a script of sed has only commands that print,
// delete or change lines.
func sedOnlyEdits(script string) bool {
	s := sedScanner{rest: script}
	for s.rest != "" {
		if !s.command() {
			return false
		}
	}
	return true
}

// A sedScanner reads a script command by command.
type sedScanner struct{ rest string }

// command reads an address and a command. It is false if the command is not
// one of those that are harmless, or is not understood.
func (s *sedScanner) command() bool {
	s.rest = strings.TrimLeft(s.rest, " \t\n;")
	if s.rest == "" {
		return true
	}
	if !s.address() || s.rest == "" {
		return false
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	switch c {
	case '{', '}':
		return true
	case 'p', 'd', 'q', '=', 'P', 'D', 'n', 'N', 'g', 'G', 'h', 'H', 'x', 'l':
		return s.end("0123456789")
	case 's', 'y':
		if s.rest == "" {
			return false
		}
		delim := s.rest[0]
		s.rest = s.rest[1:]
		return delim != '\\' && delim != '\n' && s.until(delim) && s.until(delim) && s.end("gpiI0123456789")
	}
	return false
}

// address reads what stands in front of a command.
func (s *sedScanner) address() bool {
	for s.rest != "" {
		switch c := s.rest[0]; {
		case strings.IndexByte("0123456789$,~+! \t", c) >= 0:
			s.rest = s.rest[1:]
		case c == '/':
			s.rest = s.rest[1:]
			if !s.until('/') {
				return false
			}
			s.rest = strings.TrimLeft(s.rest, "IM")
		default:
			return true
		}
	}
	return true
}

// until reads on behind the next delimiter.
func (s *sedScanner) until(delim byte) bool {
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '\n':
			return false
		case delim:
			s.rest = s.rest[i+1:]
			return true
		}
	}
	return false
}

// end reads the flags of a command up to where the next one may begin.
func (s *sedScanner) end(flags string) bool {
	s.rest = strings.TrimLeft(s.rest, flags)
	s.rest = strings.TrimLeft(s.rest, " \t")
	return s.rest == "" || strings.IndexByte(";\n}", s.rest[0]) >= 0
}
