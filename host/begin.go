package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/delegate"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
)

// begin opens the folder and the log, and brings the lead's state to where it
// goes on.
func (s *Session) begin(ctx context.Context, d troupe.Definition) (err error) {
	if s.opts.Resume == nil {
		err = s.create()
	} else {
		err = s.takeUp()
	}
	if err != nil {
		return err
	}
	if err := s.open(ctx, d); err != nil {
		err = errors.Join(err, s.folder.Close())
		if s.opts.Resume == nil || s.opts.Fork { // we made it a moment ago, and nobody has said anything in it
			err = errors.Join(err, session.Remove(s.path))
		}
		return err
	}
	return nil
}

// locate says where the session is, before anything is made there.
func (s *Session) locate() {
	o := &s.opts
	switch {
	case o.Resume != nil && !o.Fork:
		s.ID, s.path = o.Resume.ID, o.Resume.Dir
		return
	case o.ID == "":
		o.ID = o.NewID()
	}
	s.ID, s.path = o.ID, session.Path(Sessions(o.Home), s.Dir, o.ID)
}

// check reports options that would open something else than was meant.
func (s *Session) check() error {
	old := s.opts.Resume
	if old == nil && s.opts.Model == "" {
		return fmt.Errorf("%w: a new session needs a model", ErrUse)
	}
	if old != nil && s.opts.Passing && !s.opts.Fork {
		return fmt.Errorf("%w: session %s would be removed at the end; go on in a copy of it", ErrUse, old.ID)
	}
	for _, name := range s.opts.Tools {
		if !slices.Contains(Known(), name) {
			return fmt.Errorf("%w: there is no tool %q; there are: %s", ErrUse, name, strings.Join(Tools(), ", "))
		}
	}
	if s.opts.Effort != "" && !delegate.ValidEffort(s.opts.Effort) {
		return fmt.Errorf("%w: effort %q: want low, medium, high, xhigh, max or a number of tokens", ErrUse, s.opts.Effort)
	}
	if old == nil || old.Project == "" { // not known: its first record was lost
		return nil
	}
	project, err := filepath.EvalSymlinks(old.Project)
	if err != nil {
		return fmt.Errorf("session %s works in a directory that cannot be used: %w", old.ID, err)
	}
	if project != s.Dir {
		return fmt.Errorf("%w: session %s works in %s, and the configuration is that of %s", ErrUse, old.ID, project, s.Dir)
	}
	return nil
}

// agent is the name of the definition that the lead follows, "" for our own. A
// session goes on as what it began with: its prompt and tools are in its log.
func (s *Session) agent() (string, error) {
	old := s.opts.Resume
	if old == nil {
		return s.opts.Agent, nil
	}
	for r, err := range session.Read(session.LogPath(old.Dir, session.Lead)) {
		start, ok := r.Event.(troupe.Started)
		if err != nil || !ok {
			continue
		}
		if s.opts.Agent != "" && s.opts.Agent != start.Definition {
			return "", fmt.Errorf("%w: session %s began as agent %q and cannot go on as %q; start a new one", ErrUse, old.ID, start.Definition, s.opts.Agent)
		}
		if start.Definition == session.Lead {
			return s.opts.Agent, nil
		}
		return start.Definition, nil
	}
	return s.opts.Agent, nil // the first record is lost
}

func (s *Session) create() (err error) {
	s.folder, err = session.Create(Sessions(s.opts.Home), s.Dir, s.ID, s.opts.Now)
	return err
}

// takeUp opens the session to resume, or a copy of it.
func (s *Session) takeUp() (err error) {
	old := s.opts.Resume
	if !s.opts.Fork {
		s.folder, err = session.Open(old.Dir, s.opts.Now)
		return err
	}
	if err := s.create(); err != nil {
		return err
	}
	if err := copyFile(session.LogPath(s.folder.Dir, session.Lead), session.LogPath(old.Dir, session.Lead)); err != nil {
		return errors.Join(fmt.Errorf("copy session %s: %w", old.ID, statefile.Explain(err)), s.folder.Close())
	}
	return nil
}

func copyFile(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Sync(), dst.Close())
}

// open reads the log and writes down what is new about the lead.
func (s *Session) open(ctx context.Context, d troupe.Definition) (err error) {
	s.lead.State = new(troupe.State)
	if s.opts.Resume != nil {
		if err := s.load(); err != nil {
			return err
		}
	}
	if s.log, err = s.folder.Log(session.Lead); err != nil {
		return err
	}
	s.mark = s.folder.Mark()
	if err := s.priced(); err != nil {
		return err
	}
	changes, err := s.changes(d)
	if err != nil {
		return err
	}
	for _, ev := range changes {
		s.lead.State.Apply(ev)
		if err := s.log.Append(ev); err != nil {
			return err
		}
	}
	if err := s.fits(s.lead.State.Request, s.lead.State.Request.Model); err != nil {
		return err
	}
	if err := s.attend(ctx); err != nil {
		return err
	}
	s.begun = *s.lead.State
	if before := permission.Mode(s.begun.Before); before != permission.Plan && before != permission.Bypass {
		s.planning.Return(s.begun.Before)
	}
	s.scope.Standing.Set(permission.Mode(s.begun.Mode))
	// What the model was not offered is not there, whatever its definition says by now.
	s.lead.Tools = slices.DeleteFunc(s.lead.Tools, func(t troupe.Tool) bool {
		return !slices.ContainsFunc(s.begun.Request.Tools, func(o troupe.ToolSpec) bool { return o.Name == t.Spec().Name })
	})
	return nil
}

