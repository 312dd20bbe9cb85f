package permission

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A shellJudge judges the command line of one call.
type shellJudge struct {
	policy Policy
	scope  *scope
	// dirs are the directories that a relative path may start from: a command
	// line can change its own. none says that this is not known.
	dirs []string
	none bool
	// guarded says that rules deny or ask about some commands or files, so
	// that what is not known could be one of them.
	guarded bool
	// left is the number of bytes of command lines that may still be looked
	// into: one that quotes itself again and again must not keep us busy.
	left *int
}

// maxWords is the number of words of a launcher that are searched for the
// command that it runs.
const maxWords = 100

// maxNesting is the depth of sh -c inside of sh -c that is looked into.
const maxNesting = 5

// judgeShell judges a command line.
func (p Policy) judgeShell(text string, place troupe.Place) finding {
	s, err := newScope(place, p.Rules)
	if err != nil {
		return deny(bySafety, err.Error())
	}
	left := 8 * maxScript
	j := shellJudge{policy: p, scope: s, dirs: []string{s.dir.named}, left: &left}
	if s.dir.real != s.dir.named {
		j.dirs = append(j.dirs, s.dir.real)
	}
	j.guarded = slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return r.effect != troupe.Allow && (r.names(toolBash) || r.names(toolRead) || r.names(toolEdit))
	})
	f := j.script(text, 0)
	if f.effect != troupe.Ask || f.firm {
		return f
	}
	whole := func(r Rule) bool { return r.spec == "" || r.isExact() && r.spec == strings.TrimSpace(text) }
	if r, ok := p.first(troupe.Allow, toolBash, whole); ok {
		return finding{effect: troupe.Allow, by: byRule, reason: r.cited(), reads: f.reads}
	}
	return p.confined(text, f)
}

// isExact reports whether r is for one command, letter by letter.
func (r Rule) isExact() bool { return r.spec != "" && !strings.Contains(r.spec, "*") }

// script judges all that a command line may do.
func (j shellJudge) script(text string, depth int) finding {
	f := reading(bySafety, "the command only reads in the working directories")
	if *j.left -= len(text); depth > maxNesting || *j.left < 0 {
		return j.unclear("it is too involved")
	}
	s := parseScript(text, j.policy.Home)
	if s.unclear != "" {
		f = worse(f, j.unclear(s.unclear))
	}
	if s.sets != "" {
		f = worse(f, ask(bySafety, "it sets the variable "+s.sets+", which can change what programs do"))
	}
	j.follow(s.commands)
	for _, c := range s.commands {
		f = worse(f, j.command(c, depth))
	}
	for _, r := range s.redirects {
		f = worse(f, j.redirect(r))
	}
	return f
}

// unclear is the finding about what cannot be known before the command runs.
func (j shellJudge) unclear(why string) finding {
	f := ask(bySafety, why+", so it cannot be told before what it does; write it plainly, or allow this very command line")
	f.firm = j.guarded
	f.beyond = j.policy.Sandbox != nil && !j.policy.Sandbox.NoNetwork
	return f
}

// follow finds out which directories the commands change to.
func (j *shellJudge) follow(commands []command) {
	j.dirs = slices.Clone(j.dirs)
	const limit = 32
	for _, c := range commands {
		words := unwrap(c.words).run()
		switch programName(words[0].text) {
		case "cd":
		case "pushd", "popd", "chdir":
			j.none = true
			continue
		default:
			continue
		}
		if len(words) != 2 || !words[1].known() || strings.HasPrefix(words[1].text, "-") ||
			c.repeats && !filepath.IsAbs(words[1].text) || len(j.dirs) > limit {
			j.none = true
			continue
		}
		for _, dir := range slices.Clone(j.dirs) {
			t, err := j.scope.target(absolute(dir, words[1].text))
			if err != nil {
				j.none = true
				continue
			}
			for _, to := range []string{t.named, t.real} {
				if !slices.Contains(j.dirs, to) {
					j.dirs = append(j.dirs, to)
				}
			}
		}
	}
}

