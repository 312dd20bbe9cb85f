package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// listLimit is how long a server may take to tell its models: somebody waits.
const listLimit = 3 * time.Second

// Offered asks the server at e for the names of its models, sorted. c is the
// client of [Network].
func Offered(ctx context.Context, c *http.Client, e Endpoint) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listLimit, ErrIdle)
	defer cancel()
	x := &Exchange{Provider: e.Provider, URL: e.BaseURL, KeyName: e.KeyName, Secrets: []string{e.Key, e.Token}, Idle: listLimit}
	path := "/models"
	if e.Dialect == Anthropic {
		path = "/v1/models?limit=1000"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(e.BaseURL, "/")+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its models: %w", bare(e.BaseURL), err)
	}
	e.sign(req.Header)
	res, err := Client(c).Do(req)
	if err != nil {
		return nil, x.Fail(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return nil, x.Fail(ctx, err)
	}
	if res.StatusCode != http.StatusOK {
		media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
		return nil, x.refused(res, media, body)
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%s does not answer with a list of models (%w); check the base URL", bare(e.BaseURL), err)
	}
	var names []string
	for _, m := range list.Data {
		if name := oneLine(m.ID, x.Secrets, 200); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// sign adds what shows that the sender may ask.
func (e Endpoint) sign(h http.Header) {
	switch {
	case e.Token != "":
		h.Set("Authorization", "Bearer "+e.Token)
	case e.Key == "":
	case e.Dialect == Anthropic:
		h.Set("X-Api-Key", e.Key)
	default:
		h.Set("Authorization", "Bearer "+e.Key)
	}
	if e.Dialect == Anthropic {
		h.Set("Anthropic-Version", "2023-06-01")
	}
}
