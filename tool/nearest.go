package tool

import (
	"strings"
	"unicode"
)

// nearest says what in body is like s, which is not in it, and so what the
// writer of s may have got wrong.
func nearest(body, s string) string {
	const searched = 1 << 20 // bytes; in more the search would take too long
	hint := ""
	if plain := withoutNumbers(s); plain != s && strings.Contains(body, plain) {
		hint = "; it has the line numbers of Read in it, leave them out"
	}
	wanted := strings.Split(strings.Trim(s, "\n"), "\n")
	first := strings.TrimSpace(wanted[0])
	if len(body) > searched || len(first) < 3 || len(first) > viewLineSize {
		return hint
	}
	lines := strings.Split(body, "\n")
	best, score := 0, 0.0
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if len(line) > viewLineSize {
			continue
		}
		if s := similarity(first, line); s > score {
			best, score = i, s
		}
	}
	if score < 0.6 {
		return hint
	}
	if hint == "" && strings.TrimSpace(lines[best]) == first {
		hint = "; compare white space and the lines that follow"
	}
	var out strings.Builder
	out.WriteString(hint + "; the nearest is:\n")
	const most = 8
	for i := best; i < min(best+min(len(wanted), most), len(lines)); i++ {
		out.WriteString(numbered(i+1, lines[i]))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// withoutNumbers is s without the line numbers that Read puts before lines.
func withoutNumbers(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		number, rest, found := strings.Cut(line, "\t")
		number = strings.TrimSpace(number)
		if found && number != "" && strings.TrimFunc(number, unicode.IsDigit) == "" {
			lines[i] = rest
		}
	}
	return strings.Join(lines, "\n")
}
