package permission

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// redirect judges a file that the shell opens: > is an edit, < a reading.
func (j shellJudge) redirect(r redirect) finding {
	if !r.target.known() || r.target.tilde {
		for _, kind := range redirectKinds(r) {
			if f, hit := j.mayName(kind, []word{r.target}); hit {
				return f
			}
		}
		f := ask(bySafety, "the target of a redirection is not known before; write out its path")
		f.reads = !r.writes
		return f
	}
	name := r.target.text
	f := finding{effect: troupe.Allow, by: byPlace, reads: true}
	if r.reads {
		f = worse(f, j.eachTarget(name, func(t target) finding { return j.policy.read(j.scope, t, toolRead) }))
	}
	if r.writes {
		f = worse(f, j.eachTarget(name, func(t target) finding { return j.policy.edit(j.scope, t, toolEdit) }))
	}
	return f
}

// files returns what stands in the way of the files that a command names: the
// deny and ask rules for reading and, if it changes files, for editing, and
// that such a file is protected.
func (j shellJudge) files(words []word) (finding, bool) {
	words, _ = j.expand(words)
	name := programName(words[0].text)
	f, hit := finding{effect: troupe.Allow, reads: true}, false
	if g, found := j.destroys(name, words); found {
		f, hit = worse(f, g), true
	}
	changes := changesFiles(name, words)
	if !j.guarded && !changes {
		return f, hit
	}
	if g, found := j.recursion(words); found {
		f, hit = worse(f, g), true
	}
	for kind, does := range map[string]bool{toolRead: opensFiles(name), toolEdit: changes} {
		if g, found := j.mayName(kind, operands(words)); does && found {
			f, hit = worse(f, g), true
		}
	}
	for _, w := range operands(words) {
		if !w.known() {
			continue
		}
		for _, file := range namedFiles(w.text) {
			g := j.eachTarget(file, func(t target) finding { return j.forbids(t, changes) })
			if g.effect == troupe.Deny || g.firm || g.by == bySafety && changes {
				f, hit = worse(f, g), true
			}
		}
	}
	return f, hit
}

// forbids returns what stands in the way of one file that a command names.
func (j shellJudge) forbids(t target, changes bool) finding {
	f := finding{effect: troupe.Allow, by: byPlace, reads: true}
	if !changes {
		g, _ := j.policy.refuses(toolRead, j.scope, t)
		return worse(f, g.orAllow())
	}
	g, _ := j.policy.refusesEdit(j.scope, t)
	f = worse(f, g.orAllow())
	if j.policy.protectedPart(t) != "" {
		f = worse(f, ask(bySafety, fmt.Sprintf("%s is protected, as a change there can make other programs run commands", t)).beyondSandbox())
	}
	return f
}

// redirectKinds returns the kinds of rules that a redirection is subject to.
func redirectKinds(r redirect) []string {
	if r.writes {
		return []string{toolRead, toolEdit}
	}
	return []string{toolRead}
}

// mayName returns the finding that a word which is not known may turn out to
// be a file that rules of a kind, Read or Edit, deny.
func (j shellJudge) mayName(kind string, words []word) (finding, bool) {
	for _, w := range words {
		if w.known() {
			continue
		}
		for _, r := range j.policy.denials(kind) {
			if r.spec == "" || j.scope.mayTouch(r.path, w.text) {
				return firmAsk(bySafety, "a file it opens could turn out to be what the "+r.cited()+" is about; write out its path"), true
			}
		}
	}
	return finding{}, false
}

// recursion returns the finding that a command goes through a directory in
// which a file lies that must not be read.
func (j shellJudge) recursion(words []word) (finding, bool) {
	denied := j.policy.denials(toolRead)
	if len(denied) == 0 {
		return finding{}, false
	}
	if takesList(words) {
		return firmAsk(bySafety, fmt.Sprintf("%s takes a list of files, of which one could be what the %s is about; name the files", words[0].text, denied[0].cited())), true
	}
	if !goesDown(words) {
		return finding{}, false
	}
	for _, w := range j.wentThrough(words) {
		t, err := j.scope.target(absolute(j.scope.dir.named, w.text))
		for _, r := range denied {
			if err != nil || j.none || r.spec == "" || j.scope.mayHold(r.path, t) && j.isDir(t) {
				return firmAsk(bySafety, fmt.Sprintf("%s goes through whole directories, files of the %s among them; use the Grep tool, which leaves them out, or name the files%s", words[0].text, r.cited(), behind(words))), true
			}
		}
	}
	return finding{}, false
}

// behind says where git wants files to be named.
func behind(words []word) string {
	if programName(words[0].text) == "git" {
		return " behind --"
	}
	return ""
}

