package tool

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/proc"
)

//go:embed bash_background.md
var backgroundDoc string

// lastOutput is how many bytes an output may have that the summary of a job
// shows whole; of a longer one it shows the last half of that.
const lastOutput = 4000

// A Job is a command that runs, or is to run, in the background.
type Job struct {
	// Title is one line for people: what the model said that the command does,
	// or how the command begins.
	Title   string
	Command string // as the model wrote it
	// Run must be called exactly once, with the context that the job is to live
	// in. It returns when nothing of the command is left: neither of itself nor
	// of what it has started. The end of ctx ends it all.
	//
	// What the command prints goes to out, all of it from the first byte on,
	// with keys taken out. If out fails, the command goes on, and the summary
	// says so. Nothing is written to out after Run has returned.
	//
	// The summary says what was printed last and, if not well, how the command
	// ended. The error is nil if it ended by itself with code 0; else it says the
	// code or the signal, or wraps the cause of the end of ctx. It wraps
	// [proc.SurvivorsError] if some of it could not be ended.
	Run func(ctx context.Context, out io.Writer) (summary string, err error)
}

// withBackground is the description of the tool with a background: another
// paragraph on the time limit.
func withBackground(doc string) string {
	lines := strings.SplitAfter(doc, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "- A command ends after ") {
			lines[i] = backgroundDoc
		}
	}
	return strings.Join(lines, "")
}

// callInBackground hands over a command that is not started yet.
func (b *Bash) callInBackground(ctx context.Context, c *troupe.Call, in bashInput, r *shellRun) (troupe.Result, error) {
	id, output, err := b.Background(ctx, c, Job{Title: in.title(), Command: in.Command, Run: func(ctx context.Context, out io.Writer) (string, error) {
		r.spool.join(out)
		r.start(ctx)
		return r.summary(ctx)
	}})
	if err != nil {
		return troupe.Result{}, fmt.Errorf("run in the background: %w", err)
	}
	text := fmt.Sprintf("The command runs in the background as task %s. All it prints goes to %s.\n"+
		"You will be told when it ends; go on with something else, or end your turn. TaskOutput reads what it has printed so far, TaskStop ends it.", id, output)
	return backgroundResult(text, bashData{RawOutputPath: output, BackgroundTaskID: id})
}

// follow waits for a command, or for the end of ctx or its limit, which end
// it. If at its limit it goes on in the background, that is the result;
// refused says why it could not.
func (b *Bash) follow(ctx context.Context, c *troupe.Call, in bashInput, r *shellRun, limit time.Duration) (moved *troupe.Result, refused error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
		return nil, nil
	case <-ctx.Done():
		r.cancel(context.Cause(ctx))
	case <-timer.C:
		if b.Background != nil {
			if moved, refused = b.move(ctx, c, in, r, limit); refused == nil {
				return moved, nil
			}
		}
		cause := errTimeLimit
		if ctx.Err() != nil {
			cause = context.Cause(ctx)
		}
		r.cancel(cause)
	}
	<-r.done
	return nil, refused
}

// move hands over a command that runs.
func (b *Bash) move(ctx context.Context, c *troupe.Call, in bashInput, r *shellRun, limit time.Duration) (*troupe.Result, error) {
	id, output, err := b.Background(ctx, c, Job{Title: in.title(), Command: in.Command, Run: func(ctx context.Context, out io.Writer) (string, error) {
		r.spool.join(out)
		return r.summary(ctx)
	}})
	if err != nil {
		return nil, err
	}
	soFar := r.spool.capture.Output() // also when it has joined the job: it keeps what it had
	shown := outputText(soFar)
	if isBinary(soFar) {
		shown = binaryText(soFar)
	}
	text := shown
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += fmt.Sprintf("(still running after its time limit of %v: it goes on in the background as task %s. All it prints, from the beginning, is in %s.\n"+
		"You will be told when it ends. TaskOutput reads what it has printed so far, TaskStop ends it)", limit, id, output)
	res, err := backgroundResult(text, bashData{Stdout: shown, RawOutputPath: output, BackgroundTaskID: id, TimedOutAfter: limit.Milliseconds()})
	return &res, err
}

func backgroundResult(text string, fields bashData) (troupe.Result, error) {
	fields.ExitCode = -1
	data, err := troupe.Encode(fields)
	if err != nil {
		return troupe.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	return troupe.Result{Content: troupe.Blocks{troupe.Text(text)}, Data: data}, nil
}

// title is one line that tells people what the command is.
func (in bashInput) title() string {
	title := in.Description
	if strings.TrimSpace(title) == "" {
		title = in.Command
	}
	title = strings.Join(strings.Fields(plain([]byte(title))), " ")
	if runes := []rune(title); len(runes) > 80 {
		title = string(runes[:79]) + "…"
	}
	return title
}

// summary waits for a job and says how it ended, as [Job] promises.
func (r *shellRun) summary(ctx context.Context) (string, error) {
	r.wait(ctx)
	outErr := r.spool.close()
	end, err := r.end()
	ended := err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
	end.interrupted = ended
	last := r.spool.last.Output()
	text := lastText(last)
	notes := append(endNotes(end), sandboxNotes(last, end)...)
	if outErr != nil {
		notes = append(notes, fmt.Sprintf("(not all of the output could be kept: %v)", outErr))
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text = strings.TrimSuffix(text+strings.Join(notes, "\n"), "\n")
	switch {
	case err != nil:
		return text, err
	case end.Code > 0:
		err = fmt.Errorf("exit code %d", end.Code)
	case end.Code < 0:
		err = fmt.Errorf("the command did not end by itself: %s", end.State)
	}
	return text, err
}

// lastText is the end of an output, in whole lines if it has any.
func lastText(out proc.Output) string {
	if isBinary(out) {
		return binaryText(out)
	}
	if out.Missing == 0 {
		return outputText(out)
	}
	tail := out.Tail
	if _, lines, ok := bytes.Cut(tail, []byte("\n")); ok && len(lines) > 0 {
		tail = lines
	}
	return fmt.Sprintf("[%d bytes before this]\n%s", out.Size-int64(len(tail)), plain(tail))
}
