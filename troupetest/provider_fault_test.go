package troupetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const twoCalls = 2 // tool calls in the reply of streamed

// raw posts a streaming request and returns the answer and its body as far as
// it came.
func raw(t *testing.T, p *Provider, d Dialect, f Fault) (*http.Response, string, error) {
	t.Helper()
	reply := streamed()
	reply.Fault = f
	p.Queue(reply)
	path, body := "/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[`+anyUser+`]}`
	if d == OpenAI {
		path, body = "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[`+anyUser+`]}`
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Anthropic-Version": "2023-06-01", "X-Api-Key": "k"} {
		req.Header.Set(k, v)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	return res, string(got), err
}

func dialects() []Dialect { return []Dialect{Anthropic, OpenAI} }

// A cut or an early end lets through what comes before its point and nothing
// of what comes after it.
func TestPoints(t *testing.T) {
	type seen struct{ has, lacks string }
	for d, points := range map[Dialect]map[Point]seen{
		Anthropic: {
			AfterHeaders: {"", "event"},
			AfterStart:   {"message_start", "content_block_start"},
			Midway:       {`"thinking":"h"`, `"thinking":"m"`},
			InCall:       {`{\"a\"`, `":1}"`},
			BeforeEnd:    {`"c2"`, "message_delta"},
		},
		OpenAI: {
			AfterHeaders: {"", "data"},
			AfterStart:   {`"role"`, "reasoning"},
			Midway:       {`"reasoning_content":"h"`, `"reasoning_content":"m"`},
			InCall:       {`{\"a\"`, `":1}"`},
			BeforeEnd:    {`"c2"`, "tool_calls\"}"},
		},
	} {
		for at, want := range points {
			p := NewProvider(t)
			for name, f := range map[string]Fault{"cut": {Cut: at}, "truncate": {Truncate: at}} {
				_, got, err := raw(t, p, d, f)
				if (err != nil) != (f.Cut == at) {
					t.Errorf("%s, %s at %d: the body ends with %v", d, name, at, err)
				}
				if !strings.Contains(got, want.has) || strings.Contains(got, want.lacks) {
					t.Errorf("%s, %s at %d: got %s", d, name, at, got)
				}
			}
		}
		if _, _, err := raw(t, NewProvider(t), d, Fault{Cut: BeforeHeaders}); err == nil {
			t.Errorf("%s: cut before the headers, and there was an answer", d)
		}
	}
}

func TestErrorAnswers(t *testing.T) {
	date := time.Unix(1893456000, 0).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		fault             Fault
		anthropic, openai string
	}{
		{Fault{Status: 429, RetryAfter: "2"}, `"rate_limit_error"`, `"rate_limit_exceeded"`},
		{Fault{Status: 429, RetryAfter: date}, `"rate_limit_error"`, `"rate_limit_exceeded"`},
		{Fault{Status: 529}, `"overloaded_error"`, `"server_error"`},
		{Fault{Status: 500}, `"api_error"`, `"server_error"`},
		{Fault{Status: 502, HTML: true}, "<!DOCTYPE html>", "<!DOCTYPE html>"},
		{Fault{Status: 404}, `"not_found_error"`, `"model_not_found"`},
		{Fault{Status: 403}, `"permission_error"`, `"invalid_request_error"`},
		{Fault{Status: 413}, `"request_too_large"`, `"invalid_request_error"`},
	} {
		for _, d := range dialects() {
			want := map[Dialect]string{Anthropic: c.anthropic, OpenAI: c.openai}[d]
			res, got, err := raw(t, NewProvider(t), d, c.fault)
			if err != nil || res.StatusCode != c.fault.Status || !strings.Contains(got, want) || res.Header.Get("Retry-After") != c.fault.RetryAfter {
				t.Errorf("%s: got %v %q %s, %v", d, res.StatusCode, res.Header, got, err)
			}
		}
	}
}

func TestStreamFaults(t *testing.T) {
	for _, d := range dialects() {
		p := NewProvider(t)
		if _, got, _ := raw(t, p, d, Fault{NoUsage: true}); strings.Contains(got, "_tokens") {
			t.Errorf("%s: usage in %s", d, got)
		}
		overload := map[Dialect]string{Anthropic: "event: error\ndata: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"},\"type\":\"error\"}\n\n", OpenAI: `"server_error"`}[d]
		if _, got, err := raw(t, p, d, Fault{Overload: Midway}); err != nil || !strings.Contains(got, overload) || strings.Contains(got, `"m"}`) {
			t.Errorf("%s: no overload, or more after it: %s", d, got)
		}
		if _, got, _ := raw(t, p, d, Fault{Malformed: Midway}); !strings.Contains(got, `"choices": [{`+"\n") {
			t.Errorf("%s: nothing malformed in %s", d, got)
		}
		if res, got, err := raw(t, p, d, Fault{Empty: true}); err != nil || res.StatusCode != 200 || got != "" {
			t.Errorf("%s: got %q", d, got)
		}
	}
	if _, got, _ := raw(t, NewProvider(t), OpenAI, Fault{NoIndex: true}); strings.Contains(got, `"index":1`) || strings.Count(got, `"name"`) != twoCalls {
		t.Errorf("tool calls have an index: %s", got)
	}
}

// A stall ends when the test says so, when the client leaves, and with the
// provider; never by itself.
func TestStall(t *testing.T) {
	until := make(chan struct{})
	p := NewProvider(t)
	ended := make(chan error, 1)
	go func() {
		_, _, err := raw(t, p, Anthropic, Fault{Stall: BeforeHeaders, Until: until})
		ended <- err
	}()
	if err := p.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if p.Last().Ended {
		t.Error("the stall ended by itself")
	}
	close(until)
	if err := <-ended; err != nil {
		t.Errorf("after the stall: %v", err)
	}
	go func() {
		_, _, err := raw(t, p, OpenAI, Fault{Stall: Midway})
		ended <- err
	}()
	if err := p.Wait(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if !p.Last().Ended {
		t.Error("the provider has closed and still serves")
	}
	if err := <-ended; err == nil {
		t.Error("a stalled stream ended well with its provider")
	}
}

func TestWaitEnds(t *testing.T) {
	p := NewProvider(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if err := p.Wait(ctx, 1); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
	if err := p.Idle(t.Context()); err != nil {
		t.Errorf("a provider without requests is not idle: %v", err)
	}
}

// witness is a testing.TB that keeps what would fail the test.
type witness struct {
	testing.TB
	failures bytes.Buffer
}

func (w *witness) Errorf(format string, args ...any) { w.failures.WriteString(format) }

// What a test did not foresee fails it.
func TestProviderFailsTheTest(t *testing.T) {
	for name, use := range map[string]func(*Provider){
		"a refusal": func(p *Provider) { post(t, p, Anthropic, probe{raw: "{"}) },
		"no reply":  func(p *Provider) { post(t, p, Anthropic, probe{}) },
		"no such point": func(p *Provider) {
			p.Queue(Reply{Message: Say("x"), Fault: Fault{Cut: InCall}})
			post(t, p, OpenAI, with(`{"stream":true}`))
		},
		"no such moment": func(p *Provider) { raw(t, p, OpenAI, Fault{Truncate: BeforeHeaders}) },
	} {
		w := &witness{TB: t}
		p := NewProvider(w)
		use(p)
		p.Close()
		if w.failures.Len() == 0 {
			t.Errorf("%s did not fail the test", name)
		}
	}
}