// wentThrough returns what a command goes through that reads whole directories.
func (j shellJudge) wentThrough(words []word) (dirs []word) {
	args, all := operands(words), word{text: "."}
	if programName(words[0].text) == "git" {
		args, all = j.pathspecs(words), word{text: j.top()}
	}
	for _, w := range args {
		if w.known() && !strings.HasPrefix(w.text, "-") {
			dirs = append(dirs, w)
		}
	}
	if len(dirs) == 0 {
		return []word{all}
	}
	return dirs
}

// isDir reports whether t is a directory with something in it.
func (j shellJudge) isDir(t target) bool {
	names, err := filepath.Glob(escapeGlob(t.real) + string(filepath.Separator) + "*")
	return err != nil || len(names) > 0
}

// takesList reports whether a command reads somewhere else which files it is to
// read.
func takesList(words []word) bool {
	short := map[string]string{"tar": "T", "bsdtar": "T", "gtar": "T", "zip": "@"}[programName(words[0].text)]
	return slices.ContainsFunc(words[1:], func(w word) bool {
		return shortOption(w.text, short, "") || strings.HasPrefix(w.text, "--") && longOption(w.text, "--files-from", "--files0-from", "--pathspec-from-file") ||
			strings.HasPrefix(w.text, "-files0-from")
	})
}

// goesDown reports whether a command reads whole directories.
func goesDown(words []word) bool {
	has := func(short string, long ...string) bool {
		return slices.ContainsFunc(words[1:], func(w word) bool {
			return shortOption(w.text, short, "") || strings.HasPrefix(w.text, "--") && longOption(w.text, long...)
		})
	}
	switch programName(words[0].text) {
	case "rg", "ag", "ack", "tar", "rsync":
		return true
	case "git":
		return gitGoesDown(words)
	case "grep", "egrep", "fgrep":
		return has("rRd", "--recursive", "--dereference-recursive", "--directories")
	case "diff", "zip", "scp":
		return has("r", "--recursive", "--recurse-paths")
	case "cp":
		return has("rRa", "--recursive", "--archive")
	}
	return false
}

// opensFiles reports whether a program is known to read the files that its
// arguments name.
func opensFiles(name string) bool {
	switch name {
	case "awk", "gawk", "mawk", "nawk", "sed", "less", "more", "nl", "tac", "od", "xxd", "hexdump", "base64", "base32", "strings", "paste", "join", "comm",
		"cp", "mv", "ln", "install", "dd", "rsync", "cmp", "fold", "fmt", "pr", "rev", "zcat", "bat", "egrep", "fgrep", "curl", "scp", "tar", "zip", "gzip", "openssl", "source", ".":
		return true
	}
	r, ok := readerOf(name)
	return ok && !r.noFiles
}

// changesFiles reports whether a program is known to change the files that
// its arguments name.
func changesFiles(name string, words []word) bool {
	switch name {
	case "rm", "rmdir", "unlink", "shred", "mv", "cp", "ln", "link", "install", "touch", "tee", "truncate", "mkdir", "chmod", "chown", "chgrp", "dd",
		"rsync", "patch", "ed", "ex", "sponge", "mkfifo", "unzip", "wget":
		return true
	case "curl":
		return slices.ContainsFunc(words[1:], func(w word) bool {
			return shortOption(w.text, "oO", "XHduAbFmrwxcETz") || longOption(w.text, "--output", "--remote-name", "--output-dir")
		})
	case "sed":
		return slices.ContainsFunc(words[1:], func(w word) bool {
			return shortOption(w.text, "i", "ef") || longOption(w.text, "--in-place")
		})
	}
	return false
}

// destroys returns the finding that rm would remove something that nobody
// wants removed: the root, a directory right below it, the home directory, a
// working directory or what holds it.
func (j shellJudge) destroys(name string, words []word) (finding, bool) {
	if name != "rm" && name != "rmdir" {
		return finding{}, false
	}
	for _, w := range words[1:] {
		text := strings.TrimSuffix(w.text, string(anything)) // rm /*
		if strings.HasPrefix(text, "-") || strings.IndexByte(text, anything) >= 0 || text == "" {
			continue
		}
		if text != w.text && !strings.HasSuffix(text, "/") {
			continue
		}
		f := j.eachTarget(text, func(t target) finding {
			if !j.critical(t) {
				return finding{effect: troupe.Allow}
			}
			return firmAsk(bySafety, fmt.Sprintf("it removes %s", t))
		})
		if f.firm {
			return f, true
		}
	}
	return finding{}, false
}

// critical reports whether the removal of a directory is a catastrophe.
func (j shellJudge) critical(t target) bool {
	for _, name := range []string{t.named, t.real} {
		if strings.Count(slashed(name), "/") <= 1 {
			return true
		}
		keep := []string{j.policy.Home}
		for _, root := range j.scope.roots {
			keep = append(keep, root.named, root.real)
		}
		for _, dir := range keep {
			if _, holds := below(name, dir); holds && dir != "" {
				return true
			}
		}
	}
	return false
}
