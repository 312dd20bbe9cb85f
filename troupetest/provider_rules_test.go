package troupetest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// probe is a request: raw, or the base of its dialect with the fields of a
// JSON object instead of its own (null takes one away), and headers likewise.
type probe struct {
	raw, with string
	header    map[string]string
}

// pair is a request that a rule accepts and one that it refuses.
type pair struct{ accepted, refused probe }

func with(s string) probe { return probe{with: s} }

func post(t *testing.T, p *Provider, d Dialect, pr probe) (*http.Response, []byte) {
	t.Helper()
	path, fields := "/v1/messages", object{
		"model": "m", "max_tokens": 2000, "messages": []any{object{"role": "user", "content": "hi"}},
	}
	header := map[string]string{"Content-Type": "application/json", "Authorization": "Bearer secret"}
	if d == OpenAI {
		path = "/v1/chat/completions"
		delete(fields, "max_tokens")
	} else {
		header["Anthropic-Version"] = "2023-06-01"
	}
	if pr.with != "" {
		var more object
		if err := json.Unmarshal([]byte(pr.with), &more); err != nil {
			t.Fatalf("%s: %v", pr.with, err)
		}
		maps.Copy(fields, more)
	}
	for k, v := range fields {
		if v == nil {
			delete(fields, k)
		}
	}
	raw := string(encode(fields))
	if pr.raw != "" {
		raw = pr.raw
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.URL()+path, strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(header, pr.header)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, answer
}

// signedMessages are what the provider of the rule tests has said before.
func signedMessages() []troupe.Message {
	opaque := troupe.Opaque{Provider: "anthropic", JSON: `{"type":"redacted_thinking","data":"R1"}`}
	return []troupe.Message{
		{Role: troupe.Assistant, Content: troupe.Blocks{
			troupe.Thinking{Text: "hm", Signature: "S1"}, opaque,
			troupe.ToolUse{ID: "thought", Name: "Read", Input: []byte(`{}`)},
		}},
		{Role: troupe.Assistant, Content: troupe.Blocks{troupe.Thinking{Text: "one", Provider: "openai/reasoning_content"}}},
	}
}

func testRules(t *testing.T, d Dialect, w wire, pairs map[string]pair) {
	known := map[string]bool{}
	for _, r := range w.rules() {
		if known[r.name] {
			t.Errorf("two rules are named %q", r.name)
		}
		known[r.name] = true
		p, ok := pairs[r.name]
		if !ok {
			t.Errorf("the rule %q has no accepted and refused request", r.name)
			continue
		}
		t.Run(r.name, func(t *testing.T) { testPair(t, d, r, p) })
	}
	for name := range pairs {
		if !known[name] {
			t.Errorf("there is no rule %q", name)
		}
	}
}

func testPair(t *testing.T, d Dialect, r rule, pair pair) {
	p := NewProvider(t, Key("secret"), Models("m"), RefusalsExpected())
	p.Respond(func(*Request) Reply { return Reply{Message: Say("yes")} })
	p.Know(signedMessages()...)
	if res, body := post(t, p, d, pair.accepted); res.StatusCode != http.StatusOK {
		t.Errorf("accepted: got %d by rule %q: %s", res.StatusCode, p.Last().Refused, body)
	}
	want := max(r.status, http.StatusBadRequest)
	res, body := post(t, p, d, pair.refused)
	if res.StatusCode != want || p.Last().Refused != r.name {
		t.Errorf("refused: got %d by rule %q, want %d: %s", res.StatusCode, p.Last().Refused, want, p.Last().Complaint)
	}
	var problem struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(body, &problem); err != nil || problem.Error.Message == "" || problem.Error.Type == "" {
		t.Errorf("refused: the body is no error of the service: %s", body)
	}
	if d == Anthropic && problem.Type != "error" {
		t.Errorf("refused: type is %q", problem.Type)
	}
}

// bodyPairs are those of both dialects. messages is a body up to its first text.
func bodyPairs(head string) map[string]pair {
	raw := func(text string) probe {
		return probe{raw: `{"model":"m",` + head + `"messages":[{"role":"user","content":"` + text + `"}]}`}
	}
	return map[string]pair{
		"content-type": {probe{header: map[string]string{"Content-Type": "application/json; charset=utf-8"}}, probe{header: map[string]string{"Content-Type": "text/plain"}}},
		"utf-8":        {raw("ä"), raw("\xe4")},
		"json":         {raw("a"), probe{raw: `[]`}},
		"surrogates":   {raw(`\ud83d\ude00 \\ud83d`), raw(`\\\ud83d`)},
	}
}

// talk makes a messages field of JSON messages.
func talk(messages ...string) probe {
	return with(`{"messages":[` + strings.Join(messages, ",") + `]}`)
}

func TestAnthropicRules(t *testing.T) {
	pairs := bodyPairs(`"max_tokens":9,`)
	maps.Copy(pairs, anthropicTopPairs())
	maps.Copy(pairs, anthropicMessagePairs())
	testRules(t, Anthropic, anthropicWire{}, pairs)
}

func header(key, value string) probe { return probe{header: map[string]string{key: value}} }

func anthropicTopPairs() map[string]pair {
	tools := func(s string) probe { return with(`{"tools":[` + s + `]}`) }
	const read = `{"name":"Read","description":"d","input_schema":{"type":"object","properties":{}}}`
	text := func(mark string) string { return `{"type":"text","text":"a","cache_control":{` + mark + `}}` }
	said := func(blocks ...string) probe {
		return talk(`{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`)
	}
	const short, long = `"type":"ephemeral"`, `"type":"ephemeral","ttl":"1h"`
	return map[string]pair{
		"anthropic-version":   {header("Anthropic-Version", "2026-10-21"), header("Anthropic-Version", "2020-01-01")},
		"key":                 {header("X-Api-Key", "secret"), header("Authorization", "Bearer other")},
		"required fields":     {probe{}, with(`{"max_tokens":null}`)},
		"top-level fields":    {with(`{"stream":true}`), with(`{"stream_options":{}}`)},
		"sampling":            {with(`{"temperature":1}`), probe{with: `{"temperature":1}`, header: map[string]string{"Anthropic-Version": "2026-10-21"}}},
		"model":               {probe{}, with(`{"model":"other"}`)},
		"max_tokens":          {with(`{"max_tokens":1}`), with(`{"max_tokens":0}`)},
		"system":              {with(`{"system":[{"type":"text","text":"be good"}]}`), with(`{"system":[{"type":"text","text":" "}]}`)},
		"tools":               {tools(read), tools(`{"name":"Read","parameters":{}}`)},
		"tool names":          {tools(strings.Replace(read, "Read", strings.Repeat("a", 128), 1)), tools(strings.Replace(read, "Read", strings.Repeat("a", 129), 1))},
		"tool names unique":   {tools(read), tools(read + "," + read)},
		"tool schemas":        {tools(read), tools(`{"name":"Read","input_schema":{"type":"string"}}`)},
		"tool_choice":         {with(`{"tool_choice":{"type":"auto"},"tools":[` + read + `]}`), with(`{"tool_choice":{"type":"auto"}}`)},
		"thinking config":     {with(`{"thinking":{"type":"enabled","budget_tokens":1024}}`), with(`{"thinking":{"type":"enabled","budget_tokens":2000}}`)},
		"output_config":       {with(`{"output_config":{"effort":"high"}}`), with(`{"output_config":{"effort":"great"}}`)},
		"cache shape":         {said(text(long), text(short)), said(text(short), text(long))},
		"cache breakpoints":   {said(text(short), text(short), text(short), text(short)), said(text(short), text(short), text(short), text(short), text(short))},
		"cache on empty text": {said(text(short)), said(strings.Replace(text(short), `"a"`, `""`, 1))},
	}
}

const (
	anyUser    = `{"role":"user","content":"hi"}`
	useA       = `{"type":"tool_use","id":"a","name":"Read","input":{}}`
	resultA    = `{"type":"tool_result","tool_use_id":"a","content":"ok"}`
	textBlock  = `{"type":"text","text":"t"}`
	thought    = `{"type":"thinking","thinking":"hm","signature":"S1"}`
	redacted   = `{"type":"redacted_thinking","data":"R1"}`
	useThought = `{"type":"tool_use","id":"thought","name":"Read","input":{}}`
)

func userSays(blocks string) string      { return `{"role":"user","content":[` + blocks + `]}` }
func assistantSays(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }

func anthropicMessagePairs() map[string]pair {
	sub := strings.NewReplacer
	called := talk(anyUser, assistantSays(useA), userSays(resultA))
	reasoned := talk(anyUser, assistantSays(thought+","+redacted+","+textBlock), anyUser)
	image := func(media, data string) probe {
		return talk(userSays(`{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`))
	}
	change := func(p probe, from, to string) probe { return probe{with: sub(from, to).Replace(p.with)} }
	answer := sub("thought", "x").Replace(resultA)
	kept := talk(anyUser, assistantSays(thought+","+redacted+","+useThought), userSays(sub(`"a"`, `"thought"`).Replace(answer)))
	return map[string]pair{
		"messages":              {probe{}, with(`{"messages":[]}`)},
		"roles":                 {probe{}, talk(anyUser, `{"role":"system","content":"x"}`)},
		"first message":         {probe{}, talk(`{"role":"assistant","content":"x"}`, anyUser)},
		"content":               {talk(userSays(textBlock)), talk(`{"role":"user","content":{"type":"text","text":"x"}}`)},
		"empty messages":        {probe{}, talk(anyUser, assistantSays(""), anyUser)},
		"cache on thinking":     {reasoned, change(reasoned, `"S1"`, `"S1","cache_control":{"type":"ephemeral"}`)},
		"block types":           {called, talk(userSays(`{"type":"input_text","text":"x"}`))},
		"block fields":          {called, change(called, `"content":"ok"`, `"content":"ok","name":"Read"`)},
		"empty text":            {talk(userSays(textBlock)), change(called, `"ok"`, `[{"type":"text","text":"\n"}]`)},
		"images":                {image("image/png", pixel), image("image/png", "no base64!")},
		"tool ids":              {called, change(called, `"a"`, `"a.b"`)},
		"called names":          {called, change(called, "Read", "Read it")},
		"tool inputs":           {called, change(called, `"input":{}`, `"input":"{}"`)},
		"tool ids unique":       {called, talk(anyUser, assistantSays(useA+","+useA), userSays(resultA))},
		"results first":         {talk(anyUser, assistantSays(useA), userSays(resultA+","+textBlock)), talk(anyUser, assistantSays(useA), userSays(textBlock+","+resultA))},
		"calls answered":        {called, talk(anyUser, assistantSays(useA), anyUser, userSays(resultA))},
		"results called":        {called, talk(anyUser, assistantSays(textBlock), userSays(resultA))},
		"one result a call":     {called, talk(anyUser, assistantSays(useA), userSays(resultA+","+resultA))},
		"final whitespace":      {talk(anyUser, `{"role":"assistant","content":"so"}`), talk(anyUser, `{"role":"assistant","content":"so "}`)},
		"prefill with thinking": {talk(anyUser, assistantSays(textBlock)), with(`{"thinking":{"type":"adaptive"},"messages":[` + anyUser + `,` + assistantSays(textBlock) + `]}`)},
		"thinking signature":    {reasoned, change(reasoned, `"S1"`, `""`)},
		"thinking unchanged":    {reasoned, change(reasoned, `"hm"`, `"hm "`)},
		"redacted unchanged":    {reasoned, change(reasoned, `"R1"`, `"R2"`)},
		"thinking order":        {reasoned, talk(anyUser, assistantSays(redacted+","+thought+","+textBlock), anyUser)},
		"thinking kept":         {kept, talk(anyUser, assistantSays(thought+","+useThought), userSays(sub(`"a"`, `"thought"`).Replace(answer)))},
	}
}

func TestOpenAIRules(t *testing.T) {
	pairs := bodyPairs("")
	maps.Copy(pairs, openaiTopPairs())
	maps.Copy(pairs, openaiMessagePairs())
	testRules(t, OpenAI, openaiWire{}, pairs)
}

func openaiTopPairs() map[string]pair {
	tools := func(s string) probe { return with(`{"tools":[` + s + `]}`) }
	const read = `{"type":"function","function":{"name":"Read","description":"d","parameters":{"type":"object"}}}`
	named := func(n int) probe { return tools(strings.Replace(read, "Read", strings.Repeat("a", n), 1)) }
	return map[string]pair{
		"key":               {probe{}, header("Authorization", "Bearer other")},
		"required fields":   {probe{}, with(`{"messages":null}`)},
		"top-level fields":  {with(`{"stream":true}`), with(`{"system":"be good"}`)},
		"model":             {probe{}, with(`{"model":"other"}`)},
		"max_tokens":        {with(`{"max_completion_tokens":1}`), with(`{"max_completion_tokens":0}`)},
		"stream_options":    {with(`{"stream":true,"stream_options":{"include_usage":true}}`), with(`{"stream_options":{"include_usage":true}}`)},
		"tools":             {tools(read), with(`{"tools":[]}`)},
		"tool names":        {named(64), named(65)},
		"tool names unique": {tools(read), tools(read + "," + read)},
		"tool schemas":      {tools(read), tools(strings.Replace(read, `"object"`, `"array"`, 1))},
		"tool_choice":       {with(`{"tool_choice":"auto","tools":[` + read + `]}`), with(`{"tool_choice":"auto"}`)},
		"reasoning_effort":  {with(`{"reasoning_effort":"high"}`), with(`{"reasoning_effort":"great"}`)},
	}
}

func openaiMessagePairs() map[string]pair {
	const (
		system    = `{"role":"system","content":"be good"}`
		callA     = `{"id":"a","type":"function","function":{"name":"Read","arguments":"{}"}}`
		calls     = `{"role":"assistant","content":null,"tool_calls":[` + callA + `]}`
		result    = `{"role":"tool","tool_call_id":"a","content":""}`
		assistant = `{"role":"assistant","content":"so"}`
		reasoned  = `{"role":"assistant","content":"so","reasoning_content":"one"}`
	)
	called := talk(anyUser, calls, result)
	change := func(p probe, from, to string) probe { return probe{with: strings.ReplaceAll(p.with, from, to)} }
	image := func(url string) probe {
		return talk(userSays(`{"type":"image_url","image_url":{"url":"` + url + `"}}`))
	}
	return map[string]pair{
		"messages":            {probe{}, with(`{"messages":[]}`)},
		"roles":               {probe{}, talk(anyUser, `{"role":"function","name":"f","content":"x"}`)},
		"message fields":      {called, talk(anyUser, change(with(calls), `"content":null`, `"content":null,"thinking":"x"`).with, result)},
		"system first":        {talk(system, anyUser), talk(anyUser, system)},
		"first message":       {talk(system, anyUser), talk(system, assistant, anyUser)},
		"content":             {called, talk(anyUser, `{"role":"assistant","content":null}`, anyUser)},
		"parts":               {talk(userSays(textBlock)), talk(anyUser, assistantSays(`{"type":"image_url","image_url":{"url":"https://a"}}`), anyUser)},
		"empty text":          {talk(userSays(textBlock)), talk(userSays(`{"type":"text","text":""}`))},
		"images":              {image("data:image/png;base64," + pixel), image("data:image/tiff;base64," + pixel)},
		"tool_calls":          {called, change(called, `"arguments":"{}"`, `"arguments":"{}","x":1`)},
		"tool ids":            {called, change(called, `"id":"a"`, `"id":""`)},
		"tool ids unique":     {called, talk(anyUser, calls, result, calls, result)},
		"called names":        {called, change(called, "Read", "Read it")},
		"arguments":           {called, change(called, `"{}"`, `"{"`)},
		"results called":      {called, talk(anyUser, calls, result, anyUser, result)},
		"one result a call":   {called, talk(anyUser, calls, result, result)},
		"calls answered":      {called, talk(anyUser, calls, anyUser)},
		"reasoning unchanged": {talk(anyUser, reasoned, anyUser), talk(anyUser, strings.Replace(reasoned, "one", "two", 1), anyUser)},
	}
}
