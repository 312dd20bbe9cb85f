package tool

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// A privateError refuses an address in the user's own network.
type privateError struct {
	host string
	addr netip.Addr
}

func (e *privateError) Error() string {
	where := e.host
	if e.addr.IsValid() && e.addr.String() != e.host {
		where = fmt.Sprintf("%s (%s)", e.host, e.addr)
	}
	return fmt.Sprintf("%s is on this machine or in a private network; only a rule that names the host allows that: --allowed-tools 'WebFetch(domain:%s)'", where, e.host)
}

// A route carries the requests of one call: to the proxy that there is for
// them, or straight to a host of which the addresses are looked at.
type route struct {
	fetch   WebFetch
	proxied *http.Transport
	direct  *http.Transport
}

func (w WebFetch) newRoute() (route, error) {
	from, _ := http.DefaultTransport.(*http.Transport)
	if w.Transport != nil {
		var err error
		if from, err = w.Transport(); err != nil {
			return route{}, err
		}
	}
	if from == nil { // somebody has put something else in place of the default
		from = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	}
	r := route{fetch: w, proxied: from.Clone(), direct: from.Clone()}
	r.direct.Proxy = nil
	r.direct.DialTLSContext = nil
	r.direct.DialContext = r.dial
	return r, nil
}

// close ends the connections that are left.
func (r route) close() {
	r.proxied.CloseIdleConnections()
	r.direct.CloseIdleConnections()
}

// RoundTrip implements [http.RoundTripper].
func (r route) RoundTrip(req *http.Request) (*http.Response, error) {
	var proxy *url.URL
	if r.proxied.Proxy != nil {
		var err error
		if proxy, err = r.proxied.Proxy(req); err != nil {
			return nil, fmt.Errorf("find the proxy: %w", err)
		}
	}
	if proxy == nil {
		return r.direct.RoundTrip(req)
	}
	if err := r.checkProxied(req.Context(), req.URL.Hostname()); err != nil {
		return nil, err
	}
	return r.proxied.RoundTrip(req)
}

// checkProxied refuses what is known to be private here. The proxy finds the
// address by itself and may find another, so this is all that can be seen.
func (r route) checkProxied(ctx context.Context, host string) error {
	if r.fetch.mayBePrivate(host) {
		return nil
	}
	if isLoopback(host) {
		return &privateError{host: host}
	}
	resolver := r.fetch.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // behind a proxy names of the world are often not to be had
	}
	for _, a := range addrs {
		if !isPublic(a) {
			return &privateError{host, a.Unmap()}
		}
	}
	return nil
}

// dial connects to a host. The address is looked at when it is known for good,
// right before the connection is made.
func (r route) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Resolver: r.fetch.resolver}
	if !r.fetch.mayBePrivate(host) {
		d.Control = func(_, real string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(real)
			if err != nil {
				return err
			}
			if !isPublic(to.Addr()) {
				return &privateError{host, to.Addr().Unmap()}
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, address)
}

// isLoopback says that a host is this machine by its very name.
func isLoopback(host string) bool {
	host = plainHost(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// isPublic says that an address is one of the open network, by IANA's
// registries of special addresses (RFC 6890 and what came after).
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	special := []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", // tunnels, documentation
	}
	for _, s := range special {
		if netip.MustParsePrefix(s).Contains(a) {
			return false
		}
	}
	if a.Is4() {
		return true
	}
	// Addresses of IPv4 as a translator makes them.
	if b := a.As16(); netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		return isPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	return netip.MustParsePrefix("2000::/3").Contains(a)
}
