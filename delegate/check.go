package delegate

import (
	"fmt"
	"strings"
	"unicode"
)

// A Level is how much the check of a coordinator's prompts counts.
type Level string

// The levels of the check.
const (
	Off     Level = "off"     // prompts are not looked at
	Warn    Level = "warn"    // what is missing is told, and the agent starts
	Require Level = "require" // an agent whose prompt lacks something does not start
)

// ParseLevel returns the level with that name.
func ParseLevel(name string) (Level, error) {
	switch l := Level(name); l {
	case Off, Warn, Require:
		return l, nil
	}
	return "", fmt.Errorf("check of delegations: %q is no level; want off, warn or require", name)
}

// What a prompt may be missing.
const (
	HandedAway    = "understanding" // it has the agent understand what its author should have
	NoPlace       = "place"         // it does not say where
	NoDeliverable = "deliverable"   // it does not say what to hand back
	NoDoneWhen    = "done-when"     // it does not say how one sees that it is done
)

// A Missing is something that a prompt lacks. Quote are the words that show it,
// if there are any.
type Missing struct{ What, Quote string }

// String says what is missing, in one line, to whoever wrote the prompt.
func (m Missing) String() string {
	switch m.What {
	case HandedAway:
		return fmt.Sprintf("%q hands the understanding away: write down yourself what was found, where (path:line) and what is to be done about it", m.Quote)
	case NoPlace:
		return "no place: name the files, packages or symbols that it is about (path, path:line, `name`)"
	case NoDeliverable:
		return "no deliverable: say what the report has to hold (a commit's hash, a list of path:line, an answer to a question)"
	}
	return "no done-when: name the command, the test or the criterion that shows that it is done"
}

// Check returns what the prompt of a delegation lacks, most important first: a
// place, something to hand back, a way to see that it is done; and words that
// have the agent understand what the author should have. Work that only reads
// needs no done-when, and a question is enough to say what it hands back.
//
// It looks at words, so it can be wrong both ways. Words are those of English;
// of a prompt in another language only the place is required, and a question, a
// command or a second sentence. Paths, names and commands count in any. It takes
// some milliseconds for a kilobyte.
func Check(prompt string) []Missing {
	p := readPrompt(prompt)
	var out []Missing
	if p.english {
		if quote := p.handsAway(); quote != "" {
			out = append(out, Missing{HandedAway, quote})
		}
	}
	if !p.hasPlace() {
		out = append(out, Missing{What: NoPlace})
	}
	if !p.hasDeliverable() {
		out = append(out, Missing{What: NoDeliverable})
	}
	if !p.hasDoneWhen() {
		out = append(out, Missing{What: NoDoneWhen})
	}
	return out
}

// A promptText is a prompt taken apart.
type promptText struct {
	whole   string
	prose   string   // without what stands between backticks
	code    []string // that
	english bool
	reads   bool // the work changes nothing
	w       *promptWords
}

func readPrompt(text string) promptText {
	p := promptText{whole: strings.NewReplacer("’", "'", "*", "", "\r\n", "\n").Replace(text), w: promptPatterns()}
	p.prose, p.code = splitCode(p.whole)
	p.english = english(p.prose, p.w)
	p.reads = p.onlyReads()
	return p
}

// splitCode takes what stands between equal runs of backticks out of a text. In
// its place stands an ellipsis.
func splitCode(text string) (prose string, code []string) {
	type run struct{ at, end, next int }
	var runs []run
	for i := 0; i < len(text); i++ {
		if text[i] != '`' {
			continue
		}
		r := run{at: i, next: -1}
		for i < len(text) && text[i] == '`' {
			i++
		}
		r.end = i
		runs = append(runs, r)
	}
	later := map[int]int{} // by length, the nearest run after this one
	for i := len(runs) - 1; i >= 0; i-- {
		n := runs[i].end - runs[i].at
		if next, ok := later[n]; ok {
			runs[i].next = next
		}
		later[n] = i
	}
	var b strings.Builder
	done := 0
	for i := 0; i < len(runs); i++ {
		r := runs[i]
		if r.next < 0 || r.end-r.at < 3 && strings.Contains(text[r.end:runs[r.next].at], "\n\n") {
			continue
		}
		code = append(code, strings.TrimSpace(text[r.end:runs[r.next].at]))
		b.WriteString(text[done:r.at] + "…")
		done, i = runs[r.next].end, r.next
	}
	b.WriteString(text[done:])
	return b.String(), code
}

