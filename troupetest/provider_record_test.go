package troupetest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/troupe-sh/troupe"
	"pgregory.net/rapid"
)

func TestRequestIsParsed(t *testing.T) {
	call := troupe.ToolUse{ID: "a", Name: "Read", Input: []byte(`{"x":1}`)}
	want := troupe.Request{
		Model: "m", Effort: "high", System: "be good", MaxTokens: 9,
		Tools: []troupe.ToolSpec{{Name: "Read", Description: "d", Schema: []byte(`{"type":"object"}`)}},
		Messages: []troupe.Message{
			{Role: troupe.User, Content: troupe.Blocks{troupe.Text("first"), troupe.Image{Media: "image/png", Data: pixel}}},
			Use(call),
			{Role: troupe.User, Content: troupe.Blocks{troupe.ToolResult{ID: "a", Content: troupe.Blocks{troupe.Text("ok")}}}},
			Say("so"),
			troupe.Say(troupe.User, "last"),
		},
	}
	bodies := map[Dialect]probe{
		Anthropic: with(`{"max_tokens":9,"output_config":{"effort":"high"},"system":[{"type":"text","text":"be good"}],
			"tools":[{"name":"Read","description":"d","input_schema":{"type":"object"}}],"messages":[
			{"role":"user","content":[{"type":"text","text":"first"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{"x":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]},
			{"role":"assistant","content":"so"},{"role":"user","content":"last"}]}`),
		OpenAI: with(`{"max_tokens":9,"reasoning_effort":"high",
			"tools":[{"type":"function","function":{"name":"Read","description":"d","parameters":{"type":"object"}}}],"messages":[
			{"role":"system","content":"be good"},
			{"role":"user","content":[{"type":"text","text":"first"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Read","arguments":"{\"x\":1}"}}]},
			{"role":"tool","tool_call_id":"a","content":"ok"},
			{"role":"assistant","content":"so"},{"role":"user","content":"last"}]}`),
	}
	for d, body := range bodies {
		p := NewProvider(t)
		p.Say("yes")
		post(t, p, d, body)
		r := p.Last()
		if diff := cmp.Diff(want, r.Request); diff != "" {
			t.Errorf("%s: %s", d, diff)
		}
		if r.Dialect != d || r.Number != 1 || r.FirstUser() != "first" || r.LastUser() != "last" || !slices.Equal(r.ToolNames(), []string{"Read"}) {
			t.Errorf("%s: got %+v", d, r)
		}
		r.Messages = r.Messages[:3]
		if res := r.Results(); len(res) != 1 || res[0].Content.Text() != "ok" {
			t.Errorf("%s: results are %v", d, res)
		}
	}
}

func TestKeysAreMasked(t *testing.T) {
	p := NewProvider(t)
	p.Say("yes")
	post(t, p, Anthropic, header("X-Api-Key", "secret"))
	for name, values := range p.Last().Header {
		for _, v := range values {
			if v == "secret" || v == "Bearer secret" {
				t.Errorf("%s is in the record", name)
			}
		}
	}
}

func TestArrival(t *testing.T) {
	now := time.Unix(5, 0)
	p := NewProvider(t, Clock(func() time.Time { now = now.Add(time.Second); return now }))
	p.Say("a", "b")
	post(t, p, OpenAI, probe{})
	post(t, p, OpenAI, probe{})
	if all := p.Requests(); all[1].Arrived.Sub(all[0].Arrived) != time.Second || all[1].Number != 2 {
		t.Errorf("got %v and %v", all[0].Arrived, all[1].Arrived)
	}
}

func TestSharedPrefix(t *testing.T) {
	p := NewProvider(t)
	p.Say("a", "b", "c", "d")
	body := func(first, second string) probe {
		return probe{raw: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"one"` + first +
			`}]},{"role":"user","content":[{"type":"text","text":"` + second + `"}]}]}`}
	}
	post(t, p, Anthropic, body(`,"cache_control":{"type":"ephemeral"}`, "two"))
	post(t, p, Anthropic, body("", "other"))
	post(t, p, Anthropic, body(`,"cache_control":{"type":"ephemeral"}`, "twice"))
	post(t, p, OpenAI, probe{raw: `{"model":"m","messages":[{"role":"user","content":"hi"}]}`})
	all := p.Requests()
	start := len(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"one"`)
	to := start + len(`}]},{"role":"user","content":[{"type":"text","text":"`)
	mark := len(`,"cache_control":{"type":"ephemeral"}`)
	for i, want := range [][2]int{{0, 0}, {start, to}, {to + mark + len("tw"), to + len("tw")}, {0, 0}} {
		if got := [2]int{all[i].Shared, all[i].SharedUnmarked}; got != want {
			t.Errorf("request %d shares %v, want %v", i+1, got, want)
		}
	}
}

func TestMarksAreRemoved(t *testing.T) {
	in := `{"cache_control":{"type":"ephemeral"},"a":[{"b":1,"cache_control":null},2],"input":{"cache_control":"mine"},"z":"<&>"}`
	want := `{"a":[{"b":1},2],"input":{"cache_control":"mine"},"z":"<&>"}`
	if got := string(unmarked([]byte(in))); got != want {
		t.Errorf("got %s", got)
	}
}

