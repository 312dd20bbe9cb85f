package model_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/model"
)

// What servers say of a conversation that is too long, and of tools that they
// cannot do with. The texts are theirs.
func TestWhatARefusalIsAbout(t *testing.T) {
	const tools = "choose a model that can"
	for _, tt := range []struct {
		name, body string
		status     int
		tooLong    bool
		remedy     string
	}{
		{"Anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, 400, true, ""},
		{"Anthropic, with the reply", "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000\"}}", 400, true, ""},
		{"Anthropic, bytes", `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, 413, true, ""},
		{"OpenAI", `{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 400, true, ""},
		{"vLLM", `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`, 400, true, ""},
		{"llama.cpp", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`, 400, true, ""},
		{"LM Studio", `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`, 400, true, ""},
		{"Gemini", `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}`, 400, true, ""},
		{"xAI", `{"code":"invalid","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, 400, true, ""},
		{"Groq", `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error"}}`, 400, true, ""},
		{"a gateway's limit of bytes", `too large`, 413, true, ""},
		{"llama.cpp of old, as a fault of the server", `{"error":{"code":500,"message":"context length exceeded","type":"server_error"}}`, 500, true, ""},
		{"too much for a minute", `{"error":{"message":"Request too large for big-1 on tokens per min (TPM): Limit 30000, Requested 40000. Please reduce the length of the messages","code":"rate_limit_exceeded"}}`, 429, false, ""},
		{"something else", `{"error":{"message":"messages: text content blocks must be non-empty"}}`, 400, false, ""},
		{"Ollama, no tools", `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error","param":null,"code":null}}`, 400, false, tools},
		{"vLLM, no tools", `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}}`, 400, false, tools},
		{"OpenRouter, no tools", `{"error":{"message":"No endpoints found that support tool use. Try disabling \"Bash\".","code":404}}`, 404, false, tools},
		{"llama.cpp, no tools", `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, 500, false, tools},
		{"Groq, no tools", "{\"error\":{\"message\":\"`tool calling` is not supported with this model\"}}", 400, false, tools},
		{"a tool's fault", `{"error":{"message":"Invalid schema for function 'Read'"}}`, 400, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			_, answered := ask(t, server.URL)
			x := &model.Exchange{Provider: "acme"}
			streamed := x.Broken([]byte(tt.body))
			for _, err := range []error{answered, streamed} {
				if err == streamed && tt.status != 400 { // a stream has no status
					continue
				}
				var e *model.APIError
				if !errors.As(err, &e) {
					t.Fatalf("no APIError: %v", err)
				}
				if errors.Is(err, model.ErrTooLong) != tt.tooLong {
					t.Errorf("ErrTooLong is %v: %v", !tt.tooLong, err)
				}
				if (tt.tooLong || tt.remedy != "") && e.Temporary() || tt.tooLong && !strings.Contains(e.Remedy, "larger window") {
					t.Errorf("temporary %v, remedy %q", e.Temporary(), e.Remedy)
				}
				if tt.remedy != "" && !strings.Contains(e.Remedy, tt.remedy) {
					t.Errorf("remedy %q", e.Remedy)
				}
				if tt.remedy == "" && strings.Contains(e.Remedy, tools) {
					t.Errorf("it is not about tools: %v", err)
				}
			}
		})
	}
}

// An error says what a server has to say, in whatever form it says it.
func TestFormsOfErrors(t *testing.T) {
	for _, tt := range []struct{ media, body, says, param string }{
		{"application/json", `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`, "Extra inputs are not permitted", ""},
		{"application/json", `{"object":"error","message":{"detail":[{"msg":"Field required"}]}}`, "Field required", ""},
		{"application/json", `{"error":{"message":"Unknown parameter","param":"stream_options"}}`, "Unknown parameter", "stream_options"},
		{"application/json", `{"error":{"message":"m","param":null}}`, "m", ""},
		{"text/plain; charset=utf-8", "404 page\nnot found " + secret, "404 page not found [key]", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.media)
			w.WriteHeader(400)
			_, _ = w.Write([]byte(tt.body))
		}))
		_, err := ask(t, server.URL)
		server.Close()
		var e *model.APIError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.says) || e.Param != tt.param || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tt.body, err)
		}
	}
}
