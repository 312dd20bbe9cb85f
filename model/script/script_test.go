package script

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

// parse reads a script that must be good.
func parse(t testing.TB, text string) *Model {
	t.Helper()
	m, err := Parse("test.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// one is a script of one rule, with these members of when and reply.
func one(when, reply string) string {
	return `{"rules": [{"when": {` + when + `}, "reply": {` + reply + `}}]}`
}

// ask is a request of these messages.
func ask(msgs ...troupe.Message) *troupe.Request {
	return &troupe.Request{
		Model:    "some-model",
		System:   "You are a test.",
		Tools:    []troupe.ToolSpec{{Name: "Bash"}, {Name: "Read"}},
		Messages: msgs,
	}
}

func user(text string) troupe.Message { return troupe.Say(troupe.User, text) }

// use is a reply that calls a tool, and answered the message with its result.
func use(id, tool string) troupe.Message {
	return troupe.Message{Role: troupe.Assistant, Content: troupe.Blocks{
		troupe.ToolUse{ID: id, Name: tool, Input: json.RawMessage(`{}`)},
	}}
}

func answered(results ...troupe.ToolResult) troupe.Message {
	m := troupe.Message{Role: troupe.User}
	for _, r := range results {
		m.Content = append(m.Content, r)
	}
	return m
}

func success(id, text string) troupe.ToolResult {
	return troupe.ToolResult{ID: id, Content: troupe.Blocks{troupe.Text(text)}}
}

func failed(id, text string) troupe.ToolResult {
	return troupe.ToolResult{ID: id, Content: troupe.Blocks{troupe.Text(text)}, IsError: true}
}

// collect plays a request to its end.
func collect(ctx context.Context, m *Model, req *troupe.Request) ([]troupe.Chunk, error) {
	var out []troupe.Chunk
	for c, err := range m.Stream(ctx, req) {
		if err != nil {
			return out, err
		}
		out = append(out, c)
	}
	return out, nil
}

// reply plays a request that must be answered.
func replyTo(t *testing.T, m *Model, req *troupe.Request) troupe.Reply {
	t.Helper()
	chunks, err := collect(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := chunks[len(chunks)-1].(troupe.Reply)
	if !ok {
		t.Fatalf("the last chunk is a %T, want a Reply", chunks[len(chunks)-1])
	}
	return r
}

func TestStreamOfAReply(t *testing.T) {
	m := parse(t, one(``, `"content": [
		{"thinking": "I think about what to say."},
		{"text": "Grüße an alle, die dies lesen, und noch viel mehr."},
		{"call": "Bash", "id": "list", "input": {"command": "ls", "n": 1.50, "a": [true, null]}}]`))
	req := ask(user("hello"))
	chunks, err := collect(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := troupe.Encode(req)
	if got, ok := chunks[0].(troupe.Sending); !ok || string(got.Body) != string(body) {
		t.Errorf("first chunk is %#v, want Sending with the encoded request", chunks[0])
	}
	if _, ok := chunks[1].(troupe.Opened); !ok {
		t.Errorf("second chunk is a %T, want Opened", chunks[1])
	}
	var text, thinking []string
	for _, c := range chunks[2 : len(chunks)-1] {
		d := c.(troupe.Delta)
		if d.Thinking {
			thinking = append(thinking, d.Text)
		} else {
			text = append(text, d.Text)
		}
	}
	reply := chunks[len(chunks)-1].(troupe.Reply)
	call := reply.Message.ToolUses()[0]
	want := troupe.Blocks{
		troupe.Thinking{Text: "I think about what to say.", Provider: "script"},
		troupe.Text("Grüße an alle, die dies lesen, und noch viel mehr."),
		troupe.ToolUse{ID: call.ID, Name: "Bash", Input: json.RawMessage(`{"a":[true,null],"command":"ls","n":1.50}`)},
	}
	if diff := cmp.Diff(want, reply.Message.Content); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if reply.Model != "script/test" || m.Name() != "script/test" {
		t.Errorf("model is %q and %q, want script/test", reply.Model, m.Name())
	}
	if reply.Stop != "tool_use" || reply.Message.Role != troupe.Assistant {
		t.Errorf("stop %q, role %q", reply.Stop, reply.Message.Role)
	}
	if !strings.HasPrefix(call.ID, "list_") {
		t.Errorf("id %q does not begin with the label", call.ID)
	}
	if len(text) < 2 || strings.Join(text, "") != string(want[1].(troupe.Text)) {
		t.Errorf("text is streamed as %q", text)
	}
	if len(thinking) < 2 || strings.Join(thinking, "") != want[0].(troupe.Thinking).Text {
		t.Errorf("thinking is streamed as %q", thinking)
	}
	written, _ := troupe.Encode(reply.Message)
	if u := reply.Usage; u.Input != (len(body)+3)/4 || u.Output != (len(written)+3)/4 {
		t.Errorf("usage %+v for %d bytes read and %d written", u, len(body), len(written))
	}
}

func TestReplySaysWhatTheScriptSays(t *testing.T) {
	m := parse(t, one(``, `"content": [{"text": "x"}], "stop": "max_tokens",
		"usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}`))
	r := replyTo(t, m, ask(user("hello")))
	if r.Stop != "max_tokens" || r.Usage != (troupe.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}) {
		t.Errorf("stop %q, usage %+v", r.Stop, r.Usage)
	}
	if r := replyTo(t, parse(t, one(``, `"content": [{"text": "x"}]`)), ask(user("hello"))); r.Stop != "end_turn" {
		t.Errorf("stop %q of a text, want end_turn", r.Stop)
	}
}

func TestNoRuleIsAnError(t *testing.T) {
	m := parse(t, one(`"last": "something else"`, `"content": [{"text": "x"}]`))
	long := "what nobody foresaw: " + strings.Repeat("ä", 500)
	for name, req := range map[string]*troupe.Request{
		"text":   ask(user(long)),
		"result": ask(user("x"), use("a_1", "Bash"), answered(success("a_1", long))),
	} {
		chunks, err := collect(t.Context(), m, req)
		if !errors.Is(err, ErrNoRule) {
			t.Fatalf("%s: error %v, want ErrNoRule", name, err)
		}
		for _, part := range []string{"script/test", "test.json", "what nobody foresaw"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not say %q", name, err, part)
			}
		}
		if len(err.Error()) > 600 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if len(chunks) != 1 {
			t.Errorf("%s: got %d chunks, want only Sending", name, len(chunks))
		}
	}
}

func TestInvalidConversationIsRefused(t *testing.T) {
	m := parse(t, one(``, `"content": [{"text": "x"}]`))
	_, err := collect(t.Context(), m, ask(user("x"), use("a_1", "Bash")))
	var e *Error
	if !errors.As(err, &e) || e.Status != 400 || e.Temporary() {
		t.Errorf("error %v, want one of status 400", err)
	}
}

func TestError(t *testing.T) {
	m := parse(t, one(`"last": {"regexp": "fail with (?P<what>\\w+)"}`,
		`"error": {"status": 429, "retryAfter": "2s", "message": "no ${what}"}`))
	chunks, err := collect(t.Context(), m, ask(user("fail with style")))
	// What a retry layer that does not know this package looks for.
	var e interface {
		error
		HTTPStatus() int
		RetryAfter() time.Duration
		Temporary() bool
	}
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *Error", err)
	}
	if e.HTTPStatus() != 429 || e.RetryAfter() != 2*time.Second || !strings.Contains(err.Error(), "no style") {
		t.Errorf("status %d, after %s, text %q", e.HTTPStatus(), e.RetryAfter(), err)
	}
	if len(chunks) != 1 {
		t.Errorf("got %d chunks, want only Sending: the provider did not begin to answer", len(chunks))
	}
}

func TestErrorIsTemporary(t *testing.T) {
	for status, want := range map[int]bool{
		0: true, 400: false, 401: false, 404: false, 408: true, 409: false, 413: false, 429: true, 500: true, 501: false, 503: true, 505: false, 529: true,
	} {
		if got := (&Error{Status: status}).Temporary(); got != want {
			t.Errorf("status %d: temporary is %v, want %v", status, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	const text = `"content": [{"text": "one fragment, another fragment, and a third one"}], `
	for n, want := range map[string]int{"0": 0, "2": 2} {
		chunks, err := collect(t.Context(), parse(t, one(``, text+`"cut": `+n)), ask(user("x")))
		var e *Error
		if !errors.As(err, &e) || e.Status != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut %s: error %v, want a lost connection", n, err)
		}
		if len(chunks) != 2+want {
			t.Errorf("cut %s: %d chunks, want Sending, Opened and %d fragments", n, len(chunks), want)
		}
	}
	chunks, err := collect(t.Context(), parse(t, one(``, text+`"cut": 99`)), ask(user("x")))
	if err == nil {
		t.Errorf("cut after the last fragment: no error, last chunk %#v", chunks[len(chunks)-1])
	}
}

func TestStallEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, one(``, `"content": [{"text": "one fragment, another fragment"}], "stall": 1`))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		chunks, err := collect(ctx, m, ask(user("x")))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Hour {
			t.Errorf("error %v after %s, want the end of the context after an hour", err, time.Since(begin))
		}
		if len(chunks) != 3 {
			t.Errorf("%d chunks, want Sending, Opened and a fragment", len(chunks))
		}
	})
}

