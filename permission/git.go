package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// gitCommand splits the words of a git command: the subcommand and what
// follows it. why says what in front of it makes git do something else.
func gitCommand(args []word) (sub string, rest []word, why string) {
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case !args[i].known():
			return "", nil, "git is given a word that is not known before"
		case !strings.HasPrefix(text, "-"):
			return text, args[i+1:], ""
		case slices.Contains([]string{"-P", "--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "--version", "-v"}, text):
		case text == "-C" && i+1 < len(args) && args[i+1].text == ".":
			i++
		case text == "-c" && i+1 < len(args) && harmlessSetting(args[i+1].text):
			i++
		default:
			return "", nil, "git with " + text + " can run what a setting or another directory says"
		}
	}
	return "version", nil, ""
}

// harmlessSetting reports whether -c with a setting changes only how git
// prints or whom it names.
func harmlessSetting(kv string) bool {
	key, value, _ := strings.Cut(strings.ToLower(kv), "=")
	switch key {
	case "user.name", "user.email", "core.quotepath", "init.defaultbranch":
		return true
	case "commit.gpgsign", "tag.gpgsign":
		return value == "false"
	}
	return strings.HasPrefix(key, "color.") || strings.HasPrefix(key, "advice.")
}

// gitHazard returns why a git command starts other programs than git does by
// itself. A subcommand that git does not have may be an alias, which is a
// command line.
func gitHazard(words []word) string {
	sub, rest, why := gitCommand(words[1:])
	if why != "" {
		return why
	}
	switch sub {
	case "config":
		if len(rest) == 0 || !slices.Contains([]string{"--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"}, rest[0].text) {
			return "git config can make git run any command"
		}
	case "submodule":
		if len(rest) > 0 && !slices.Contains([]string{"status", "init", "update", "sync", "add", "deinit", "summary"}, rest[0].text) {
			return "git submodule " + rest[0].text + " can run commands"
		}
	case "bisect":
		if len(rest) > 0 && !slices.Contains([]string{"start", "good", "bad", "old", "new", "skip", "reset", "log", "terms"}, rest[0].text) {
			return "git bisect " + rest[0].text + " can run commands"
		}
	default:
		if !gitKnows(sub) {
			return "git " + sub + " may be an alias or run other programs"
		}
	}
	return gitOptionHazard(sub, rest)
}

func gitOptionHazard(sub string, rest []word) string {
	short := map[string]string{"clone": "uc", "ls-remote": "u", "fetch-pack": "u", "grep": "O", "rebase": "x", "archive": "o", "format-patch": "o", "fetch": "c", "pull": "c"}[sub]
	remote := slices.Contains([]string{"clone", "fetch", "pull", "push", "ls-remote", "remote", "submodule", "archive"}, sub)
	message := false
	for _, w := range rest {
		switch {
		case message && !w.split: // the text of a message, whatever it is
			message = false
			continue
		case mayBeOption(w):
			return "git is given a word that is not known before and may be an option"
		case w.text == "--":
			return ""
		case remote && (strings.Contains(w.text, "::") || !w.known() && strings.Contains(w.text, ":")):
			return "git can run a command to reach " + quoteRule(w.text)
		case shortOption(w.text, short, "m"), longOption(w.text, "--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--open-files-in-pager",
			"--template", "--config", "--output", "--extcmd", "--separate-git-dir", "--unsafe-paths", "--git-dir", "--index-output", "--no-index"):
			return "git with " + quoteRule(w.text) + " can run other programs or write elsewhere"
		}
		message = w.text == "--message" || sub != "remote" && shortOption(w.text, "m", "") && strings.HasSuffix(w.text, "m")
	}
	return ""
}

// gitKnows reports whether git has a subcommand that runs nothing else but
// hooks and what the user's own settings name.
func gitKnows(sub string) bool {
	return slices.Contains([]string{
		"add", "am", "annotate", "apply", "archive", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore", "checkout", "cherry", "cherry-pick",
		"clean", "clone", "commit", "commit-tree", "count-objects", "describe", "diff", "diff-files", "diff-index", "diff-tree", "fetch", "for-each-ref",
		"format-patch", "fsck", "gc", "grep", "hash-object", "init", "lfs", "log", "ls-files", "ls-remote", "ls-tree", "merge", "merge-base", "merge-file",
		"merge-tree", "mv", "name-rev", "notes", "prune", "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote", "repack", "rerere", "reset",
		"restore", "revert", "rev-list", "rev-parse", "rm", "shortlog", "show", "show-branch", "show-ref", "sparse-checkout", "stash", "status", "switch",
		"symbolic-ref", "tag", "update-index", "update-ref", "verify-commit", "verify-tag", "version", "worktree", "write-tree",
	}, sub)
}

