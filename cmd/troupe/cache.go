package main

import (
	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/internal/prefix"
	"github.com/troupe-sh/troupe/session"
)

const cacheLong = `show how much of what the agents of a session sent came from the prompt cache of the
provider, and why not more: the latest session of this directory, if none is named.

A provider can read a request from its cache as far as its bytes are those of an earlier
one. So the bodies as they were sent are compared: where one does not go on with the one
before it, the first byte that differs is named with the part it is in, and what had been
cached and was paid for again. Where the bytes are the same and the provider has counted
less than half of them as read from the cache, that is told, too: the earlier request was
too long ago, or was not answered yet.`

// cache is `troupe cache`.
func (p *program) cache() *cobra.Command {
	each := false
	cmd := p.report("cache", "show what the agents of a session read from the provider's prompt cache, and what broke it", cacheLong,
		func(info session.Info, asJSON bool) error {
			price, err := p.prices()
			if err != nil {
				return err
			}
			found, err := prefix.Look(info.Dir, prefix.Price(price))
			if err != nil {
				return err
			}
			p.unread(found.Notes)
			c := cli.Cache{Session: info.ID, Report: found, Each: each}
			if asJSON {
				return c.JSON(p.out)
			}
			return c.Text(p.out)
		})
	cmd.Flags().BoolVar(&each, "requests", false, "a line for each request, too")
	return cmd
}
