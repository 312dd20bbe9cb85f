package troupetest_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe/troupetest"
)

// The network of a test is one: who trusts the authority gets through the
// proxy to the server, and nobody else does.
func TestNetworkOfTests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Method+" "+r.URL.Path) }))
	defer server.Close()
	authority := troupetest.NewAuthority(t)
	proxy := troupetest.NewProxy(t, authority.Front("far.invalid", time.Now().Add(time.Hour), server.URL), 0)
	plain := troupetest.NewProxy(t, strings.TrimPrefix(server.URL, "http://"), 0)
	refusing := troupetest.NewProxy(t, "", http.StatusProxyAuthRequired)
	text, err := os.ReadFile(authority.File())
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		t.Fatal("the file holds no certificate")
	}
	get := func(proxy *troupetest.Proxy, roots *x509.CertPool, to string) (string, error) {
		u, err := url.Parse(proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: &tls.Config{RootCAs: roots}}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport}).Get(to)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return res.Status + " " + string(body), err
	}
	if got, err := get(proxy, trusted, "https://far.invalid/said-in-secret"); err != nil || got != "200 OK GET /said-in-secret" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := get(plain, nil, "http://far.invalid/y"); err != nil || got != "200 OK GET /y" || !strings.Contains(plain.Read(), "/y") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := get(proxy, x509.NewCertPool(), "https://far.invalid/z"); err == nil {
		t.Error("a stranger's certificate is trusted")
	}
	if _, err := get(refusing, trusted, "https://far.invalid/z"); err == nil {
		t.Error("a proxy that refuses lets through")
	}
	if seen := strings.Join(proxy.Seen(), ", "); seen != "CONNECT far.invalid:443, CONNECT far.invalid:443" || strings.Contains(proxy.Read(), "/said-in-secret") {
		t.Errorf("the proxy saw %s", seen)
	}
}
