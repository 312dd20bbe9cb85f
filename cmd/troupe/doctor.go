package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/proc"
)

// A finding is a line of the doctor's report.
type finding struct {
	ok           bool
	what, detail string
}

// doctor is `troupe doctor`.
func (p *program) doctor() *cobra.Command {
	settings := false
	cmd := &cobra.Command{Use: "doctor", Short: "check what troupe finds here: home, programs, model, settings", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if settings {
				return p.showSettings()
			}
			broken := false
			for _, f := range p.examine(cmd.Context()) {
				mark := "✓"
				if !f.ok {
					mark, broken = "✗", true
				}
				fmt.Fprintf(p.out, "%s %-10s %s\n", mark, f.what, p.hidden(cli.Clean(f.detail)))
			}
			if broken {
				return &failure{code: exitFailed}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&settings, "settings", false, "show each setting that counts and the file it is from, and what is not used")
	return cmd
}

func (p *program) examine(ctx context.Context) []finding {
	out := []finding{{true, "version", versionText()}}
	home, user, err := p.homes()
	if err != nil {
		return append(out, finding{false, "home", err.Error()})
	}
	out = append(out, writable(home))
	for _, name := range []string{"git", "bash"} {
		out = append(out, p.program(name))
	}
	dir, err := os.Getwd()
	if err != nil {
		return append(out, finding{false, "directory", err.Error()})
	}
	c, err := p.load(&flags{}, home, user, dir)
	if err != nil {
		return append(out, finding{false, "settings", err.Error()})
	}
	trust := "trusted"
	if !c.Trusted {
		trust = "not trusted: what the project's settings allow does not count (troupe trust changes that)"
	}
	out = append(out, finding{true, "directory", c.Dir + ", " + trust}, p.modelFinding(c), rules(c, user), p.sandboxFinding(ctx, c),
		finding{true, "agents", fmt.Sprint(len(c.Definitions))})
	for _, problem := range c.Problems {
		out = append(out, finding{false, "settings", problem.Error()})
	}
	for _, line := range slices.Concat(c.Warnings, c.Unused) {
		out = append(out, finding{true, "note", line})
	}
	return out
}

// rules tells of the first rule for which every run would be refused.
func rules(c *config.Config, user string) finding {
	for _, r := range c.Rules {
		_, err := permission.ParseRule(r.Effect, r.Text, permission.Origin{Source: r.Source, Root: r.Root, Home: user})
		if err != nil && r.Effect != troupe.Allow {
			return finding{false, "rules", err.Error()}
		}
	}
	return finding{true, "rules", fmt.Sprint(len(c.Rules))}
}

// writable tries what every session does: to make a file in the home.
func writable(home string) finding {
	dir := host.Sessions(home)
	f := finding{false, "home", ""}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.detail = err.Error() + "; set TROUPE_HOME to a directory you can write"
		return f
	}
	probe, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		f.detail = err.Error() + "; set TROUPE_HOME to a directory you can write"
		return f
	}
	_ = probe.Close()
	if err := statefile.Remove(probe.Name()); err != nil {
		f.detail = err.Error()
		return f
	}
	return finding{true, "home", filepath.Clean(home)}
}

func (p *program) program(name string) finding {
	path, err := proc.Look(name, p.env)
	switch {
	case err == nil:
		return finding{true, name, path}
	case name == "bash":
		return finding{true, name, "not found: commands run in sh"}
	}
	return finding{false, name, "not found: agents cannot tell the state of a repository; install git"}
}

// modelFinding tells which model would be used. The key is never shown.
func (p *program) modelFinding(c *config.Config) finding {
	models := p.models(c)
	name, err := models.Choose(p.lookup("TROUPE_MODEL"), c.Model.Text)
	if err != nil {
		return finding{false, "model", err.Error()}
	}
	key := models.KeyName(name)
	if key == "none" {
		return finding{true, "model", name + ", without a key"}
	}
	return finding{true, "model", strings.Join([]string{name, "key from " + key}, ", ")}
}
