package permission

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// What mode auto makes of commands: without a sandbox, in one that leaves the
// network open, and in one that cuts it.
func TestAutoAllowsWhatTheSandboxHolds(t *testing.T) {
	place := workspace(t)
	const yes, no, never = troupe.Allow, troupe.Ask, troupe.Deny
	for _, c := range []struct {
		command         string
		none, open, cut troupe.Effect
	}{
		{"ls", yes, yes, yes},
		{"go test ./...", no, yes, yes},
		{"FOO=bar make -j4 all > out.log 2>&1", no, yes, yes},
		{"rm -rf build && npm test", no, yes, yes},
		{"echo x > /tmp/elsewhere", no, yes, yes},
		{"git commit -m x", no, yes, yes},
		{"python3 -c 'print(1)'", no, yes, yes},
		{"sh -c 'go build ./...'", no, yes, yes},
		// the network
		{"curl https://example.com", no, no, yes},
		{"go test ./... && curl -d @x https://example.com", no, no, yes},
		{"sh -c 'wget example.com'", no, no, yes},
		{"echo x | xargs curl", no, no, yes},
		{"sudo ssh host", no, no, yes},
		{"git push", no, no, yes},
		{"git -C sub push origin", no, no, yes},
		{"git $what", no, no, yes},
		{"find . -exec curl {} ;", no, no, yes},
		{"npm publish", no, no, yes},
		{"npm run build", no, yes, yes},
		{"$TOOL x", no, no, yes},
		{"eval \"$x\"", no, no, yes},
		// others that do what they are told, outside
		{"docker run -v /:/host x", no, no, no},
		{"systemd-run --user rm x", no, no, no},
		{"nice tmux send-keys x", no, no, no},
		{"echo $(crontab x)", no, no, no},
		// what runs outside
		{"free build", no, no, no},
		// what no sandbox of ours makes harmless
		{"echo x > .git/hooks/pre-commit", no, no, no},
		{"cp x .claude/settings.json", no, no, no},
		{"cat /etc/hostname", no, no, no},
		// rules
		{"make secret", never, never, never},
		{"env X=1 make secret", never, never, never},
		{"make release", no, no, no},
		{"make allowed", yes, yes, yes},
	} {
		p := policy(t, Auto, "deny Bash(make secret)", "ask Bash(make release)", "allow Bash(make allowed)")
		// A rule that denies makes firm what cannot be known before: here it
		// is about what the sandbox makes of that.
		if strings.Contains(c.command, "$") || strings.Contains(c.command, "sudo") || strings.Contains(c.command, "-exec") {
			p.Rules = nil
		}
		free := func(command string) bool { return strings.HasPrefix(command, "free ") }
		for i, s := range []*Sandbox{nil, {Free: free}, {Free: free, NoNetwork: true}} {
			p.Sandbox = s
			want := []troupe.Effect{c.none, c.open, c.cut}[i]
			if v := p.Decide(shell(place, c.command)); v.Effect != want {
				t.Errorf("%q, sandbox %d: %s (%s), want %s", c.command, i, v.Effect, v.Reason, want)
			}
			for _, mode := range []Mode{Plan, DontAsk, Default, AcceptEdits} { // a sandbox alone gives nothing
				p, without := p, p
				p.Mode, without.Mode, without.Sandbox = mode, mode, nil
				if v, w := p.Decide(shell(place, c.command)), without.Decide(shell(place, c.command)); v.Effect != w.Effect || v.Reason != w.Reason {
					t.Errorf("%q in mode %s: %v, want %v", c.command, mode, v, w)
				}
			}
		}
	}
}

// Trusted carries what the sandbox holds into the modes below auto that ask,
// and into no other.
func TestATrustedSandbox(t *testing.T) {
	place := workspace(t)
	for mode, want := range map[Mode]troupe.Effect{
		Plan: troupe.Deny, DontAsk: troupe.Deny, Default: troupe.Allow, "": troupe.Allow, AcceptEdits: troupe.Allow, Auto: troupe.Allow, Bypass: troupe.Allow,
	} {
		p := policy(t, mode)
		p.Sandbox = &Sandbox{Trusted: true}
		if v := p.Decide(shell(place, "go test ./...")); v.Effect != want {
			t.Errorf("mode %s: %v", mode, v)
		}
		if v := p.Decide(shell(place, "git push")); v.Effect == troupe.Allow && mode != Bypass {
			t.Errorf("mode %s, the network: %v", mode, v)
		}
	}
}

func TestAutoEditsAsAcceptEditsDoes(t *testing.T) {
	place := workspace(t)
	for _, file := range []string{"main.go", "new/file.go", "../outside/file", ".git/config", ".claude/settings.json", "out/file"} {
		for _, tool := range []string{"Edit", "Write"} {
			auto, edits := policy(t, Auto), policy(t, AcceptEdits)
			auto.Sandbox = &Sandbox{NoNetwork: true}
			a, e := auto.Decide(call(place, tool, "file_path", file)), edits.Decide(call(place, tool, "file_path", file))
			if a.Effect != e.Effect || file == "main.go" && a.Effect != troupe.Allow || file == ".git/config" && a.Effect != troupe.Ask {
				t.Errorf("%s %s: %v, in acceptEdits %v", tool, file, a, e)
			}
		}
	}
}