// command judges a simple command.
func (j shellJudge) command(c command, depth int) finding {
	u := unwrap(c.words)
	f, hit := j.restricted(c, u, depth)
	if hit && f.effect == troupe.Deny {
		return f
	}
	permitted := j.outside(u, j.permitted(c, u, depth))
	if hit {
		f.reads = permitted.reads
		permitted = worse(permitted, f)
	}
	if g, hit := j.files(u.run()); hit {
		g.reads = permitted.reads
		permitted = worse(permitted, g)
	}
	return permitted
}

// restricted returns what deny and ask rules say about a command, with and
// without its wrappers, and about what it could turn out to be.
func (j shellJudge) restricted(c command, u unwrapped, depth int) (finding, bool) {
	if !j.guarded {
		return finding{}, false
	}
	forms := u.chain
	name := programName(u.run()[0].text)
	launches := isLauncher(name) || u.opaque != ""
	if launches && len(u.run()) > maxWords {
		return j.unclear("it is too long to be searched for what " + name + " runs"), true
	}
	if launches {
		for i := launchStart(u.run()); i < len(u.run()); i++ {
			forms = append(forms, u.run()[i:])
		}
	}
	var f finding
	for _, effect := range []troupe.Effect{troupe.Deny, troupe.Ask} {
		for _, words := range forms {
			if g, hit := j.matches(effect, c.source, words); hit {
				f = worse(f.orAllow(), g)
			}
		}
	}
	if u.nested {
		f = worse(f.orAllow(), j.script(u.script, depth+1))
	}
	if u.opaque != "" && isShell(name) {
		f = worse(f.orAllow(), j.unclear(u.opaque))
	}
	if launches {
		f = worse(f.orAllow(), j.launched(name, u.run()[1:], depth))
	}
	return f, f.effect == troupe.Deny || f.firm
}

// orAllow is f, or a finding that stands in nobody's way if f is none.
func (f finding) orAllow() finding {
	if f.effect == "" {
		return finding{effect: troupe.Allow}
	}
	return f
}

// launched returns what rules forbid about the text that a launcher is given
// to run: eval, ssh and their like take a command line in one word or several.
func (j shellJudge) launched(name string, args []word, depth int) finding {
	f := finding{effect: troupe.Allow}
	for _, w := range args {
		if !w.known() {
			f = worse(f, j.unclear("what "+name+" is told to run is not known before"))
			continue
		}
		if strings.ContainsAny(w.text, " \t\n;&|`$") {
			f = worse(f, j.script(w.text, depth+1).forbidden())
		}
	}
	if name == "eval" || name == "trap" {
		f = worse(f, j.script(joinTexts(args), depth+1).forbidden())
	}
	return f
}

// forbidden is f if a rule forbids, else a finding that allows.
func (f finding) forbidden() finding {
	if f.effect == troupe.Deny || f.effect == troupe.Ask && f.firm && f.by == byRule {
		return f
	}
	return finding{effect: troupe.Allow}
}

// matches returns what the rules with an effect, Deny or Ask, say about the
// words of a command.
func (j shellJudge) matches(effect troupe.Effect, source string, words []word) (finding, bool) {
	texts, may := namings(words), []string(nil)
	if source != "" {
		texts = append(texts, source)
	}
	if slices.ContainsFunc(words, func(w word) bool { return !w.known() }) {
		for _, t := range namings(words) {
			may = append(may, absorb(t))
		}
	}
	for _, r := range j.policy.Rules {
		if r.effect != effect || !r.names(toolBash) || r.spec == "" {
			continue
		}
		if slices.ContainsFunc(texts, func(t string) bool { return commandPattern(r.spec, t) }) {
			if effect == troupe.Deny {
				return deny(byRule, r.cited()), true
			}
			return firmAsk(byRule, r.cited()), true
		}
		if slices.ContainsFunc(may, func(t string) bool { return mayBecome(r.spec, t) }) {
			return firmAsk(bySafety, "it could turn out to be what the "+r.cited()+" is about; write it without variables"), true
		}
	}
	return finding{}, false
}

