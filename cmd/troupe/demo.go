package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/internal/line"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/proc"
	"github.com/troupe-sh/troupe/session"
)

//go:embed demo
var demoFiles embed.FS

const demoPrompt = "Make the failing test of this program pass, and prove that it does."

// demo is `troupe demo`.
func (p *program) demo() *cobra.Command {
	keep, script := false, ""
	cmd := &cobra.Command{Use: "demo", Short: "show agents at work on a sample repository", Args: cobra.NoArgs,
		Long: "The demo makes a small Go program with a failing test in a repository of its own and lets a lead and\n" +
			"three sub-agents mend it. The model is scripted; tools, commands, commits and the test are real. It\n" +
			"needs git and go, reads none of your settings, and exits with 0 only if the test passes in the end.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := p.newDemo(script)
			if err != nil {
				return err
			}
			green, err := d.play(cmd.Context())
			if err != nil {
				err = fmt.Errorf("%w (the files are in %s)", err, d.root)
			} else {
				err = d.end(green, keep)
			}
			if err != nil || !green {
				return &failure{exitFailed, err}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the repository and the logs")
	cmd.Flags().StringVar(&script, "script", "", "play another script, a `FILE` as doc/script.md describes it")
	return cmd
}

// A demo is one run on a repository of its own.
type demo struct {
	p                        *program
	root, repo, home, script string // root holds the others
	git, goTool, self        string
	env                      []string
}

// newDemo finds the programs and makes the directories.
func (p *program) newDemo(script string) (*demo, error) {
	d := &demo{p: p}
	var err error
	for name, path := range map[string]*string{"git": &d.git, "go": &d.goTool} {
		if *path, err = proc.Look(name, p.env); err != nil {
			return nil, fmt.Errorf("the demo needs the program %s; install it, or put its directory into PATH", name)
		}
	}
	if d.self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	play, err := demoFiles.ReadFile("demo/demo.json")
	if script != "" {
		play, err = os.ReadFile(script)
	}
	if err != nil {
		return nil, fmt.Errorf("the script of the demo: %w", err)
	}
	made, err := os.MkdirTemp("", "troupe-demo-")
	if err == nil {
		d.root, err = filepath.EvalSymlinks(made)
	}
	if err != nil {
		return nil, fmt.Errorf("make a directory for the demo: %w", err)
	}
	d.repo, d.home = filepath.Join(d.root, "rota"), filepath.Join(d.root, "home")
	d.script = filepath.Join(d.root, "demo.json")
	if err := d.lay(play); err != nil {
		return nil, errors.Join(fmt.Errorf("lay out the demo: %w", err), statefile.RemoveAll(made))
	}
	d.env = d.environment()
	return d, nil
}

// lay writes the sample, the script and a git identity.
func (d *demo) lay(play []byte) error {
	sample, err := fs.Sub(demoFiles, "demo/sample")
	if err != nil {
		return err
	}
	err = fs.WalkDir(sample, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sample, name)
		if err != nil {
			return err
		}
		// The Go files carry .txt, so that they are not taken for ours.
		return write(filepath.Join(d.repo, filepath.FromSlash(strings.TrimSuffix(name, ".txt"))), text)
	})
	if err != nil {
		return err
	}
	identity := "[user]\n\tname = Troupe Demo\n\temail = demo@troupe.invalid\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n"
	return errors.Join(write(d.script, play), write(filepath.Join(d.home, ".gitconfig"), []byte(identity)))
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// environment is all that the demo's programs see: nothing of the user's but
// where programs and Go's build cache are. The cache has what this binary was
// built with, so the test is built with the same flags.
func (d *demo) environment() []string {
	env := []string{"HOME=" + d.home, "USERPROFILE=" + d.home, "TROUPE_HOME=" + filepath.Join(d.home, ".troupe"),
		"GIT_CONFIG_GLOBAL=" + filepath.Join(d.home, ".gitconfig"), "GIT_CONFIG_NOSYSTEM=1",
		"GOENV=off", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off", "GOPATH=" + filepath.Join(d.home, "go")}
	for _, name := range []string{"PATH", "TMPDIR", "TEMP", "TMP", "LANG", "SYSTEMROOT", "COMSPEC", "PATHEXT", "GOROOT"} {
		if v := d.p.lookup(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	cache := d.p.lookup("GOCACHE")
	if dir, err := os.UserCacheDir(); cache == "" && err == nil {
		cache = filepath.Join(dir, "go-build")
	}
	return append(env, append(buildFlags(), "GOCACHE="+cache)...)
}

// buildFlags are the variables by which go builds as it has built this binary.
func buildFlags() []string {
	cgo, flags := "CGO_ENABLED=0", "GOFLAGS=-vet=off -buildvcs=false"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return []string{cgo, flags}
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "CGO_ENABLED":
			cgo = "CGO_ENABLED=" + s.Value
		case s.Key == "-trimpath" && s.Value == "true", s.Key == "-race" && s.Value == "true":
			flags += " " + s.Key
		}
	}
	return []string{cgo, flags}
}

// play lets the agents work and runs the test afterwards.
func (d *demo) play(ctx context.Context) (green bool, err error) {
	out := d.p.out
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "rota"}} {
		if _, err := d.run(ctx, out, d.git, args...); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(out, "A lead and three sub-agents mend a Go program whose test fails.\nThe model is scripted (%s); all else is real.\n\nrepository  %s\nlogs        %s\n\n",
		filepath.Base(d.script), d.repo, host.Sessions(filepath.Join(d.home, ".troupe")))
	if code, err := d.test(ctx, io.Discard); err != nil || code == 0 {
		return false, errors.Join(errors.New("the sample's test should fail before the work"), err)
	}
	if err := d.agents(ctx); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\nWhat changed:\n\n")
	if _, err := d.run(ctx, out, d.git, "--no-pager", "diff", "--no-color", "--no-ext-diff", "HEAD~1", "--", "."); err != nil {
		fmt.Fprintln(out, "nothing was committed")
	}
	fmt.Fprintf(out, "\n$ go test -count=1 ./...\n")
	code, err := d.test(ctx, out)
	return code == 0, err
}

// agents runs `troupe -p` as a user would and shows what its logs say.
func (d *demo) agents(ctx context.Context) error {
	id := uuid.NewString()
	args := []string{"-p", demoPrompt, "--model", "script/" + d.script, "--session-id", id, "--output-format", "json",
		"--permission-mode", "acceptEdits", "--allowed-tools", "Bash(go test *)", "Bash(git add *)", "Bash(git commit *)"}
	var answer, notes strings.Builder
	done := make(chan error, 1)
	go func() {
		outcome, err := proc.Run(ctx, proc.Command{Path: d.self, Args: args, Dir: d.repo, Env: d.env, Stdout: &answer, Stderr: &notes})
		if err == nil && outcome.Code != exitDone {
			err = fmt.Errorf("troupe -p ended with %s: %s", outcome.State, strings.TrimSpace(notes.String()+answer.String()))
		}
		done <- err
	}()
	tally := &cli.Tally{Price: func(string, troupe.Usage) (float64, bool) { return 0, false }}
	line := &cli.Timeline{Out: d.p.out, Tally: tally, Plain: !line.IsTerminal(d.p.out)}
	logs := session.NewReader(session.Path(host.Sessions(filepath.Join(d.home, ".troupe")), d.repo, id))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		over := false
		select {
		case err = <-done:
			over = true
		case <-tick.C:
		}
		records, damage := logs.Next()
		for _, r := range records {
			tally.Add(r)
			if werr := line.Record(r); werr != nil && err == nil {
				err = werr
			}
		}
		if over {
			return errors.Join(err, damage)
		}
	}
}

