package permission

import (
	"slices"
	"strings"
)

// options are those of a program with which it starts other programs, or
// writes to files, that nothing else in the command shows.
type options struct {
	short  string
	valued string // short options with a value: what follows is none
	long   []string
	prefix []string // beginnings of operands that do the same
}

// hazardousOptions returns such options. Git, sed, awk, find and go have
// functions of their own.
func hazardousOptions(name string) (options, bool) {
	switch name {
	case "sort":
		return options{short: "oT", valued: "tkS", long: []string{"--output", "--compress-program", "--temporary-directory", "--files0-from"}}, true
	case "shuf":
		return options{short: "o", long: []string{"--output"}}, true
	case "rg":
		return options{short: "z", valued: "ABCmegtTjf", long: []string{"--pre", "--hostname-bin", "--search-zip"}}, true
	case "tar", "bsdtar", "gtar":
		return options{short: "IFP", valued: "fCbXgT", long: []string{"--to-command", "--checkpoint-action", "--use-compress-program", "--rsh-command",
			"--rmt-command", "--info-script", "--new-volume-script", "--absolute-names"}}, true
	case "zip":
		return options{short: "T", long: []string{"--unzip-command", "--test"}}, true
	case "rsync":
		return options{short: "e", long: []string{"--rsh", "--rsync-path", "--daemon", "--config"}}, true
	case "man":
		return options{short: "PHBCK", long: []string{"--pager", "--html", "--browser", "--config-file", "--preconv"}}, true
	case "less", "more", "most":
		return options{short: "oOkD", long: []string{"--log-file", "--LOG-FILE", "--lesskey-file", "--lesskey-src", "--lesskey-content", "--tag"}, prefix: []string{"+"}}, true
	case "ssh", "scp", "sftp":
		return options{short: "oFSIED"}, true
	case "wget":
		return options{short: "e", long: []string{"--execute", "--use-askpass", "--config"}}, true
	case "curl":
		return options{short: "K", valued: "XHdoueAbFmrwxcETz", long: []string{"--config", "--engine"}}, true
	case "make", "gmake":
		return options{short: "E", valued: "fCIjloW", long: []string{"--eval"}, prefix: []string{"SHELL=", "MAKEFLAGS=", "SHELL:=", ".SHELLFLAGS"}}, true
	case "split":
		return options{long: []string{"--filter"}}, true
	case "install":
		return options{long: []string{"--strip-program"}}, true
	case "fd", "fdfind":
		return options{short: "xX", valued: "edEtScgj", long: []string{"--exec", "--exec-batch"}}, true
	case "fzf":
		return options{long: []string{"--preview", "--bind", "--filter", "--listen"}}, true
	case "bat", "ag", "ack", "delta":
		return options{long: []string{"--pager", "--paging"}}, true
	case "tcpdump":
		return options{short: "zw"}, true
	case "cargo":
		return options{long: []string{"--config"}}, true
	case "npm", "pnpm", "yarn":
		return options{long: []string{"--script-shell", "--node-options", "--shell"}}, true
	case "gcc", "g++", "cc", "c++", "clang", "clang++":
		return options{prefix: []string{"-wrapper", "-specs", "--specs", "-fplugin", "-B", "-Xclang", "@", "-fuse-ld"}}, true
	case "date":
		return options{short: "s", valued: "drfI", long: []string{"--set"}}, true
	case "sqlite3":
		return options{long: []string{"--cmd", "--init"}, prefix: []string{".", "-cmd", "-init"}}, true
	}
	return options{}, false
}

// hazard returns why a command does more than its rule or its name says: it
// starts other programs on request. "" says that it is not known to.
func (j shellJudge) hazard(words []word) string {
	name := words[0].text
	switch name {
	case "git":
		if j.elsewhere() {
			return "git runs what the settings of a directory say, and this one leaves the working directory"
		}
		return gitHazard(words)
	case "sed", "gsed":
		return sedHazard(words)
	case "awk", "gawk", "mawk", "nawk":
		return awkHazard(words)
	case "find":
		return findHazard(words)
	case "go":
		return goHazard(words)
	case "test", "[", "printf", "read", "unset", "wait", "getopts", "declare", "typeset", "local", "export", "readonly":
		return variableHazard(name, words[1:])
	case "make", "gmake":
		if readsRules(words) {
			return "make with rules from its input runs whatever the input says"
		}
	case "sqlite3":
		if len(words) < 3 {
			return "sqlite3 takes from its input what can run commands"
		}
		if opensOthers(words) {
			return "sqlite3 can open files of which its words do not tell"
		}
	case "vi", "vim", "nvim", "view", "emacs", "ed", "ex", "nano":
		return "an editor can run any command"
	}
	o, ok := hazardousOptions(name)
	if !ok {
		return ""
	}
	for i, w := range words[1:] {
		clustered := strings.HasSuffix(name, "tar") && i == 0 && w.text != "" && w.text[0] != '-' && strings.ContainsAny(w.text, o.short)
		switch {
		case mayBeOption(w):
			return name + " is given a word that is not known before and may be an option"
		case w.text == "--":
			return ""
		case longOption(w.text, o.long...), shortOption(w.text, o.short, o.valued), clustered,
			slices.ContainsFunc(o.prefix, func(p string) bool { return strings.HasPrefix(w.text, p) }):
			return name + " with " + quoteRule(w.text) + " can run other programs or write elsewhere"
		}
	}
	return ""
}

