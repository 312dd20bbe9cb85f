package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
)

// begin opens the folder and the log, and brings the lead's state to where it
// goes on.
func (s *Session) begin(d troupe.Definition) (err error) {
	if s.opts.Resume == nil {
		err = s.create(s.Dir)
	} else {
		err = s.takeUp()
	}
	if err != nil {
		return err
	}
	if err := s.open(d); err != nil {
		return errors.Join(err, s.folder.Close())
	}
	return nil
}

// locate says where the session is, before anything is made there.
func (s *Session) locate() {
	o := &s.opts
	project := o.Config.Dir
	if o.Resume != nil {
		project = o.Resume.Project
	}
	switch {
	case o.Resume != nil && !o.Fork:
		s.ID, s.path = o.Resume.ID, o.Resume.Dir
		return
	case o.ID == "":
		o.ID = o.NewID()
	}
	s.ID, s.path = o.ID, session.Path(Sessions(o.Home), project, o.ID)
}

func (s *Session) create(project string) (err error) {
	s.folder, err = session.Create(Sessions(s.opts.Home), project, s.ID, s.opts.Now)
	return err
}

// takeUp opens the session to resume, or a copy of it.
func (s *Session) takeUp() (err error) {
	old := s.opts.Resume
	if !s.opts.Fork {
		s.folder, err = session.Open(old.Dir, s.opts.Now)
		return err
	}
	if err := s.create(old.Project); err != nil {
		return err
	}
	if err := copyFile(session.LogPath(s.folder.Dir, session.Lead), session.LogPath(old.Dir, session.Lead)); err != nil {
		return errors.Join(fmt.Errorf("copy session %s: %w", old.ID, err), s.folder.Close())
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
func (s *Session) open(d troupe.Definition) (err error) {
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
	for _, ev := range s.changes(d) {
		s.lead.State.Apply(ev)
		if err := s.log.Append(ev); err != nil {
			return err
		}
	}
	return nil
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
	return nil
}

// changes are the events by which a lead starts, or goes on differently than
// it stopped. A user's word counts; else an old session keeps its model and
// its mode. But plan and bypassPermissions are for the run they were asked for.
func (s *Session) changes(d troupe.Definition) []troupe.Event {
	state := s.lead.State
	mode := s.scope.Policy.Mode
	if state.Request.Model == "" { // new, or its first record was lost
		place := troupe.Place{Dir: s.Dir, Also: s.opts.Also}
		start := troupe.Started{Agent: session.Lead, Definition: d.Name, Mode: string(mode), Place: place,
			Request: troupe.Request{Model: s.opts.Model, Effort: d.Effort, System: d.Prompt}}
		for _, t := range s.lead.Tools {
			start.Request.Tools = append(start.Request.Tools, t.Spec())
		}
		s.facts, s.first = s.shared.Introduce(d, place), d.First
		return []troupe.Event{start}
	}
	var out []troupe.Event
	sw := troupe.Switched{}
	if s.opts.Model != "" && s.opts.Model != state.Request.Model {
		sw.Model = s.opts.Model
	}
	if was := permission.Mode(state.Mode); mode != was && (s.opts.Mode != "" || was == permission.Plan || was == permission.Bypass) {
		sw.Mode = string(mode)
	}
	if sw != (troupe.Switched{}) {
		out = append(out, sw)
	}
	place := state.Place
	for _, dir := range s.opts.Also {
		if !slices.Contains(place.Also, dir) {
			place.Also = append(slices.Clip(place.Also), dir)
		}
	}
	if len(place.Also) > len(state.Place.Also) {
		out = append(out, troupe.Moved{Place: place})
	}
	return out
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
