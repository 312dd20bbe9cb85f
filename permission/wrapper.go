package permission

import (
	"path/filepath"
	"slices"
	"strings"
)

// An unwrapped command is a command without the programs in front that only
// run another one: timeout 5 nice go test is go test.
type unwrapped struct {
	chain   [][]word // the command as written, then each time without a wrapper
	assigns []assign // variables set by wrappers
	script  string   // the text that a shell at the end of the chain is given
	nested  bool     // there is such a text
	opaque  string   // why what is run in the end is not known
}

// run returns the words of the command that runs in the end.
func (u unwrapped) run() []word { return u.chain[len(u.chain)-1] }

// maxWrappers is the number of wrappers around one command that are seen through.
const maxWrappers = 8

// unwrap sees through the wrappers of a command.
func unwrap(words []word) unwrapped {
	u := unwrapped{chain: [][]word{words}}
	for range maxWrappers {
		words = u.run()
		if !words[0].known() {
			return u
		}
		name := programName(words[0].text)
		if isShell(name) {
			u.shell(words)
			break
		}
		w, ok := wrapperOf(name)
		if !ok {
			break
		}
		if name == "command" && len(words) > 1 && strings.HasPrefix(fold(words[1].text), "-v") {
			break // it only tells what it would run
		}
		at, why := w.inner(words)
		if why != "" {
			u.opaque = "the options of " + name + " " + why
			break
		}
		for w.assigns && at < len(words) && strings.Contains(words[at].text, "=") {
			k, v, _ := strings.Cut(words[at].text, "=")
			u.assigns = append(u.assigns, assign{k, word{text: v}})
			at++
		}
		if at >= len(words) {
			break
		}
		rest := slices.Clone(words[at:])
		if w.appends {
			rest = append(rest, word{text: string(anything), split: true})
		}
		u.chain = append(u.chain, rest)
	}
	if outer := u.chain[0][0].text; len(u.chain)+len(u.script) > 1 && outer != programName(outer) && u.opaque == "" {
		u.opaque = outer + " is named by its path, which may be any program"
	}
	return u
}

// shell looks for the text in sh -c 'text'.
func (u *unwrapped) shell(words []word) {
	for i, w := range words[1:] {
		flags, isFlag := strings.CutPrefix(w.text, "-")
		switch {
		case !w.known():
			u.opaque = "what the shell is told to run is not known before"
			return
		case !isFlag || strings.Trim(flags, "ceux") != "" || flags == "":
			if isFlag || strings.HasPrefix(w.text, "+") || w.text == "" {
				u.opaque = "the options of the shell are not known here"
			}
			return
		case strings.Contains(flags, "c"):
			if i+2 >= len(words) || !words[i+2].known() {
				u.opaque = "what the shell is told to run is not known before"
				return
			}
			u.script, u.nested = words[i+2].text, true
			return
		}
	}
	u.opaque = "the shell runs what it reads"
}

// isShell reports whether a program is a shell that understands what bash does.
func isShell(name string) bool { return name == "sh" || name == "bash" || name == "dash" }

// programName returns the name of a program without its directory, as the
// file system may find it.
func programName(s string) string {
	s = s[strings.LastIndexByte(s, '/')+1:]
	if filepath.Separator == '\\' {
		s = s[strings.LastIndexByte(s, '\\')+1:]
	}
	return strings.TrimSuffix(fold(s), ".exe")
}

// A wrapper is a program that runs the command behind its own options.
type wrapper struct {
	flags    string   // short options
	valued   string   // short options with a value
	long     []string // long options, value with = if they have one
	operands int      // operands in front of the command
	assigns  bool     // NAME=value may stand in front of it
	appends  bool     // it adds arguments that are not known
}

// wrapperOf returns the wrappers that are seen through. Others, like sudo or
// watch, need a rule that names them.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "timeout":
		return wrapper{flags: "vfp", valued: "ks", long: []string{"--foreground", "--preserve-status", "--verbose", "--kill-after", "--signal"}, operands: 1}, true
	case "time":
		return wrapper{flags: "p"}, true
	case "nice":
		return wrapper{flags: "0123456789", valued: "n", long: []string{"--adjustment"}}, true
	case "stdbuf":
		return wrapper{valued: "ioe", long: []string{"--input", "--output", "--error"}}, true
	case "nohup", "command", "builtin", "noglob":
		return wrapper{}, true
	case "env":
		return wrapper{assigns: true}, true
	case "xargs":
		return wrapper{appends: true}, true
	}
	return wrapper{}, false
}