// readsRules reports whether make takes its rules from its input, or from what
// the shell opens for it.
func readsRules(words []word) bool {
	for i, w := range words[1:] {
		file := w.text
		switch {
		case i > 0 && (words[i].text == "-f" || longOption(words[i].text, "--file", "--makefile")):
		case longOption(file, "--file", "--makefile"):
			_, file, _ = strings.Cut(file, "=")
		case strings.HasPrefix(file, "-f"):
			file = file[2:]
		default:
			continue
		}
		if file == "-" || strings.HasPrefix(file, "/dev/") || strings.HasPrefix(file, "/proc/") {
			return true
		}
	}
	return false
}

// opensOthers reports whether what sqlite3 is told has a function for files.
func opensOthers(words []word) bool {
	return slices.ContainsFunc(words[1:], func(w word) bool {
		text := strings.ToLower(w.text)
		return slices.ContainsFunc([]string{"readfile", "writefile", "edit", "load_extension", "fsdir", "zipfile", "attach"}, func(f string) bool { return strings.Contains(text, f) })
	})
}

// variableHazard refuses builtins that take the name of a variable where that
// name can have a subscript: bash computes it, which can run commands. So it does
// with what an integer variable is set to, or one that is a name of another; and
// what is read into PATH and its like steers what follows.
func variableHazard(name string, args []word) string {
	for i, w := range args {
		var odd bool
		switch name {
		case "printf":
			odd = i == 0 && (mayBeOption(w) || strings.HasPrefix(w.text, "-v"))
		case "test", "[":
			odd = mayBeOption(w) || testsVariable(w.text)
		case "declare", "typeset", "local", "export", "readonly":
			odd = !w.known() || strings.Contains(w.text, "[") || shortOption(w.text, "in", "")
		default:
			odd = !w.known() || strings.Contains(w.text, "[") || !strings.HasPrefix(w.text, "-") && !harmlessVariable(w.text)
		}
		if odd {
			return name + " can look into a variable by a name that runs commands"
		}
	}
	return ""
}

// mayBeOption reports whether a word that is not known may be an option, or
// several words.
func mayBeOption(w word) bool {
	at := strings.IndexByte(w.text, anything)
	switch {
	case at < 0:
		return false
	case at == 0 || w.split:
		return true
	}
	return w.text[0] == '-' && !strings.Contains(w.text[:at], "=")
}

// findHazard accepts find as long as it only prints.
func findHazard(words []word) string {
	for _, w := range words[1:] {
		if mayBeOption(w) {
			return "find is given a word that is not known before and may be an action"
		}
		for _, action := range []string{"-exec", "-ok", "-delete", "-fprint", "-fls", "-files0-from"} {
			if strings.HasPrefix(w.text, action) {
				return "find with " + w.text + " runs, removes or writes"
			}
		}
	}
	return ""
}

func goHazard(words []word) string {
	for _, w := range words[1:] {
		if mayBeOption(w) {
			return "go is given a word that is not known before and may be an option"
		}
		name, _, _ := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		if !strings.HasPrefix(w.text, "-") {
			continue
		}
		if name == "args" { // what follows is for the test
			return ""
		}
		if slices.Contains([]string{"exec", "toolexec", "vettool", "overlay", "C"}, name) {
			return "go with " + w.text + " runs other programs or works elsewhere"
		}
	}
	return ""
}

// awkHazard accepts programs that print to their output only.
func awkHazard(words []word) string {
	const odd = "awk can run commands and write files, and this program may"
	program := false
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case program && mayBeOption(w) && w.split, !program && !w.known():
			return odd
		case program:
		case w.text == "-F" || w.text == "-v":
			i++
		case strings.HasPrefix(w.text, "-F") || strings.HasPrefix(w.text, "-v"):
		case strings.HasPrefix(w.text, "-"):
			return "awk with " + w.text + " is not known to be harmless"
		default:
			program = true
			text := strings.ReplaceAll(w.text, "||", "")
			for _, bad := range []string{"system", "getline", "|", ">", "@"} {
				if strings.Contains(text, bad) {
					return odd
				}
			}
		}
	}
	return ""
}

// readsOnly reports whether a command of which all words are known does
// nothing but read, for programs that can do more.
func readsOnly(words []word) bool {
	args := words[1:]
	switch words[0].text {
	case "find":
		return findHazard(words) == ""
	case "sed":
		inPlace := func(w word) bool { return shortOption(w.text, "i", "ef") || longOption(w.text, "--in-place") }
		return sedHazard(words) == "" && !slices.ContainsFunc(args, inPlace)
	case "command":
		return len(args) > 1 && (args[0].text == "-v" || args[0].text == "-V")
	case "printf":
		return len(args) > 0 && !strings.HasPrefix(args[0].text, "-")
	case "go":
		return len(args) > 0 && (args[0].text == "version" && len(args) == 1 ||
			args[0].text == "env" && !slices.ContainsFunc(args[1:], func(w word) bool { return strings.HasPrefix(w.text, "-") && w.text != "-json" }))
	case "git":
		return gitReads(args)
	}
	return false
}
