package delegate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A Command is a command that an agent has run: its text as it was given to the
// shell, what it printed, and whether it ended with an error.
type Command struct {
	Text, Output string
	Failed       bool
}

// Proven reports whether a verdict rests on commands that were run, given those
// that were, in the order of their ends; if not, reason says in a line why.
//
// A verdict has a line "Verdict: PASS", FAIL or PARTIAL, and at least one pair
// of "Command:" and "Output:". Each command must be among ran and each line of
// its output must be one that its last run printed, up to white space; a part of
// a line stands beside an ellipsis. One of the lines must be more than a word
// such as "ok", unless the command printed only that; of one that printed
// nothing the verdict must say so. PASS needs a command that succeeded and that
// can fail: not echo, and none with "|| true" behind it.
func Proven(verdict string, ran []Command) (proven bool, reason string) {
	v := parseVerdict(verdict)
	switch {
	case len(v.words) == 0:
		return false, "there is no line \"Verdict: PASS\" or \"Verdict: FAIL\""
	case len(slices.Compact(v.words)) > 1:
		return false, "it gives more than one verdict"
	case len(v.proofs) == 0:
		return false, "it names no command that was run"
	}
	weak := ""
	for _, p := range v.proofs {
		why, fault := p.check(ran, v.words[0] == "PASS")
		if fault {
			return false, why
		}
		if why == "" {
			proven = true
		} else if weak == "" {
			weak = why
		}
	}
	if proven {
		return true, ""
	}
	return false, weak
}

// A proof is a command and its output as a verdict tells them.
type proof struct {
	command string
	output  []string // its lines
	said    bool     // that there is an output
}

// check returns why a proof does not carry a verdict; fault says that it is not
// true, so that nothing else in the verdict counts.
func (p proof) check(ran []Command, pass bool) (why string, fault bool) {
	text := oneSpace(p.command)
	i := len(ran) - 1
	for i >= 0 && (text == "" || oneSpace(ran[i].Text) != text) {
		i--
	}
	name := quoteShort(text)
	if i < 0 {
		return "the command " + name + " was not run", true
	}
	if !p.said {
		return "the output of " + name + " is not shown", true
	}
	if why := p.compare(ran[i].Output); why != "" {
		return "of " + name + ": " + why, true
	}
	switch {
	case pass && ran[i].Failed:
		return name + " failed when it ran last", false
	case pass && proofWords().cannotFail.MatchString(text):
		return name + " cannot fail, so it proves nothing", false
	}
	return "", false
}

// compare returns why the output that is told is not what was printed.
func (p proof) compare(printed string) string {
	want := printedLines(printed)
	var told []string
	for _, line := range p.output {
		if line = plainLine(line); line != "" {
			told = append(told, line)
		}
	}
	none := len(told) == 1 && proofWords().nothing.MatchString(told[0])
	switch {
	case len(want) == 0 && none, slices.Equal(told, want) && len(want) > 0:
		return ""
	case len(want) == 0:
		return "it printed nothing, and the verdict does not say so"
	case none:
		return "the verdict says that it printed nothing, and it did"
	}
	there := make(map[string]bool, len(want))
	for _, line := range want {
		there[line] = true
	}
	whole, parts, telling := strings.Join(want, "\n"), 0, false
	for _, line := range told {
		inner, cut := cutEllipsis(line)
		switch {
		case there[line]:
			telling = telling || tells(line)
		case proofWords().remark.MatchString(line):
		case cut && parts < 100 && strings.Contains(whole, inner):
			parts++
			telling = telling || tells(inner)
		default:
			return "it did not print " + quoteShort(line)
		}
	}
	if !telling {
		return "no line of what it printed is shown that tells something"
	}
	return ""
}

// tells reports whether a line could not as well have come from anything.
func tells(line string) bool {
	n := 0
	for _, r := range line {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n >= 6 && !proofWords().anything.MatchString(line)
}

// cutEllipsis takes the ellipses off the ends of a line that is told in part.
func cutEllipsis(line string) (inner string, cut bool) {
	inner = line
	for _, dots := range []string{"[...]", "[…]", "...", "…"} {
		inner = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inner, dots), dots))
	}
	return inner, inner != line
}