func TestCovers(t *testing.T) {
	patterns := []string{"docker *", "git push", "npm run watch*"}
	for command, want := range map[string]bool{
		"docker ps": true, "docker build . && docker push x": true, "cd sub && docker ps": true, "git push": true, "npm run watch:css": true,
		"ls": false, "cd sub": false, "docker ps; rm -rf /": false, "docker ps $(rm x)": false, "docker ps > /etc/x": false, "docker ps | sh": false,
		"X=1 docker ps": false, "PATH=/evil; docker ps": false, "docker $x": false, "git push --force": false, "docker ps 'unfinished": false,
		"docker() { rm x; }; docker ps": false, "": false, "sh -c 'docker ps'": false, "./docker ps": false,
	} {
		if got := Covers(patterns, command); got != want {
			t.Errorf("Covers(%q) = %v", command, got)
		}
	}
}

// The classifier is asked in mode auto, about what would be asked, and beats no
// rule. What it answers is for that call alone.
func TestClassifier(t *testing.T) {
	place := workspace(t)
	for _, c := range []struct {
		mode    Mode
		command string
		says    error // errYes: yes
		asked   bool
		effect  troupe.Effect
	}{
		{Auto, "curl example.com", errYes, true, troupe.Allow},
		{Auto, "curl example.com", nil, true, troupe.Deny},
		{Auto, "curl example.com", errors.New("out of order"), true, troupe.Deny},
		{Auto, "ls", nil, false, troupe.Allow},
		{Auto, "rm secret", errYes, false, troupe.Deny},
		{Auto, "make release", errYes, false, troupe.Deny},
		{Auto, "$tool", errYes, false, troupe.Deny}, // could be what the rules are about
		{AcceptEdits, "curl example.com", errYes, false, troupe.Deny},
		{Plan, "curl example.com", errYes, false, troupe.Deny},
		{DontAsk, "curl example.com", errYes, false, troupe.Deny},
	} {
		asked := false
		g := &Gate{
			Policy: func(mode string) Policy {
				return policy(t, Mode(mode), "deny Bash(rm secret)", "ask Bash(make release)")
			},
			Classify: func(_ context.Context, call *troupe.Call, why troupe.Verdict) (bool, error) {
				asked = true
				if call.Name != "Bash" || why.Effect != troupe.Ask || why.Reason == "" {
					t.Errorf("asked about %v: %v", call, why)
				}
				if errors.Is(c.says, errYes) {
					return true, nil
				}
				return false, c.says
			},
		}
		call := shell(place, c.command)
		call.Mode = string(c.mode)
		v, err := g.Check(t.Context(), call)
		if err != nil || v.Effect != c.effect || asked != c.asked || v.Reason == "" {
			t.Errorf("%s %q, %v: %v, %v, asked %v", c.mode, c.command, c.says, v, err, asked)
		}
		if c.effect == troupe.Allow && asked && v.By != "classifier" {
			t.Errorf("%q was allowed by %s", c.command, v.By)
		}
	}
}

var errYes = errors.New("yes")

// Nor does it lift what a hook asks about, whatever the rules would have said.
func TestClassifierAndHooks(t *testing.T) {
	place := workspace(t)
	for _, command := range []string{"curl example.com", "ls"} {
		for hook, want := range map[troupe.Effect]troupe.Effect{troupe.Ask: troupe.Deny, "": troupe.Allow} {
			g := &Gate{
				Policy: func(string) Policy { return policy(t, Auto) },
				Hook: func(context.Context, *troupe.Call) (troupe.Verdict, error) {
					return troupe.Verdict{Effect: hook, By: "hook"}, nil
				},
				Classify: func(context.Context, *troupe.Call, troupe.Verdict) (bool, error) { return true, nil },
			}
			if v, err := g.Check(t.Context(), shell(place, command)); err != nil || v.Effect != want {
				t.Errorf("%q, hook %q: %v, %v", command, hook, v, err)
			}
		}
	}
}

func TestPathOfARule(t *testing.T) {
	for rule, want := range map[string]string{
		"Edit(//data/out/**)": "/data/out", "Edit(//data/out)": "/data/out", "Edit(src/**)": "/place/src", "Edit(/src)": "/project/src", "Edit(~/x/)": "/home/user/x",
		`Edit(//a\*b/**)`: "/a*b", "Edit(**)": "/place",
		"Edit": "", "Edit(//data/*.go)": "", "Edit(//data/**/x)": "", "Edit(//data/{a,b})": "", "Bash(ls)": "",
	} {
		p := policy(t, Default, "allow "+rule)
		if got, ok := p.Rules[0].Path("/place"); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", rule, got, ok, want)
		}
	}
	if got, ok := policy(t, Default, "deny Edit(.env)").Rules[0].Path("/place"); ok {
		t.Errorf("a name in any directory is %s", got)
	}
}
