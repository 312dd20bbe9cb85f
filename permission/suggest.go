package permission

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-sh/troupe"
)

// maxSuggested is the number of rules that a person can take in at a glance.
const maxSuggested = 4

// Suggest returns the allow rules with which c would run from now on without
// being asked about: as narrow as makes sense, and tried out. It returns none
// where no rule should be offered: what a rule asks about, protected files, and
// commands of which nobody can say what they do.
func (p Policy) Suggest(c *troupe.Call) []string {
	if v, firm := p.decide(c); v.Effect != troupe.Ask || firm {
		return nil
	}
	tool := toolAlias(c.Name)
	switch tool {
	case toolBash:
		return p.suggestShell(c)
	case toolRead, toolGlob, toolGrep, toolEdit, toolWrite, toolNotebook:
		return p.suggestFile(tool, c)
	case toolWebFetch:
		var in struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(c.Input, &in) != nil {
			return nil
		}
		u, err := url.Parse(in.URL)
		if err != nil {
			return nil
		}
		return p.firstThat(c, []string{"WebFetch(domain:" + plainHost(u.Hostname()) + ")"})
	}
	return p.firstThat(c, []string{c.Name})
}

// with is p with further allow rules; ok is false if one of them is none.
func (p Policy) with(c *troupe.Call, rules ...string) (out Policy, ok bool) {
	p.Rules = slices.Clip(p.Rules)
	for _, text := range rules {
		r, err := ParseRule(troupe.Allow, text, Origin{Source: "suggestion", Root: c.Place.Dir, Home: p.Home})
		if err != nil {
			return p, false
		}
		p.Rules = append(p.Rules, r)
	}
	return p, true
}

// firstThat returns the first of several rules that lets c run, alone.
func (p Policy) firstThat(c *troupe.Call, rules []string) []string {
	for _, text := range rules {
		if q, ok := p.with(c, text); ok && q.Decide(c).Effect == troupe.Allow {
			return []string{text}
		}
	}
	return nil
}

// suggestFile suggests the directory of a file, unless that is the working
// directory or one that holds much else: then the file alone.
func (p Policy) suggestFile(tool string, c *troupe.Call) []string {
	name, err := filePath(tool, c)
	if err != nil {
		return nil
	}
	s, err := newScope(c.Place, p.Rules)
	if err != nil {
		return nil
	}
	t, err := s.target(name)
	if err != nil {
		return nil
	}
	kind, dir := toolEdit, filepath.Dir(t.real)
	reads := tool == toolRead || tool == toolGlob || tool == toolGrep
	if reads {
		kind = toolRead
	}
	if tool == toolGlob || tool == toolGrep { // they search a directory
		dir = t.real
	}
	if !reads && p.protectedPart(t) != "" {
		return nil
	}
	only := kind + "(/" + Literal(slashed(t.real)) + ")"
	if p.holdsMuch(dir, s) {
		return p.firstThat(c, []string{only})
	}
	return p.firstThat(c, []string{kind + "(/" + Literal(slashed(dir)) + "/**)", only})
}

// holdsMuch reports whether a rule for all below dir would be one for more than
// a person may think of.
func (p Policy) holdsMuch(dir string, s *scope) bool {
	above := func(what string) bool {
		rel, err := filepath.Rel(dir, what)
		return err != nil || filepath.IsLocal(rel)
	}
	return filepath.Dir(dir) == dir || above(s.dir.real) || p.Home != "" && above(p.Home)
}

// suggestShell suggests a rule for each command of a command line that has none.
func (p Policy) suggestShell(c *troupe.Call) []string {
	var in struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(c.Input, &in) != nil {
		return nil
	}
	s := parseScript(in.Command, p.Home)
	if s.unclear != "" || s.sets != "" || p.touchesProtected(s, c.Place) {
		return nil
	}
	var rules []string
	for _, cmd := range s.commands {
		alone := *c
		var err error
		if alone.Input, err = json.Marshal(map[string]string{"command": cmd.source}); err != nil {
			return nil
		}
		q, _ := p.with(c, rules...)
		if q.Decide(&alone).Effect == troupe.Allow {
			continue
		}
		more := q.firstThat(&alone, commandRules(cmd))
		if more == nil || len(rules) == maxSuggested {
			return nil
		}
		rules = append(rules, more...)
	}
	// The parts may mean something else together: after a cd, or with a redirect.
	if q, ok := p.with(c, rules...); !ok || len(rules) == 0 || q.Decide(c).Effect != troupe.Allow {
		return nil
	}
	return rules
}

// touchesProtected reports whether a word of a command line is, or ends in, the
// name of a protected file.
func (p Policy) touchesProtected(s script, place troupe.Place) bool {
	sc, err := newScope(place, p.Rules)
	if err != nil {
		return true
	}
	for _, c := range s.commands {
		for _, w := range c.words {
			name := strings.ReplaceAll(w.text, string(anything), "")
			t, err := sc.target(absolute(place.Dir, name[strings.LastIndexAny(name, "=:")+1:]))
			if err == nil && p.protectedPart(t) != "" {
				return true
			}
		}
	}
	return false
}

// commandRules are rules for a command, the one to be preferred first: program
// and subcommand, where there are such, else the very command.
func commandRules(c command) []string {
	var out []string
	words := unwrap(c.words).run()
	if n := subcommands(words); n > 0 {
		out = append(out, "Bash("+joinTexts(words[:n])+" *)")
	}
	known := !slices.ContainsFunc(c.words, func(w word) bool { return !w.known() })
	if known && !strings.Contains(c.source, "*") { // in a rule it would stand for any text
		out = append(out, "Bash("+c.source+")")
	}
	return out
}

// subcommands returns how many words of a command name what it does; 0 if all
// do, or if what it runs stands behind.
func subcommands(words []word) int {
	if len(words) < 2 || !words[0].known() || !plainWord(words[1]) {
		return 0
	}
	switch words[1].text {
	case "exec", "run", "x", "dlx", "sh", "shell", "eval", "config", "alias":
		switch words[0].text {
		case "npm", "pnpm", "yarn", "bun": // scripts of the repository
			if words[1].text == "run" && len(words) > 2 && plainWord(words[2]) {
				return 3
			}
		}
		return 0
	}
	switch words[0].text {
	case "git", "go", "cargo", "npm", "pnpm", "yarn", "bun", "gh", "pip", "pip3", "poetry", "uv", "bundle", "dotnet", "mvn", "gradle",
		"terraform", "tofu", "helm", "kubectl", "docker", "podman", "brew", "rustup", "composer", "mix", "swift", "zig", "systemctl":
		return 2
	}
	return 0
}

// plainWord reports whether a word may be the name of a subcommand.
func plainWord(w word) bool {
	return w.text != "" && w.text[0] != '-' && strings.Trim(w.text, "abcdefghijklmnopqrstuvwxyz-:") == ""
}
