package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/permission"
)

// A PermissionUpdate is what a person changes of the permissions of a session,
// with an answer or by itself. Its JSON form is that of the agent SDKs.
type PermissionUpdate struct {
	// Type is addRules, replaceRules, removeRules, addDirectories,
	// removeDirectories or setMode.
	Type        string        `json:"type"`
	Rules       []RuleValue   `json:"rules,omitempty"`
	Behavior    troupe.Effect `json:"behavior,omitempty"` // of Rules
	Directories []string      `json:"directories,omitempty"`
	Mode        string        `json:"mode,omitempty"`
	// Destination is session, or the settings file that is to have it, too:
	// userSettings, projectSettings, localSettings.
	Destination string `json:"destination"`
}

// A RuleValue is a rule in two parts: Bash and "go test *".
type RuleValue struct {
	Tool string `json:"toolName"`
	Spec string `json:"ruleContent,omitempty"`
}

func (r RuleValue) text() string {
	if r.Spec == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Spec + ")"
}

// ofSession is where rules come from that no file has.
const ofSession = "this session"

// Permit changes the permissions of the session, for all its agents, from the
// next call on; directories and modes from the lead's next request on. What has
// a settings file as its destination is written there first: if that fails,
// nothing is changed. It must only be called for a person: nothing that an agent
// says may lead here. It may be called at any time.
func (s *Session) Permit(ctx context.Context, u PermissionUpdate) error {
	files, err := s.destination(u.Destination)
	if err != nil {
		return err
	}
	switch u.Type {
	case "addRules", "replaceRules", "removeRules":
		return s.permitRules(ctx, u, files)
	case "addDirectories", "removeDirectories":
		return s.permitDirectories(ctx, u, files)
	case "setMode":
		if files != nil {
			s.tell([]string{"the mode is set for this session; settings keep theirs (permissions.defaultMode)"})
		}
		return s.Switch(troupe.Switched{Mode: u.Mode, Chosen: true})
	}
	return fmt.Errorf("there is no change of permissions %q", u.Type)
}

// destination returns the settings files of a destination, the one to write to
// first; none for the session alone.
func (s *Session) destination(name string) ([]string, error) {
	root := s.opts.Config.Root
	switch name {
	case "session", "cliArg", "":
		return nil, nil
	case "userSettings":
		files := []string{filepath.Join(s.opts.Home, "settings.json")}
		if s.opts.UserHome != "" {
			files = append(files, filepath.Join(s.opts.UserHome, ".claude", "settings.json"))
		}
		return files, nil
	case "projectSettings":
		return []string{filepath.Join(root, ".troupe", "settings.json"), filepath.Join(root, ".claude", "settings.json")}, nil
	case "localSettings":
		return []string{config.LocalSettings(root), filepath.Join(root, ".claude", "settings.local.json")}, nil
	}
	return nil, fmt.Errorf("there is no destination %q for permissions: it is session, localSettings, projectSettings or userSettings", name)
}

func (s *Session) permitRules(ctx context.Context, u PermissionUpdate, files []string) error {
	source, root := ofSession, s.Dir
	if files != nil {
		source, root = files[0], s.opts.Config.Root
		if u.Destination == "userSettings" {
			root = filepath.Dir(files[0])
		}
	}
	if len(u.Rules) == 0 && u.Type != "replaceRules" {
		return nil
	}
	var texts []string
	var rules []permission.Rule
	for _, r := range u.Rules {
		rule, err := permission.ParseRule(u.Behavior, r.text(), permission.Origin{Source: source, Root: root, Home: s.opts.UserHome})
		if err != nil {
			return err
		}
		texts, rules = append(texts, r.text()), append(rules, rule)
	}
	from := append([]string{ofSession}, files...)
	if files != nil {
		from = files
	}
	p := permit{come: rules}
	switch u.Type {
	case "removeRules":
		p = permit{gone: func(r permission.Rule) bool {
			return r.Effect() == u.Behavior && slices.Contains(texts, r.String()) && slices.Contains(from, r.Origin().Source)
		}}
	case "replaceRules":
		p.gone = func(r permission.Rule) bool {
			return r.Effect() == u.Behavior && slices.Contains(from, r.Origin().Source)
		}
	}
	if err := s.write(ctx, u, files, texts); err != nil {
		return err
	}
	s.granted.put(p)
	return nil
}

// write writes rules into settings files.
func (s *Session) write(ctx context.Context, u PermissionUpdate, files, texts []string) error {
	for i, path := range files {
		if u.Type != "addRules" {
			drop := texts
			if u.Type == "replaceRules" {
				drop = nil
			}
			if err := config.RemoveRules(ctx, s.opts.Home, path, u.Behavior, drop...); err != nil {
				return err
			}
		}
		if u.Type != "removeRules" && i == 0 {
			if err := config.AddRules(ctx, s.opts.Home, path, u.Behavior, texts...); err != nil {
				return err
			}
			s.warnUntrusted(u, path)
		}
	}
	return nil
}

func (s *Session) warnUntrusted(u PermissionUpdate, path string) {
	if u.Behavior == troupe.Allow && u.Destination != "userSettings" && !s.opts.Config.Trusted {
		s.tell([]string{path + " allows it from now on, but only in this session: this folder is not trusted (troupe trust)"})
	}
}

func (s *Session) permitDirectories(ctx context.Context, u PermissionUpdate, files []string) error {
	var dirs []string
	for _, d := range u.Directories {
		if !filepath.IsAbs(d) {
			d = filepath.Join(s.Dir, d)
		}
		dirs = append(dirs, filepath.Clean(d))
	}
	for i, path := range files {
		var err error
		switch {
		case u.Type == "removeDirectories":
			err = config.RemoveDirectories(ctx, s.opts.Home, path, u.Directories...)
		case i == 0:
			err = config.AddDirectories(ctx, s.opts.Home, path, dirs...)
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = append(s.moves, move{u.Type == "addDirectories", dirs})
	return nil
}

// A move is directories that the lead may work in, or may no more.
type move struct {
	add  bool
	dirs []string
}

// movedTo is where the lead works after the moves that were asked for, and how
// many these are. They are forgotten when they are in the log.
func (s *Session) movedTo(p troupe.Place) (_ troupe.Place, moves int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.moves) == 0 {
		return p, 0
	}
	p.Also = slices.Clone(p.Also)
	for _, m := range s.moves {
		p.Also = slices.DeleteFunc(p.Also, func(d string) bool { return slices.Contains(m.dirs, d) })
		if m.add {
			p.Also = append(p.Also, m.dirs...)
		}
	}
	return p, len(s.moves)
}
