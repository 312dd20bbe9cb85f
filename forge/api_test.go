package forge_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe/forge"
	"github.com/troupe-sh/troupe/troupetest"
)

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		url, token string
		want       error
	}{
		{"", token, nil},
		{"https://forge.test/api/v3", token, nil},
		{"http://127.0.0.1:80", token, nil},
		{"http://localhost:80", token, nil},
		{"http://[::1]:80", token, nil},
		{"http://forge.test", "", nil},
		{"http://forge.test", token, forge.ErrAddress},
		{"http://127.0.0.1.forge.test", token, forge.ErrAddress},
		{"http://localhost.forge.test", token, forge.ErrAddress},
		{"ftp://forge.test", token, forge.ErrAddress},
		{"forge.test", token, forge.ErrAddress},
		{"https://", token, forge.ErrAddress},
		{"https://me:secret-of-mine@forge.test", token, forge.ErrAddress},
		{"https://forge.test/?a=secret-of-mine", token, forge.ErrAddress},
		{"https://forge.test\x00/secret-of-mine", token, forge.ErrAddress},
		{"", "two words", forge.ErrToken},
		{"", "a\nHost: x", forge.ErrToken},
	} {
		_, err := forge.Open(forge.Server{URL: c.url, Token: c.token, Now: time.Now})
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%q, %q: %v", c.url, c.token, err)
		}
		if err != nil && (strings.Contains(err.Error(), c.token) || strings.Contains(err.Error(), "secret-of-mine") || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "set")) && !strings.Contains(err.Error(), "use https") {
			t.Errorf("%q: %v", c.url, err)
		}
	}
}

func TestServerFromVariables(t *testing.T) {
	for _, c := range []struct {
		vars map[string]string
		want forge.Server
	}{
		{nil, forge.Server{}},
		{map[string]string{"GH_TOKEN": "b"}, forge.Server{Token: "b"}},
		{map[string]string{"GITHUB_TOKEN": " a\n", "GH_TOKEN": "b", "GITHUB_API_URL": "https://x "}, forge.Server{Token: "a", URL: "https://x"}},
	} {
		got := forge.Server{}.From(func(name string) string { return c.vars[name] })
		if got.URL != c.want.URL || got.Token != c.want.Token {
			t.Errorf("%v: %q %q", c.vars, got.URL, got.Token)
		}
	}
	s := forge.Server{URL: "https://forge.test", Token: token}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, struct{ S forge.Server }{s}) + fmt.Sprintf(format, s); strings.Contains(got, token) {
			t.Errorf("%s shows the token: %s", format, got)
		}
	}
}

// Over a real connection the token goes to the server that was named, and to no
// other, whatever that server answers.
func TestTokenStaysAtHome(t *testing.T) {
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.URL.Path+" "+r.Header.Get("Authorization"))
		fmt.Fprint(w, "[]")
	}))
	t.Cleanup(thief.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(thief.URL, "http://"), ":")
	for name, fault := range map[string]troupetest.ForgeFault{
		"other port":   {Path: "/pulls/7", Status: 302, Header: map[string]string{"Location": thief.URL + "/repos/o/r/pulls/7"}},
		"other name":   {Path: "/pulls/7", Status: 307, Header: map[string]string{"Location": "http://sub.localhost:" + port + "/"}},
		"other scheme": {Path: "/pulls/7", Status: 301, Header: map[string]string{"Location": "https://127.0.0.1/"}},
		"next page":    {Path: "/comments", Status: 200, Body: "[]", Header: map[string]string{"Link": "<" + thief.URL + `/next>; rel="next"`}},
		"with a user":  {Path: "/comments", Status: 200, Body: "[]", Header: map[string]string{"Link": `<//me@HOST/next>; rel="next"`}},
	} {
		t.Run(name, func(t *testing.T) {
			stolen = nil
			f := troupetest.NewForge(t)
			f.Token(token)
			f.Pull("o/r", 7, "aaaa")
			for k, v := range fault.Header {
				fault.Header[k] = strings.ReplaceAll(v, "HOST", strings.TrimPrefix(f.URL(), "http://"))
			}
			f.Fail(fault)
			var b book
			c := b.config(t, f)
			seen := &elsewhere{to: http.DefaultTransport}
			api, err := forge.Open(forge.Server{URL: f.URL(), Token: token, Transport: seen, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			c.API = api
			err = forge.Watch(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), "leads to another server") || strings.Contains(err.Error(), token) {
				t.Errorf("ended with %v", err)
			}
			if stolen != nil {
				t.Errorf("another server was asked: %q", stolen)
			}
			for _, s := range seen.seen {
				if s != strings.TrimPrefix(f.URL(), "http://")+" Bearer "+token {
					t.Errorf("a request to %s", s)
				}
			}
		})
	}
}

// A repository that was renamed is found on the same server.
func TestRenamedRepository(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		f.Pull("o/new", 7, "aaaa").Comment("ann", "old")
		f.Fail(troupetest.ForgeFault{Path: "o/r/pulls/7", Status: 301, Header: map[string]string{"Location": "/api/v3/repos/o/new/pulls/7"}})
		var b book
		stop := start(t, b.config(t, f))
		if !slices.ContainsFunc(f.Requests(), func(r troupetest.ForgeRequest) bool {
			return r.Path == "/api/v3/repos/o/new/pulls/7" && r.Status == 200
		}) {
			t.Errorf("asked %v", f.Requests())
		}
		stopped(t, stop())
	})
}

// A comment that shows the token is told without it.
func TestTokenIsMasked(t *testing.T) {
	in(t, func(t *testing.T, f *troupetest.Forge, p *troupetest.ForgePull) {
		var b book
		stop := start(t, b.config(t, f))
		p.Comment(token, "look: "+token)
		p.Check("aaaa", token, "failure", token)
		sleep(t, minute)
		stopped(t, stop())
		if len(b.told) != 2 || strings.Contains(fmt.Sprint(b.told), token) || strings.Contains(string(b.record), token) {
			t.Errorf("told %v", b.told)
		}
	})
}

func TestNamesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		repo   string
		number int
	}{
		{"", 7}, {"o", 7}, {"o/", 7}, {"/r", 7}, {"o/r/x", 7}, {"../r", 7}, {"o/..", 7}, {"./.", 7}, {"o/r?x", 7}, {"o/r#1", 7}, {"o/r%2f", 7}, {"o /r", 7}, {"https://x/o", 7}, {"o/r", 0}, {"o/r", -1},
	} {
		err := forge.Watch(t.Context(), forge.Config{Repository: c.repo, Number: c.number})
		if err == nil || !strings.Contains(err.Error(), "as in") {
			t.Errorf("%q %d: %v", c.repo, c.number, err)
		}
	}
}

// A server that is not trusted is not asked again and again, and nothing is sent
// to it.
func TestUntrustedServer(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	api, err := forge.Open(forge.Server{URL: server.URL, Token: token, Transport: http.DefaultTransport, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var b book
	c := b.config(t, troupetest.NewForge(t))
	c.API = api
	if err := forge.Watch(t.Context(), c); err == nil || !strings.Contains(err.Error(), "TROUPE_CA_FILE") {
		t.Errorf("ended with %v", err)
	}
}
