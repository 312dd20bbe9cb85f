package permission

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/troupe-sh/troupe"
)

// judgeWeb judges a call of WebFetch by the host of its address.
func (p Policy) judgeWeb(c *troupe.Call) finding {
	var in struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return deny(bySafety, "the address cannot be read: "+err.Error())
	}
	u, err := url.Parse(in.URL)
	if err != nil || u.Hostname() == "" {
		return deny(bySafety, "the address has no host")
	}
	host := plainHost(u.Hostname())
	covers := func(r Rule) bool { return r.coversHost(host) }
	if r, ok := p.first(troupe.Deny, toolWebFetch, covers); ok {
		return deny(byRule, r.cited())
	}
	if r, ok := p.first(troupe.Ask, toolWebFetch, covers); ok {
		return finding{effect: troupe.Ask, by: byRule, reason: r.cited(), firm: true, reads: true}
	}
	if r, ok := p.first(troupe.Allow, toolWebFetch, func(r Rule) bool { return r.spec == "" || covers(r) }); ok {
		return reading(byRule, r.cited())
	}
	return finding{effect: troupe.Ask, by: byMode, reads: true,
		reason: fmt.Sprintf("%s needs approval; add --allowed-tools %s", c.Name, quoteRule("WebFetch(domain:"+host+")"))}
}

// NamesHost reports whether an allow rule names a host, by its own name or by
// that of its domain (*.corp.example), and not just all hosts there are or all
// of a top-level domain. Such a rule means the host wherever it is, in a
// private network too.
func (p Policy) NamesHost(host string) bool {
	host = plainHost(host)
	_, named := p.first(troupe.Allow, toolWebFetch, func(r Rule) bool {
		domain, sub := strings.CutPrefix(strings.TrimPrefix(r.spec, "domain:"), "*.")
		return r.coversHost(host) && domain != "*" && (!sub || strings.Contains(domain, "."))
	})
	return named
}

// coversHost reports whether a rule for WebFetch covers a host, which is plain.
func (r Rule) coversHost(host string) bool {
	domain, ok := strings.CutPrefix(r.spec, "domain:")
	domain = strings.ToLower(domain)
	if sub, all := strings.CutPrefix(domain, "*."); all {
		return strings.HasSuffix(host, "."+sub)
	}
	return ok && (domain == "*" || domain == host)
}

// plainHost is a host as rules are compared with it.
func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }
