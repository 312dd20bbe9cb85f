package model

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Limits of what a network does before a server answers, and of connections
// that nobody uses. None of them ends a stream that is under way: that is the
// idle limit of an [Exchange].
const (
	dialLimit      = 15 * time.Second
	handshakeLimit = 15 * time.Second
	keepAlive      = 30 * time.Second
	unusedLimit    = 90 * time.Second
	pingAfter      = 30 * time.Second // of silence on an HTTP/2 connection …
	pingLimit      = 20 * time.Second // … and the wait for its answer: a dead one is noticed
)

// Network returns the client through which all providers are reached. lookup
// finds variables of the user, "" for those that are not set:
//
//   - HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in capitals or not, say which proxy
//     a request goes through, in the way of golang.org/x/net/http/httpproxy:
//     never one to this machine itself.
//   - SSL_CERT_FILE, NODE_EXTRA_CA_CERTS and TROUPE_CA_FILE name files of certificates in PEM
//     form, which are trusted on top of those of the system.
//
// What is set and cannot be used is an error: to go on without it would send
// the request where the user does not want it, or fail later with a riddle.
//
// A request with a key to a server without TLS is not given to a proxy, which
// could read the key.
func Network(lookup func(string) string) (*http.Client, error) {
	t, err := Transport(lookup)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &network{t}}, nil
}

// Transport returns the transport of [Network], for what else a program has to
// fetch: with the same proxies and authorities.
func Transport(lookup func(string) string) (*http.Transport, error) {
	proxies, err := proxies(lookup)
	if err != nil {
		return nil, err
	}
	roots, err := authorities(lookup)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                  proxies,
		OnProxyConnectResponse: tunnelled,
		DialContext:            (&net.Dialer{Timeout: dialLimit, KeepAlive: keepAlive}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots}, // nil: those of the system
		TLSHandshakeTimeout:    handshakeLimit,
		IdleConnTimeout:        unusedLimit,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingLimit},
	}, nil
}

// network says of an error whether it is the proxy's, which http.Transport does
// not say in one way.
type network struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := n.Transport.RoundTrip(req)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		if proxy, perr := n.Proxy(req); perr == nil && proxy != nil {
			return nil, &proxyError{proxy: proxy, err: op.Err}
		}
	}
	return res, err
}

// A proxyError is a proxy that does not do its work.
type proxyError struct {
	proxy  *url.URL
	status int   // that it refused with; 0 if it was not reached
	err    error // why it was not reached
}

// Error implements error. It shows neither user nor password.
func (e *proxyError) Error() string {
	if e.status != 0 {
		return fmt.Sprintf("the proxy %s answers %d %s", bare(e.proxy.String()), e.status, http.StatusText(e.status))
	}
	return fmt.Sprintf("the proxy %s cannot be reached: %v", bare(e.proxy.String()), e.err)
}

// Unwrap returns the cause.
func (e *proxyError) Unwrap() error { return e.err }

// tunnelled makes a proxy's refusal of a tunnel an error with its status.
func tunnelled(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyError{proxy: proxy, status: res.StatusCode}
}

// errBareKey is the cause for a key that would have to pass a proxy in clear.
var errBareKey = errors.New("a proxy could read the key")

// proxies returns the function that finds the proxy for a request.
func proxies(lookup func(string) string) (func(*http.Request) (*url.URL, error), error) {
	var c httpproxy.Config
	for _, v := range []struct {
		upper, lower string
		to           *string
	}{{"HTTPS_PROXY", "https_proxy", &c.HTTPSProxy}, {"HTTP_PROXY", "http_proxy", &c.HTTPProxy}} {
		for _, name := range []string{v.lower, v.upper} {
			value := lookup(name)
			if value == "" || *v.to != "" {
				continue
			}
			if !IsProxy(value) { // not shown: it may hold a password
				return nil, fmt.Errorf("%s is not the address of a proxy; set it as in http://HOST:PORT", name)
			}
			*v.to = value
		}
	}
	if c.NoProxy = lookup("no_proxy"); c.NoProxy == "" {
		c.NoProxy = lookup("NO_PROXY")
	}
	if c.HTTPSProxy == "" && c.HTTPProxy == "" {
		return func(*http.Request) (*url.URL, error) { return nil, nil }, nil
	}
	choose := c.ProxyFunc()
	return func(req *http.Request) (*url.URL, error) {
		proxy, err := choose(req.URL)
		if proxy != nil && req.URL.Scheme != "https" && (req.Header.Get("Authorization") != "" || req.Header.Get("X-Api-Key") != "") {
			return nil, errBareKey
		}
		return proxy, err
	}, nil
}

// IsProxy reports whether s is what httpproxy and http.Transport understand. The
// first ignores what it does not, and the request would go past the proxy.
func IsProxy(s string) bool {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u.Hostname() != ""
	}
	return false
}

// authorities returns whose certificates are trusted, nil for those that the
// system trusts.
func authorities(lookup func(string) string) (*x509.CertPool, error) {
	var all *x509.CertPool
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "TROUPE_CA_FILE"} {
		path := lookup(name)
		if path == "" {
			continue
		}
		if name == "TROUPE_CA_FILE" {
			name += " (or network.caFile of the settings)"
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of %s: %w", name, err)
		}
		if all == nil {
			if all, err = x509.SystemCertPool(); err != nil {
				all = x509.NewCertPool() // then the user's are all there are
			}
		}
		if !all.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("read the certificates of %s: %s holds none in PEM form", name, path)
		}
	}
	return all, nil
}