// gitReads reports whether a git command only reads. The options it may have
// are listed, as git has too many to list the others.
func gitReads(args []word) bool {
	sub, rest, why := gitCommand(args)
	if why != "" || gitHazard(append([]word{{text: "git"}}, args...)) != "" {
		return false
	}
	short, long := "", []string(nil)
	switch sub {
	case "version":
		return len(rest) == 0
	case "status":
		short, long = "sbuvz", []string{"--short", "--branch", "--porcelain", "--long", "--verbose", "--untracked-files", "--ignored", "--show-stash", "--ahead-behind", "--no-renames"}
	case "log", "diff", "show":
		short, long = "0123456789npUuswbiMCSGLzqragFEDtcmxR", gitShowOptions()
	case "blame":
		short, long = "LwMCetsfnlbc", []string{"--porcelain", "--line-porcelain", "--show-email", "--show-name", "--show-number", "--date", "--abbrev", "--root", "--first-parent"}
	case "rev-parse":
		long = []string{"--short", "--abbrev-ref", "--show-toplevel", "--git-dir", "--verify", "--quiet", "--show-prefix", "--show-cdup", "--is-inside-work-tree", "--symbolic-full-name", "--git-common-dir", "--absolute-git-dir"}
		short = "q"
	case "branch":
		short, long = "avrl", []string{"--list", "--all", "--remotes", "--verbose", "--show-current", "--contains", "--no-contains", "--merged", "--no-merged", "--sort", "--format", "--color", "--no-color", "--column", "--points-at"}
		lists := slices.ContainsFunc(rest, func(w word) bool {
			return w.text == "--list" || w.text == "-l" || w.text == "--contains" || w.text == "--merged" || w.text == "--no-merged" || w.text == "--points-at"
		})
		if !lists && slices.ContainsFunc(rest, func(w word) bool { return !strings.HasPrefix(w.text, "-") }) {
			return false // a branch to make
		}
	default:
		return false
	}
	return onlyOptions(rest, short, long)
}

// gitGoesDown reports whether a git command shows, or packs, what is in the files
// of a repository, or was, unless it is told of which.
func gitGoesDown(words []word) bool {
	sub, rest, _ := gitCommand(words[1:])
	has := func(short string, long ...string) bool {
		return slices.ContainsFunc(rest, func(w word) bool { return shortOption(w.text, short, "SGLn") || longOption(w.text, long...) })
	}
	patch := has("puUc", "--patch", "--patch-with-stat", "--patch-with-raw", "--unified", "--cc", "--remerge-diff", "--diff-merges", "--binary")
	switch sub {
	case "grep", "archive", "format-patch", "range-diff":
		return true
	case "diff", "show":
		return patch || !has("s", "--no-patch", "--quiet", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--summary", "--dirstat", "--compact-summary")
	case "log", "reflog", "stash", "diff-tree", "diff-index", "diff-files", "rev-list":
		return patch
	}
	return false
}

// pathspecs returns the files that a git command is told of: what stands behind --,
// else words that are files here, which git takes for such or refuses. If one of
// them can mean any file there are none.
func (j shellJudge) pathspecs(words []word) (out []word) {
	at := slices.IndexFunc(words, func(w word) bool { return w.text == "--" })
	sub, rest, _ := gitCommand(words[1:])
	if at >= 0 {
		rest = words[at+1:]
	}
	for _, w := range rest {
		if at < 0 {
			if _, err := os.Lstat(absolute(j.scope.dir.named, w.text)); err != nil || sub == "grep" || sub == "archive" {
				continue
			}
		}
		if !w.known() || strings.ContainsAny(w.text, "*?[\\") || strings.HasPrefix(w.text, ":") {
			return nil
		}
		out = append(out, w)
	}
	return out
}

// top is the directory of the repository that the place is in, or the place.
func (j shellJudge) top() string {
	for dir := j.scope.dir.real; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return j.scope.dir.real
		}
	}
}

// gitCompares reports whether a git command that only reads looks at the content
// of files, for which git may start programs.
func gitCompares(args []word) bool {
	sub, _, _ := gitCommand(args)
	return !slices.Contains([]string{"version", "rev-parse", "branch"}, sub)
}

// gitShowOptions are options of log, diff and show that print.
func gitShowOptions() []string {
	return []string{"--oneline", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--summary", "--graph", "--decorate", "--no-decorate", "--all",
		"--patch", "--no-patch", "--cached", "--staged", "--merge-base", "--color", "--no-color", "--word-diff", "--ignore-all-space", "--ignore-space-change",
		"--ignore-blank-lines", "--unified", "--minimal", "--patience", "--histogram", "--diff-filter", "--find-renames", "--find-copies", "--follow", "--first-parent",
		"--merges", "--no-merges", "--reverse", "--date", "--format", "--pretty", "--abbrev-commit", "--abbrev", "--max-count", "--skip", "--since", "--until", "--after",
		"--before", "--author", "--committer", "--grep", "--no-ext-diff", "--no-textconv", "--no-prefix", "--raw", "--quiet", "--exit-code", "--check",
		"--full-history", "--date-order", "--topo-order", "--branches", "--tags", "--remotes", "--source", "--left-right", "--cherry-pick", "--no-renames", "--relative",
		"--text", "--pickaxe-regex", "--function-context", "--dirstat", "--compact-summary", "--boundary", "--simplify-by-decoration"}
}

// onlyOptions reports whether all options among words are listed, in full.
func onlyOptions(words []word, short string, long []string) bool {
	for _, w := range words {
		switch name, _, _ := strings.Cut(w.text, "="); {
		case w.text == "--":
			return true
		case strings.HasPrefix(w.text, "--"):
			if !slices.Contains(long, name) {
				return false
			}
		case len(w.text) > 1 && w.text[0] == '-':
			for i, c := range w.text[1:] {
				if !strings.ContainsRune(short, c) {
					return false
				}
				if i == 0 && strings.ContainsRune("SGLUn", c) {
					break // its value
				}
			}
		}
	}
	return true
}
