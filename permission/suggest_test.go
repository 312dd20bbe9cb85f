package permission

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// What is suggested is narrow, and with it the call runs.
func TestSuggest(t *testing.T) {
	place := workspace(t)
	out := filepath.Join(filepath.Dir(place.Dir), "outside")
	for _, c := range []struct {
		call *troupe.Call
		want string // rules, separated by " + "; "" is none
	}{
		{shell(place, "go test ./..."), "Bash(go test *)"},
		{shell(place, "cd src && go vet ./... 2>&1 | tail -3"), "Bash(go vet *)"},
		{shell(place, "go build ./... && git commit -am x"), "Bash(go build *) + Bash(git commit *)"},
		{shell(place, "go test ./a; go test ./b"), "Bash(go test *)"},
		{shell(place, "npm run test -- --watch"), "Bash(npm run test *)"},
		{shell(place, "npm exec thing"), "Bash(npm exec thing)"},
		{shell(place, "go run ./x"), "Bash(go run ./x)"},
		{shell(place, "make test"), "Bash(make test)"},
		{shell(place, "rm build"), "Bash(rm build)"},
		{shell(place, "python3 tool.py"), "Bash(python3 tool.py)"},
		{shell(place, "timeout 60 go test ./..."), "Bash(go test *)"},
		{shell(place, "rm *.o"), ""},             // as a rule it would be one for any argument
		{shell(place, "touch .git/hooks/x"), ""}, // protected
		{shell(place, "go test ./... > .git/config"), ""},
		{shell(place, "dd if=x of=.git/config"), ""},
		{shell(place, "git commit -m \"$(cat main.go)\""), "Bash(git commit *)"},
		{shell(place, "git push"), ""},        // a rule asks
		{shell(place, "rm -r $(cat x)y"), ""}, // nobody knows what
		{shell(place, "PATH=/x go test"), ""},
		{call(place, "Edit", "file_path", "src/a.go"), "Edit(/" + place.Dir + "/src/**)"},
		{call(place, "Write", "file_path", "new.go"), "Edit(/" + place.Dir + "/new.go)"}, // not all of the working directory
		{call(place, "Edit", "file_path", ".git/config"), ""},
		{call(place, "Edit", "file_path", ".env"), ""}, // a rule asks
		{call(place, "Read", "file_path", out+"/file"), "Read(/" + out + "/**)"},
		{call(place, "Grep", "path", out), "Read(/" + out + "/**)"},
		{call(place, "Read", "file_path", "/etc/passwd"), "Read(//etc/**)"},
		{call(place, "Read", "file_path", filepath.Dir(place.Dir)+"/x"), "Read(/" + filepath.Dir(place.Dir) + "/x)"}, // it holds the working directory
		{call(place, "Read", "file_path", "/home/user/x"), "Read(//home/user/x)"},
		{call(place, "WebFetch", "url", "https://Docs.Example.com/a?b"), "WebFetch(domain:docs.example.com)"},
		{call(place, "mcp__files__list"), "mcp__files__list"},
		{call(place, "Read", "file_path", "main.go"), ""}, // needs none
	} {
		p := policy(t, Default, "ask Bash(git push *)", "ask Edit(.env)")
		got := p.Suggest(c.call)
		if strings.Join(got, " + ") != c.want {
			t.Errorf("%s: %q, want %q", c.call.Input, got, c.want)
		}
		if got == nil {
			continue
		}
		if q, ok := p.with(c.call, got...); !ok || q.Decide(c.call).Effect != troupe.Allow {
			t.Errorf("%s does not run with %q", c.call.Input, got)
		}
	}
	if got := policy(t, Plan).Suggest(shell(place, "go test")); got != nil {
		t.Errorf("in mode plan nothing is asked, and %q is suggested", got)
	}
}

// A rule that was suggested for one thing does not let a worse one through.
func TestSuggestedRulesAreNarrow(t *testing.T) {
	place := workspace(t)
	for was, worse := range map[string][]string{
		"go test ./...":   {"go run ./x", "go test ./... && rm -r /", "rm x", "go test > .git/config"},
		"rm build":        {"rm build x", "rm -rf build", "rm /"},
		"python3 tool.py": {"python3 -c 'x'", "python3 tool.py; rm x"},
		"sudo make":       {"sudo rm x", "make"},
		"find . -delete":  {"find / -delete"},
		"bash build.sh":   {"bash other.sh", "bash -c 'rm x'"},
	} {
		p := policy(t, Default)
		rules := p.Suggest(shell(place, was))
		q, ok := p.with(shell(place, was), rules...)
		if !ok || len(rules) == 0 && !slices.Contains([]string{"bash build.sh", "sudo make"}, was) {
			t.Errorf("%s: %q", was, rules)
		}
		for _, command := range worse {
			if v := q.Decide(shell(place, command)); v.Effect == troupe.Allow {
				t.Errorf("%q, suggested for %q, allows %q", rules, was, command)
			}
		}
	}
}
