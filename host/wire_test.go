package host_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// What stands in the way of every request is told when a model is chosen, and
// not to a model that needs no network.
func TestNetworkOfModels(t *testing.T) {
	for _, tt := range []struct {
		set  string
		says []string // nothing: it is taken
	}{
		{"TROUPE_IDLE_TIMEOUT=90s", nil},
		{"TROUPE_IDLE_TIMEOUT=90", []string{"TROUPE_IDLE_TIMEOUT", "as in 90s"}},
		{"TROUPE_IDLE_TIMEOUT=-1s", []string{"TROUPE_IDLE_TIMEOUT"}},
		{"TROUPE_REQUEST_TIMEOUT=30m", nil},
		{"TROUPE_REQUEST_TIMEOUT=30", []string{"TROUPE_REQUEST_TIMEOUT", "as in 30m"}},
		{"TROUPE_REQUEST_TIMEOUT=0s", []string{"TROUPE_REQUEST_TIMEOUT"}},
		{"TROUPE_MAX_RETRIES=0", nil},
		{"TROUPE_MAX_RETRIES=12", nil},
		{"TROUPE_MAX_RETRIES=-1", []string{"TROUPE_MAX_RETRIES"}},
		{"TROUPE_MAX_RETRIES=few", []string{"TROUPE_MAX_RETRIES", "number"}},
		{"SSL_CERT_FILE=" + filepath.Join(t.TempDir(), "none.pem"), []string{"SSL_CERT_FILE", "none.pem"}},
		{"HTTPS_PROXY=gopher://x", []string{"HTTPS_PROXY"}},
	} {
		m := modelsWith(t.TempDir(), nil, "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", tt.set)
		for _, name := range []string{"openai/x", "anthropic/x", "ollama/x"} {
			_, err := m.Choose(name)
			if (err == nil) != (tt.says == nil) {
				t.Errorf("%s, %s: %v", tt.set, name, err)
			}
			for _, part := range tt.says {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", tt.set, err, part)
				}
			}
		}
		if _, err := m.Choose("script/none.json"); err == nil || strings.Contains(err.Error(), tt.set[:5]) {
			t.Errorf("%s: a script: %v", tt.set, err)
		}
	}
}
