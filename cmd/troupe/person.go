package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-sh/troupe/ask"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/line"
	"github.com/troupe-sh/troupe/session"
)

// sit lets the person at the terminal work: the way of troupe without -p.
func (p *program) sit(ctx context.Context, f *flags, args []string) error {
	if err := f.checkSession(); err != nil {
		return err
	}
	if f.output != "text" || f.verbose {
		return errors.New("--output-format and --verbose are for a prompt that is answered with -p")
	}
	t, err := line.Open(p.in, p.out.(*os.File))
	if err != nil {
		return err
	}
	defer t.Close()
	p.notes = t
	defer p.signals.handle(t.Interrupt, t.Close)()
	p.offer = p.once(ctx, t)
	o := &office{program: p, terminal: t, flags: *f}
	if err := o.open(ctx, *f); err != nil {
		return o.said(err)
	}
	first := strings.Join(args, " ")
	for {
		exit, err := o.work(ctx, first)
		switch {
		case err != nil:
			return o.said(&failure{exitFailed, err})
		case exit == line.Broken:
			return &failure{code: 128 + int(syscall.SIGINT)}
		case exit == line.Quit:
			return nil
		}
		first = ""
	}
}

// errLeft is that the person left instead of answering.
var errLeft = &failure{code: 128 + int(syscall.SIGINT)}

// once puts a question to the person once: who has said no is not asked again
// when another session is resumed.
func (p *program) once(ctx context.Context, t *line.Terminal) func(string) (string, error) {
	asked := map[string]bool{}
	return func(question string) (string, error) {
		if asked[question] {
			return "", nil
		}
		asked[question] = true
		answer, ok := t.Ask(ctx, question)
		if !ok {
			return "", errLeft
		}
		return answer, nil
	}
}

// An office is where a person works: the terminal, and one session after another.
type office struct {
	*program
	terminal *line.Terminal
	flags    flags
	now      *place
	next     *place // what /resume has opened
}

// A place is a session with its face.
type place struct {
	face    *line.Face
	session *host.Session
	resumed bool
}

// said makes an error that is printed once the terminal is given back.
func (o *office) said(err error) error {
	o.terminal.Close()
	o.notes = os.Stderr
	return err
}

// open makes the session that the flags ask for the next one.
func (o *office) open(ctx context.Context, f flags) error {
	desk := ask.NewDesk(time.Now)
	face := &line.Face{Terminal: o.terminal, Desk: desk, Now: time.Now, Sessions: sessionsHere(o.program), Resume: o.resume}
	s, models, err := o.program.open(ctx, &f, func(opts *host.Options) {
		opts.Desk, opts.Watch, opts.Tell = desk, face.Watch, face.Tell
	})
	if err != nil {
		return err
	}
	face.Price = models.Price
	for _, w := range s.Warnings {
		fmt.Fprintln(o.terminal, "troupe: "+w)
	}
	o.next = &place{face, s, f.resume != "" || f.resumeLast}
	return nil
}

// resume opens a session that is there already.
func (o *office) resume(ctx context.Context, id string) error {
	f := o.flags
	f.resume, f.resumeLast, f.fork, f.session, f.agent = id, false, false, "", ""
	return o.open(ctx, f)
}

// work lets the person work in the next session, and closes it.
func (o *office) work(ctx context.Context, first string) (line.Exit, error) {
	now := o.next
	o.next = nil
	exit, said, err := now.face.Run(ctx, now.session, first)
	if exit == line.Broken { // a turn may still hang; the end of the program ends all
		o.farewell(now, said)
		return exit, err
	}
	if cerr := now.session.Close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	if !said && !now.resumed { // --continue would find an empty session
		err = errors.Join(err, session.Remove(now.session.Path()))
	}
	o.farewell(now, said)
	return exit, err
}

func (o *office) farewell(now *place, said bool) {
	if said && o.next == nil {
		fmt.Fprintf(o.terminal, "session %s; troupe --resume %s goes on with it\n", now.session.ID, now.session.ID)
	}
}

// sessionsHere returns a func that lists the sessions of the working directory.
func sessionsHere(p *program) func() ([]session.Info, error) {
	return func() ([]session.Info, error) {
		home, _, err := p.homes()
		if err != nil {
			return nil, err
		}
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("the working directory: %w", err)
		}
		return session.List(host.Sessions(home), dir)
	}
}
