package permission

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A reader is a program that only reads, as long as it is not given some of
// its options.
type reader struct {
	noFiles bool     // its arguments name no files
	skip    int      // operands in front that are not files
	unless  string   // short options in whose presence nothing is skipped
	most    int      // operands that it reads; what comes behind, it writes. 0 is no limit
	short   string   // options that it must not have
	long    []string // the same; they can be shortened
	valued  string   // short options whose value is not a file
}

// readerOf returns what is known of a program that only reads.
func readerOf(name string) (reader, bool) {
	switch name {
	case "true", "false", ":", "pwd", "echo", "which", "basename", "dirname", "tr", "exit", "return", "break", "continue", "sleep":
		return reader{noFiles: true}, true
	case "ls", "stat", "realpath", "df":
		return reader{}, true
	case "cat":
		return reader{}, true
	case "head", "tail":
		return reader{valued: "nc"}, true
	case "wc":
		return reader{long: []string{"--files0-from"}}, true
	case "du":
		return reader{long: []string{"--files0-from", "--exclude-from"}, short: "X"}, true
	case "grep":
		return reader{skip: 1, unless: "ef", valued: "ABCmed"}, true
	case "rg":
		return reader{skip: 1, unless: "ef", short: "z", long: []string{"--pre", "--hostname-bin", "--search-zip"}, valued: "ABCmegtTj"}, true
	case "jq":
		return reader{skip: 1, unless: "f", short: "L", long: []string{"--library-path"}}, true
	case "diff":
		return reader{short: "l", long: []string{"--paginate"}, valued: "UC"}, true
	case "cut":
		return reader{valued: "dcfb"}, true
	case "sort":
		return reader{short: "oT", long: []string{"--output", "--compress-program", "--files0-from", "--temporary-directory", "--random-source"}, valued: "tkS"}, true
	case "uniq":
		return reader{most: 1, valued: "fsw"}, true
	case "file":
		return reader{short: "CmfMzZ", long: []string{"--compile", "--magic-file", "--files-from", "--uncompress", "--uncompress-noreport"}}, true
	case "date":
		return reader{noFiles: true, short: "sf", long: []string{"--set", "--file"}}, true
	case "test", "[":
		return reader{}, true
	case "sed":
		return reader{skip: 1, unless: "ef"}, true
	}
	return reader{}, false
}

// refuses reports whether a word is an option that r must not have.
func (r reader) refuses(text string) bool {
	if strings.HasPrefix(text, "--") {
		return longOption(text, r.long...)
	}
	return shortOption(text, r.short, r.valued)
}

// longOption reports whether text is one of the long options, which may be
// shortened and may have a value.
func longOption(text string, options ...string) bool {
	name, _, _ := strings.Cut(text, "=")
	return len(name) > 2 && slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, name) })
}

// shortOption reports whether text has one of the short options. What follows
// one with a value is not an option.
func shortOption(text, options, valued string) bool {
	if len(text) < 2 || text[0] != '-' || text[1] == '-' {
		return false
	}
	for _, c := range text[1:] {
		if strings.ContainsRune(options, c) {
			return true
		}
		if strings.ContainsRune(valued, c) {
			return false
		}
	}
	return false
}

// readOnly judges a command as one that only reads. It is not ok if the
// command can do more; then it needs a rule.
func (j shellJudge) readOnly(words []word) (f finding, ok bool) {
	words, known := j.expand(words)
	name := words[0].text
	switch name {
	case "cd":
		return j.changesDir(words)
	case "git", "go", "find", "sed", "command", "printf":
		if !known || !readsOnly(words) {
			return finding{}, false
		}
		if name == "git" && j.policy.Untrusted && gitCompares(words[1:]) && steered(j.scope.dir.real) {
			return ask(bySafety, "the configuration of this repository, which is not trusted, can make git run programs; look at it and run `troupe trust`"), true
		}
		if name == "printf" || name == "command" || name == "go" {
			return reading(bySafety, name+" only prints"), true
		}
		return j.readsFiles(operands(words))
	}
	r, is := readerOf(name)
	if !is {
		return finding{}, false
	}
	options := true // until --
	count := 0
	for i, w := range words[1:] {
		switch {
		case !w.known() && (!r.noFiles || r.short != "" || w.glob != ""):
			return unknownWord(name), true
		case options && w.text == "--":
			options = false
		case options && r.refuses(w.text), name == "date" && dateSets(words, i+1), (name == "test" || name == "[") && testsVariable(w.text),
			name == "jq" && jqReachesOut(w.text):
			return ask(bySafety, fmt.Sprintf("%s with %s can do more than read; add --allowed-tools %s", name, quoteRule(w.text), quoteRule("Bash("+quoteWords(words)+")"))), true
		case w.text == "" || w.text[0] != '-' || w.text == "-" || !options:
			count++
		}
	}
	if r.most > 0 && count > r.most {
		return finding{}, false
	}
	if r.noFiles {
		return reading(bySafety, name+" only prints"), true
	}
	if g, found := j.recursion(words); found {
		return g, true
	}
	return j.readsFiles(operands(words))
}

