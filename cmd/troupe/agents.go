package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/internal/cli"
)

// agents is `troupe agents`.
func (p *program) agents() *cobra.Command {
	var f flags
	cmd := &cobra.Command{Use: "agents", Short: "list and show the agents that can be started here", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.PersistentFlags().StringVar(&f.agents, "agents", "", "further definitions, a `JSON` object by name")
	cmd.PersistentFlags().StringArrayVar(&f.dirs, "add-dir", nil, "further `directory` to look into")
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "list them, with where each comes from", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return p.listAgents(&f) }},
		&cobra.Command{Use: "show NAME", Short: "show one with its prompt", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return p.showAgent(&f, args[0]) }})
	return cmd
}

// here is the configuration for the working directory.
func (p *program) here(f *flags) (*config.Config, error) {
	home, user, err := p.homes()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the working directory: %w", err)
	}
	if err := f.absolute(); err != nil {
		return nil, err
	}
	return p.config(f, home, user, dir)
}

func (p *program) listAgents(f *flags) error {
	c, err := p.here(f)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	for _, d := range c.Definitions {
		fmt.Fprintf(w, "%s\t%s\t%s\n", cli.Clean(d.Name), cli.OneLine(d.Description, 70), cli.Clean(d.Source))
	}
	return w.Flush()
}

func (p *program) showAgent(f *flags, name string) error {
	c, err := p.here(f)
	if err != nil {
		return err
	}
	for _, d := range c.Definitions {
		if d.Name == name {
			_, err := fmt.Fprint(p.out, cli.Clean(describe(d)))
			return err
		}
	}
	return errors.New("there is no agent " + name + " here; troupe agents list shows which there are")
}

func describe(d troupe.Definition) string {
	var b strings.Builder
	for _, field := range []struct{ name, value string }{
		{"name", d.Name}, {"from", d.Source}, {"description", d.Description}, {"model", d.Model}, {"effort", d.Effort},
		{"tools", tools(d.Tools)}, {"disallowed", strings.Join(d.Disallowed, ", ")}, {"mode", d.Mode}, {"first prompt", d.First},
	} {
		if field.value != "" {
			fmt.Fprintf(&b, "%-13s %s\n", field.name, strings.ReplaceAll(field.value, "\n", "\n              "))
		}
	}
	if d.MaxTurns > 0 {
		fmt.Fprintf(&b, "%-13s %d\n", "turns", d.MaxTurns)
	}
	if d.OmitContextFiles {
		fmt.Fprintf(&b, "%-13s %s\n", "context files", "left out")
	}
	return b.String() + "\n" + strings.TrimSpace(d.Prompt) + "\n"
}

func tools(names []string) string {
	switch {
	case names == nil:
		return "all but Agent"
	case len(names) == 0:
		return "none"
	}
	return strings.Join(names, ", ")
}
