package config

import (
	"fmt"

	"github.com/troupe-sh/troupe"
)

// An Entry is a setting that counts: a single value, or one of a list.
type Entry struct {
	Key    string // as in a settings file, with dots
	Text   string // of a variable it may be secret
	Source string // file, or [CommandLine]
}

// Entries returns all settings that count, each with where it came from, those
// of a list in their order.
func (c *Config) Entries() []Entry {
	var out []Entry
	one := func(key string, v Value) {
		if v.Text != "" {
			out = append(out, Entry{key, v.Text, v.Source})
		}
	}
	one("model", c.Model)
	for _, name := range sortedKeys(c.Aliases) {
		one("models."+name, c.Aliases[name])
	}
	one("permissions.defaultMode", c.Mode)
	one("permissions.disableBypassPermissionsMode", c.NoBypass)
	for _, effect := range []troupe.Effect{troupe.Deny, troupe.Ask, troupe.Allow} {
		for _, r := range c.Rules {
			if r.Effect == effect {
				out = append(out, Entry{"permissions." + string(effect), r.Text, r.Source})
			}
		}
	}
	for _, d := range c.Dirs {
		one("permissions.additionalDirectories", d)
	}
	for _, name := range sortedKeys(c.Env) {
		out = append(out, Entry{"env." + name, c.Env[name].Text, c.Env[name].Source})
	}
	for _, k := range c.PassKeys {
		one("passKeys", k)
	}
	one("sandbox.mode", c.Sandbox.Mode)
	for _, list := range []struct {
		key    string
		values []Value
	}{
		{"filesystem.allowWrite", c.Sandbox.Write}, {"filesystem.denyWrite", c.Sandbox.NoWrite}, {"filesystem.denyRead", c.Sandbox.NoRead},
		{"filesystem.allowRead", c.Sandbox.Read}, {"excludedCommands", c.Sandbox.Excluded}, {"network.allowUnixSockets", c.Sandbox.Sockets},
	} {
		for _, v := range list.values {
			one("sandbox."+list.key, v)
		}
	}
	one("network.proxy", c.Proxy)
	one("network.noProxy", c.NoProxy)
	one("network.caFile", c.CAFile)
	out = append(out, c.limits...)
	out = append(out, c.Crew.shown()...)
	for _, name := range sortedKeys(c.Catalogue) {
		m := c.Catalogue[name]
		for _, n := range []struct {
			key string
			n   int
		}{{"window", m.Window}, {"maxOutput", m.MaxOutput}} {
			if n.n > 0 {
				out = append(out, Entry{"catalogue." + name + "." + n.key, fmt.Sprint(n.n), m.Source})
			}
		}
		if p := m.Price; p != nil {
			out = append(out, Entry{"catalogue." + name + ".price", fmt.Sprintf("input %g, output %g, cacheRead %g, cacheWrite %g",
				p.Input, p.Output, p.CacheRead, p.CacheWrite), m.Source})
		}
	}
	return out
}
