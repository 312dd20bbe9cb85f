package forge

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/troupe-sh/troupe/internal/secret"
)

// DefaultURL is the API that is asked if no other is named.
const DefaultURL = "https://api.github.com"

// A Server says how an API is reached. Printing one does not show its token.
type Server struct {
	URL   string // base address; "" is DefaultURL
	Token string // "" asks as nobody: public repositories, and few requests an hour

	// Transport carries the requests; it knows proxies and authorities.
	Transport http.RoundTripper
	Now       func() time.Time
	Rand      func() float64 // jitter, in [0,1); nil is math/rand
}

// String names the address, without the token.
func (s Server) String() string { return bare(s.URL) }

// GoString is String, for %#v.
func (s Server) GoString() string { return s.String() }

// From fills in the address and the token of s by what lookup says of the user's
// variables, "" for those that are not set: GITHUB_API_URL, and GITHUB_TOKEN or
// else GH_TOKEN.
func (s Server) From(lookup func(string) string) Server {
	s.URL = strings.TrimSpace(lookup("GITHUB_API_URL"))
	for _, name := range []string{"GITHUB_TOKEN", "GH_TOKEN"} {
		if s.Token = strings.TrimSpace(lookup(name)); s.Token != "" {
			break
		}
	}
	return s
}

// An API is a server that was opened. All watches of a process share one: it
// makes one request at a time, as such servers ask for, and when one watch is told
// to wait, all do. It is safe for concurrent use.
type API struct {
	base   *url.URL
	token  string
	mask   *secret.Mask
	client *http.Client
	now    func() time.Time
	rand   func() float64

	turn  chan struct{} // holds a value while a request is made; guards what follows
	until time.Time     // no request before
	left  int           // requests until reset, as the server said last; -1 if it did not
	reset time.Time
}

var (
	// ErrAddress is in the error for an address that no request may go to.
	ErrAddress = errors.New("no address to send requests to")
	// ErrToken is in the error for a token that is not accepted, or that
	// cannot be sent.
	ErrToken = errors.New("token not accepted")
	// ErrNotFound is in the error for a pull request that is not there, or not
	// for this token.
	ErrNotFound = errors.New("pull request not found")
)

// Open checks s and returns the API. It makes no request.
func Open(s Server) (*API, error) {
	if s.URL == "" {
		s.URL = DefaultURL
	}
	base, err := url.Parse(s.URL)
	if err != nil || base.Hostname() == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("GITHUB_API_URL: %w; set it to https://HOST, with a path if the API has one, as in https://HOST/api/v3", ErrAddress)
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("GITHUB_API_URL: %w: it has more than a host and a path; set the token in GITHUB_TOKEN", ErrAddress)
	}
	if base.Scheme == "http" && s.Token != "" && !loopback(base.Hostname()) {
		return nil, fmt.Errorf("GITHUB_API_URL: %w: %s is not encrypted, and the token would be read on the way; use https", ErrAddress, bare(s.URL))
	}
	if strings.ContainsFunc(s.Token, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r > unicode.MaxASCII }) {
		return nil, fmt.Errorf("GITHUB_TOKEN or GH_TOKEN: %w: it has characters that no token has; set it anew", ErrToken)
	}
	base.Path, base.RawPath = strings.TrimRight(base.Path, "/"), ""
	a := &API{base: base, token: s.Token, mask: secret.New(s.Token), now: s.Now, rand: s.Rand, turn: make(chan struct{}, 1), left: -1}
	if a.rand == nil {
		a.rand = rand.Float64
	}
	a.client = &http.Client{Transport: s.Transport, CheckRedirect: a.redirect}
	return a, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// errElsewhere is the cause for an answer that leads away from the server.
var errElsewhere = errors.New("the answer leads to another server, which the token is not for; check GITHUB_API_URL")

// same reports whether u is of the server, by scheme, host and port.
func (a *API) same(u *url.URL) bool {
	return u.Scheme == a.base.Scheme && strings.EqualFold(u.Host, a.base.Host) && u.User == nil
}

// redirect follows within the server only: a repository that was renamed.
// Package net/http would take the token along to hosts below it.
func (a *API) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case !a.same(req.URL):
		return errElsewhere
	case len(via) > 3:
		return errors.New("redirected more than 3 times")
	}
	return nil
}

// bare is an address without user, password and query.
func bare(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the address"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return oneLine(u.String(), 200)
}

// oneLine makes a text fit for a line of a log or an error.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return text
}
