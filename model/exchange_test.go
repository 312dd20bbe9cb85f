package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe/model"
)

const secret = "sk-very-secret-0123456789"

// ask sends one request to url through an exchange and reads the answer.
func ask(t *testing.T, url string) (string, error) {
	t.Helper()
	x := &model.Exchange{Provider: "acme", URL: url, Model: "big-1", KeyName: "ACME_API_KEY", Secrets: []string{secret}}
	ctx, stop := x.Start(t.Context())
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Do(req, model.Client(nil).Do)
	if err != nil {
		return "", x.Fail(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		err = x.Fail(ctx, err)
	}
	return string(body), err
}

func TestAnswersThatAreNoStream(t *testing.T) {
	const web = "text/html; charset=utf-8"
	for _, tt := range []struct {
		name, media, body string
		status            int
		header            map[string]string
		wantStatus        int
		says              []string
		temporary         bool
		after             time.Duration
	}{
		{name: "wrong key", status: 401, body: `{"error":{"message":"Incorrect API key ` + secret + `","code":"invalid_api_key"}}`, wantStatus: 401, says: []string{"ACME_API_KEY", "Incorrect API key [key]"}},
		{name: "forbidden", status: 403, body: `{"type":"error","error":{"type":"permission_error","message":"no"}}`, wantStatus: 403, says: []string{"ACME_API_KEY"}},
		{name: "no such model", status: 404, body: `{"error":{"message":"gone"}}`, wantStatus: 404, says: []string{`"big-1"`, "--model"}},
		{name: "bad request", status: 400, body: `{"error":"two\nlines \u001b[31m"}`, wantStatus: 400, says: []string{"two lines [31m"}},
		{name: "too large", status: 413, body: `{}`, wantStatus: 413, says: []string{"Too Large"}},
		{name: "credit", status: 429, body: `{"error":{"code":"insufficient_quota","message":"m"}}`, wantStatus: 429, says: []string{"credit"}},
		{name: "rate limit, seconds", status: 429, body: `{}`, header: map[string]string{"Retry-After": "7"}, wantStatus: 429, temporary: true, after: 7 * time.Second},
		{name: "rate limit, milliseconds", status: 429, body: `{}`, header: map[string]string{"Retry-After-Ms": "1500"}, wantStatus: 429, temporary: true, after: 1500 * time.Millisecond},
		{name: "rate limit, date by the server's clock", status: 429, body: `{}`, wantStatus: 429, temporary: true, after: 30 * time.Second,
			header: map[string]string{"Date": "Tue, 01 Jan 1980 00:00:00 GMT", "Retry-After": "Tue, 01 Jan 1980 00:00:30 GMT"}},
		{name: "not worth a retry", status: 503, body: `{}`, header: map[string]string{"X-Should-Retry": "false"}, wantStatus: 503},
		{name: "overloaded", status: 529, body: `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, wantStatus: 529, temporary: true},
		{name: "gateway's page", status: 502, media: web, body: "<html>bad gateway</html>", wantStatus: 502, temporary: true, says: []string{"web page"}},
		{name: "a page and no API", status: 200, media: web, body: "<html>welcome</html>", wantStatus: 200, says: []string{"web page", "base URL"}},
		{name: "an error with status 200", status: 200, body: `{"error":{"code":429,"message":"slow down"}}`, wantStatus: 429, temporary: true, says: []string{"slow down"}},
		{name: "an answer without a stream", status: 200, body: `{"choices":[]}`, wantStatus: 200, says: []string{"no stream"}},
		{name: "redirect", status: 307, header: map[string]string{"Location": "https://u:p@elsewhere.example/x?q=1"}, wantStatus: 307, says: []string{"https://elsewhere.example/x", "base URL"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				media := tt.media
				if media == "" {
					media = "application/json"
				}
				w.Header().Set("Content-Type", media)
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			_, err := ask(t, server.URL)
			var e *model.APIError
			if !errors.As(err, &e) || e.Status != tt.wantStatus || e.Temporary() != tt.temporary || e.RetryAfter() != tt.after {
				t.Fatalf("%#v", err)
			}
			for _, want := range append(tt.says, "acme") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), secret) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q", err)
			}
		})
	}
}

// A date is measured by the clock here only if the server tells no time.
func TestRetryAfterByOwnClock(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	x := &model.Exchange{Provider: "acme", Now: func() time.Time { return now }}
	ctx, stop := x.Start(t.Context())
	defer stop()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://x", nil)
	_, err := x.Do(req, func(*http.Request) (*http.Response, error) {
		h := http.Header{"Retry-After": {now.Add(time.Minute).Format(http.TimeFormat)}}
		return &http.Response{StatusCode: 429, Header: h, Body: http.NoBody}, nil
	})
	var e *model.APIError
	if !errors.As(err, &e) || e.RetryAfter() != time.Minute {
		t.Errorf("%v", err)
	}
}

func TestNoRedirectWithKey(t *testing.T) {
	stolen := false
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen = true }))
	defer thief.Close()
	server := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if _, err := ask(t, server.URL); err == nil || stolen {
		t.Errorf("the redirect was followed: %v", err)
	}
}

func TestConnectionErrors(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	_, err := ask(t, strings.Replace(closed.URL, "http://", "http://user:hidden@", 1))
	var e *model.APIError
	if !errors.As(err, &e) || e.Temporary() || !strings.Contains(err.Error(), closed.URL) || strings.Contains(err.Error(), "hidden") {
		t.Errorf("connection refused: %v", err)
	}

	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {}\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer cut.Close()
	if _, err = ask(t, cut.URL); !errors.As(err, &e) || !e.Temporary() || !strings.Contains(err.Error(), "lost") {
		t.Errorf("connection lost: %v", err)
	}

	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	if _, err = ask(t, untrusted.URL); !errors.As(err, &e) || e.Temporary() || !strings.Contains(err.Error(), "trusted") {
		t.Errorf("certificate: %v", err)
	}
}

// drip is a body that gives a byte each time its channel does, and that ends
// with ctx as a connection does.
type drip struct {
	ctx   context.Context
	bytes <-chan byte
}

func (d drip) Read(p []byte) (int, error) {
	select {
	case p[0] = <-d.bytes:
		return 1, nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

func (d drip) Close() error { return nil }

func TestIdleLimit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before int // bytes that come in time
		header bool
	}{{"before the first byte", 0, false}, {"in the stream", 3, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &model.Exchange{Provider: "acme", Idle: 10 * time.Second}
				ctx, stop := x.Start(t.Context())
				defer stop()
				start, bytes := time.Now(), make(chan byte)
				go func() {
					for range tt.before {
						time.Sleep(9 * time.Second)
						bytes <- '.'
					}
				}()
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://x", nil)
				res, err := x.Do(req, func(req *http.Request) (*http.Response, error) {
					if !tt.header {
						<-req.Context().Done()
						return nil, req.Context().Err()
					}
					return &http.Response{StatusCode: 200, Body: drip{ctx, bytes}}, nil
				})
				if err == nil {
					_, err = io.ReadAll(res.Body)
				}
				err = x.Fail(ctx, err)
				var e *model.APIError
				if !errors.Is(err, model.ErrIdle) || !errors.As(err, &e) || !e.Temporary() {
					t.Errorf("%v", err)
				}
				if took, want := time.Since(start), time.Duration(tt.before)*9*time.Second+10*time.Second; took != want {
					t.Errorf("silent for too long after %v, want %v", took, want)
				}
			})
		})
	}
}

// A consumer that takes its time between two reads is not a silent server.
func TestSlowReaderIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &model.Exchange{Provider: "acme", Idle: 10 * time.Second}
		ctx, stop := x.Start(t.Context())
		defer stop()
		bytes := make(chan byte, 2)
		bytes <- '.'
		bytes <- '.'
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://x", nil)
		res, err := x.Do(req, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: drip{ctx, bytes}}, nil
		})
		for range 2 {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			_, err = res.Body.Read(make([]byte, 1))
		}
		if err != nil || context.Cause(ctx) != nil {
			t.Errorf("%v, %v", err, context.Cause(ctx))
		}
	})
}

func TestEndOfContextIsNoFailure(t *testing.T) {
	x := &model.Exchange{Provider: "acme"}
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	ctx, stop := x.Start(ctx)
	defer stop()
	cancel(left)
	err := x.Fail(ctx, ctx.Err())
	var f model.Failure
	if !errors.Is(err, left) || errors.As(err, &f) {
		t.Errorf("%v", err)
	}
}

func TestErrorsInsideAStream(t *testing.T) {
	x := &model.Exchange{Provider: "acme", KeyName: "K", Secrets: []string{secret}}
	for _, tt := range []struct {
		raw       string
		status    int
		temporary bool
	}{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 529, true},
		{`{"type":"error","error":{"type":"invalid_request_error","message":"m"}}`, 400, false},
		{`{"error":{"message":"upstream","code":502}}`, 502, true},
		{`{"error":{"message":"m","type":"insufficient_quota"}}`, 429, false},
		{`{"error":"something broke"}`, 0, true},
		{`no JSON`, 0, true},
	} {
		var e *model.APIError
		if err := x.Broken([]byte(tt.raw)); !errors.As(err, &e) || e.Status != tt.status || e.Temporary() != tt.temporary {
			t.Errorf("%s: %#v", tt.raw, err)
		}
	}
}

// A connection whose answer was read to its end is used again, also if the end
// comes after the reply; a server that does not end its answer is not waited for.
func TestFinish(t *testing.T) {
	for name, ends := range map[string]bool{"an end that comes": true, "an end that does not come": false} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{}, 1)
			var mu sync.Mutex
			peers := map[string]bool{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				peers[r.RemoteAddr] = true
				mu.Unlock()
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "whole")
				w.(http.Flusher).Flush()
				<-read
				if !ends {
					<-r.Context().Done()
				}
			}))
			defer server.Close()
			client := model.Client(&http.Client{Transport: &http.Transport{}})
			defer client.CloseIdleConnections()
			const n = 12
			for range n {
				x := &model.Exchange{Provider: "acme", URL: server.URL}
				ctx, stop := x.Start(t.Context())
				res, err := x.Post(ctx, client, server.URL, nil, new(model.Draft))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(res.Body, make([]byte, len("whole"))); err != nil {
					t.Fatal(err)
				}
				read <- struct{}{}
				x.Finish(res.Body)
				res.Body.Close()
				stop()
			}
			mu.Lock()
			defer mu.Unlock()
			// On a busy machine an end may come too late, but not each time.
			if again := len(peers) < n; again != ends {
				t.Errorf("%d connections for %d requests", len(peers), n)
			}
		})
	}
}
