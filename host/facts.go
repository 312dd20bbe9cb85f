package host

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/proc"
)

//go:embed lead.md
var leadPrompt string

//go:embed subagent.md
var subagentPrompt string

// gitDeadline bounds what a large repository may cost at the start of an agent.
const gitDeadline = 20 * time.Millisecond

// introduce returns what an agent is told of the place where it works. It
// stands in front of the first prompt and not in the system prompt, as it
// changes from day to day: what is before it stays in a provider's cache.
func (s *Session) introduce(ctx context.Context, d troupe.Definition, p troupe.Place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<environment>\nWorking directory: %s\n", p.Dir)
	for _, dir := range p.Also {
		fmt.Fprintf(&b, "Also to work in: %s\n", dir)
	}
	fmt.Fprintf(&b, "Platform: %s/%s\nDate: %s\n", runtime.GOOS, runtime.GOARCH, s.opts.Now().Format("Monday, 2006-01-02"))
	if !d.OmitContextFiles {
		b.WriteString(s.gitState(ctx, p.Dir))
	}
	b.WriteString("</environment>\n")
	if d.OmitContextFiles || len(s.opts.Config.Context) == 0 {
		return b.String()
	}
	b.WriteString("\nThe user and the repository have written down the following for agents. Follow it where it applies to the task.\n")
	for _, f := range s.opts.Config.Context {
		fmt.Fprintf(&b, "<file path=%q>\n%s\n</file>\n", f.Path, strings.ReplaceAll(strings.TrimSpace(f.Text), "</file", `<\/file`))
	}
	return b.String()
}

// gitState tells the branch and what is not committed, if git says so in time.
func (s *Session) gitState(ctx context.Context, dir string) string {
	if !inRepository(dir) {
		return "Git: this is not a repository\n"
	}
	git, err := proc.Look("git", s.env)
	if err != nil {
		return "Git: a repository, but the program git is missing\n"
	}
	ctx, cancel := context.WithTimeout(ctx, gitDeadline)
	defer cancel()
	// No helper program of the repository's configuration is started for this.
	var out strings.Builder
	outcome, err := proc.Run(ctx, proc.Command{Path: git, Dir: dir, Env: s.env, Stdout: &out, Ledger: ledger(s.opts.Home),
		Args: []string{"--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v1", "--branch"}})
	if err != nil || outcome.Code != 0 {
		return "Git: a repository; its state was not to be had in time, ask git for it\n"
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	const most = 20
	text := "Git: branch " + strings.TrimPrefix(lines[0], "## ") + "\n"
	switch changed := lines[1:]; {
	case len(changed) == 0:
		text += "Nothing is uncommitted.\n"
	case len(changed) > most:
		text += fmt.Sprintf("Uncommitted:\n%s\n… and %d more\n", strings.Join(changed[:most], "\n"), len(changed)-most)
	default:
		text += "Uncommitted:\n" + strings.Join(changed, "\n") + "\n"
	}
	return text
}

func inRepository(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}