// english reports whether a text can be judged by its words: it has words of
// English, and no more that are of another language.
func english(prose string, w *promptWords) bool {
	ours, others := 0, 0
	for word := range strings.FieldsFuncSeq(strings.ToLower(prose), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		switch {
		case w.foreign[word], strings.ContainsFunc(word, func(r rune) bool { return r > unicode.MaxASCII }):
			others++
		case w.english[word]:
			ours++
		}
	}
	return strings.TrimSpace(prose) == "" || ours > 0 && ours >= others
}

// onlyReads reports whether the work is research or a verification.
func (p promptText) onlyReads() bool {
	if !p.english {
		return false
	}
	if m := p.w.readOnly.FindStringIndex(p.prose); m != nil && !p.w.except.MatchString(p.prose[m[1]:min(m[1]+20, len(p.prose))]) {
		return true
	}
	for _, m := range p.w.changes.FindAllStringSubmatchIndex(p.prose, -1) {
		if !p.w.noChange.MatchString(p.prose[m[2]:]) {
			return false
		}
	}
	return p.w.research.MatchString(p.prose) || strings.Contains(p.prose, "?")
}

// handsAway returns the first phrase that has the agent understand what its
// author should have; "" if there is none. What is quoted is not meant, and what
// is forbidden neither.
func (p promptText) handsAway() string {
	flat := strings.Join(strings.Fields(p.w.quoted.ReplaceAllString(p.prose, " … ")), " ")
	first, at := "", len(flat)
	for _, phrase := range p.w.handAway {
		for _, m := range phrase.FindAllStringIndex(flat, -1) {
			if m[0] < at && !p.w.negated.MatchString(flat[max(0, m[0]-40):m[0]]) {
				first, at = flat[m[0]:m[1]], m[0]
			}
		}
	}
	return first
}

// hasPlace reports whether the prompt says where. A question that asks for the
// place is one.
func (p promptText) hasPlace() bool {
	for _, re := range p.w.places {
		for _, m := range re.FindAllStringSubmatch(p.prose, -1) {
			if len(m) < 2 || !p.w.noPlace[strings.ToLower(m[1])] {
				return true
			}
		}
	}
	for _, c := range p.code {
		if p.w.path.MatchString(c) {
			return true
		}
		if len(c) >= 3 && len(c) <= 60 && !p.w.command.MatchString(c) && strings.ContainsFunc(c, unicode.IsLetter) && !p.w.noPlace[c] {
			return true
		}
	}
	if !p.english {
		return strings.ContainsAny(p.prose, "?？؟")
	}
	return p.reads && (p.w.asksWhere.MatchString(p.prose) || p.w.everywhere.MatchString(p.prose))
}

func (p promptText) hasDeliverable() bool {
	if !p.english {
		return p.saysMore()
	}
	if p.reads && (strings.Contains(p.prose, "?") || p.w.question.MatchString(p.prose)) {
		return true
	}
	for _, m := range p.w.reports.FindAllStringIndex(p.prose, -1) {
		rest, _, _ := strings.Cut(p.prose[m[1]:], "\n")
		if !p.w.saysNothing.MatchString(rest) {
			return true
		}
	}
	for _, re := range p.w.deliverables {
		if re.MatchString(p.prose) {
			return true
		}
	}
	return false
}

func (p promptText) hasDoneWhen() bool {
	if p.reads {
		return true
	}
	for _, c := range p.code {
		if p.w.command.MatchString(c) && !p.w.onlyLooks.MatchString(c) {
			return true
		}
	}
	if p.w.bareCommand.MatchString(p.prose) {
		return true
	}
	if !p.english {
		return p.saysMore()
	}
	for _, m := range p.w.doneWhen.FindAllStringSubmatch(p.prose, -1) {
		if !p.w.vacuous.MatchString(m[1]) {
			return true
		}
	}
	for _, re := range p.w.criteria {
		if re.MatchString(p.prose) {
			return true
		}
	}
	return false
}

// saysMore reports whether a prompt whose words are not known says more than
// what is to be done: it asks, or has a command, or a second sentence.
func (p promptText) saysMore() bool {
	if strings.ContainsAny(p.prose, "?？؟") || len(p.code) > 1 || p.w.bareCommand.MatchString(p.prose) {
		return true
	}
	sentences := 0
	for s := range strings.FieldsFuncSeq(p.prose, func(r rune) bool { return strings.ContainsRune(".。!！;；:：\n,，、", r) }) {
		if len(strings.TrimSpace(s)) > 5 {
			sentences++
		}
	}
	return sentences > 1
}
