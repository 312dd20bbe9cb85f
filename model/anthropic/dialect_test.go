package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

const said = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"on it"}}
	{"type":"content_block_stop","index":0}
	`

const called = bash + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
	{"type":"content_block_stop","index":1}
	`

// A reply goes on or not by its calls, whatever the reason to stop is called.
func TestReasonsToStop(t *testing.T) {
	for _, reason := range []string{"end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded", "of_tomorrow"} {
		_, reply, err := stream(t.Context(), sse(begin+said+called+stop(reason)))
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		want := troupe.Blocks{troupe.Text("on it"), troupe.ToolUse{ID: "t1", Name: "Bash", Input: []byte(`{"a":1}`)}}
		if d := cmp.Diff(want, reply.Message.Content); d != "" || reply.Stop != reason {
			t.Errorf("%s: stop %q, %s", reason, reply.Stop, d)
		}
	}
}

// A reply without anything in it is one. Services send it when the model has
// nothing to add to the results of its tools.
func TestEmptyReply(t *testing.T) {
	for name, lines := range map[string]string{
		"no block":          begin + stop("end_turn"),
		"a block of text":   begin + strings.Replace(said, "on it", "", 1) + stop("end_turn"),
		"a block of nought": begin + `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}` + "\n" + stop("end_turn"),
		"no usage":          `{"type":"message_start","message":{"model":"claude-x"}}` + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n" + end,
	} {
		deltas, reply, err := stream(t.Context(), sse(lines))
		if err != nil || len(reply.Message.Content) > 0 || len(deltas) > 0 || reply.Stop != "end_turn" {
			t.Errorf("%s: %v, %+v, %v", name, deltas, reply, err)
		}
	}
}
