package openai_test

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
	"github.com/troupe-sh/troupe/model/openai"
)

const answer = `data: {"model":"big-1","choices":[{"index":0,"delta":{"content":"hello"}}]}

data: {"model":"big-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

// poison fills the environment with all that the SDK would take from it.
func poison(t *testing.T, url string) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", url)
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: from-the-environment")
}

func TestRequest(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked the server of the environment") }))
	defer elsewhere.Close()
	poison(t, elsewhere.URL)
	for key, want := range map[string]string{"k": "Bearer k", "": ""} {
		t.Run("key="+key, func(t *testing.T) {
			var got *http.Request
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, answer)
			}))
			defer server.Close()
			m := openai.New(openai.Options{BaseURL: server.URL + "/v1", Key: key})
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
			if got.URL.Path != "/v1/chat/completions" || string(body) != string(sending) || got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s\nsent %s\nsaid %s", got.URL, body, sending)
			}
			if got.Header.Get("Authorization") != want {
				t.Errorf("Authorization: %q, want %q", got.Header.Get("Authorization"), want)
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
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`)
	}))
	defer server.Close()
	var last error
	for _, err := range openai.New(openai.Options{BaseURL: server.URL, Key: "k"}).Stream(t.Context(), &troupe.Request{}) {
		last = err
	}
	var e *model.APIError
	if !errors.As(last, &e) || e.Status != 429 || e.Type != "rate_limit_exceeded" || !e.Temporary() || e.RetryAfter() == 0 || requests != 1 {
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
	m := openai.New(openai.Options{BaseURL: server.URL, Key: "k"})
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
