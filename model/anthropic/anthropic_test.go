package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
	"github.com/troupe-sh/troupe/model/anthropic"
)

const answer = `event: message_start
data: {"type":"message_start","message":{"model":"claude-x"}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

event: message_stop
data: {"type":"message_stop"}

`

// poison fills the environment with all that the SDK would take from it.
func poison(t *testing.T, url string) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_WEBHOOK_SIGNING_KEY"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("ANTHROPIC_BASE_URL", url)
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	t.Setenv("ANTHROPIC_PROFILE", "from-the-environment")
}

func TestRequest(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked the server of the environment") }))
	defer elsewhere.Close()
	poison(t, elsewhere.URL)
	for _, tt := range []struct {
		name       string
		key, token string
		want       map[string]string
	}{
		{"key", "k", "", map[string]string{"X-Api-Key": "k", "Authorization": ""}},
		{"token", "", "t", map[string]string{"X-Api-Key": "", "Authorization": "Bearer t"}},
		{"neither", "", "", map[string]string{"X-Api-Key": "", "Authorization": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got *http.Request
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				fmt.Fprint(w, answer)
			}))
			defer server.Close()
			m := anthropic.New(anthropic.Options{BaseURL: server.URL + "/prefix", Key: tt.key, Token: tt.token})
			var order []string
			var sending []byte
			for c, err := range m.Stream(t.Context(), &troupe.Request{Model: "m", System: "<&>", Messages: []troupe.Message{troupe.Say(troupe.User, "hi <&> \u2028")}}) {
				if err != nil {
					t.Fatal(err)
				}
				order = append(order, fmt.Sprintf("%T", c))
				if s, ok := c.(troupe.Sending); ok {
					if got != nil {
						t.Error("a request left before Sending")
					}
					sending = s.Body
				}
			}
			if want := "troupe.Sending troupe.Opened troupe.Delta troupe.Reply"; strings.Join(order, " ") != want {
				t.Errorf("yielded %v", order)
			}
			if got.URL.Path != "/prefix/v1/messages" || string(body) != string(sending) || got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s\nsent %s\nsaid %s", got.URL, body, sending)
			}
			for k, want := range tt.want {
				if got.Header.Get(k) != want {
					t.Errorf("%s: %q, want %q", k, got.Header.Get(k), want)
				}
			}
			if all := fmt.Sprint(got.Header); strings.Contains(all, "from-the-environment") {
				t.Errorf("the environment leaks into the request: %s", all)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(529)
		fmt.Fprint(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	}))
	defer server.Close()
	var last error
	for _, err := range anthropic.New(anthropic.Options{BaseURL: server.URL, Key: "k"}).Stream(t.Context(), &troupe.Request{}) {
		last = err
	}
	var e *model.APIError
	if !errors.As(last, &e) || e.Status != 529 || e.Type != "overloaded_error" || !e.Temporary() || requests != 1 {
		t.Errorf("%#v after %d requests", last, requests)
	}
}

// Who leaves the range has no connection left, and the end of the context is
// told with its cause.
func TestLeavingReleasesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, strings.SplitAfterN(answer, "\n\n", 2)[0])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	defer server.Close()
	m := anthropic.New(anthropic.Options{BaseURL: server.URL, Key: "k"})
	for c := range m.Stream(t.Context(), &troupe.Request{}) {
		if _, ok := c.(troupe.Opened); ok {
			break
		}
	}
	<-gone

	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for c, err := range m.Stream(ctx, &troupe.Request{}) {
		if _, ok := c.(troupe.Opened); ok {
			cancel(left)
		}
		last = err
	}
	<-gone
	if !errors.Is(last, left) {
		t.Errorf("%v", last)
	}
}
