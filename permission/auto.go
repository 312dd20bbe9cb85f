package permission

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// A Sandbox tells a [Policy] what holds the commands of a shell. There must be
// one only if it was seen to hold in this process.
type Sandbox struct {
	// NoNetwork says that commands cannot reach the network.
	NoNetwork bool
	// Free reports whether a command line runs outside; nil: none does.
	Free func(command string) bool
	// Trusted says that what is confined needs no leave in the modes
	// [Default] and [AcceptEdits] either.
	Trusted bool
}

// edits reports whether a mode allows edits in the working directories.
func (m Mode) edits() bool { return m == AcceptEdits || m == Auto }

// handsDown reports whether a mode is passed on whatever a child asks for, as
// it was the user who chose it.
func (m Mode) handsDown() bool { return m.edits() || m == Bypass }

// confined lifts the ask about a command line that the sandbox holds.
func (p Policy) confined(text string, f finding) finding {
	s := p.Sandbox
	if s == nil || f.effect != troupe.Ask || f.firm || f.beyond || s.Free != nil && s.Free(text) {
		return f
	}
	switch mode := p.Mode.orDefault(); {
	case mode == Auto:
		return allow(byMode, "mode auto: the sandbox confines the command")
	case s.Trusted && (mode == Default || mode == AcceptEdits):
		return allow(byMode, "sandbox.autoAllowBashIfSandboxed: the sandbox confines the command")
	}
	return f
}

// outside marks f as an ask that no sandbox lifts if a command, of which u is
// what it runs, has something done by others than itself.
func (j shellJudge) outside(u unwrapped, f finding) finding {
	if j.policy.Sandbox == nil || f.effect != troupe.Ask {
		return f
	}
	network := !j.policy.Sandbox.NoNetwork
	words := u.run()
	name := programName(words[0].text)
	if reaches(words, network) || network && (u.opaque != "" || !words[0].known() || namesOnlyItself(name)) {
		f.beyond = true
	}
	if isLauncher(name) {
		for i := range words {
			f.beyond = f.beyond || reaches(words[i:], network)
		}
	}
	return f
}

// reaches reports whether a command is known to have another process, which no
// sandbox of ours holds, do something, or, where that is of interest, to speak
// to the network. It is for asking in time: what the list does not know is held
// by the sandbox as far as that goes.
func reaches(words []word, network bool) bool {
	name := programName(words[0].text)
	switch name {
	case "docker", "podman", "nerdctl", "ctr", "systemctl", "systemd-run", "loginctl", "machinectl", "busctl", "dbus-send", "gdbus", "snap", "flatpak",
		"tmux", "screen", "at", "batch", "crontab", "xdg-open", "open", "osascript", "launchctl", "emacsclient":
		return true
	}
	if !network {
		return false
	}
	switch name {
	case "curl", "wget", "aria2c", "http", "https", "xh", "ssh", "scp", "sftp", "sshfs", "mosh", "rsync", "rclone", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "lftp",
		"dig", "nslookup", "host", "drill", "ping", "traceroute", "mail", "sendmail", "gh", "glab", "hub", "aws", "gcloud", "gsutil", "az", "kubectl", "helm",
		"terraform", "tofu", "pulumi", "ansible", "ansible-playbook", "psql", "mysql", "mongosh", "redis-cli", "twine", "wrangler", "vercel", "netlify", "flyctl", "heroku":
		return true
	case "git":
		return speaks(words, "push", "fetch", "pull", "clone", "ls-remote", "remote", "submodule", "send-email", "request-pull", "archive", "lfs", "svn", "p4")
	case "npm", "pnpm", "yarn", "bun", "cargo", "gem", "poetry", "uv", "mvn", "dotnet":
		return speaks(words, "publish", "push", "login", "adduser", "owner", "token", "dist-tag", "access", "yank", "deprecate", "unpublish")
	case "openssl":
		return speaks(words, "s_client", "s_server", "s_time")
	}
	return false
}

// speaks reports whether one of the words, or one that is not known, may be the
// subcommand that speaks to the network.
func speaks(words []word, subcommands ...string) bool {
	return slices.ContainsFunc(words[1:], func(w word) bool { return !w.known() || slices.Contains(subcommands, w.text) })
}

// Covers reports whether every command of a command line is covered by one of
// the patterns, written as in a rule for Bash; one of them has to be, besides
// what only prints or changes the directory. A command line that cannot be taken
// apart is not covered, nor one that sets variables or opens files to write.
func Covers(patterns []string, text string) bool {
	s := parseScript(text, "")
	if s.unclear != "" || s.sets != "" || len(s.redirects) > 0 {
		return false
	}
	any := false
	for _, c := range s.commands {
		covered := !slices.ContainsFunc(c.words, func(w word) bool { return !w.known() }) && len(c.assigns) == 0 &&
			slices.ContainsFunc(patterns, func(p string) bool { return commandPattern(p, quoteWords(c.words)) })
		if name := c.words[0].text; !covered && name != "cd" && name != "echo" && name != "true" {
			return false
		}
		any = any || covered
	}
	return any
}

// Classify is asked, in mode [Auto], about calls that would have to be asked
// about: whether one may run all the same. It is never asked about what a deny
// or an ask rule, or a hook, speaks of, and an error is a no. It may be called
// concurrently.
type Classify func(ctx context.Context, c *troupe.Call, why troupe.Verdict) (bool, error)

// classify lets f answer for the person whom p, with the verdict v, would ask.
func (p Policy) classify(ctx context.Context, f Classify, c *troupe.Call, v troupe.Verdict) troupe.Verdict {
	if f == nil || v.Effect != troupe.Ask || p.Mode != Auto {
		return v
	}
	own, firm := p.decide(c)
	if firm || own.Effect != v.Effect || own.By != v.By || own.Reason != v.Reason {
		return v // it is a rule or a hook that asks
	}
	ok, err := f(ctx, c, v)
	switch {
	case err != nil:
		v.Reason += fmt.Sprintf(" (the classifier failed: %s)", oneLine(strings.TrimSpace(err.Error())))
	case ok:
		return troupe.Verdict{Effect: troupe.Allow, By: byClassifier, Reason: "the classifier allowed what needs approval: " + v.Reason, Input: v.Input}
	}
	return v
}

// Path returns the file or directory that a rule for files covers, with all
// below it, if it is just that and no pattern. dir is where the agent works.
func (r Rule) Path(dir string) (string, bool) {
	glob := strings.TrimSuffix(r.path.glob, "/**")
	if glob == "**" {
		glob = ""
	}
	plain := strings.NewReplacer(`\\`, "", `\*`, "", `\?`, "", `\[`, "", `\{`, "", `\]`, "", `\}`, "").Replace(glob)
	if !r.isFileRule() || strings.ContainsAny(plain, `*?[{\`) {
		return "", false
	}
	base := dir
	switch r.path.start {
	case atAny:
		return "", false
	case atBase:
		base = r.path.base
	}
	glob = strings.NewReplacer(`\\`, `\`, `\*`, `*`, `\?`, `?`, `\[`, `[`, `\{`, `{`, `\]`, `]`, `\}`, `}`).Replace(glob)
	return filepath.Join(base, filepath.FromSlash(glob)), true
}