func unknownWord(name string) finding {
	f := ask(bySafety, "a variable or substitution stands where "+name+" takes a file or an option; write out what it is")
	f.reads = true
	return f
}

// testsVariable reports whether an operator of test looks into a variable by
// its name: such a name can run commands.
func testsVariable(op string) bool { return op == "-v" || op == "-R" || op == "-N" }

// dateSets reports whether the i-th word makes date set the clock: any
// operand that is not a format, and not the value of an option.
func dateSets(words []word, i int) bool {
	text := words[i].text
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		return false
	}
	before := words[i-1].text
	return before != "-d" && before != "--date" && before != "-r" && before != "--reference"
}

// changesDir judges cd: inside of the working directories it is free.
func (j shellJudge) changesDir(words []word) (finding, bool) {
	if len(words) != 2 || !words[1].known() || strings.HasPrefix(words[1].text, "-") || words[1].text == "" {
		return finding{}, false
	}
	return j.readsFiles(words[1:])
}

// elsewhere reports whether the command line leaves the directory of the agent.
func (j shellJudge) elsewhere() bool {
	return j.none || slices.ContainsFunc(j.dirs, func(d string) bool { return d != j.scope.dir.named && d != j.scope.dir.real })
}

// readsFiles judges the reading of all files that words name.
func (j shellJudge) readsFiles(words []word) (finding, bool) {
	f := reading(byPlace, "it reads in the working directories")
	for _, w := range words {
		for _, name := range namedFiles(w.text) {
			f = worse(f, j.eachTarget(name, func(t target) finding { return j.policy.read(j.scope, t, toolRead) }))
		}
	}
	return f, true
}

// eachTarget judges a file by all paths that it may turn out to have.
func (j shellJudge) eachTarget(name string, judge func(target) finding) finding {
	f := finding{effect: troupe.Allow, by: byPlace, reads: true}
	if isDevice(name) || len(name) > maxPath/2 { // no file has such a name
		return f
	}
	if j.none && !filepath.IsAbs(name) {
		return j.unclear("it changes to a directory that is not known before")
	}
	for _, dir := range j.dirs {
		t, err := j.scope.target(absolute(dir, name))
		if err != nil {
			f = worse(f, firmAsk(bySafety, err.Error()))
			continue
		}
		f = worse(f, judge(t))
	}
	return f
}

// isDevice reports whether a path is one that anybody may use.
func isDevice(name string) bool {
	switch name {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero":
		return true
	}
	fd, ok := strings.CutPrefix(name, "/dev/fd/")
	return ok && descriptor(fd)
}

// operands returns the words of a command that can name files: options are
// among them, as their values can.
func operands(words []word) []word {
	r, ok := readerOf(words[0].text)
	if ok && r.noFiles {
		return nil
	}
	skip := r.skip
	for _, w := range words[1:] {
		if shortOption(w.text, r.unless, "") || r.unless != "" && longOption(w.text, "--regexp", "--file", "--files", "--from-file") {
			skip = 0
		}
	}
	var out []word
	for _, w := range words[1:] {
		isOption := strings.HasPrefix(w.text, "-") && w.text != "-"
		if isOption && len(w.text) > 1 && strings.IndexByte(r.valued, w.text[1]) >= 0 {
			continue // an option with its value; a value of its own word counts as a file
		}
		if !isOption && skip > 0 && w.known() {
			skip--
			continue
		}
		out = append(out, w)
	}
	return out
}

