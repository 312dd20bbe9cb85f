package delegate_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/permission"
	jobs "github.com/troupe-sh/troupe/task"
	"github.com/troupe-sh/troupe/troupetest"
)

// An agent that has read of an end before the task is quite gone, as the disk may
// take its time, does not wait for more mail of it.
func TestAnAgentDoesNotWaitForWhatItHasHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *stage
		s = newStage(t, modelFunc(func(_ context.Context, r *troupe.Request) iter.Seq2[troupe.Chunk, error] {
			said := len(r.Messages) / 2
			if task(r) == "inner" || said > 0 {
				return says(troupe.Reply{Message: troupetest.Say("done")})
			}
			return says(troupe.Reply{Message: troupetest.Use(troupe.ToolUse{ID: "c", Name: "Agent", Input: []byte(`{"prompt": "inner", "run_in_background": true}`)})})
		}))
		s.shared.Background = true
		slow := jobs.Options{Store: s.store, Dir: t.TempDir() + "/tasks", Now: s.shared.Now, Tell: func(ctx context.Context, end jobs.Task) error {
			m, err := delegate.NoticeOf(end)
			err = errors.Join(err, s.shared.Post(ctx, end.Owner, m))
			time.Sleep(time.Second) // the notice is there, and will be on the disk, too
			return err
		}}
		s.shared.Tasks = jobs.New(t.Context(), slow)
		defer s.shared.Tasks.Close()
		s.shared.Lead = s.lead(permission.Default)
		res, err := s.call(t.Context(), t, s.shared.Lead, delegate.Input{Prompt: "outer"})
		if err != nil || res.IsError {
			t.Fatal(res, err)
		}
		if d := dataOf(t, res); d.Content[0].Text != "done" {
			t.Errorf("%+v", d)
		}
	})
}