// fits reports that a model cannot take what the lead has to say first of all. Its
// conversation is no part of it: that can be cut short.
func (s *Session) fits(req troupe.Request, model string) error {
	req.Model, req.Messages = model, nil
	return delegate.Fits(req, s.opts.Models.Window(model))
}

// load folds the log of the session that is resumed.
func (s *Session) load() error {
	path := session.LogPath(s.folder.Dir, session.Lead)
	state, bad, err := session.Load(path)
	if err != nil {
		return fmt.Errorf("resume session %s: %w", s.opts.Resume.ID, err)
	}
	if len(bad) > 0 {
		s.warn("records of the session that could not be read and were skipped: %d; the first: %v", len(bad), bad[0])
	}
	s.lead.State = state
	s.journal.Recover(state.Place, state.Open())
	return nil
}

// changes are the events by which a lead starts, or goes on differently than
// it stopped. A user's word counts; else an old session keeps its model, and
// the mode if the user named it. But plan and bypassPermissions are for the run
// they were asked for, and what settings gave, a mode or directories, lasts as
// long as they give it: trust can be taken back.
func (s *Session) changes(d troupe.Definition) ([]troupe.Event, error) {
	state := s.lead.State
	mode := s.scope.Policy.Mode
	if !started(state) {
		start, err := s.start(d)
		return []troupe.Event{start}, err
	}
	if s.opts.Model == "" { // what would make each request fail is said before the first
		if _, err := s.opts.Models.Resolve(state.Request.Model, ""); err != nil {
			return nil, err
		}
	}
	var out []troupe.Event
	sw := troupe.Switched{}
	if s.opts.Model != "" && s.opts.Model != state.Request.Model {
		sw.Model = s.opts.Model
	}
	if s.opts.Effort != state.Request.Effort {
		sw.Effort = s.opts.Effort
	}
	was := permission.Mode(state.Mode)
	keeps := state.Chosen && was != permission.Plan && was != permission.Bypass && s.forbids(was) == nil
	if mode != was && (s.opts.Mode != "" || !keeps) {
		sw.Mode, sw.Chosen = string(mode), s.opts.Mode != ""
	}
	if sw != (troupe.Switched{}) {
		out = append(out, sw)
	}
	if !slices.Equal(state.Place.Also, s.opts.Also) {
		out = append(out, troupe.Moved{Place: troupe.Place{Dir: state.Place.Dir, Also: s.opts.Also}})
	}
	return out, nil
}

// started reports whether the first record of the log was there. Later ones can
// change the model and the place, but bring no prompt and no tools.
func started(s *troupe.State) bool {
	return s.Request.Model != "" && s.Place.Dir != "" && (s.Request.System != "" || s.Request.Tools != nil)
}

// start is the first record of a new session, or of one that has lost it.
func (s *Session) start(d troupe.Definition) (troupe.Started, error) {
	was := s.lead.State
	place := troupe.Place{Dir: s.Dir, Also: s.opts.Also}
	ev := troupe.Started{Agent: session.Lead, Definition: d.Name, Mode: string(s.scope.Policy.Mode), Chosen: s.opts.Mode != "", Place: place,
		Request: troupe.Request{Model: cmp.Or(s.opts.Model, was.Request.Model), Effort: cmp.Or(s.opts.Effort, d.Effort), System: d.Prompt}}
	if ev.Request.Model == "" {
		return ev, fmt.Errorf("%w: session %s has lost the record of its model; name one", ErrUse, s.ID)
	}
	for _, t := range s.lead.Tools {
		ev.Request.Tools = append(ev.Request.Tools, t.Spec())
	}
	before := troupe.Blocks{troupe.Text(s.shared.Introduce(d, place)), troupe.Text(d.First)}
	s.inbox.introduce(slices.DeleteFunc(before, func(b troupe.Block) bool { return b == troupe.Text("") }))
	return ev, nil
}

// Latest returns the newest session that works in dir.
func Latest(home, dir string) (session.Info, error) {
	all, err := session.List(Sessions(home), dir)
	if err != nil {
		return session.Info{}, err
	}
	if len(all) == 0 {
		return session.Info{}, fmt.Errorf("%w in %s; start one with: troupe -p \"…\"", session.ErrNotFound, filepath.Clean(dir))
	}
	return all[0], nil
}
