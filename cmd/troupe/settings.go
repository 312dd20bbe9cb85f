package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/model"
)

// load loads the configuration for dir and makes its variables those of the program.
func (p *program) load(f *flags, home, user, dir string) (*config.Config, error) {
	c, err := config.Load(config.Sources{Home: home, UserHome: user, Dir: dir, Settings: f.settings, Agents: f.agents, Managed: managedSettings,
		AddDirs: f.dirs, Layers: f.sources, Tools: host.Known(), Reaches: model.NewCatalogue().Decides})
	if err != nil {
		return c, err
	}
	if p.before == nil {
		p.before = p.env
	}
	p.env, p.network, p.known = c.Environ(p.before), map[string]string{}, facts(c)
	for _, set := range []struct {
		to    config.Value
		names []string
	}{
		{c.Proxy, []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}},
		{c.NoProxy, []string{"NO_PROXY", "no_proxy"}},
		{c.CAFile, []string{"TROUPE_CA_FILE"}},
	} {
		for _, name := range set.names {
			if set.to.Text != "" {
				p.network[name] = set.to.Text
			}
		}
	}
	if v := c.Proxy; v.Text != "" && !model.IsProxy(v.Text) { // not shown: it may hold a password
		return c, fmt.Errorf("%s: network.proxy is not the address of a proxy; set it as in http://HOST:PORT", v.Source)
	}
	if v := c.CAFile; v.Text != "" {
		if _, err := os.Stat(v.Text); err != nil {
			return c, fmt.Errorf("%s: network.caFile: %w", v.Source, err)
		}
	}
	return c, nil
}

// models are those that can be reached from here.
func (p *program) models(c *config.Config) *host.Models {
	aliases := map[string]string{}
	for name, v := range c.Aliases {
		aliases[name] = v.Text
	}
	own := *p // another session may load other settings
	return host.NewModels(own.lookup, aliases, c.Dir, time.Now, rand.Float64, p.known...)
}

// facts are what the settings say of models.
func facts(c *config.Config) (out []model.Info) {
	for _, name := range slices.Sorted(maps.Keys(c.Catalogue)) {
		m := c.Catalogue[name]
		i := model.Info{Provider: m.Provider, Name: m.Name, Window: m.Window, MaxOutput: m.MaxOutput}
		if m.Price != nil {
			i.Priced = true
			i.Price = model.Price{Input: m.Price.Input, Output: m.Price.Output, CacheRead: m.Price.CacheRead, CacheWrite: m.Price.CacheWrite}
		}
		out = append(out, i)
	}
	return out
}

// say tells the user something, in one line and without a key.
func (p *program) say(text string) { fmt.Fprintln(p.notes, "troupe: "+p.hidden(cli.Clean(text))) }

// hidden is text without the keys that this program knows, by its environment
// or by settings.
func (p *program) hidden(text string) string {
	return host.NewModels(p.lookup, nil, "", time.Now, rand.Float64).Hidden(slices.Concat(p.before, p.env))(text)
}

func texts(problems []config.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.Error())
	}
	return out
}

// showSettings is `troupe doctor --settings`: every value that counts, with the
// file it is from.
func (p *program) showSettings() error {
	home, user, err := p.homes()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("the working directory: %w", err)
	}
	c, err := p.load(&flags{}, home, user, dir)
	if c == nil {
		return err
	}
	w := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	for _, e := range c.Entries() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", cli.Clean(e.Key), p.hidden(cli.Clean(shown(e))), cli.Clean(e.Source))
	}
	if werr := w.Flush(); werr != nil {
		return fmt.Errorf("write the settings: %w", werr)
	}
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Without effect until this folder is trusted (troupe trust):", c.Withheld},
		{"This project, which you trust, decides how models are reached:", c.Reach},
		{"Found, and without effect in this version:", slices.Concat(c.Unused, c.Elsewhere)},
		{"Variables of other tools, which are not read:", foreign(p.env)},
		{"Wrong:", texts(c.Problems)},
	} {
		if len(part.lines) > 0 {
			fmt.Fprintln(p.out, "\n"+part.title)
		}
		for _, line := range part.lines {
			fmt.Fprintln(p.out, "  "+p.hidden(cli.Clean(line)))
		}
	}
	if err != nil {
		return &failure{exitFailed, err}
	}
	return nil
}

// shown is the value of an entry. What is in a variable may be secret, but for
// what decides how models are reached; a password in an address is none to show.
func shown(e config.Entry) string {
	name, isVariable := strings.CutPrefix(e.Key, "env.")
	switch {
	case isVariable && !model.NewCatalogue().Decides(name):
		return fmt.Sprintf("(%d characters, not shown)", len([]rune(e.Text)))
	case isVariable, e.Key == "network.proxy":
		return regexp.MustCompile(`//[^/@]*@`).ReplaceAllString(e.Text, "//[password]@")
	}
	return e.Text
}

// foreign are the names of variables in env that other tools read and troupe
// does not.
func foreign(env []string) (names []string) {
	known := []string{"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL",
		"ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_CUSTOM_HEADERS", "API_TIMEOUT_MS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS",
		"BASH_MAX_OUTPUT_LENGTH", "DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "DISABLE_PROMPT_CACHING", "ENABLE_PROMPT_CACHING_1H",
		"MAX_THINKING_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "OPENAI_API_BASE", "OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT",
		"TASK_MAX_OUTPUT_LENGTH"}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "CLAUDE_") || slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
