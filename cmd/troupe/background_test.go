package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// A streamed is a line of a stream, as far as the tests of the background read it.
type streamed struct {
	Type, Subtype string
	Task          string `json:"task_id"`
	Use           string `json:"tool_use_id"`
	Status        string
	Patch         struct{ Status string }
	Tasks         []struct {
		Task string `json:"task_id"`
	}
	Message struct {
		Content []struct{ Type, ID, Text string }
	}
	Parent string `json:"parent_tool_use_id"`
}

// tasks N STATUS checks what the stream on stdout tells of background tasks: N of
// them, each begun after its call and ended once, as STATUS, before an answer of
// the lead reads of it; and the sets, which have at any moment what is at work.
func tasks(ts *testscript.TestScript, _ bool, args []string) {
	calls, ended := map[string]bool{}, map[string]bool{}
	var set, now []string
	last := streamed{}
	for line := range strings.SplitSeq(strings.TrimSpace(ts.ReadFile("stdout")), "\n") {
		var m streamed
		ts.Check(json.Unmarshal([]byte(line), &m))
		if m.Type == "assistant" {
			for _, b := range m.Message.Content {
				calls[b.ID] = true
				if m.Parent == "" && strings.HasPrefix(b.Text, "All is done") && itoa(len(ended)) != args[0] {
					ts.Fatalf("the lead reads of an end before the stream tells it: %v", ended)
				}
			}
		}
		switch m.Subtype {
		case "task_started":
			if !calls[m.Use] || slices.Contains(now, m.Task) {
				ts.Fatalf("begun before its call, or twice: %s", line)
			}
			now = append(now, m.Task)
		case "task_notification":
			if m.Status != args[1] || ended[m.Task] || !slices.Contains(now, m.Task) || m.Use == "" {
				ts.Fatalf("not an end of what is at work: %s", line)
			}
			ended[m.Task] = true
			now = slices.DeleteFunc(now, func(id string) bool { return id == m.Task })
		case "background_tasks_changed":
			set = nil
			for _, t := range m.Tasks {
				set = append(set, t.Task)
			}
			if !slices.Equal(set, now) {
				ts.Fatalf("the set is %v, and at work are %v", set, now)
			}
		}
		last = m
	}
	if itoa(len(ended)) != args[0] || len(set) > 0 || last.Type != "result" {
		ts.Fatalf("%d ended, want %s; left are %v; the last line is a %s", len(ended), args[0], set, last.Type)
	}
}

// adds checks that the usage in the result on stdout is that of all replies in the
// logs of its session: "usage" of the lead's, "modelUsage" of all agents'.
func adds(ts *testscript.TestScript, _ bool, _ []string) {
	type tokens struct {
		Output int `json:"output_tokens"`
	}
	var r struct {
		Session string `json:"session_id"`
		Usage   tokens
		Models  map[string]struct{ OutputTokens int } `json:"modelUsage"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &r))
	dir := filepath.Join(ts.Getenv("HOME"), ".troupe", "sessions", "*", r.Session)
	lead, agents := written(ts, filepath.Join(dir, "lead.jsonl")), written(ts, filepath.Join(dir, "agents", "a????????.jsonl"))
	for name, m := range r.Models {
		if len(r.Models) != 1 || agents == 0 || r.Usage.Output != lead || m.OutputTokens != lead+agents {
			ts.Fatalf("%s has written %d, of these the lead %d; in the logs are %d of the lead and %d of others", name, m.OutputTokens, r.Usage.Output, lead, agents)
		}
	}
}

// written adds up the tokens of the replies in logs.
func written(ts *testscript.TestScript, logs string) (sum int) {
	paths, err := filepath.Glob(logs)
	ts.Check(err)
	for _, path := range paths {
		for line := range strings.SplitSeq(strings.TrimSpace(ts.ReadFile(path)), "\n") {
			var rec struct {
				Event struct {
					Replied struct{ Usage struct{ Output int } }
				}
			}
			ts.Check(json.Unmarshal([]byte(line), &rec))
			sum += rec.Event.Replied.Usage.Output
		}
	}
	return sum
}
