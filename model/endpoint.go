package model

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// A Dialect is the protocol that an endpoint speaks.
type Dialect string

// The dialects. Script is a file that is played instead of a model.
const (
	Anthropic Dialect = "anthropic" // Anthropic Messages
	OpenAI    Dialect = "openai"    // OpenAI Chat Completions
	Script    Dialect = "script"
)

// ErrNoKey is in the error for an endpoint whose key is not set.
var ErrNoKey = errors.New("no key")

// ErrAddress is in the error for a base URL that no request can go to.
var ErrAddress = errors.New("no address of a server")

// An Endpoint says where a model is and how to speak to it. Printing one does
// not show its key.
type Endpoint struct {
	Provider string
	Dialect  Dialect
	BaseURL  string
	Key      string // "" if the server wants none, or Token is set
	Token    string // Bearer token in place of a key; Anthropic only
	KeyName  string // variable that the key comes from
	Name     string // of the model, as the provider writes it
}

// String names the model and the server, without the key.
func (e Endpoint) String() string {
	return fmt.Sprintf("%s/%s at %s", e.Provider, e.Name, bare(e.BaseURL))
}

// GoString is String, for %#v.
func (e Endpoint) GoString() string { return e.String() }

// Account names the account that pays: its provider, server and a hash of the
// key. Requests of one account share its rate limit.
func (e Endpoint) Account() string {
	sum := sha256.Sum256([]byte(e.Key + "\x00" + e.Token))
	return e.Provider + " " + e.BaseURL + " " + hex.EncodeToString(sum[:8])
}

// Decides reports whether a variable decides which model is asked, at which
// address, with which key and through which network.
func (c *Catalogue) Decides(name string) bool {
	switch strings.ToUpper(name) {
	case "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OLLAMA_HOST", "TROUPE_MODEL", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",
		"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "TROUPE_CA_FILE":
		return true
	}
	for _, p := range c.providers() {
		if strings.EqualFold(variable(p.address), name) && name != "" {
			return true
		}
	}
	return slices.ContainsFunc(c.Keys(), func(key string) bool { return strings.EqualFold(key, name) })
}

// Endpoint finds out where n is, with what lookup says of the variables that
// the user has set ("" for those that are not).
func (c *Catalogue) Endpoint(n Name, lookup func(string) string) (Endpoint, error) {
	e, err := c.endpoint(n, func(name string) string { return strings.TrimSpace(lookup(name)) }) // read from a file, it ends in a newline
	if err == nil && strings.ContainsFunc(e.Key+e.Token, unicode.IsControl) {
		err = fmt.Errorf("%w for %s: what %s holds has control characters in it; set it anew", ErrNoKey, e.Provider, e.KeyName)
	}
	return e, err
}

func (c *Catalogue) endpoint(n Name, lookup func(string) string) (Endpoint, error) {
	e := Endpoint{Provider: n.Provider, Name: n.Model}
	switch n.Provider {
	case scriptID:
		e.Dialect = Script
		return e, nil
	case ollamaID:
		e.Dialect, e.BaseURL = OpenAI, ollama(lookup("OLLAMA_HOST"))
		return e, address("OLLAMA_HOST", e.BaseURL)
	case anthropicID:
		return c.anthropic(e, lookup)
	case openaiID:
		return c.openai(e, lookup)
	}
	p := c.provider(n.Provider)
	if p.id == "" {
		return e, fmt.Errorf("%w: no provider is called %q", ErrUnknown, n.Provider)
	}
	e.Dialect, e.KeyName, e.BaseURL = p.dialect, p.key, p.address
	if v := variable(p.address); v != "" {
		if e.BaseURL = lookup(v); e.BaseURL == "" {
			return e, fmt.Errorf("%s: the address of the server is not known; set %s", n.Provider, v)
		}
		if err := address(v, e.BaseURL); err != nil {
			return e, err
		}
	}
	if e.Key = lookup(e.KeyName); e.Key == "" {
		return e, missing(e)
	}
	return e, nil
}

func (c *Catalogue) anthropic(e Endpoint, lookup func(string) string) (Endpoint, error) {
	e.Dialect, e.KeyName = Anthropic, "ANTHROPIC_API_KEY"
	e.BaseURL = strings.TrimSuffix(strings.TrimRight(lookup("ANTHROPIC_BASE_URL"), "/"), "/v1")
	if e.Key = lookup("ANTHROPIC_API_KEY"); e.Key == "" {
		if e.Token = lookup("ANTHROPIC_AUTH_TOKEN"); e.Token != "" {
			e.KeyName = "ANTHROPIC_AUTH_TOKEN"
		}
	}
	if e.BaseURL == "" {
		e.BaseURL = "https://api.anthropic.com"
		if e.Key == "" && e.Token == "" {
			return e, missing(e)
		}
	}
	return e, address("ANTHROPIC_BASE_URL", e.BaseURL)
}

func (c *Catalogue) openai(e Endpoint, lookup func(string) string) (Endpoint, error) {
	e.Dialect, e.KeyName = OpenAI, "OPENAI_API_KEY"
	e.BaseURL, e.Key = strings.TrimRight(lookup("OPENAI_BASE_URL"), "/"), lookup("OPENAI_API_KEY")
	if e.BaseURL == "" {
		e.BaseURL = "https://api.openai.com/v1"
		if e.Key == "" {
			return e, missing(e)
		}
	}
	return e, address("OPENAI_BASE_URL", e.BaseURL)
}

// address checks the base URL that the user has set in a variable: what no
// request can go to must not be tried, and tried again.
func address(variable, base string) error {
	u, err := url.Parse(base)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" {
		return nil
	}
	return fmt.Errorf("%s: %w: %s; set it to http://HOST:PORT or https://HOST, with a path if the server has one", variable, ErrAddress, bare(base))
}

func missing(e Endpoint) error {
	return fmt.Errorf("%w for %s; set %s", ErrNoKey, e.Provider, e.KeyName)
}

// variable returns NAME for "$NAME", else "".
func variable(s string) string {
	name, ok := strings.CutPrefix(s, "$")
	if !ok {
		return ""
	}
	return name
}

// ollama makes a base URL of OLLAMA_HOST, which is a URL, host:port, host or
// :port, and may be the address that the server listens on.
func ollama(host string) string {
	const port = "11434"
	if host == "" {
		return "http://localhost:" + port + "/v1"
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(strings.TrimRight(host, "/"))
	if err != nil {
		return host // the request will say what is wrong with it
	}
	name := u.Hostname()
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "localhost"
	}
	p := u.Port()
	if p == "" && u.Scheme == "http" {
		p = port
	}
	u.Host = name
	if strings.Contains(name, ":") {
		u.Host = "[" + name + "]"
	}
	if p != "" {
		u.Host = net.JoinHostPort(name, p)
	}
	if !strings.HasSuffix(u.Path, "/v1") {
		u.Path += "/v1"
	}
	return u.String()
}
