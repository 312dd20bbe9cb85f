package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/internal/line"
	"github.com/troupe-sh/troupe/session"
)

// sessions is `troupe sessions`.
func (p *program) sessions() *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "list, show and remove sessions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	all := false
	list := &cobra.Command{Use: "list", Short: "list the sessions of this directory, the newest first", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.listSessions(all) }}
	list.Flags().BoolVar(&all, "all", false, "those of all directories")
	bodies := false
	show := &cobra.Command{Use: "show ID", Short: "show what the agents of a session did", Args: cobra.ExactArgs(1), ValidArgsFunction: p.sessionIDs,
		RunE: func(_ *cobra.Command, args []string) error { return p.showSession(args[0], bodies) }}
	show.Flags().BoolVar(&bodies, "requests", false, "print the exact bodies of the requests that the lead sent, one a line")
	remove := &cobra.Command{Use: "rm ID ...", Short: "remove sessions with all they hold", Args: cobra.MinimumNArgs(1), ValidArgsFunction: p.sessionIDs,
		RunE: func(_ *cobra.Command, args []string) error { return p.removeSessions(args) }}
	cmd.AddCommand(list, show, remove)
	return cmd
}

// sessionIDs completes the IDs of all sessions.
func (p *program) sessionIDs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	home, _, err := p.homes()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := session.List(host.Sessions(home), "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID+"\t"+cli.OneLine(s.Prompt, 40))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) listSessions(all bool) error {
	home, _, err := p.homes()
	if err != nil {
		return err
	}
	dir := ""
	if !all {
		if dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("the working directory: %w", err)
		}
	}
	found, lost := session.List(host.Sessions(home), dir)
	if len(found) == 0 && lost == nil {
		fmt.Fprintln(p.notes, "no sessions here yet (--all shows those of other directories)")
		return nil
	}
	w := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	for _, s := range found {
		where := ""
		if all {
			where = cli.Clean(s.Project) + "\t"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", s.ID, s.Last.Local().Format(time.DateTime), cli.Clean(s.Model), where, cli.OneLine(s.Prompt, 60))
	}
	if err := errors.Join(w.Flush(), lost); err != nil {
		return &failure{exitFailed, err}
	}
	return nil
}

func (p *program) find(id string) (session.Info, error) {
	home, _, err := p.homes()
	if err != nil {
		return session.Info{}, err
	}
	return session.Find(host.Sessions(home), strings.ToLower(id))
}

func (p *program) showSession(id string, bodies bool) error {
	info, err := p.find(id)
	if err != nil {
		return err
	}
	if bodies {
		for r, err := range session.Requests(info.Dir, session.Lead) {
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(p.out, "%s\n", r.Body); err != nil {
				return fmt.Errorf("write a request: %w", err)
			}
		}
		return nil
	}
	price, err := p.prices()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "session  %s\nin       %s\nlogs     %s\nmodel    %s\n\n", info.ID, cli.Clean(info.Project), info.Dir, cli.Clean(info.Model))
	return p.timeline(p.out, info.Dir, price)
}

// timeline prints what the logs of a session hold now, and what it cost.
func (p *program) timeline(w io.Writer, dir string, price cli.Price) error {
	tally := &cli.Tally{Price: price}
	line := cli.Timeline{Out: w, Tally: tally, Plain: !line.IsTerminal(w)}
	records, damage := session.NewReader(dir).Next()
	for _, r := range records {
		tally.Add(r)
		if err := line.Record(r); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\n%s\n", cli.Bill(tally))
	return damage
}

func (p *program) removeSessions(ids []string) error {
	var errs []error
	for _, id := range ids {
		info, err := p.find(id)
		if info.Dir != "" { // also if it cannot be read
			err = session.Remove(info.Dir)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintln(p.out, "removed", info.ID)
	}
	if err := errors.Join(errs...); err != nil {
		return &failure{exitFailed, err}
	}
	return nil
}