// test runs the sample's tests, which no cache answers for, and returns the exit
// code.
func (d *demo) test(ctx context.Context, out io.Writer) (int, error) {
	outcome, err := proc.Run(ctx, proc.Command{Path: d.goTool, Args: []string{"test", "-count=1", "./..."}, Dir: d.repo, Env: d.env, Stdout: out, Stderr: out})
	if err != nil {
		return -1, fmt.Errorf("go test: %w", err)
	}
	return outcome.Code, nil
}

func (d *demo) run(ctx context.Context, out io.Writer, path string, args ...string) (int, error) {
	var notes strings.Builder
	outcome, err := proc.Run(ctx, proc.Command{Path: path, Args: args, Dir: d.repo, Env: d.env, Stdout: cli.Screen(out), Stderr: &notes})
	if err == nil && outcome.Code != 0 {
		err = fmt.Errorf("%s: %s", outcome.State, strings.TrimSpace(notes.String()))
	}
	if err != nil {
		return outcome.Code, fmt.Errorf("%s %s: %w", filepath.Base(path), strings.Join(args, " "), err)
	}
	return outcome.Code, nil
}

// end says what came of it and tidies up after a good run.
func (d *demo) end(green, keep bool) error {
	out := d.p.out
	verdict := "green: the test passes"
	if !green {
		verdict = "RED: the test still fails"
	}
	fmt.Fprintf(out, "\n%s.\nWith a real model: set ANTHROPIC_API_KEY or OPENAI_API_KEY and run, in a repository of yours, troupe -p \"…\"\n", verdict)
	if keep || !green {
		fmt.Fprintf(out, "Kept: %s\n", d.root)
		return nil
	}
	if err := statefile.RemoveAll(d.root); err != nil {
		return fmt.Errorf("remove the demo's files: %w", err)
	}
	fmt.Fprintf(out, "Removed the repository and the logs (--keep keeps them).\n")
	return nil
}