// namedFiles returns the paths that a word may name: itself, what follows = or
// : or @ in it, and what is joined to a short option.
func namedFiles(text string) []string {
	if text == "" || text == "-" {
		return nil
	}
	var out []string
	if text[0] != '-' {
		out = append(out, text)
	}
	const most = 16 // of such parts; nobody writes more, and the last one counts
	if i := strings.LastIndexAny(text, "=:@"); i >= 0 && i+1 < len(text) {
		out = append(out, text[i+1:])
	}
	for i, c := range text {
		if len(out) == most {
			break
		}
		if rest := text[i+len(string(c)):]; (c == '=' || c == ':' || c == '@') && rest != "" {
			out = append(out, rest)
		}
	}
	if text[0] == '-' && len(text) > 2 && text[1] != '-' {
		out = append(out, text[2:])
		if long := 64; len(text) > long {
			out = append(out, "/") // nobody writes such an option
		} else if strings.Contains(text, "/") || strings.Contains(text, "..") {
			for i := 3; i < len(text); i++ {
				out = append(out, text[i:])
			}
		}
	}
	return out
}

// maxListed is the number of files that a glob may stand for.
const maxListed = 1000

// expand replaces globs by the files they stand for. It reports whether all
// words are known then.
func (j shellJudge) expand(words []word) (out []word, known bool) {
	known = true
	for i, w := range words {
		listed, ok := j.listed(w)
		if ok && i > 0 {
			out = append(out, listed...)
			continue
		}
		known = known && w.known()
		out = append(out, w)
	}
	return out, known
}

// listed returns the files that a glob stands for, or the glob as it is if it
// stands for none, as bash has it. It is not ok if that cannot be told.
func (j shellJudge) listed(w word) ([]word, bool) {
	if w.glob == "" || strings.Count(w.text, "/") > 8 || wildParts(w.text) > 2 || j.none || len(j.dirs) > 2 || j.elsewhere() {
		return nil, false
	}
	const cost = 4 << 10 // what listing a directory takes off the bytes that are left
	if *j.left -= cost; *j.left < 0 {
		return nil, false
	}
	// The directory is listed only if it may be read: what it holds is not to
	// be found out by asking.
	fixed := w.text[:strings.IndexByte(w.text, anything)]
	at := fixed[:strings.LastIndexByte(fixed, '/')+1]
	t, err := j.scope.target(absolute(j.scope.dir.named, at))
	if err != nil || !j.scope.holds(t) {
		return nil, false
	}
	prefix := ""
	if !filepath.IsAbs(w.glob) {
		prefix = escapeGlob(j.scope.dir.named) + string(filepath.Separator)
	}
	names, err := filepath.Glob(prefix + w.glob)
	if err != nil || len(names) > maxListed {
		return nil, false
	}
	var out []word
	for _, name := range names {
		if prefix != "" {
			rel, ok := below(j.scope.dir.named, name)
			if !ok {
				return nil, false
			}
			name = rel
		}
		if strings.HasPrefix(name, "-") || strings.IndexByte(name, anything) >= 0 {
			return nil, false // a file that looks like an option
		}
		if !skipsDotted(w.glob, name) {
			out = append(out, word{text: name})
		}
	}
	if len(out) == 0 {
		out = []word{{text: unescape(w.glob, `*?[\`)}}
	}
	return out, true
}

// wildParts returns in how many parts of a path there are wildcards: each of
// them multiplies what has to be looked at.
func wildParts(text string) int {
	n := 0
	for part := range strings.SplitSeq(text, "/") {
		if strings.IndexByte(part, anything) >= 0 {
			n++
		}
	}
	return n
}

// skipsDotted reports whether a glob does not stand for a name because it has
// a wildcard where the name begins with a dot.
func skipsDotted(glob, name string) bool {
	g, n := strings.Split(glob, "/"), strings.Split(name, "/")
	for i := range min(len(g), len(n)) {
		if strings.HasPrefix(n[i], ".") && strings.IndexAny(g[i], "*?") == 0 {
			return true
		}
	}
	return false
}

func escapeGlob(s string) string {
	if filepath.Separator == '\\' {
		return s
	}
	return regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(s, `\$0`)
}

// jqReachesOut reports whether a jq program may read more than its input:
// modules, or the environment, which can hold secrets.
func jqReachesOut(program string) bool {
	for _, word := range []string{"import", "include", "env", "ENV"} {
		if strings.Contains(program, word) {
			return true
		}
	}
	return false
}
