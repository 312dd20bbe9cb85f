package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/session"
	"github.com/troupe-sh/troupe/troupetest"
)

// key is the key of the provider. It must be found nowhere.
const key = "sk-test-4f0a9c1b7d"

// A place is a user with a home, a directory to work in and a provider.
type place struct {
	home, user, dir string
	provider        *troupetest.Provider
	env             []string
	model           string
	src             config.Sources // what else to load
}

// names are those of the models, by dialect.
var names = map[troupetest.Dialect]string{troupetest.Anthropic: "anthropic/claude-haiku-4-5", troupetest.OpenAI: "openai/gpt-5-mini"}

func newPlace(t *testing.T, opts ...troupetest.Option) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return placeIn(t, root, opts...)
}

// placeIn is a place in a directory, where one may have been before.
func placeIn(t *testing.T, root string, opts ...troupetest.Option) *place {
	t.Helper()
	p := &place{home: filepath.Join(root, "home"), user: filepath.Join(root, "user"), dir: filepath.Join(root, "dir"),
		provider: troupetest.NewProvider(t, append(opts, troupetest.Key(key))...), model: names[troupetest.Anthropic]}
	for _, dir := range []string{p.home, p.user, p.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.user, "ANTHROPIC_API_KEY=" + key, "ANTHROPIC_BASE_URL=" + p.provider.URL(),
		"OPENAI_API_KEY=" + key, "OPENAI_BASE_URL=" + p.provider.URL() + "/v1", "MARK=seen"}
	p.src = config.Sources{Home: p.home, UserHome: p.user, Dir: p.dir, Tools: host.Known(), Trusted: func(string) bool { return true }}
	return p
}

// write makes a file below the directory that the session works in.
func (p *place) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func lookupIn(env []string) func(string) string {
	return func(name string) string {
		for _, kv := range env {
			if n, v, _ := strings.Cut(kv, "="); n == name {
				return v
			}
		}
		return ""
	}
}

func (p *place) options(t *testing.T) host.Options {
	t.Helper()
	c, err := config.Load(p.src)
	if err != nil {
		t.Fatal(err)
	}
	models := host.NewModels(lookupIn(p.env), nil, p.dir, time.Now, func() float64 { return 0 })
	return host.Options{Home: p.home, UserHome: p.user, Config: c, Models: models, Model: p.model, Env: p.env, Now: time.Now, NewID: uuid.NewString}
}

// open opens a session that is closed when the test ends, if not before.
func (p *place) open(t *testing.T, change ...func(*host.Options)) *host.Session {
	t.Helper()
	o := p.options(t)
	for _, f := range change {
		f(&o)
	}
	s, err := host.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func resume(t *testing.T, s *host.Session) func(*host.Options) {
	return func(o *host.Options) {
		info, err := session.Find(host.Sessions(o.Home), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		o.Resume, o.Model = &info, ""
	}
}

// ask gives the session a prompt and returns how its run ended.
func ask(t *testing.T, s *host.Session, prompt string) troupe.Ended {
	t.Helper()
	if err := s.Send(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	end, err := settled(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// settled lets the lead work until nothing comes any more of what it has left in
// the background.
func settled(t *testing.T, s *host.Session) (troupe.Ended, error) {
	t.Helper()
	end, err := s.Run(t.Context())
	for err == nil {
		more, _, lerr := s.Linger(t.Context(), host.Usual())
		if lerr != nil {
			t.Fatal(lerr)
		}
		if !more {
			break
		}
		end, err = s.Run(t.Context())
	}
	return end, err
}

func closed(t *testing.T, s *host.Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// once is a session in which one prompt was answered, and which is closed.
func (p *place) once(t *testing.T, change ...func(*host.Options)) *host.Session {
	t.Helper()
	s := p.open(t, change...)
	p.provider.Say("noted")
	ask(t, s, "remember blue")
	closed(t, s)
	return s
}

func use(id, name string, input map[string]any) troupe.ToolUse {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return troupe.ToolUse{ID: id, Name: name, Input: raw}
}

// call has the model of a session make one call, and returns its result.
func (p *place) call(t *testing.T, s *host.Session, name string, input map[string]any) troupe.ToolResult {
	t.Helper()
	p.provider.Queue(troupetest.Reply{Message: troupetest.Use(use(uuid.NewString()[:8], name, input))}, troupetest.Reply{Message: troupetest.Say("done")})
	ask(t, s, "call")
	return p.provider.Last().Results()[0]
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// has fails if one of the texts is not in b.
func has(t *testing.T, b string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(b, text) {
			t.Errorf("%q is not in:\n%s", text, b)
		}
	}
}

func hasNot(t *testing.T, b string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(b, text) {
			t.Errorf("%q is in:\n%s", text, b)
		}
	}
}

// messagesEnd is where the messages of a request's body end.
func messagesEnd(t *testing.T, body []byte) int {
	t.Helper()
	var fields struct{ Messages json.RawMessage }
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(body, append([]byte(`"messages":`), fields.Messages...))
	if at < 0 {
		t.Fatalf("the messages are not in one piece: %s", body)
	}
	return at + len(`"messages":`) + len(fields.Messages) - len("]")
}

// follow collects what Follow yields until the lead has ended once.
func follow(ctx context.Context, s *host.Session) (out []session.Record) {
	for r, err := range s.Follow(ctx) {
		if err != nil {
			continue
		}
		out = append(out, r)
		if _, ok := r.Event.(troupe.Ended); ok && r.Agent == session.Lead {
			break
		}
	}
	return out
}
