package host

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/fence"
	"github.com/troupe-sh/troupe/proc"
)

//go:embed lead.md
var leadPrompt string

//go:embed subagent.md
var subagentPrompt string

// gitDeadline bounds what a large repository may cost at the start of an agent.
const gitDeadline = 20 * time.Millisecond

const gitTooSlow = "Git: a repository; its state was not to be had in time, ask git for it\n"

// introduce returns what an agent is told of the place where it works. It
// stands in front of the first prompt and not in the system prompt, as it
// changes from day to day: what is before it stays in a provider's cache.
func (s *Session) introduce(ctx context.Context, d troupe.Definition, p troupe.Place) string {
	var env, b strings.Builder
	fmt.Fprintf(&env, "Working directory: %s\n", line(p.Dir))
	for _, dir := range p.Also {
		fmt.Fprintf(&env, "Also to work in: %s\n", line(dir))
	}
	fmt.Fprintf(&env, "Platform: %s/%s\nDate: %s\n", runtime.GOOS, runtime.GOARCH, s.opts.Now().Format("Monday, 2006-01-02"))
	if !d.OmitContextFiles {
		env.WriteString(s.stateOf(ctx, p.Dir))
	}
	b.WriteString(fence.Frame("environment", strings.TrimSuffix(env.String(), "\n")) + "\n")
	if d.OmitContextFiles || len(s.opts.Config.Context) == 0 {
		return s.mask.Text(b.String())
	}
	b.WriteString("\nThe user and the repository have written down the following for agents. Follow it where it applies to the task.\n")
	for _, f := range s.opts.Config.Context {
		b.WriteString(fence.Frame("file", strings.TrimSpace(f.Text), fence.Attr{Name: "path", Value: f.Path}) + "\n")
	}
	return s.mask.Text(b.String())
}

// line is a path as one line: a directory may have any name.
func line(path string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(path)
}

// askEarly asks git about the lead's directory while the rest of the session is
// put together. Who waits for the answer waits no longer than git may take: that
// a git which is too slow is gone is waited for when the session ends.
func (s *Session) askEarly(ctx context.Context) {
	if gitData(s.Dir) == "" { // that there is nothing to ask is known at once
		return
	}
	answer, late := make(chan string, 1), time.NewTimer(gitDeadline)
	s.asking.Go(func() { answer <- s.gitState(ctx, s.Dir) })
	s.git = func() string {
		defer late.Stop()
		select {
		case text := <-answer:
			return text
		case <-late.C:
			return gitTooSlow
		}
	}
}

// stateOf is what git says of a directory.
func (s *Session) stateOf(ctx context.Context, dir string) string {
	if s.git != nil && dir == s.Dir {
		return s.git()
	}
	return s.gitState(ctx, dir)
}

// gitState tells the branch and what is not committed, if git says so in time.
// To compare files git starts programs that the repository's configuration
// names, so of a repository that the user does not trust only the branch is told.
func (s *Session) gitState(ctx context.Context, dir string) string {
	data := gitData(dir)
	if data == "" {
		return "Git: this is not a repository\n"
	}
	git, err := proc.Look("git", s.env)
	if err != nil {
		return "Git: a repository, but the program git is missing\n"
	}
	ctx, cancel := context.WithTimeout(ctx, gitDeadline)
	defer cancel()
	question := s.askGit(data)
	var out strings.Builder
	outcome, err := proc.Run(ctx, proc.Command{Path: git, Dir: dir, Env: s.env, Stdout: &out, Ledger: ledger(s.opts.Home), Args: question.args})
	if err != nil || outcome.Code != 0 {
		return gitTooSlow
	}
	return question.told(strings.Split(strings.TrimSpace(out.String()), "\n"))
}

// A gitQuestion is what git is asked of a repository: its branch and what is not
// committed, or why the branch only.
type gitQuestion struct {
	args []string
	only string // what is told instead of what is not committed
	all  bool
}

func (s *Session) askGit(data string) gitQuestion {
	branch := []string{"symbolic-ref", "--short", "HEAD"}
	switch {
	case !s.opts.Config.Trusted:
		return gitQuestion{args: branch}
	case tracked(data) > manyFiles:
		return gitQuestion{args: branch, only: "The repository is large: what is uncommitted was not looked for, ask git for it.\n"}
	}
	return gitQuestion{all: true, args: []string{"--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v1", "--branch", "--ignore-submodules=all"}}
}

// told is the answer as an agent is told it.
func (q gitQuestion) told(lines []string) string {
	const most = 20
	text := "Git: branch " + strings.TrimPrefix(lines[0], "## ") + "\n" + q.only
	switch changed := lines[1:]; {
	case !q.all:
	case len(changed) == 0:
		text += "Nothing is uncommitted.\n"
	case len(changed) > most:
		text += fmt.Sprintf("Uncommitted:\n%s\n… and %d more\n", strings.Join(changed[:most], "\n"), len(changed)-most)
	default:
		text += "Uncommitted:\n" + strings.Join(changed, "\n") + "\n"
	}
	return text
}

// gitData is where the repository that dir is in has its data: a directory, or a
// file that names one. It is "" if there is no repository.
func gitData(dir string) string {
	for {
		data := filepath.Join(dir, ".git")
		if _, err := os.Stat(data); err == nil {
			return data
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// manyFiles is from how many files on git is not asked what has changed: it
// looks at each of them, and would be too late.
const manyFiles = 5_000

// tracked is how many files a repository has, as the header of git's index says
// (gitformat-index(5)); 0 if it does not.
func tracked(data string) int {
	if text, err := os.ReadFile(data); err == nil { // of a worktree or submodule
		named, _ := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !filepath.IsAbs(named) {
			named = filepath.Join(filepath.Dir(data), named)
		}
		data = named
	}
	f, err := os.Open(filepath.Join(data, "index"))
	if err != nil {
		return 0
	}
	defer f.Close()
	var header [12]byte // "DIRC", version, number of entries
	if _, err := io.ReadFull(f, header[:]); err != nil || string(header[:4]) != "DIRC" {
		return 0
	}
	return int(binary.BigEndian.Uint32(header[8:]))
}
