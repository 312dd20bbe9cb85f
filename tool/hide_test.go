package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/secret"
)

const hiddenKey = "sk-test-0f6b1c2d3e4f"

// A leaky tool gives away a key in every way that a tool has.
type leaky struct{ err error }

func (leaky) Spec() troupe.ToolSpec { return troupe.ToolSpec{Name: "Leaky"} }

func (l leaky) Call(context.Context, *troupe.Call) (troupe.Result, error) {
	return troupe.Result{
		Content: troupe.Blocks{troupe.Text("it is " + hiddenKey), troupe.Image{Media: "image/png", Data: "eA=="}, troupe.Text(hiddenKey)},
		Data:    json.RawMessage(`{"key":"` + hiddenKey + `"}`),
	}, l.err
}

type leakyOrdered struct{ leaky }

func (leakyOrdered) Lane(*troupe.Call) string { return "lane" }

func TestHideTakesKeysOut(t *testing.T) {
	cause := errors.New("no " + hiddenKey)
	h := Hide(leaky{cause}, secret.New(hiddenKey))
	res, err := h.Call(t.Context(), &troupe.Call{})
	if err == nil || err.Error() != "no [key]" || !errors.Is(err, cause) {
		t.Errorf("the error is %v", err)
	}
	if len(res.Content) != 3 || res.Content[0] != troupe.Text("it is [key]") || res.Content[2] != troupe.Text("[key]") || string(res.Data) != `{"key":"[key]"}` {
		t.Errorf("the result is %q, %s", res.Content, res.Data)
	}
	if _, ok := h.(troupe.Ordered); ok {
		t.Error("a tool without an order has one")
	}
	if o, ok := Hide(leakyOrdered{}, nil).(troupe.Ordered); !ok || o.Lane(nil) != "lane" {
		t.Error("the order is lost")
	}
}

// What a command prints is masked before it is kept: in memory, in the file,
// and also where it comes in pieces or with escape sequences in it.
func TestBashMasksWhatIsPrinted(t *testing.T) {
	dir := t.TempDir()
	b := &Bash{Output: dir, Mask: secret.New(hiddenKey), Env: []string{"PATH=/usr/bin:/bin"}}
	half := hiddenKey[:9] + "'; printf '" + hiddenKey[9:]
	input, err := json.Marshal(map[string]string{"command": "printf '" + half + "'; for i in $(seq 3000); do echo '" + hiddenKey + " line'; done; printf '" + hiddenKey[:5] + "'"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Hide(b, b.Mask).Call(t.Context(), &troupe.Call{ToolUse: troupe.ToolUse{Name: "Bash", Input: input}, Place: troupe.Place{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	text := joined(res.Content)
	if strings.Contains(text, hiddenKey) || !strings.HasPrefix(text, "[key][key] line\n") || !strings.Contains(text, "\n"+hiddenKey[:5]+"\n") {
		t.Errorf("the model gets %.200q … %q", text, text[max(0, len(text)-200):])
	}
	var data bashData
	if err := json.Unmarshal(res.Data, &data); err != nil || data.RawOutputPath == "" {
		t.Fatalf("no file of the output: %v, %+v", err, data)
	}
	if kept, err := os.ReadFile(data.RawOutputPath); err != nil || strings.Contains(string(kept), hiddenKey) ||
		strings.Count(string(kept), "[key] line\n") != 3000 || !strings.HasSuffix(string(kept), hiddenKey[:5]) {
		t.Errorf("the file has %d bytes: %.100q", len(kept), kept)
	}

	input, _ = json.Marshal(map[string]string{"command": `printf '` + hiddenKey[:9] + `\033[31m` + hiddenKey[9:] + `\033[0m'`})
	res, err = Hide(b, b.Mask).Call(t.Context(), &troupe.Call{ToolUse: troupe.ToolUse{Name: "Bash", Input: input}, Place: troupe.Place{Dir: dir}})
	if text := joined(res.Content); err != nil || text != "[key]" {
		t.Errorf("with colours in it: %q, %v", text, err)
	}
}
