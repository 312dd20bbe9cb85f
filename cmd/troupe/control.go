package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/internal/control"
	"github.com/troupe-sh/troupe/permission"
)

const streamJSON = "stream-json"

// withoutEffect are the flags that the agent SDKs may send and that mean nothing
// here yet; true are those with a value. What takes something away from an agent
// must not be among them.
var withoutEffect = map[string]bool{
	"betas": true, "debug": false, "debug-file": true, "forward-subagent-text": false, "include-hook-events": false, "json-schema": true,
	"max-thinking-tokens": true, "mcp-config": true, "no-chrome": false, "plugin-dir": true, "session-mirror": false, "strict-mcp-config": false,
	"task-budget": true, "thinking": true, "thinking-display": true,
}

// registerControl registers the flags of those who drive troupe by a program.
func (f *flags) registerControl(set *pflag.FlagSet) {
	set.StringVar(&f.input, "input-format", "text", "`format` of stdin: text, or stream-json to be driven by a program")
	set.StringVar(&f.prompter, "permission-prompt-tool", "", "`who` is asked what needs approval: stdio is the program that drives")
	set.BoolVar(&f.partial, "include-partial-messages", false, "with stream-json: print fragments of replies as they come")
	set.BoolVar(&f.replay, "replay-user-messages", false, "with stream-json on both sides: print prompts when they enter")
	set.BoolVar(&f.mayskip, "allow-dangerously-skip-permissions", false, "a program that drives may switch to bypassPermissions")
	for name, valued := range withoutEffect {
		if set.Lookup(name) != nil {
			continue
		}
		if valued {
			set.String(name, "", "has no effect in this version")
		} else {
			set.Bool(name, false, "has no effect in this version")
		}
		_ = set.MarkHidden(name) // it is there
	}
	f.set = set
}

// unused tells which flags have no effect.
func (f *flags) unused() (lines []string) {
	f.set.Visit(func(flag *pflag.Flag) {
		if _, listed := withoutEffect[flag.Name]; listed && flag.Hidden {
			lines = append(lines, "--"+flag.Name+" has no effect in this version")
		}
	})
	return lines
}

// checkControl reports flags of programs that make no sense.
func (f *flags) checkControl(args []string) error {
	driven := f.input == streamJSON
	switch {
	case f.input != "text" && !driven:
		return fmt.Errorf("--input-format %q: want text, %s", f.input, streamJSON)
	case driven && f.output != streamJSON:
		return errors.New("--input-format stream-json needs --output-format stream-json")
	case driven && len(args) > 0:
		return fmt.Errorf("with --input-format stream-json prompts come on stdin, not as an argument: %q", strings.Join(args, " "))
	case f.prompter != "" && f.prompter != "stdio":
		return fmt.Errorf("--permission-prompt-tool %s: a tool of an MCP server needs that server, and servers are not started by this version; stdio asks the program that drives", f.prompter)
	case f.prompter == "stdio" && !driven:
		return errors.New("--permission-prompt-tool stdio needs --input-format stream-json")
	case f.partial && f.output != streamJSON:
		return errors.New("--include-partial-messages needs --output-format stream-json")
	case f.replay && !driven:
		return errors.New("--replay-user-messages needs --input-format stream-json")
	}
	return nil
}

// tell prints a line for the user.
func (p *program) tell(line string) { fmt.Fprintln(p.notes, "troupe: "+cli.Clean(line)) }

// control serves a program that drives the session: the way of
// `troupe --input-format stream-json`. in is what the program sends.
func (p *program) control(ctx context.Context, f *flags, in io.Reader) error {
	for _, line := range f.unused() {
		p.tell(line)
	}
	opened := false
	end, err := control.Run(ctx, control.Options{
		In: in, Out: p.out, Ask: f.prompter == "stdio", Partial: f.partial, Replay: f.replay, Now: time.Now, NewID: uuid.NewString,
		Bypass: f.mayskip || f.skip || f.mode == string(permission.Bypass),
		Open: func(ctx context.Context, setup control.Setup) (control.Opened, error) {
			if setup.System != "" {
				f.system = setup.System
			}
			if setup.Append != "" {
				f.add = setup.Append
			}
			if setup.Agents != "" {
				f.agents = setup.Agents
			}
			s, models, err := p.open(ctx, f, func(o *host.Options) {
				o.Desk, o.Hooks, o.Tell, o.Watch = setup.Desk, setup.Hooks, setup.Tell, setup.Watch
			})
			if err != nil {
				return control.Opened{}, err
			}
			opened = true
			for _, w := range s.Warnings {
				p.tell(w)
			}
			return control.Opened{Session: s, About: about(s, models), Patience: p.patience, Tally: &cli.Tally{Price: models.Price, Model: s.Begun().Request.Model}}, nil
		},
	})
	switch {
	case err != nil && !opened:
		return err
	case err != nil && !errors.Is(err, troupe.ErrInterrupted):
		return &failure{exitFailed, err}
	case end.Reason != troupe.Done && end.Reason != "":
		return &failure{code: exitFailed}
	}
	return nil
}