func printedLines(text string) (out []string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "\n")) {
		if line = plainLine(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// plainLine is a line without colours and with single spaces.
func plainLine(line string) string {
	if strings.Contains(line, "\x1b") {
		line = proofWords().colour.ReplaceAllString(line, "")
	}
	return oneSpace(line)
}

func oneSpace(text string) string { return strings.Join(strings.Fields(text), " ") }

func quoteShort(text string) string {
	if r := []rune(text); len(r) > 80 {
		text = string(r[:80]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

type proofPatterns struct {
	label, fence, goesOn, word, nothing, remark, anything, cannotFail, colour *regexp.Regexp
}

var proofWords = sync.OnceValue(func() *proofPatterns {
	re := regexp.MustCompile
	return &proofPatterns{
		label:      re(`(?i)^\s*(?:[-*#>]+\s+|\d+[.)]\s+)?[*_]*(verdict|command|output)[*_]*\s*:[*_]*\s*(.*)$`),
		fence:      re("^\\s*(?:[-*] )?(```+|~~~+)[^`]*$"),
		goesOn:     re(`(?:\\|&&|\|)\s*$`),
		word:       re(`(?i)^\W*(pass|fail|partial)\b`),
		nothing:    re(`(?i)^\W*(?:(?:it )?(?:prints?|printed) nothing|no output|nothing|none|empty)\b[^:]{0,60}$`),
		remark:     re(`^[(\[].*[)\]]$`),
		anything:   re(`(?i)^\W*(?:all )?(?:tests? )?(?:ok|pass|passed|success|successful|succeeded|done|fail|failed|failure|error|errors|finished|complete|completed)\W*$`),
		cannotFail: re(`^(?:echo|printf|true|:)\b[^|;&$` + "`" + `]*$|^:$|(?:\|\||;)\s*(?:true|:|exit 0|echo [^|;&]*)$`),
		colour:     re(`\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)`),
	}
})

// A verdictText is a verdict taken apart.
type verdictText struct {
	words  []string // of its verdict lines, in capitals
	proofs []proof
}

// parseVerdict reads the labelled lines of a verdict. The value of a label is
// what stands behind it, or the fenced block or the paragraph that follows.
func parseVerdict(text string) verdictText {
	var v verdictText
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		m := proofWords().label.FindStringSubmatch(lines[i])
		if m == nil {
			_, i = fenced(lines, i+1, lines[i])
			continue
		}
		value, next := valueOf(lines, i+1, m[2], strings.EqualFold(m[1], "command"))
		switch strings.ToLower(m[1]) {
		case "verdict":
			next = i + 1
			if w := proofWords().word.FindStringSubmatch(m[2]); w != nil {
				v.words = append(v.words, strings.ToUpper(w[1]))
			}
		case "command":
			v.proofs = append(v.proofs, proof{command: bareCommand(value)})
		case "output":
			if n := len(v.proofs); n > 0 && !v.proofs[n-1].said {
				v.proofs[n-1].output, v.proofs[n-1].said = value, len(value) > 0
			}
		}
		i = next
	}
	return v
}

// valueOf returns the value of a label that has inline behind it, and where to go
// on; i is the line after it. Of a command on the line of its label nothing
// follows unless it says so.
func valueOf(lines []string, i int, inline string, command bool) (value []string, next int) {
	if isFence(inline) {
		return fenced(lines, i, inline)
	}
	if inline = strings.TrimSpace(inline); inline != "" {
		value = append(value, inline)
	}
	for value == nil && i < len(lines) && strings.TrimSpace(lines[i]) == "" {
		i++
	}
	if value == nil && i < len(lines) && isFence(lines[i]) {
		return fenced(lines, i+1, lines[i])
	}
	goesOn := func() bool {
		return !command || value == nil || proofWords().goesOn.MatchString(value[len(value)-1])
	}
	for i < len(lines) && strings.TrimSpace(lines[i]) != "" && !isFence(lines[i]) && !proofWords().label.MatchString(lines[i]) && goesOn() {
		value = append(value, lines[i])
		i++
	}
	return value, i
}

func isFence(line string) bool { return proofWords().fence.MatchString(line) }

// fenced returns the block from line i on that opener opens, and the line after
// its end; nothing and i if opener opens none. A block without an end goes on to
// the last line.
func fenced(lines []string, i int, opener string) (block []string, next int) {
	m := proofWords().fence.FindStringSubmatch(opener)
	if m == nil {
		return nil, i
	}
	for next = i; next < len(lines); next++ {
		line := strings.TrimSpace(lines[next])
		if strings.HasPrefix(line, m[1]) && strings.Trim(line, m[1][:1]) == "" {
			return lines[i:next], next + 1
		}
	}
	return lines[i:], next
}

// bareCommand is a command without the prompt and the backticks around it.
func bareCommand(lines []string) string {
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	if n := len(text); n > 1 && text[0] == '`' && text[n-1] == '`' && strings.Count(text, "`") == 2 {
		text = strings.TrimSpace(text[1 : n-1])
	}
	return strings.TrimPrefix(text, "$ ")
}
