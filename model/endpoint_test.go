package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe/model"
)

func TestEndpoint(t *testing.T) {
	c := model.NewCatalogue()
	type env = map[string]string
	for _, tt := range []struct {
		name string
		of   model.Name
		env  env
		want model.Endpoint
	}{
		{"anthropic", model.Name{"anthropic", "m"}, env{"ANTHROPIC_API_KEY": "k"},
			model.Endpoint{Dialect: model.Anthropic, BaseURL: "https://api.anthropic.com", Key: "k", KeyName: "ANTHROPIC_API_KEY"}},
		{"anthropic, gateway and token", model.Name{"anthropic", "m"}, env{"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": "http://gw:1/v1/"},
			model.Endpoint{Dialect: model.Anthropic, BaseURL: "http://gw:1", Token: "t", KeyName: "ANTHROPIC_AUTH_TOKEN"}},
		{"anthropic, the key goes before the token", model.Name{"anthropic", "m"}, env{"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"},
			model.Endpoint{Dialect: model.Anthropic, BaseURL: "https://api.anthropic.com", Key: "k", KeyName: "ANTHROPIC_API_KEY"}},
		{"space around what a file was read for", model.Name{"anthropic", "m"}, env{"ANTHROPIC_API_KEY": " k\r\n", "ANTHROPIC_BASE_URL": "http://gw:1\n"},
			model.Endpoint{Dialect: model.Anthropic, BaseURL: "http://gw:1", Key: "k", KeyName: "ANTHROPIC_API_KEY"}},
		{"openai, server without a key", model.Name{"openai", "m"}, env{"OPENAI_BASE_URL": "http://vllm:8000/v1"},
			model.Endpoint{Dialect: model.OpenAI, BaseURL: "http://vllm:8000/v1", KeyName: "OPENAI_API_KEY"}},
		{"catalogue, OpenAI's dialect", model.Name{"openrouter", "a/b"}, env{"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "no"},
			model.Endpoint{Dialect: model.OpenAI, BaseURL: "https://openrouter.ai/api/v1", Key: "k", KeyName: "OPENROUTER_API_KEY"}},
		{"catalogue, Anthropic's dialect", model.Name{"minimax", "m"}, env{"MINIMAX_API_KEY": "k", "ANTHROPIC_API_KEY": "no"},
			model.Endpoint{Dialect: model.Anthropic, BaseURL: "https://api.minimax.io/anthropic", Key: "k", KeyName: "MINIMAX_API_KEY"}},
		{"script", model.Name{"script", "a/b.script"}, nil, model.Endpoint{Dialect: model.Script}},
		{"ollama", model.Name{"ollama", "m"}, env{"OPENAI_API_KEY": "no"},
			model.Endpoint{Dialect: model.OpenAI, BaseURL: "http://localhost:11434/v1"}},
	} {
		tt.want.Provider, tt.want.Name = tt.of.Provider, tt.of.Model
		got, err := c.Endpoint(tt.of, lookup(tt.env))
		if d := cmp.Diff(tt.want, got); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", tt.name, err, d)
		}
	}
}

func TestEndpointWithoutKey(t *testing.T) {
	c := model.NewCatalogue()
	for provider, variable := range map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "deepseek": "DEEPSEEK_API_KEY"} {
		_, err := c.Endpoint(model.Name{Provider: provider, Model: "m"}, lookup(nil))
		if !errors.Is(err, model.ErrNoKey) || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s: %v does not name %s", provider, err, variable)
		}
	}
	odd := lookup(map[string]string{"OPENAI_API_KEY": "first-half\nother-half"})
	if _, err := c.Endpoint(model.Name{Provider: "openai", Model: "m"}, odd); !errors.Is(err, model.ErrNoKey) || strings.Contains(err.Error(), "half") {
		t.Errorf("a key in two lines: %v", err)
	}
	if _, err := c.Endpoint(model.Name{Provider: "nobody", Model: "m"}, lookup(nil)); !errors.Is(err, model.ErrUnknown) {
		t.Errorf("unknown provider: %v", err)
	}
}

func TestOllamaHost(t *testing.T) {
	c := model.NewCatalogue()
	for in, want := range map[string]string{
		"":                       "http://localhost:11434/v1",
		"box":                    "http://box:11434/v1",
		"box:1234":               "http://box:1234/v1",
		":1234":                  "http://localhost:1234/v1",
		"0.0.0.0":                "http://localhost:11434/v1",
		"0.0.0.0:99":             "http://localhost:99/v1",
		"[::]:99":                "http://localhost:99/v1",
		"[::1]":                  "http://[::1]:11434/v1",
		"https://box.example/":   "https://box.example/v1",
		"http://box:1/prefix/v1": "http://box:1/prefix/v1",
	} {
		e, err := c.Endpoint(model.Name{Provider: "ollama", Model: "m"}, lookup(map[string]string{"OLLAMA_HOST": in}))
		if err != nil || e.BaseURL != want {
			t.Errorf("OLLAMA_HOST=%q: %q, %v; want %q", in, e.BaseURL, err, want)
		}
	}
}

func TestEndpointHidesKey(t *testing.T) {
	e := model.Endpoint{Provider: "p", Name: "m", BaseURL: "https://user:hidden@h/v1?k=hidden", Key: "hidden-key", Token: "hidden-token"}
	all := fmt.Sprintf("%v %+v %#v %s", e, e, e, e)
	if strings.Contains(all+e.Account()[strings.LastIndex(e.Account(), " "):], "hidden") {
		t.Errorf("a secret is shown: %s", all)
	}
}

// What no request can go to is told when the model is chosen, with the variable
// that says so and without what may be secret in it.
func TestAddresses(t *testing.T) {
	c := model.NewCatalogue()
	for variable, name := range map[string]model.Name{
		"ANTHROPIC_BASE_URL": {Provider: "anthropic", Model: "m"}, "OPENAI_BASE_URL": {Provider: "openai", Model: "m"}, "OLLAMA_HOST": {Provider: "ollama", Model: "m"},
	} {
		for _, bad := range []string{"not a url", "ftp://host", "http://", "http://user:secret@", "https:///path", "http://[::1", "file:///x"} {
			_, err := c.Endpoint(name, func(v string) string {
				if v == variable {
					return bad
				}
				return ""
			})
			if variable == "OLLAMA_HOST" && (bad == "http://" || bad == "http://user:secret@" || bad == "https:///path") {
				continue // its host may be left out
			}
			if !errors.Is(err, model.ErrAddress) || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), "https://HOST") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s=%s: %v", variable, bad, err)
			}
		}
	}
}

// Every variable that finding and reaching an endpoint looks at decides it.
func TestDecides(t *testing.T) {
	c := model.NewCatalogue()
	seen := map[string]bool{}
	lookup := func(name string) string { seen[name] = true; return "" }
	for _, p := range c.Providers() {
		_, _ = c.Endpoint(model.Name{Provider: p, Model: "m"}, lookup)
	}
	if _, err := model.Network(lookup); err != nil {
		t.Fatal(err)
	}
	if len(seen) < 15 {
		t.Errorf("only %d variables were looked at", len(seen))
	}
	for name := range seen {
		if !c.Decides(name) {
			t.Errorf("%s is looked at and does not count", name)
		}
	}
	for _, name := range []string{"", "PATH", "TROUPE_HOME"} {
		if c.Decides(name) {
			t.Errorf("%q decides nothing", name)
		}
	}
}
