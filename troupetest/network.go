package troupetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// An Authority signs certificates of servers, as the authority of a company
// does: no system trusts it by itself.
type Authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewAuthority makes one.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.cert = a.sign(form, form, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *Authority) sign(form, parent *x509.Certificate, of *ecdsa.PrivateKey) *x509.Certificate {
	raw, err := x509.CreateCertificate(rand.Reader, form, parent, &of.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// File writes the authority's own certificate to a file and returns its path.
func (a *Authority) File() string {
	path := filepath.Join(a.t.TempDir(), "authority.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// Front starts a TLS server with a certificate for host that the authority has
// signed and that ends at a time. It passes requests on to a server without
// TLS, and returns its address.
func (a *Authority) Front(host string, ends time.Time, to string) (address string) {
	target, err := url.Parse(to)
	if err != nil {
		a.t.Fatal(err)
	}
	key := newKey(a.t)
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: ends.Add(-2 * time.Hour), NotAfter: ends,
	}, a.cert, key)
	s := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it are what tests want
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A Proxy is an HTTP proxy on the loopback interface. It takes every host name
// for that of one server.
type Proxy struct {
	t      testing.TB
	server *httptest.Server
	to     string
	status int

	copying sync.WaitGroup

	mu    sync.Mutex
	seen  []string
	bytes bytes.Buffer
	open  []net.Conn
}

// NewProxy starts a proxy that leads to the server at an address, HOST:PORT, or
// answers with a status in place of it, if that is not 0.
func NewProxy(t testing.TB, to string, status int) *Proxy {
	t.Helper()
	p := &Proxy{t: t, to: to, status: status}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.Close()
		p.mu.Lock()
		for _, c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		p.copying.Wait()
	})
	return p
}

// URL is where the proxy is.
func (p *Proxy) URL() string { return p.server.URL }

// Seen returns what the proxy was asked for, as in "CONNECT host:443".
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// Read returns all that clients have sent to the proxy and through it.
func (p *Proxy) Read() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes.String()
}

func (p *Proxy) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes.WriteString(text)
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head, err := httputil.DumpRequest(r, false)
	if err != nil {
		p.t.Error(err)
	}
	p.note(string(head))
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.Host)
	p.mu.Unlock()
	switch {
	case p.status != 0:
		w.WriteHeader(p.status)
	case r.Method == http.MethodConnect:
		p.tunnel(w)
	default:
		(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: p.to})
		}}).ServeHTTP(w, r)
	}
}

// tunnel joins the client with the server, to which it notes what is sent.
func (p *Proxy) tunnel(w http.ResponseWriter) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.t.Error(err)
		return
	}
	p.mu.Lock()
	p.open = append(p.open, client, server)
	p.mu.Unlock()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		p.t.Log(err)
	}
	p.copying.Go(func() {
		_, _ = io.Copy(client, server) // ends with either side
		client.Close()
	})
	p.copying.Go(func() {
		_, _ = io.Copy(io.MultiWriter(noting{p}, server), client)
		server.Close()
	})
}

// noting writes down what passes.
type noting struct{ p *Proxy }

func (n noting) Write(b []byte) (int, error) {
	n.p.note(string(b))
	return len(b), nil
}
