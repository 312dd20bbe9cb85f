package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe/config"
)

// trust is `troupe trust`.
func (p *program) trust() *cobra.Command {
	remove := false
	cmd := &cobra.Command{Use: "trust [DIR]", Short: "let the settings of a repository allow things", Args: cobra.MaximumNArgs(1),
		Long: "Until you trust a repository its settings can forbid things, but not allow any: its allow rules,\n" +
			"extra directories and a wider mode are ignored, and so are its models, variables (env), network,\n" +
			"prices and what it would pass to commands. Trust covers the repository and what is below it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return p.setTrust(cmd.Context(), dir, !remove)
		}}
	cmd.Flags().BoolVar(&remove, "remove", false, "take the trust back")
	return cmd
}

func (p *program) setTrust(ctx context.Context, dir string, trusted bool) error {
	home, _, err := p.homes()
	if err != nil {
		return err
	}
	if dir, err = abs(dir); err != nil {
		return err
	}
	if !trusted {
		roots, err := config.Untrust(ctx, home, dir)
		if err != nil {
			return &failure{exitFailed, err}
		}
		if len(roots) == 0 {
			fmt.Fprintln(p.out, dir, "was not trusted")
		}
		for _, root := range roots {
			fmt.Fprintln(p.out, root, "is no longer trusted")
		}
		return nil
	}
	root, err := config.Trust(ctx, home, dir)
	if err != nil {
		return &failure{exitFailed, err}
	}
	fmt.Fprintln(p.out, root, "is trusted")
	return nil
}
