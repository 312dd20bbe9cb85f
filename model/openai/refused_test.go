package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model/openai"
)

// A picky server refuses a request as long as its body has one of some texts.
type picky struct {
	refuses map[string]string // text in a body: body of the refusal
	status  int

	mu     sync.Mutex
	bodies []string
}

func (p *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.bodies = append(p.bodies, string(raw))
	p.mu.Unlock()
	for text, answer := range p.refuses {
		if strings.Contains(string(raw), text) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(p.status)
			fmt.Fprint(w, answer)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, answer)
}

// asked sends one request and returns the kinds of chunks and the error.
func asked(t *testing.T, m troupe.Model, req troupe.Request) (kinds string, again []troupe.Retrying, err error) {
	t.Helper()
	req.Messages = []troupe.Message{troupe.Say(troupe.User, `hi, "stream_options": and ,"reasoning_effort":`)}
	var list []string
	for c, e := range m.Stream(t.Context(), &req) {
		if e != nil {
			return strings.Join(list, " "), again, e
		}
		if r, ok := c.(troupe.Retrying); ok {
			again = append(again, r)
		}
		list = append(list, strings.TrimPrefix(fmt.Sprintf("%T", c), "troupe."))
	}
	return strings.Join(list, " "), again, nil
}

const (
	once  = "Sending Opened Delta Reply"
	twice = "Sending Retrying " + once
)