func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, one(``, `"wait": "2s", "pace": "300ms", "content": [{"text": "first words, second words, third words"}]`))
		begin := time.Now()
		var at []time.Duration
		for c, err := range m.Stream(t.Context(), ask(user("x"))) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := c.(troupe.Reply); !ok {
				at = append(at, time.Since(begin))
			}
		}
		want := []time.Duration{0, 2 * time.Second, 2 * time.Second, 2300 * time.Millisecond, 2600 * time.Millisecond}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("times of Sending, Opened and fragments (-want +got):\n%s", diff)
		}
	})
}

func TestDelaysEndWithTheContext(t *testing.T) {
	for _, tt := range []struct {
		name, reply string
		chunks      int
	}{
		{"wait", `"wait": "1h", "content": [{"text": "first words, second words"}]`, 1}, // Sending
		{"pace", `"pace": "1h", "content": [{"text": "first words, second words"}]`, 3}, // and Opened and a fragment
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			chunks, err := collect(ctx, parse(t, one(``, tt.reply)), ask(user("x")))
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second || len(chunks) != tt.chunks {
				t.Errorf("%s: error %v and %d chunks after %s", tt.name, err, len(chunks), time.Since(begin))
			}
		})
	}
	for name, reply := range map[string]string{"text": `"content": [{"text": "x"}]`, "stall": `"stall": 0`} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the reason why")
		cancel(cause)
		if chunks, err := collect(ctx, parse(t, one(``, reply)), ask(user("x"))); !errors.Is(err, cause) || len(chunks) != 1 {
			t.Errorf("%s: %d chunks and error %v of a context that had ended", name, len(chunks), err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the reason why")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		for name, reply := range map[string]string{
			"stall": `"stall": 0`,
			"wait":  `"wait": "1h", "content": [{"text": "x"}]`,
		} {
			if _, err := collect(ctx, parse(t, one(``, reply)), ask(user("x"))); !errors.Is(err, cause) {
				t.Errorf("%s: error %v, want the cause", name, err)
			}
		}
	})
}

