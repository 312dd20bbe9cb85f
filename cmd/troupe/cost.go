package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/session"
)

const costLong = `show what a session has cost, by agent and by model: the latest one of this
directory, if none is named.

Tokens are as providers have counted them, also for replies that broke off. An agent's
line is without the agents that it started. Dollars are by the prices of the catalogue
and of your settings as they are today; what has no price is unknown, and not nothing.`

// cost is `troupe cost`.
func (p *program) cost() *cobra.Command {
	return p.report("cost", "show what a session has cost, by agent and by model", costLong, func(info session.Info, asJSON bool) error {
		price, err := p.prices()
		if err != nil {
			return err
		}
		tally := &cli.Tally{Price: price}
		records, damage := session.NewReader(info.Dir).Next()
		for _, r := range records {
			tally.Add(r)
		}
		costs := tally.Costs()
		costs.Session, costs.Damaged = info.ID, p.missing(damage)
		if asJSON {
			return costs.JSON(p.out)
		}
		return costs.Text(p.out)
	})
}

// report is a command that looks at a session, the latest of this directory unless
// one is named, and prints what it finds in one of two formats.
func (p *program) report(name, short, long string, show func(info session.Info, asJSON bool) error) *cobra.Command {
	format := ""
	cmd := &cobra.Command{Use: name + " [ID]", Short: short, Long: long, Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.sessionIDs}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if format != "text" && format != "json" {
			return fmt.Errorf("--output-format %s: want text or json", format)
		}
		info, err := p.named(args)
		if err != nil {
			return err
		}
		if err := show(info, format == "json"); err != nil {
			return &failure{exitFailed, err}
		}
		return nil
	}
	cmd.Flags().StringVar(&format, "output-format", "text", "`format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output-format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // it exists
	return cmd
}

// named returns the session whose ID is the argument, or the latest one that works
// in this directory.
func (p *program) named(args []string) (session.Info, error) {
	if len(args) > 0 {
		return p.find(args[0])
	}
	home, _, err := p.homes()
	if err != nil {
		return session.Info{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return session.Info{}, fmt.Errorf("the working directory: %w", err)
	}
	found, lost := session.List(host.Sessions(home), dir)
	if len(found) > 0 {
		return found[0], nil
	}
	if lost != nil {
		return session.Info{}, lost
	}
	return session.Info{}, errors.New("no sessions here yet; name one of another directory (troupe sessions list --all shows them)")
}

// prices returns what models cost by the catalogue and by settings, or without these,
// if they cannot be read.
func (p *program) prices() (cli.Price, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the working directory: %w", err)
	}
	if home, user, err := p.homes(); err == nil {
		_, _ = p.load(&flags{}, home, user, dir)
	}
	return host.NewModels(p.lookup, nil, dir, time.Now, nil, p.known...).Price, nil
}

// missing tells of what could not be read of a session, a line each, and returns how
// much that is.
func (p *program) missing(damage error) int {
	if damage == nil {
		return 0
	}
	lines := slices.DeleteFunc(strings.Split(damage.Error(), "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
	p.unread(lines)
	return len(lines)
}

// unread tells of what could not be read, a line each.
func (p *program) unread(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(p.notes, "troupe: not read: "+cli.OneLine(line, 300))
	}
}
