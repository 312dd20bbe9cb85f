package model

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// unconnected says in e what err was: a connection that could not be made, was
// not trusted or got lost, and what the user can do about it.
func (x *Exchange) unconnected(e *APIError, err error) {
	e.Err = err
	var proxy *proxyError
	var dns *net.DNSError
	server := bare(x.URL)
	switch {
	case errors.Is(err, errBareKey):
		e.Transient = false
		e.Message = fmt.Sprintf("%s is not encrypted, and the proxy of HTTP_PROXY could read the key", server)
		e.Remedy = "use https, or name the host in NO_PROXY"
	case errors.As(err, &proxy):
		x.proxied(e, proxy)
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = "connection refused by " + server
		e.Remedy = "start the server or check the base URL"
		e.Transient = !isLocal(x.URL) // nobody starts it while we wait
	case errors.As(err, &dns):
		e.Transient = !dns.IsNotFound // a name that does not exist will not exist in a second
		e.Message = "cannot find the host of " + server
		e.Remedy = "check the network and the base URL"
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Message = server + " does not speak TLS"
		e.Remedy = "check the base URL: does it begin with http://?"
		e.Transient = false
	default:
		if remedy, ok := untrusted(err); ok {
			e.Message = "no trusted connection to " + server + ": " + oneLine(err.Error(), x.Secrets, 120)
			e.Remedy, e.Transient = remedy, false
			return
		}
		e.Message = "connection to " + server + " lost: " + x.line(err)
	}
}

// proxied says in e what is wrong with the way through a proxy.
func (x *Exchange) proxied(e *APIError, proxy *proxyError) {
	variable := "HTTPS_PROXY"
	if strings.HasPrefix(x.URL, "http:") {
		variable = "HTTP_PROXY"
	}
	e.Message = "no way to " + bare(x.URL) + ": " + x.line(proxy)
	e.Remedy = "check " + variable + ", or name the host in NO_PROXY"
	remedy, isTrust := untrusted(proxy)
	switch {
	case isTrust:
		e.Remedy, e.Transient = remedy, false
	case proxy.status == http.StatusProxyAuthRequired:
		e.Remedy, e.Transient = proxyPassword(variable), false
	case proxy.status != 0:
		e.Transient = temporary(proxy.status)
	case errors.Is(proxy, syscall.ECONNREFUSED):
		e.Transient = !isLocal(proxy.proxy.String())
	}
}

func proxyPassword(variable string) string {
	return "give the proxy a user and a password: " + variable + "=http://USER:PASSWORD@HOST:PORT"
}

// untrusted reports whether err is a server that is not taken for the one that
// was meant, and what can be done.
func untrusted(err error) (remedy string, ok bool) {
	var (
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		system    x509.SystemRootsError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
	)
	switch {
	case errors.As(err, &authority), errors.As(err, &system):
		return "if a proxy or an authority of your own signs here, name its certificate, a PEM file, in SSL_CERT_FILE or NODE_EXTRA_CA_CERTS, or in network.caFile of your settings", true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "check the clock of this machine, and the server's certificate", true
	case errors.As(err, &host):
		return "check the host name in the base URL: the certificate is for another", true
	case errors.As(err, &record):
		return "check the base URL: what answers there does not speak TLS", true
	case errors.As(err, &verify):
		return "check the server's certificate", true
	}
	return "", false
}

// inner is what went wrong without the URL that package net/http puts around
// it: a URL may hold a password.
func inner(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// isLocal reports whether a URL is of this machine.
func isLocal(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// bare is a URL without user, password and query.
func bare(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the base URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return oneLine(u.String(), nil, 200)
}
