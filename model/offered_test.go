package model_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe/model"
)

func TestOffered(t *testing.T) {
	for _, tt := range []struct {
		name     string
		endpoint model.Endpoint
		path     string
		header   [2]string
	}{
		{"key", model.Endpoint{Dialect: model.OpenAI, Key: "k"}, "/models", [2]string{"Authorization", "Bearer k"}},
		{"no key", model.Endpoint{Dialect: model.OpenAI}, "/models", [2]string{"Authorization", ""}},
		{"Anthropic", model.Endpoint{Dialect: model.Anthropic, Key: "k"}, "/v1/models", [2]string{"X-Api-Key", "k"}},
		{"Anthropic, token", model.Endpoint{Dialect: model.Anthropic, Token: "t"}, "/v1/models", [2]string{"Authorization", "Bearer t"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != tt.path || r.Header.Get(tt.header[0]) != tt.header[1] {
					t.Errorf("%s %s, %v", r.Method, r.URL, r.Header)
				}
				_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"z/1:8b"},{"id":"a"},{"id":"a"},{"id":"b\u001b[31m\nc"},{"id":""}]}`))
			}))
			defer server.Close()
			tt.endpoint.BaseURL = server.URL + "/"
			got, err := model.Offered(t.Context(), nil, tt.endpoint)
			if err != nil || !slices.Equal(got, []string{"a", "b [31m c", "z/1:8b"}) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestOfferedFails(t *testing.T) {
	for _, tt := range []struct {
		media, body string
		status      int
		says        string
	}{
		{"text/html", "<html>", 200, "list of models"},
		{"application/json", `{"error":{"message":"no"}}`, 401, "ACME_API_KEY"},
		{"text/html", "<html>", 404, "web page"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.media)
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.body))
		}))
		got, err := model.Offered(t.Context(), nil, model.Endpoint{Provider: "acme", BaseURL: server.URL, KeyName: "ACME_API_KEY"})
		server.Close()
		if err == nil || !strings.Contains(err.Error(), tt.says) || got != nil {
			t.Errorf("%d: %q, %v", tt.status, got, err)
		}
	}
	if _, err := model.Offered(t.Context(), nil, model.Endpoint{Provider: "acme", BaseURL: "http://" + closed(t)}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}

func TestProvidersAndModels(t *testing.T) {
	c := model.NewCatalogue(model.Info{Provider: "ollama", Name: "own", Window: 5}, model.Info{Provider: "anthropic", Name: "claude-opus-4-5-20251101", Window: 7})
	all := c.Providers()
	if !slices.Equal(all[:3], []string{"anthropic", "openai", "ollama"}) || !slices.Contains(all, "openrouter") {
		t.Errorf("%v", all)
	}
	if sorted := slices.Sorted(slices.Values(all)); len(slices.Compact(sorted)) != len(all) {
		t.Errorf("one comes twice: %v", all)
	}
	if got := c.Models("ollama"); len(got) != 1 || got[0] != (model.Info{Provider: "ollama", Name: "own", Window: 5}) {
		t.Errorf("%+v", got)
	}
	claudes := c.Models("anthropic")
	at := slices.IndexFunc(claudes, func(i model.Info) bool { return i.Name == "claude-opus-4-5-20251101" })
	if at < 0 || claudes[at].Window != 7 || claudes[at].MaxOutput == 0 {
		t.Errorf("%+v", claudes)
	}
	names := func(list []model.Info) (out []string) {
		for _, i := range list {
			out = append(out, i.Name)
		}
		return out
	}(claudes)
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("not sorted, or one comes twice: %v", names)
	}
	if got := (model.Endpoint{BaseURL: "http://u:p@host/v1?key=x"}).Server(); got != "http://host/v1" {
		t.Errorf("Server: %s", got)
	}
}
