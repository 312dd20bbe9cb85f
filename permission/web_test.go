package permission

import "testing"

// Only a rule that names a host lets it be in a private network, and a child
// has no more of them than its parent.
func TestNamesHost(t *testing.T) {
	for _, c := range []struct {
		rule, host string
		want       bool
	}{
		{"allow WebFetch(domain:wiki.corp)", "wiki.corp", true},
		{"allow WebFetch(domain:Wiki.Corp)", "WIKI.corp.", true},
		{"allow WebFetch(domain:10.0.0.1)", "10.0.0.1", true},
		{"allow WebFetch(domain:localhost)", "localhost", true},
		{"allow WebFetch(domain:*.example.corp)", "wiki.example.corp", true},
		{"allow WebFetch(domain:*.example.corp)", "example.corp", false},
		{"allow WebFetch(domain:*.corp)", "wiki.corp", false},
		{"allow WebFetch(domain:*)", "wiki.corp", false},
		{"allow WebFetch", "wiki.corp", false},
		{"allow WebFetch(domain:wiki.corp)", "a.wiki.corp", false},
		{"ask WebFetch(domain:wiki.corp)", "wiki.corp", false},
		{"deny WebFetch(domain:wiki.corp)", "wiki.corp", false},
		{"allow Bash(domain:wiki.corp)", "wiki.corp", false},
	} {
		p := policy(t, Bypass, c.rule)
		if got := p.NamesHost(c.host); got != c.want {
			t.Errorf("%s names %s: %v", c.rule, c.host, got)
		}
		if got := p.Narrow(Default).NamesHost(c.host); got != c.want {
			t.Errorf("%s names %s for a child: %v", c.rule, c.host, got)
		}
	}
}