// namings returns the texts of a command that rules may be meant for: with the
// program as it is named and as it is called without its directory, and with
// quotes around the words that need them.
func namings(words []word) []string {
	name := words[0].text
	names := []string{name}
	for _, n := range []string{name[strings.LastIndexByte(name, '/')+1:], programName(name)} {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(words) == 1 {
		return names
	}
	plain, quoted := joinTexts(words[1:]), quoteWords(words[1:])
	var out []string
	for _, n := range names {
		out = append(out, n+" "+plain)
		if quoted != plain {
			out = append(out, n+" "+quoted)
		}
	}
	return out
}

func joinTexts(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// quoteWords joins words so that it is seen where one begins.
func quoteWords(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
		if w.text == "" || strings.ContainsAny(w.text, " \t\n'\"\\") {
			texts[i] = "'" + strings.ReplaceAll(w.text, "'", `'\''`) + "'"
		}
	}
	return strings.Join(texts, " ")
}

// absorb lets what is not known swallow the spaces around it, as it may be
// no word at all.
func absorb(text string) string {
	text = strings.ReplaceAll(text, " "+string(anything), string(anything))
	return strings.ReplaceAll(text, string(anything)+" ", string(anything))
}

// permitted returns whether a command may run by an allow rule or because it
// only reads. Deny and ask rules have been looked at.
func (j shellJudge) permitted(c command, u unwrapped, depth int) finding {
	words := u.run()
	for _, a := range slices.Concat(c.assigns, u.assigns) {
		if !safeAssign(a) {
			return ask(bySafety, fmt.Sprintf("it sets the variable %s, which can change what a program does; add --allowed-tools %s", a.name, suggest(c)))
		}
	}
	if r, ok := j.allowing(c, u.chain[0], Rule.isExact); ok {
		return allow(byRule, r.cited())
	}
	switch {
	case u.opaque != "":
		return ask(bySafety, u.opaque+"; allow this very command line with --allowed-tools "+suggest(c))
	case u.nested:
		return j.script(u.script, depth+1)
	case !words[0].known():
		return j.unclear("the name of a program is not known before the command runs")
	}
	name := words[0].text
	if namesOnlyItself(name) || isWrapperOf(name) && !isShell(name) {
		if f, ok := j.readOnly(words); ok {
			return f
		}
		return ask(bySafety, fmt.Sprintf("%s needs a rule for this very command: add --allowed-tools %s", name, quoteRule("Bash("+c.source+")")))
	}
	words, _ = j.expand(words)
	if why := j.hazard(words); why != "" {
		return ask(bySafety, fmt.Sprintf("%s; allow this very command with --allowed-tools %s", why, quoteRule("Bash("+c.source+")")))
	}
	if r, ok := j.allowing(c, u.run(), func(Rule) bool { return true }); ok {
		f := allow(byRule, r.cited())
		if g, ok := j.readOnly(words); ok && g.effect == troupe.Allow {
			f.reads = g.reads
		}
		return f
	}
	if f, ok := j.readOnly(words); ok {
		return f
	}
	return ask(byMode, fmt.Sprintf("%s needs approval; add --allowed-tools %s", quoteRule(c.source), suggest(c)))
}

// allowing returns an allow rule that covers the words of a command. A word
// with spaces counts as quoted, so that it is not taken for several.
func (j shellJudge) allowing(c command, words []word, selected func(Rule) bool) (Rule, bool) {
	text := quoteWords(words)
	return j.policy.first(troupe.Allow, toolBash, func(r Rule) bool {
		if r.spec == "" || !selected(r) {
			return false
		}
		return commandPattern(r.spec, text) || r.isExact() && r.spec == c.source
	})
}

// suggest returns the rule that would allow commands of the kind of c.
func suggest(c command) string {
	words := unwrap(c.words).run()
	name := words[0].text
	if !words[0].known() || namesOnlyItself(name) || len(c.assigns) > 0 {
		return quoteRule("Bash(" + c.source + ")")
	}
	if len(words) > 1 && words[1].known() && strings.Trim(words[1].text, "abcdefghijklmnopqrstuvwxyz-") == "" && !strings.HasPrefix(words[1].text, "-") {
		name += " " + words[1].text
	}
	return quoteRule("Bash(" + name + " *)")
}