// What a server refuses and a request can do without is left out, told, and not
// tried again.
func TestRefusedFields(t *testing.T) {
	for _, tt := range []struct {
		name     string
		provider string
		status   int
		refuses  map[string]string
		req      troupe.Request
		kinds    string
		last     []string // in the last body
		gone     []string // not in it
	}{
		{"OpenAI's form", "", 400, map[string]string{`"stream_options"`: `{"error":{"message":"Unknown parameter: 'stream_options'.","type":"invalid_request_error","param":"stream_options","code":"unknown_parameter"}}`},
			troupe.Request{Effort: "high"}, twice, []string{`"reasoning_effort":"high"`}, []string{`"stream_options":{`}},
		{"a field of a field", "", 400, map[string]string{`"stream_options"`: `{"error":{"message":"m","param":"stream_options.include_usage"}}`},
			troupe.Request{}, twice, nil, []string{`"stream_options":{`}},
		{"FastAPI's form", "", 422, map[string]string{`"stream_options"`: `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`},
			troupe.Request{}, twice, nil, []string{`"stream_options":{`}},
		{"effort", "", 400, map[string]string{`"reasoning_effort":"`: `{"error":{"message":"Unsupported parameter: 'reasoning_effort' is not supported with this model.","code":"unsupported_parameter","param":"reasoning_effort"}}`},
			troupe.Request{Effort: "high"}, twice, []string{`"stream_options":{`}, []string{`"reasoning_effort":"`}},
		{"effort, in Ollama's words", "ollama", 400, map[string]string{`"reasoning_effort":"`: `{"error":{"message":"\"gemma3:4b\" does not support thinking","type":"api_error"}}`},
			troupe.Request{Effort: "high"}, twice, nil, []string{`"reasoning_effort":"`}},
		{"the new limit", "", 400, map[string]string{`"max_completion_tokens"`: `{"error":"unknown field max_completion_tokens"}`},
			troupe.Request{MaxTokens: 7}, twice, []string{`"max_tokens":7`}, []string{"max_completion_tokens"}},
		{"the old limit", "acme", 400, map[string]string{`"max_tokens"`: `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`},
			troupe.Request{MaxTokens: 7}, twice, []string{`"max_completion_tokens":7`}, []string{`"max_tokens"`}},
		{"two of them", "", 400, map[string]string{
			`"stream_options":{`: `{"error":{"message":"stream_options"}}`, `"reasoning_effort":"`: `{"error":{"message":"m","param":"reasoning_effort"}}`},
			troupe.Request{Effort: "low"}, "Sending Retrying Sending Retrying " + once, nil, []string{`"stream_options":{`, `"reasoning_effort":"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &picky{refuses: tt.refuses, status: tt.status}
			server := httptest.NewServer(p)
			defer server.Close()
			m := openai.New(openai.Options{Provider: tt.provider, BaseURL: server.URL + "/v1"})
			tt.req.Model = "big-1"
			kinds, again, err := asked(t, m, tt.req)
			if kinds != tt.kinds || err != nil {
				t.Fatalf("%s, %v", kinds, err)
			}
			if again[0].Attempt != 1 || again[0].Of != 2 || again[0].Status != tt.status || again[0].After != 0 || !strings.Contains(again[0].Cause, "asked again without ") {
				t.Errorf("told: %+v", again[0])
			}
			last := p.bodies[len(p.bodies)-1]
			for _, text := range tt.last {
				if !strings.Contains(last, text) {
					t.Errorf("%s is gone from %s", text, last)
				}
			}
			for _, text := range tt.gone {
				if strings.Contains(last, text) {
					t.Errorf("%s is still in %s", text, last)
				}
			}
			if kinds, _, err := asked(t, m, tt.req); kinds != once || err != nil || p.bodies[len(p.bodies)-1] != last {
				t.Errorf("the second request: %s, %v, %s", kinds, err, p.bodies[len(p.bodies)-1])
			}
			// Another model of the server may take it.
			tt.req.Model = "big-2"
			if kinds, _, err := asked(t, m, tt.req); kinds != tt.kinds || err != nil {
				t.Errorf("another model: %s, %v", kinds, err)
			}
		})
	}
}

// Everything else that is refused is an error at once, and nothing is
// remembered of a request that failed all the same.
func TestOtherRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, kinds string
		status      int
		answer      string
		last        string
	}{
		{"a wrong value", "Sending", 400, `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'high'.","param":"reasoning_effort","code":"unsupported_value"}}`, `"reasoning_effort":"high"`},
		{"another field", "Sending", 400, `{"error":{"message":"see stream_options","param":"messages"}}`, `"stream_options":{`},
		{"a field that was not sent", "Sending", 400, `{"error":{"message":"max_tokens is too large"}}`, `"stream_options":{`},
		{"no wrong request", "Sending", 500, `{"error":{"message":"stream_options"}}`, `"stream_options":{`},
		{"without it neither", "Sending Retrying Sending", 400, `{"error":{"message":"stream_options"}}`, `"reasoning_effort":"high"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &picky{refuses: map[string]string{`"model"`: tt.answer}, status: tt.status}
			server := httptest.NewServer(p)
			defer server.Close()
			m := openai.New(openai.Options{BaseURL: server.URL + "/v1"})
			for range 2 {
				kinds, _, err := asked(t, m, troupe.Request{Model: "big-1", Effort: "high"})
				if kinds != tt.kinds || err == nil {
					t.Errorf("%s, %v", kinds, err)
				}
			}
			if last := p.bodies[len(p.bodies)-1]; !strings.Contains(last, tt.last) {
				t.Errorf("%s", last)
			}
		})
	}
}

// Who leaves when a request is to be sent again has none sent.
func TestLeavingBeforeItIsAskedAgain(t *testing.T) {
	p := &picky{refuses: map[string]string{`"stream_options":{`: `{"error":"stream_options"}`}, status: 400}
	server := httptest.NewServer(p)
	defer server.Close()
	for c, err := range openai.New(openai.Options{BaseURL: server.URL}).Stream(t.Context(), &troupe.Request{Model: "m"}) {
		if _, ok := c.(troupe.Retrying); ok {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(p.bodies) != 1 {
		t.Errorf("%d requests", len(p.bodies))
	}
}

// Nothing is at a base URL without its version.
func TestBaseURLWithoutVersion(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for base, says := range map[string]string{server.URL: "ends in /v1", server.URL + "/v1": `has a model "m"`} {
		_, _, err := asked(t, openai.New(openai.Options{BaseURL: base}), troupe.Request{Model: "m"})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", base, err)
		}
	}
}