// A cache read is what an earlier request has written up to one of its marks.
func TestAnthropicCache(t *testing.T) {
	p := NewProvider(t)
	p.Respond(func(*Request) Reply { return Reply{Message: Say("12345678")} })
	text := func(s, more string) string { return `{"type":"text","text":"` + s + `"` + more + `}` }
	const mark = `,"cache_control":{"type":"ephemeral"}`
	ask := func(blocks string) troupe.Usage {
		post(t, p, Anthropic, talk(userSays(blocks)))
		return p.Last().Usage
	}
	block := len("user" + text("aaaa", ""))
	for i, c := range []struct {
		blocks string
		want   troupe.Usage
	}{
		{text("aaaa", ""), troupe.Usage{Input: tokens(block), Output: 2}},
		{text("aaaa", mark), troupe.Usage{CacheWrite: tokens(block), Output: 2}},
		{text("aaaa", mark), troupe.Usage{CacheRead: tokens(block), Output: 2}},
		{text("aaaa", "") + "," + text("bbbb", mark), troupe.Usage{CacheRead: tokens(block), CacheWrite: tokens(2*block) - tokens(block), Output: 2}},
		{text("aaaa", "") + "," + text("bbbb", "") + "," + text("dddd", mark), troupe.Usage{CacheRead: tokens(2 * block), CacheWrite: tokens(3*block) - tokens(2*block), Output: 2}},
		{text("cccc", mark), troupe.Usage{CacheWrite: tokens(block), Output: 2}},
	} {
		if got := ask(c.blocks); got != c.want {
			t.Errorf("request %d: got %+v, want %+v", i+1, got, c.want)
		}
	}
	var sum troupe.Usage
	for _, r := range p.Requests() {
		sum = sum.Add(r.Usage)
	}
	if bill := p.Bill(); bill["m"] != sum || len(bill) != 1 {
		t.Errorf("the bill is %+v, the requests make %+v", bill, sum)
	}
}

func TestOpenAICache(t *testing.T) {
	p := NewProvider(t)
	p.Say("a", "b", "c")
	long := strings.Repeat("abcd", 2000)
	for i, want := range []int{0, step, step} {
		tail := []string{"x", "y", "z"}[i]
		post(t, p, OpenAI, talk(`{"role":"user","content":"`+long[:4500+i*100]+tail+`"}`))
		if got := p.Last().Usage.CacheRead; got != want {
			t.Errorf("request %d reads %d tokens from the cache, want %d", i+1, got, want)
		}
	}
}

// What was given is reported and billed as it is; a stream that is cut is
// billed for what came out.
func TestBill(t *testing.T) {
	p := NewProvider(t)
	given := troupe.Usage{Input: 1000, Output: 500, CacheRead: 10, CacheWrite: 20}
	p.Queue(
		Reply{Message: Say("x"), Usage: given},
		Reply{Message: Say("some words that are cut"), Usage: given, Fault: Fault{Truncate: Midway}},
		Reply{Fault: Fault{Status: 529}},
	)
	for range 3 {
		post(t, p, Anthropic, with(`{"stream":true}`))
	}
	all := p.Requests()
	cut := given
	cut.Output = tokens(len("some words t"))
	if all[0].Usage != given || all[1].Usage != cut || all[2].Usage != (troupe.Usage{}) {
		t.Errorf("got %+v, %+v, %+v", all[0].Usage, all[1].Usage, all[2].Usage)
	}
	if got := p.Bill()["m"]; got != given.Add(cut) {
		t.Errorf("the bill is %+v", got)
	}
}

func TestRefusedRequestIsKept(t *testing.T) {
	p := NewProvider(t, RefusalsExpected())
	res, _ := post(t, p, Anthropic, probe{raw: "{"})
	if r := p.Last(); res.StatusCode != http.StatusBadRequest || r.Refused != "json" || string(r.Body) != "{" || !r.Ended {
		t.Errorf("got %d and %+v", res.StatusCode, r)
	}
}

// Streams say exactly the text, however it is cut.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		parts := split(s)
		var joined string
		for _, part := range parts {
			joined += part
		}
		if joined != s {
			t.Fatalf("%q became %q", s, parts)
		}
		if n := len([]rune(s)); n > 1 && len(parts) < 2 || len(parts) > 102 {
			t.Fatalf("%d characters in %d parts", n, len(parts))
		}
	})
}

// FuzzBody: no body, however odd, makes a rule or the record panic.
func FuzzBody(f *testing.F) {
	for _, d := range []map[string]pair{anthropicMessagePairs(), openaiMessagePairs(), anthropicTopPairs(), openaiTopPairs()} {
		for _, p := range d {
			f.Add([]byte(p.accepted.with))
			f.Add([]byte(p.refused.with))
		}
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":""},{"role":"tool","content":null}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h := http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"k"}}
		for _, w := range []wire{anthropicWire{}, openaiWire{}} {
			w.parse(raw)
			w.prompt(raw)
			b := &body{header: h, raw: raw, top: decodeObject(raw), memory: newMemory()}
			if b.top == nil {
				return
			}
			// Let the body reach the later rules.
			maps.Copy(b.top, object{"model": "m"})
			if _, ok := w.(anthropicWire); ok {
				b.top["max_tokens"] = json.Number("9")
			}
			if once := unmarked(raw); string(unmarked(once)) != string(once) {
				t.Errorf("marks are left in %s", once)
			}
			for _, r := range w.rules() {
				if r.check(b) != "" {
					break
				}
			}
		}
	})
}
