package config

import "strings"

// recoverFields reads front matter that is not YAML, line by line: a line
// that starts with a key that definitions have begins a field, and all that
// follows up to the next such line is its value. Colons, unindented examples
// and tabs in a description are text for it. A field of other text ends at any
// key. first is the line of lines[0] in its file.
func recoverFields(lines []string, first int) []field {
	lines = dedent(lines)
	var out []field
	unclosed := false // an example that is never closed holds nothing back
	for i := 0; i < len(lines); {
		key, rest, ok := keyLine(lines[i])
		if !ok {
			i++
			continue
		}
		end := i + 1
		for open := openExamples(rest); end < len(lines); end++ {
			if (open <= 0 || unclosed) && endsField(key, lines[end]) {
				break
			}
			open += openExamples(lines[end])
		}
		if end == len(lines) && !unclosed && openExamples(strings.Join(lines[i:end], "\n")) > 0 {
			unclosed = true
			continue
		}
		out = append(out, field{key: key, line: first + i, col: 1, value: recoverValue(key, lines[i:end], first+i)})
		i = end
	}
	return out
}

// endsField says whether the value of a field ends before line.
func endsField(key, line string) bool {
	if _, _, ok := keyLine(line); ok {
		return true
	}
	switch key {
	case "description", "initialPrompt":
		return false
	}
	word, _, ok := strings.Cut(line, ":")
	return ok && word != "" && !strings.ContainsAny(word, " \t-,(\"'#")
}

// openExamples counts the examples that s opens and does not close. A line
// in an example is no field, whatever it looks like.
func openExamples(s string) int {
	return strings.Count(s, "<example>") - strings.Count(s, "</example>")
}

// keyLine splits a line that starts with a key of definitions and a colon.
func keyLine(line string) (key, rest string, ok bool) {
	key, rest, ok = strings.Cut(line, ":")
	key = strings.TrimRight(key, " \t")
	if !ok || !isKey(key) {
		return "", "", false
	}
	return key, strings.TrimSpace(rest), true
}

// recoverValue reads the value of one field: as YAML if that is what it is by
// itself, as text otherwise.
func recoverValue(key string, lines []string, line int) node {
	for n := len(lines); n > 1 && strings.TrimSpace(lines[n-1]) == ""; n-- {
		lines = lines[:n-1]
	}
	if f, ok := strictFields(lines, line); ok && len(f) == 1 && f[0].key == key {
		return f[0].value
	}
	_, head, _ := keyLine(lines[0])
	rest := lines[1:]
	n := node{kind: isText, line: line, col: 1}
	switch {
	case strings.HasPrefix(head, "|"), strings.HasPrefix(head, ">"):
		n.text = strings.TrimSpace(strings.Join(dedent(rest), "\n"))
	case isListKey(key):
		n.text = strings.Join(listWords(head, rest), ", ")
	default:
		all := append([]string{head}, dedent(rest)...)
		n.text = unquote(strings.TrimSpace(strings.Join(all, "\n")))
	}
	return n
}

// listWords returns the entries of a list in any of the forms people write.
func listWords(head string, rest []string) []string {
	var out []string
	for _, l := range append([]string{strings.Trim(head, "[]")}, rest...) {
		l = strings.TrimSpace(l)
		l = strings.TrimSpace(strings.TrimPrefix(l, "-"))
		for _, w := range splitTools(strings.Trim(l, "[]")) {
			out = append(out, unquote(w))
		}
	}
	return out
}

// dedent takes the white space off that all lines but blank ones start with.
func dedent(lines []string) []string {
	common, found := "", false
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if !found {
			common, found = indent, true
		}
		for !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimPrefix(l, common)
		if strings.TrimSpace(l) == "" {
			out[i] = ""
		}
	}
	return out
}