func TestConsumerMayLeaveAtAnyChunk(t *testing.T) {
	m := parse(t, one(``, `"content": [{"text": "first words, second words"}]`))
	all, err := collect(t.Context(), m, ask(user("x")))
	if err != nil {
		t.Fatal(err)
	}
	for stay := range all {
		n := 0
		// A sequence that yields once more after this panics.
		for range m.Stream(t.Context(), ask(user("x"))) {
			if n++; n > stay {
				break
			}
		}
	}
}

func TestManyAgentsAtOnce(t *testing.T) {
	m := parse(t, `{"rules": [
		{"when": {"first": {"regexp": "I am (?P<who>\\w+)"}, "times": 1}, "reply": {"content": [{"text": "hello ${who}"}]}},
		{"reply": {"content": [{"text": "again"}]}}]}`)
	var wg sync.WaitGroup
	for _, who := range strings.Fields("a b c d e f g h") {
		wg.Go(func() {
			first := ask(user("I am " + who))
			second := ask(user("I am "+who), troupe.Say(troupe.Assistant, "hello "+who), user("and now?"))
			for req, want := range map[*troupe.Request]string{first: "hello " + who, second: "again"} {
				chunks, err := collect(t.Context(), m, req)
				if err != nil {
					t.Error(err)
					return
				}
				if got := chunks[len(chunks)-1].(troupe.Reply).Message.Content.Text(); got != want {
					t.Errorf("%s got %q, want %q", who, got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "my.demo.json")
	if err := os.WriteFile(path, []byte(one(``, `"content": [{"text": "x"}]`)), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != "script/my.demo" {
		t.Errorf("name %q", m.Name())
	}
	if _, err := Open(filepath.Join(dir, "other.json")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "other.json") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("directory: %v", err)
	}
	if err := os.Truncate(path, maxSize+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("huge file: %v", err)
	}
}
