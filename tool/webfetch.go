package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"github.com/troupe-sh/troupe"
)

//go:embed webfetch.md
var webFetchDoc string

// DefaultFetchTime is the time that WebFetch has for a page unless its Timeout
// says another.
const DefaultFetchTime = 30 * time.Second

// maxPage is the size in bytes up to which a page is read, and up to which
// text is made of it.
const maxPage = 10 << 20

// WebFetch is the tool that reads a page of the web. The zero value is ready
// to use.
//
// Whether a host may be visited is decided by a guard, before. What is decided
// here is that its name must not lead into the user's own network: each address
// is looked at when it is connected to, so that a name cannot mean another one
// by then.
type WebFetch struct {
	// Private says whether the user has named the host, so that it may have an
	// address on this machine or in a private network. Host is in lower case
	// and has no dot at its end. Nil is never.
	Private func(host string) bool
	// Transport returns one with the proxy and the certificates to use; nil is
	// the default transport. How it dials counts only for a proxy.
	Transport func() (*http.Transport, error)
	Timeout   time.Duration // for a page; 0 is DefaultFetchTime

	resolver *net.Resolver // nil is the default one
}

type webInput struct {
	URL    string `json:"url" jsonschema:"the address of the page"`
	Prompt string `json:"prompt" jsonschema:"what you want to know from the page"`
}

// Spec implements [troupe.Tool].
func (w WebFetch) Spec() troupe.ToolSpec { return define[webInput]("WebFetch", webFetchDoc) }

// Call implements [troupe.Tool].
func (w WebFetch) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	in, err := input[webInput](c)
	if err != nil {
		return troupe.Result{}, err
	}
	u, err := w.address(in.URL)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("fetch %.200q: %w", in.URL, err)
	}
	limit := w.Timeout
	if limit <= 0 {
		limit = DefaultFetchTime
	}
	errSlow := fmt.Errorf("it took longer than %v", limit)
	within, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	res, err := w.fetch(within, u, in.Prompt)
	if err != nil && errors.Is(context.Cause(within), errSlow) {
		err = errSlow
	}
	if err != nil {
		return res, fmt.Errorf("fetch %s: %w", u, err)
	}
	return res, nil
}

// address is the address to fetch for the one that a call names.
func (w WebFetch) address(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("this is no address: %w", ue.Err)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("this is no address: %w", err)
	case len(raw) > longestURL:
		return nil, fmt.Errorf("the address has %d characters, %d are the most", len(raw), longestURL)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the address must begin with https://")
	case u.Hostname() == "":
		return nil, errors.New("the address has no host")
	case u.User != nil:
		return nil, errors.New("the address has a name or password in it; this tool does not log in")
	}
	// A host in other letters can be another way to write one for which the
	// user has a rule. Rules are compared with what stands in the call.
	if host := u.Hostname(); strings.ContainsFunc(host, func(r rune) bool { return r > 0x7e }) {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil && ascii != "" {
			return nil, fmt.Errorf("write the host in ASCII: %s", ascii)
		}
		return nil, errors.New("the host is no valid name")
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Scheme == "http" && !w.plain(u) {
		u.Scheme = "https"
		if u.Port() == "80" {
			u.Host = strings.TrimSuffix(u.Host, ":80")
		}
	}
	return u, nil
}

// plain says that http stays http: on this machine, and for a port of a host
// that the user has named, as https is not to be had there.
func (w WebFetch) plain(u *url.URL) bool {
	return isLoopback(u.Hostname()) || u.Port() != "" && u.Port() != "80" && w.mayBePrivate(u.Hostname())
}

func (w WebFetch) mayBePrivate(host string) bool {
	return w.Private != nil && w.Private(plainHost(host))
}

// plainHost is a host in the form in which rules are compared with it.
func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// fetch gets the page at u, following redirects on its host.
func (w WebFetch) fetch(ctx context.Context, u *url.URL, prompt string) (troupe.Result, error) {
	var elsewhere *url.URL // to which a redirect leads
	route, err := w.newRoute()
	if err != nil {
		return troupe.Result{}, err
	}
	defer route.close()
	client := http.Client{Transport: route, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		const most = 10
		if len(before) >= most {
			return fmt.Errorf("%d redirects, and no page", most)
		}
		if len(next.URL.String()) > longestURL {
			return errors.New("it redirects to an address that is too long")
		}
		if !sameSite(next.URL, u) {
			elsewhere = next.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return troupe.Result{}, err
	}
	req.Header.Set("User-Agent", "troupe")
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1")
	res, err := client.Do(req)
	if err != nil {
		return troupe.Result{}, fetchCause(err)
	}
	defer res.Body.Close()
	if elsewhere != nil {
		return troupe.Answer(fmt.Sprintf("%s redirects (%s) to another place, which was not followed:\n%s\nCall WebFetch with that address if it is the right one.",
			u, res.Status, elsewhere)), nil
	}
	p, err := readPage(ctx, res)
	if err != nil {
		return troupe.Result{}, err
	}
	return p.result(prompt)
}

// sameSite says that a redirect stays where the user has let the call go: at
// the same host and port, and not from https back to http.
func sameSite(to, from *url.URL) bool {
	port := func(u *url.URL) string {
		if u.Port() == "" && u.Scheme == "https" {
			return "443"
		}
		if u.Port() == "" {
			return "80"
		}
		return u.Port()
	}
	return to.Scheme == from.Scheme && to.User == nil && plainHost(to.Hostname()) == plainHost(from.Hostname()) && port(to) == port(from)
}

// fetchCause is what err says without the address, which the caller names.
func fetchCause(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if refused, ok := errors.AsType[*privateError](err); ok {
		return refused
	}
	return err
}
