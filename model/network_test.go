package model_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/troupetest"
)

// lookupIn finds variables in a list of pairs.
func lookupIn(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// through asks the server at base through the network of the variables.
func through(t *testing.T, base string, header http.Header, pairs ...string) error {
	t.Helper()
	client, err := model.Network(lookupIn(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	x := &model.Exchange{Provider: "acme", URL: base, KeyName: "ACME_API_KEY"}
	ctx, stop := x.Start(t.Context())
	defer stop()
	res, err := x.Post(ctx, model.Client(client), base+"/v1", header, new(model.Draft))
	if err != nil {
		return x.Fail(ctx, err)
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// closed is an address at which nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestNetwork(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	defer server.Close()
	authority, other := troupetest.NewAuthority(t), troupetest.NewAuthority(t)
	const host = "far.invalid"
	soon := time.Now().Add(time.Hour)
	good := authority.Front(host, soon, server.URL)
	expired := authority.Front(host, time.Now().Add(-time.Minute), server.URL)
	elsewhere := authority.Front("other.invalid", soon, server.URL)
	plain := strings.TrimPrefix(server.URL, "http://")
	key := http.Header{"Authorization": {"Bearer k"}}
	for _, tt := range []struct {
		name, base string
		to         string // where the proxy leads
		status     int    // that it answers with
		env        []string
		header     http.Header
		seen       string
		says       []string // nothing: it works
		temporary  bool
		resolver   bool // whether it is temporary depends on there being one
	}{
		{name: "own authority", base: "https://" + host, to: good, env: []string{"SSL_CERT_FILE", authority.File()}, header: key, seen: "CONNECT far.invalid:443"},
		{name: "the other variable", base: "https://" + host, to: good, env: []string{"NODE_EXTRA_CA_CERTS", authority.File()}, seen: "CONNECT far.invalid:443"},
		{name: "both variables", base: "https://" + host, to: good, env: []string{"SSL_CERT_FILE", other.File(), "NODE_EXTRA_CA_CERTS", authority.File()}, seen: "CONNECT far.invalid:443"},
		{name: "without TLS and key", base: "http://" + host, to: plain, seen: "POST far.invalid"},
		{name: "this machine has no proxy", base: server.URL, to: plain, header: key},
		{name: "host without proxy", base: "https://" + host, to: good, env: []string{"NO_PROXY", "x, .invalid"}, says: []string{"cannot find the host of https://far.invalid"}},
		{name: "no proxy at all", base: "https://" + host, to: good, env: []string{"no_proxy", "*"}, says: []string{"cannot find the host of https://far.invalid"}},
		{name: "nobody's authority", base: "https://" + host, to: good, env: []string{"SSL_CERT_FILE", other.File()}, seen: "CONNECT far.invalid:443",
			says: []string{"no trusted connection to https://far.invalid", "SSL_CERT_FILE or NODE_EXTRA_CA_CERTS"}},
		{name: "expired", base: "https://" + host, to: expired, env: []string{"SSL_CERT_FILE", authority.File()}, seen: "CONNECT far.invalid:443", says: []string{"no trusted connection", "check the clock"}},
		{name: "another host", base: "https://" + host, to: elsewhere, env: []string{"SSL_CERT_FILE", authority.File()}, seen: "CONNECT far.invalid:443", says: []string{"no trusted connection", "check the host name in the base URL"}},
		{name: "no TLS", base: "https://" + host, to: plain, seen: "CONNECT far.invalid:443", says: []string{"https://far.invalid does not speak TLS", "http://"}},
		{name: "a key in clear", base: "http://" + host, to: plain, header: key, says: []string{"could read the key", "use https", "NO_PROXY"}},
		{name: "another key in clear", base: "http://" + host, to: plain, header: http.Header{"X-Api-Key": {"k"}}, says: []string{"could read the key"}},
		{name: "password wanted", base: "https://" + host, status: 407, header: key, seen: "CONNECT far.invalid:443", says: []string{"no way to https://far.invalid", "answers 407", "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"}},
		{name: "password wanted without TLS", base: "http://" + host, status: 407, seen: "POST far.invalid", says: []string{"407", "HTTP_PROXY=http://USER:PASSWORD@HOST:PORT"}},
		{name: "refused", base: "https://" + host, status: 403, seen: "CONNECT far.invalid:443", says: []string{"answers 403 Forbidden", "check HTTPS_PROXY"}},
		{name: "out of order", base: "https://" + host, status: 502, seen: "CONNECT far.invalid:443", says: []string{"answers 502 Bad Gateway", "check HTTPS_PROXY"}, temporary: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			proxy := troupetest.NewProxy(t, tt.to, tt.status)
			u := strings.Replace(proxy.URL(), "http://", "http://user:secret-password@", 1)
			err := through(t, tt.base, tt.header, append(tt.env, "HTTPS_PROXY", u, "HTTP_PROXY", u)...)
			if got := strings.Join(proxy.Seen(), ", "); got != tt.seen {
				t.Errorf("the proxy saw %q, want %q", got, tt.seen)
			}
			if strings.Contains(proxy.Read(), "Bearer k") {
				t.Errorf("the key went to the proxy in clear: %s", proxy.Read())
			}
			if len(tt.says) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *model.APIError
			if !errors.As(err, &e) {
				t.Fatalf("no APIError: %v", err)
			}
			for _, part := range tt.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "secret-password") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error shows the password, or has several lines: %q", err)
			}
			if e.Temporary() != tt.temporary && !tt.resolver {
				t.Errorf("temporary is %v: %v", e.Temporary(), err)
			}
		})
	}
}

func TestProxyThatIsNotThere(t *testing.T) {
	err := through(t, "https://far.invalid", nil, "https_proxy", closed(t))
	var e *model.APIError
	if !errors.As(err, &e) || e.Temporary() || !strings.Contains(err.Error(), "the proxy http://127.0.0.1:") || !strings.Contains(err.Error(), "check HTTPS_PROXY") {
		t.Errorf("%v", err)
	}
}

// The variables in small letters are the stronger ones, and what was set cannot
// be passed over.
func TestNetworkIsRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env  []string
		says []string
	}{
		{[]string{"SSL_CERT_FILE", filepath.Join(dir, "none.pem")}, []string{"SSL_CERT_FILE", filepath.Join(dir, "none.pem")}},
		{[]string{"NODE_EXTRA_CA_CERTS", dir}, []string{"NODE_EXTRA_CA_CERTS", dir}},
		{[]string{"NODE_EXTRA_CA_CERTS", empty}, []string{"NODE_EXTRA_CA_CERTS", empty, "PEM"}},
		{[]string{"HTTPS_PROXY", "ftp://user:password@host"}, []string{"HTTPS_PROXY", "http://HOST:PORT"}},
		{[]string{"HTTP_PROXY", "http://"}, []string{"HTTP_PROXY"}},
		{[]string{"https_proxy", "http://user:pass word@host:1"}, []string{"https_proxy"}},
		{[]string{"https_proxy", ":8080:password", "HTTPS_PROXY", "http://host:1"}, []string{"https_proxy"}},
	} {
		client, err := model.Network(lookupIn(tt.env...))
		if err == nil || client != nil {
			t.Errorf("%q: taken", tt.env)
			continue
		}
		for _, part := range tt.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		if strings.Contains(err.Error(), "pass") || strings.Contains(err.Error(), "\n") {
			t.Errorf("shows the password, or has several lines: %q", err)
		}
	}
	for _, good := range []string{"host:3128", "http://host", "https://u:p@host:1", "socks5://host:1080", "socks5h://host:1080", "[::1]:3128"} {
		if _, err := model.Network(lookupIn("HTTPS_PROXY", good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	// A proxy in small letters goes before one in capitals.
	proxy := troupetest.NewProxy(t, "", http.StatusForbidden)
	if err := through(t, "https://far.invalid", nil, "https_proxy", proxy.URL(), "HTTPS_PROXY", "http://"+closed(t)); err == nil || len(proxy.Seen()) != 1 {
		t.Errorf("%v, seen %v", err, proxy.Seen())
	}
}
