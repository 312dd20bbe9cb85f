package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/model"
)

// modelsCommand is `troupe models`.
func (p *program) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "models", Short: "list and show models: window, price, where the key is from", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	all := false
	list := &cobra.Command{Use: "list", Short: "list the models of the providers for which you have set a key or an address", Args: cobra.NoArgs,
		Long: `list the models of the providers for which you have set a key or an address.

Numbers are tokens; prices are dollars for a million of them. A server of your own
(OPENAI_BASE_URL, OLLAMA_HOST) is asked what it offers.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listModels(cmd.Context(), all) }}
	list.Flags().BoolVar(&all, "all", false, "all models of the catalogue")
	show := &cobra.Command{Use: "show NAME", Short: "show one, by name or alias", Args: cobra.ExactArgs(1), ValidArgsFunction: p.modelNames,
		RunE: func(_ *cobra.Command, args []string) error { return p.showModel(args[0]) }}
	cmd.AddCommand(list, show)
	return cmd
}

// A source is a provider as the user has set it up.
type source struct {
	endpoint model.Endpoint
	set      bool   // the user has set a key or an address
	asked    bool   // its models are the server's own list
	key      string // what there is to say of its key
	models   []model.Info
}

// sources returns all providers with the models that the catalogue has of them.
func (p *program) sources(c *model.Catalogue) (out []source) {
	for _, name := range c.Providers() {
		e, err := c.Endpoint(model.Name{Provider: name}, p.lookup)
		s := source{endpoint: e, set: err == nil, models: c.Models(name)}
		switch {
		case name == "ollama":
			s.set, s.key = p.lookup("OLLAMA_HOST") != "", "needs no key"
		case e.Key != "" || e.Token != "":
			s.key = "key from " + e.KeyName
		case err == nil:
			s.key = "no key, address is set"
		case errors.Is(err, model.ErrNoKey):
			s.key = "no key: set " + e.KeyName
		default:
			s.key = "no address"
		}
		out = append(out, s)
	}
	return out
}

// ownServers are the variables for the address of a server that has models of
// its own.
var ownServers = map[string]string{"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_HOST"}

// ask puts the server's own list in place of the catalogue's, which is for
// another server.
func (p *program) ask(ctx context.Context, c *model.Catalogue, s *source) error {
	client, err := model.Network(p.lookup)
	if err != nil {
		return err
	}
	names, err := model.Offered(ctx, client, s.endpoint)
	if err != nil {
		return err
	}
	s.asked, s.models = true, nil
	for _, name := range names {
		i, _ := c.Lookup(s.endpoint.Provider, name)
		s.models = append(s.models, i)
	}
	return nil
}

func (p *program) listModels(ctx context.Context, all bool) error {
	if _, err := p.here(&flags{}); err != nil {
		return err
	}
	c := model.NewCatalogue(p.known...)
	shown := slices.DeleteFunc(p.sources(c), func(s source) bool { return !s.set && !all })
	if len(shown) == 0 {
		fmt.Fprintln(p.notes, "no provider is set up: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or the address of a server of your own "+
			"in OPENAI_BASE_URL or OLLAMA_HOST (--all shows the whole catalogue)")
		return nil
	}
	w := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tWINDOW\tREPLY\tIN\tOUT\tCACHE READ\tCACHE WRITE\tFROM\tKEY")
	for _, s := range shown {
		if variable := ownServers[s.endpoint.Provider]; variable != "" && p.lookup(variable) != "" {
			if err := p.ask(ctx, c, &s); err != nil {
				fmt.Fprintf(p.notes, "troupe: what %s offers is not known: %s\n", variable, cli.Clean(err.Error()))
			} else if len(s.models) == 0 {
				fmt.Fprintf(p.notes, "troupe: the server of %s says that it offers no model\n", variable)
			}
		}
		for _, i := range s.models {
			p.row(w, i, s)
		}
	}
	return w.Flush()
}

func (p *program) row(w io.Writer, i model.Info, s source) {
	from := "catalogue"
	switch {
	case p.knows(i):
		from = "settings"
	case s.asked:
		from = "server"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t", cli.Clean(i.Provider+"/"+i.Name), count(i.Window), count(i.MaxOutput))
	for _, d := range []float64{i.Price.Input, i.Price.Output, i.Price.CacheRead, i.Price.CacheWrite} {
		fmt.Fprintf(w, "%s\t", dollars(d, i.Priced))
	}
	fmt.Fprintf(w, "%s\t%s\n", from, s.key)
}

// knows reports whether the settings say something of a model.
func (p *program) knows(i model.Info) bool {
	return slices.ContainsFunc(p.known, func(k model.Info) bool { return k.Provider == i.Provider && k.Name == i.Name })
}

// count is a number of tokens, "-" if it is not known.
func count(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// dollars is a price, "-" if it is not known.
func dollars(d float64, known bool) string {
	if !known {
		return "-"
	}
	return "$" + strconv.FormatFloat(math.Round(d*1e4)/1e4, 'f', -1, 64) // the data has sums of binary fractions
}

func (p *program) showModel(name string) error {
	settings, err := p.here(&flags{})
	if err != nil {
		return err
	}
	aliases := map[string]string{}
	for alias, v := range settings.Aliases {
		aliases[alias] = v.Text
	}
	c := model.NewCatalogue(p.known...)
	n, err := c.Parse(name, aliases)
	if err != nil {
		return err
	}
	all := p.sources(c)
	at := slices.IndexFunc(all, func(s source) bool { return s.endpoint.Provider == n.Provider })
	if at < 0 {
		return fmt.Errorf("%s is no model of a provider", n)
	}
	i, known := c.Lookup(n.Provider, n.Model)
	return p.describeModel(i, known, all[at])
}

func (p *program) describeModel(i model.Info, known bool, s source) error {
	const unknown = "not known"
	from, window, reply, price, server := "catalogue", unknown, unknown, unknown, unknown
	switch {
	case p.knows(i):
		from = "settings, and the catalogue for what they do not say"
	case !known:
		from = "not in the catalogue; its provider may have it"
	}
	if i.Window > 0 {
		window = count(i.Window) + " tokens"
	}
	if i.MaxOutput > 0 {
		reply = "at most " + count(i.MaxOutput) + " tokens"
	}
	if i.Priced {
		price = fmt.Sprintf("%s in, %s out, %s from cache, %s to cache, for a million tokens", dollars(i.Price.Input, true),
			dollars(i.Price.Output, true), dollars(i.Price.CacheRead, true), dollars(i.Price.CacheWrite, true))
	}
	if s.endpoint.BaseURL != "" {
		server = s.endpoint.Server()
	}
	for _, line := range [][2]string{
		{"model", i.Provider + "/" + i.Name}, {"from", from}, {"window", window}, {"reply", reply}, {"price", price},
		{"server", server}, {"protocol", string(s.endpoint.Dialect)}, {"key", s.key},
	} {
		if _, err := fmt.Fprintf(p.out, "%-9s %s\n", line[0], cli.Clean(line[1])); err != nil {
			return fmt.Errorf("write what is known of the model: %w", err)
		}
	}
	return nil
}

// modelNames completes names of models: those of the providers that are set up,
// or of all if none is.
func (p *program) modelNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all := p.sources(model.NewCatalogue())
	isSet := func(s source) bool { return s.set }
	var names []string
	for _, s := range all {
		if !s.set && slices.ContainsFunc(all, isSet) {
			continue
		}
		for _, i := range s.models {
			names = append(names, i.Provider+"/"+i.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// mostOffered is how many names an error lists.
const mostOffered = 20

// unnamed adds to the error for want of a model what the server offers, if the
// user has named a server and no model.
func (p *program) unnamed(ctx context.Context, err error) error {
	if !errors.Is(err, model.ErrNoModel) || p.lookup("OPENAI_BASE_URL") == "" {
		return err
	}
	c := model.NewCatalogue()
	e, eerr := c.Endpoint(model.Name{Provider: "openai"}, p.lookup)
	if eerr != nil {
		return err
	}
	s := source{endpoint: e}
	if aerr := p.ask(ctx, c, &s); aerr != nil {
		return fmt.Errorf("%w (what it offers is not known: %w)", err, aerr)
	}
	var names []string
	for _, i := range s.models {
		names = append(names, i.Name)
	}
	switch n := len(names); {
	case n == 0:
		return fmt.Errorf("%w (it says that it offers none)", err)
	case n > mostOffered:
		return fmt.Errorf("%w; it offers %s and %d more (troupe models list shows all)", err, strings.Join(names[:mostOffered], ", "), n-mostOffered)
	}
	return fmt.Errorf("%w; it offers %s", err, strings.Join(names, ", "))
}