// inner returns where the wrapped command begins, or why that is not known.
func (w wrapper) inner(words []word) (at int, why string) {
	const unknown, odd = "are not known before it runs", "are not among those that are seen through"
	for at = 1; at < len(words); at++ {
		text := words[at].text
		if !words[at].known() {
			return 0, unknown
		}
		if !strings.HasPrefix(text, "-") || text == "-" {
			break
		}
		if text == "--" {
			at++
			break
		}
		if strings.HasPrefix(text, "--") {
			name, _, hasValue := strings.Cut(text, "=")
			if !slices.Contains(w.long, name) {
				return 0, odd
			}
			if valued := name != "--foreground" && name != "--preserve-status" && name != "--verbose"; valued && !hasValue {
				at++
			}
			continue
		}
		for i, c := range text[1:] {
			if strings.ContainsRune(w.valued, c) {
				if i+2 == len(text) {
					at++ // the value is the next word
				}
				break
			}
			if !strings.ContainsRune(w.flags, c) {
				return 0, odd
			}
		}
	}
	for range w.operands {
		if at < len(words) && !duration(words[at].text) {
			return 0, odd
		}
		at++
	}
	return at, ""
}

// duration reports whether s is one as timeout takes it.
func duration(s string) bool {
	digits := strings.TrimRight(s, "smhd")
	return digits != "" && strings.Trim(digits, "0123456789.") == "" && len(s)-len(digits) <= 1
}

// isLauncher reports whether a program runs, or has someone run, a command
// among its arguments. For a deny rule that command counts as well.
func isLauncher(name string) bool {
	switch name {
	case "sudo", "doas", "ssh", "docker", "podman", "kubectl", "nerdctl", "npx", "bunx", "uvx", "pnpm", "yarn", "npm", "uv", "pipx", "poetry", "pipenv",
		"mise", "asdf", "direnv", "nix", "nix-shell", "tmux", "screen":
		return true
	}
	return isWrapperOf(name) || namesOnlyItself(name) || name == "find"
}

// launchStart returns where in the words of a launcher the command that it
// runs may begin at the earliest.
func launchStart(words []word) int {
	switch programName(words[0].text) {
	case "docker", "podman", "nerdctl", "kubectl", "npm", "pnpm", "yarn", "uv", "pipx", "poetry", "pipenv", "mise", "asdf", "direnv", "nix", "tmux", "screen":
		return 2 // behind a subcommand, which may have the name of a program
	case "find":
		for i, w := range words {
			if strings.HasPrefix(w.text, "-exec") || strings.HasPrefix(w.text, "-ok") || !w.known() {
				return i + 1
			}
		}
		return len(words)
	}
	return 1
}

func isWrapperOf(name string) bool {
	_, ok := wrapperOf(name)
	return ok || isShell(name)
}

// namesOnlyItself reports whether a program, or a builtin that changes what
// the shell does, runs only by a rule without wildcards: a rule for anything
// behind its name would be one for everything.
func namesOnlyItself(name string) bool {
	switch name {
	case "eval", "source", ".", "exec", "trap", "alias", "coproc", "enable", "bind", "complete", "compgen", "mapfile", "readarray", "hash", "shopt", "fc",
		"watch", "setsid", "ionice", "flock", "parallel", "chrt", "taskset", "setpriv", "unshare", "nsenter", "chroot", "runuser", "su", "pkexec",
		"systemd-run", "at", "batch", "crontab", "script", "expect", "unbuffer", "entr", "watchexec", "busybox", "toybox", "strace", "ltrace", "gdb", "lldb",
		"zsh", "ksh", "mksh", "fish", "csh", "tcsh", "pwsh", "cmd", "osascript", "start-stop-daemon", "nsjail", "bwrap", "firejail", "faketime", "catchsegv", "proxychains", "torsocks", "run-parts", "rlwrap", "caffeinate", "arch", "setarch", "linux32", "linux64", "prlimit", "cpulimit":
		return true
	}
	return false
}
