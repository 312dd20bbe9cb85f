//go:build unix

package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-sh/troupe/troupetest"
)

// far is a host that only the proxies of tests know.
const far = "api.far.invalid"

// set replaces variables of the bench's environment.
func (b *bench) set(pairs ...string) {
	for _, kv := range pairs {
		name, _, _ := strings.Cut(kv, "=")
		b.env = slices.DeleteFunc(b.env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
		b.env = append(b.env, kv)
	}
}

// finish runs the command and returns its code and what it wrote.
func finish(t *testing.T, cmd *exec.Cmd) (code int, out, notes string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// A run through a proxy to a server whose certificate only the user trusts.
func TestRunThroughAProxy(t *testing.T) {
	for dialect, d := range dialects {
		for _, names := range [][2]string{{"HTTPS_PROXY", "SSL_CERT_FILE"}, {"https_proxy", "NODE_EXTRA_CA_CERTS"}} {
			t.Run(d.name+"/"+names[0], func(t *testing.T) {
				b := newBench(t, dialect)
				authority := troupetest.NewAuthority(t)
				proxy := troupetest.NewProxy(t, authority.Front(far, time.Now().Add(time.Hour), b.provider.URL()), 0)
				b.set(d.base+"=https://"+far+d.path, names[0]+"="+proxy.URL(), names[1]+"="+authority.File())
				b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Bash", `{"command":"touch ran"}`))})
				b.provider.Say("through")
				cmd, _ := b.command(t, "go", "--model", b.model)
				if code, out, notes := finish(t, cmd); code != 0 || out != "through\n" {
					t.Errorf("code %d, %s%s", code, out, notes)
				}
				if seen := slices.Compact(proxy.Seen()); !slices.Equal(seen, []string{"CONNECT " + far + ":443"}) {
					t.Errorf("the proxy saw %q", seen)
				}
				if strings.Contains(proxy.Read(), key) {
					t.Error("the proxy could read the key")
				}
			})
		}
	}
}

// The same by settings: they are for troupe alone, no command gets them.
func TestRunThroughAProxyOfTheSettings(t *testing.T) {
	b := newBench(t, 0)
	authority := troupetest.NewAuthority(t)
	proxy := troupetest.NewProxy(t, authority.Front(far, time.Now().Add(time.Hour), b.provider.URL()), 0)
	settings := `{"network": {"proxy": "` + proxy.URL() + `", "caFile": "` + authority.File() + `"}}`
	b.set(dialects[0].base+"=https://"+far, "HTTPS_PROXY=http://192.0.2.1:1", "TROUPE_MAX_RETRIES=0")
	b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Bash", `{"command":"echo $HTTPS_PROXY $TROUPE_CA_FILE."}`))})
	b.provider.Say("through")
	cmd, _ := b.command(t, "go", "--model", b.model, "--settings", settings, "--dangerously-skip-permissions")
	if code, out, notes := finish(t, cmd); code != 0 || out != "through\n" {
		t.Fatalf("code %d, %s%s", code, out, notes)
	}
	if body := string(b.provider.Requests()[1].Body); !strings.Contains(body, "http://192.0.2.1:1 .") {
		t.Errorf("the command has another network: %s", body)
	}
	for bad, says := range map[string]string{
		`{"network": {"proxy": "ftp://user:hunter2@x"}}`: "network.proxy is not the address of a proxy",
		`{"network": {"caFile": "/none/such.pem"}}`:      "network.caFile",
		`{"network": {"caFile": "/dev/null"}}`:           "TROUPE_CA_FILE",
	} {
		cmd, _ := b.command(t, "go", "--model", b.model, "--settings", bad)
		if code, out, notes := finish(t, cmd); code != 2 || !strings.Contains(notes, says) || strings.Contains(out+notes, "hunter2") {
			t.Errorf("%s: code %d, %s%s", bad, code, out, notes)
		}
	}
}

// A local server without a key, behind a proxy, needs no TLS.
func TestRunThroughAProxyWithoutTLS(t *testing.T) {
	p := troupetest.NewProvider(t)
	p.Say("through")
	b := newBench(t, 1)
	proxy := troupetest.NewProxy(t, strings.TrimPrefix(p.URL(), "http://"), 0)
	b.set("OPENAI_BASE_URL=http://"+far+"/v1", "HTTP_PROXY="+proxy.URL(), "OPENAI_API_KEY=")
	cmd, _ := b.command(t, "go", "--model", b.model)
	if code, out, notes := finish(t, cmd); code != 0 || out != "through\n" {
		t.Errorf("code %d, %s%s", code, out, notes)
	}
}

// What stands in the way is said in one line, with the remedy, and does not
// take ten attempts.
func TestNetworksThatFail(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://user:secret-password@" + listener.Addr().String()
	listener.Close()
	authority, other := troupetest.NewAuthority(t), troupetest.NewAuthority(t)
	for dialect, d := range dialects {
		provider := troupetest.NewProvider(t)
		front := func(host string, ends time.Time) string { return authority.Front(host, ends, provider.URL()) }
		good := front(far, time.Now().Add(time.Hour))
		for _, tt := range []struct {
			name string
			to   string // where the proxy leads
			give int    // status that it answers with
			env  []string
			code int
			says []string
			seen int
		}{
			{"nobody's authority", good, 0, nil, 1, []string{"no trusted connection to https://" + far, "SSL_CERT_FILE or NODE_EXTRA_CA_CERTS"}, 1},
			{"expired", front(far, time.Now().Add(-time.Minute)), 0, []string{"SSL_CERT_FILE=" + authority.File()}, 1, []string{"check the clock"}, 1},
			{"another host", front("other.invalid", time.Now().Add(time.Hour)), 0, []string{"SSL_CERT_FILE=" + authority.File()}, 1, []string{"check the host name"}, 1},
			{"another authority", good, 0, []string{"NODE_EXTRA_CA_CERTS=" + other.File()}, 1, []string{"SSL_CERT_FILE or NODE_EXTRA_CA_CERTS"}, 1},
			{"no such file", good, 0, []string{"SSL_CERT_FILE=/none/such.pem"}, 2, []string{"SSL_CERT_FILE", "/none/such.pem"}, 0},
			{"no certificate in it", good, 0, []string{"NODE_EXTRA_CA_CERTS=/dev/null"}, 2, []string{"NODE_EXTRA_CA_CERTS", "/dev/null", "PEM"}, 0},
			{"password wanted", "", http.StatusProxyAuthRequired, nil, 1, []string{"no way to https://" + far, "407", "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"}, 1},
			{"bad gateway", "", http.StatusBadGateway, []string{"TROUPE_MAX_RETRIES=0"}, 1, []string{"no way to https://" + far, "502", "check HTTPS_PROXY"}, 1},
			{"no proxy there", "", 0, []string{"HTTPS_PROXY=" + gone}, 1, []string{"cannot be reached", "check HTTPS_PROXY"}, 0},
			{"no proxy at all", "", 0, []string{"HTTPS_PROXY=ftp://user:secret-password@host"}, 2, []string{"HTTPS_PROXY", "http://HOST:PORT"}, 0},
			{"a host to be reached without it", good, 0, []string{"NO_PROXY=" + far, "TROUPE_MAX_RETRIES=0"}, 1, []string{"cannot find the host of https://" + far}, 0},
			{"key in clear", good, 0, []string{d.base + "=http://" + far + d.path}, 1, []string{"could read the key", "NO_PROXY"}, 0},
			{"no number", good, 0, []string{"TROUPE_MAX_RETRIES=x"}, 2, []string{"TROUPE_MAX_RETRIES"}, 0},
		} {
			t.Run(d.name+"/"+tt.name, func(t *testing.T) {
				proxy := troupetest.NewProxy(t, tt.to, tt.give)
				b := newBench(t, dialect)
				u := strings.Replace(proxy.URL(), "http://", "http://user:secret-password@", 1)
				b.set(append([]string{d.base + "=https://" + far + d.path, "HTTPS_PROXY=" + u, "HTTP_PROXY=" + u}, tt.env...)...)
				cmd, _ := b.command(t, "go", "--model", b.model)
				code, out, notes := finish(t, cmd)
				checkFailure(t, code, tt.code, out+notes, tt.says)
				if strings.Contains(out+notes, "secret-password") {
					t.Errorf("shows the password of the proxy: %s", notes)
				}
				if len(proxy.Seen()) != tt.seen {
					t.Errorf("the proxy saw %v", proxy.Seen())
				}
				if tt.code == exitFailed { // else nothing was written
					noKey(t, filepath.Join(b.dir, ".home"))
				}
			})
		}
	}
}

// checkFailure checks a run that came to nothing: its code, and one line that
// says what it has to say.
func checkFailure(t *testing.T, code, want int, text string, says []string) {
	t.Helper()
	if code != want {
		t.Errorf("code %d, want %d", code, want)
	}
	if strings.Count(strings.TrimSpace(text), "\n") > 0 || strings.Contains(text, key) || strings.Contains(text, "gave up") {
		t.Errorf("several lines, a key, or attempts that were not made: %s", text)
	}
	for _, part := range says {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

// Streams that do not come to an end: the run fails, says so, and takes nothing
// of them for an answer.
func TestStreamsThatFail(t *testing.T) {
	for dialect, d := range dialects {
		for _, tt := range []struct {
			name  string
			fault troupetest.Fault
			says  []string
		}{
			{"silent from the start", troupetest.Fault{Stall: troupetest.BeforeHeaders}, []string{"no sign of life from the server for 300ms"}},
			{"silent later", troupetest.Fault{Stall: troupetest.BeforeEnd}, []string{"no sign of life from the server for 300ms"}},
			{"cut", troupetest.Fault{Cut: troupetest.InCall}, []string{"connection to http://", "lost"}},
			{"ended too early", troupetest.Fault{Truncate: troupetest.InCall}, []string{"the stream ended before the reply was complete"}},
			{"a page", troupetest.Fault{HTML: true}, []string{"answers with a web page", "check the base URL"}},
			{"a gateway's page", troupetest.Fault{HTML: true, Status: 502}, []string{"502", "answers with a web page"}},
			{"nothing", troupetest.Fault{Empty: true}, []string{"the stream ended before the reply was complete"}},
			{"overloaded", troupetest.Fault{Status: 529}, []string{"529"}},
		} {
			t.Run(d.name+"/"+tt.name, func(t *testing.T) {
				b := newBench(t, dialect)
				b.set("TROUPE_IDLE_TIMEOUT=300ms", "TROUPE_MAX_RETRIES=0")
				b.provider.Queue(troupetest.Reply{Message: troupetest.Use(call("c1", "Bash", `{"command":"touch ran"}`)), Fault: tt.fault})
				cmd, _ := b.command(t, "go", "--model", b.model)
				code, out, notes := finish(t, cmd)
				checkFailure(t, code, 1, out+notes, tt.says)
				if n := len(b.provider.Requests()); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
				if found, _ := filepath.Glob(filepath.Join(b.dir, "ran")); found != nil {
					t.Error("half a call was run")
				}
			})
		}
	}
}

// A server that is silent once is asked again.
func TestSilenceIsAskedAgain(t *testing.T) {
	for dialect, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, dialect)
			b.set("TROUPE_IDLE_TIMEOUT=300ms", "TROUPE_MAX_RETRIES=9")
			b.provider.Queue(troupetest.Reply{Message: troupetest.Say("half"), Fault: troupetest.Fault{Stall: troupetest.Midway}})
			b.provider.Respond(func(*troupetest.Request) troupetest.Reply { return troupetest.Reply{Message: troupetest.Say("whole")} })
			cmd, _ := b.command(t, "go", "--model", b.model)
			if code, out, notes := finish(t, cmd); code != 0 || out != "whole\n" {
				t.Errorf("code %d, %s%s", code, out, notes)
			}
		})
	}
}
